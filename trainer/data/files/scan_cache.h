// SPDX-License-Identifier: Apache-2.0
//
// Where the records of a set begin is found by reading all of their headers.  One rank of a node
// does that; the others, and the next run, read what it has found out of a private directory of the
// node (doc/decisions/0032-persistent-record-index.md).
//
// What is kept counts for files that are as they were when they were scanned, by FileIdentity; any
// other is scanned.  Whatever lies in the directory, the records are those of the files: what is
// kept has a checksum, its records must fill the file, and each record is held against its own
// header and checksums when it is read.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/core/file.h"
#include "trainer/data/files/tfrecord.h"

namespace trainer {

// What it took to find the records.
struct ScanCost {
  std::int64_t files = 0;    // in which they were found
  std::int64_t scanned = 0;  // of these, by this process
  std::int64_t headers = 0;  // that it read
  std::uint64_t bytes = 0;   // with the checksums beside them
  double seconds = 0;
  std::string note;  // why what was found is not kept; "" if it is, or need not be

  // Of two sets, the one after the other.
  ScanCost& operator+=(const ScanCost& other) {
    files += other.files;
    scanned += other.scanned;
    headers += other.headers;
    bytes += other.bytes;
    seconds += other.seconds;
    if (note.empty()) note = other.note;
    return *this;
  }
};

// What a scan of the record headers has found, as the bytes that are kept.  All numbers are
// little-endian, texts are their length in 4 bytes and themselves:
//   17 bytes  "ddltraind scan 1\n"
//   4 bytes   CRC-32C of everything behind
//   text      which set this is of
//   4 bytes   number of files; of each, in the order of their names:
//     text     name
//     40 bytes FileIdentity, member by member, 8 bytes each
//     4 bytes  RecordScan::checksum
//     4 bytes  number of records; of each
//       4 bytes  its size, with the framing
// The records of a file lie one behind the other and fill it.
//
// Pure.

// One file of a set, as it was when it was scanned.
struct ScannedFile {
  std::string name;
  FileIdentity identity;
  RecordScan scan;  // bytes_read is not kept: 0 when it is read back
  bool operator==(const ScannedFile&) const = default;
};

// REQUIRES: sorted by name, each name once; KeepsScan of all.
std::string FormatScans(std::string_view set, std::span<const ScannedFile> files);

// Whether a scan can be kept: no record of it is larger than 4 GiB.
bool KeepsScan(const RecordScan& scan);

// Nothing if `bytes` are anything else than FormatScans(set, files) of some files.
std::optional<std::vector<ScannedFile>> ParseScans(std::span<const std::uint8_t> bytes,
                                                   std::string_view set);

struct ScanCacheOptions {
  std::string dir;  // scan_cache.h; "": nothing is kept
  // How long to wait for another process that scans this set.
  std::chrono::milliseconds timeout = std::chrono::minutes(5);
  // A file that was changed less than this before is not kept: another change may have the same
  // time.
  std::chrono::nanoseconds settled = std::chrono::seconds(2);
};

struct SetScan {
  std::vector<RecordScan>
      files;  // in the order of `files`; of those that are kept, without bytes_read
  ScanCost cost;
};

// The records of `files`, which are sorted by path, on `threads` threads.  `set` names them among
// all sets.  Throws what RecordFile::ScanWithChecksum throws of the first file that cannot be used;
// a directory that cannot be used is no error.
SetScan ScanSet(std::span<const RecordFile> files, const std::string& set, int threads,
                const ScanCacheOptions& options);

// A directory of this user alone (mode 0700), whose files nobody else can have written, read or
// changed.  Processes of one user meet in it.
//
// Errors are Error(EX_OSERR) that name the path.

class PrivateDirectory {
 public:
  // Makes it where it is not there; the directory above must be.  Throws where it cannot, or where
  // what is there is a link, another user's, or open to others.
  explicit PrivateDirectory(std::string path);

  const std::string& path() const { return path_; }

  // All of a file of this user, a plain one and no link; nothing otherwise, or if it has more
  // bytes.
  std::optional<std::string> Read(const std::string& name, std::uint64_t max_bytes) const;
  // The file appears under its name when it is whole, instead of one that is there.
  // REQUIRES: no two processes write the same file at once.
  void Write(const std::string& name, std::string_view bytes) const;
  // A file of this user to read and write in place, made where it is not there; throws where that
  // fails.
  support::Descriptor OpenToUpdate(const std::string& name) const;
  // Removes the oldest of the files whose names begin with `prefix`, until no more than `kept` are
  // there.  What cannot be removed stays.
  void Prune(const std::string& prefix, std::size_t kept) const;

  // A lock, which is held as long as the descriptor lives, and no longer than this process does;
  // nothing if another process holds it for all of `timeout`, or where there are no locks.
  std::optional<support::Descriptor> Lock(const std::string& name,
                                          std::chrono::milliseconds timeout) const;

 private:
  support::Descriptor Open(const std::string& name, int flags) const;

  std::string path_;
  support::Descriptor directory_;
};

}  // namespace trainer
