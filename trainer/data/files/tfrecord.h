// SPDX-License-Identifier: Apache-2.0
//
// TFRecord files.  A record is, all numbers little-endian,
//   8 bytes   length of the data
//   4 bytes   masked CRC-32C of these 8 bytes
//   length    data
//   4 bytes   masked CRC-32C of the data
// and a file is records one after the other
// (https://www.tensorflow.org/tutorials/load_data/tfrecord).
//
// Errors are Error(EX_DATAERR) "PATH, record at offset N: ...".

#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/core/file.h"

namespace trainer {

inline constexpr std::uint64_t kRecordHeaderBytes = 12;
inline constexpr std::uint64_t kRecordFramingBytes = 16;

// A record in its file: `size` counts the framing, as DALI's index files do.
struct RecordPlace {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  bool operator==(const RecordPlace&) const = default;
};

// What the headers of a file tell, and the checksums between them.
struct RecordScan {
  std::vector<RecordPlace> places;
  std::uint32_t checksum = 0;    // RecordFile::ChecksumOf(places)
  std::uint64_t bytes_read = 0;  // in one read for each record, and one more
  bool operator==(const RecordScan&) const = default;
};

// "PATH, record at offset N: WHAT", the one form of all complaints about a record.
std::string DescribeRecord(const std::string& path, std::uint64_t offset, const std::string& what);

// What is wrong with the bytes of a record as they are in a file, framing and all, or should be:
// its length and both CRCs are looked at.  "" if nothing is.
std::string ProblemOf(std::span<const std::uint8_t> record);

// One file to read.  Threads: all const functions from any number of threads.
class RecordFile {
 public:
  // The file is opened when it is first read: thousands of ranks that open all files of a set as
  // they start are more than a file system's metadata server answers at once.  `keep_open`: hold
  // the descriptor from then on, or open the file anew for each read (a data set may have more
  // files than a process may open).
  RecordFile(std::string path, bool keep_open);

  const std::string& path() const { return path_; }
  std::uint64_t bytes() const { return identity_.bytes; }
  // As it was when this was made.
  const FileIdentity& identity() const { return identity_; }
  bool stays_open() const { return open_ != nullptr; }

  // The record that begins at `offset`, from its header: checks the header's CRC and that the
  // record ends within the file.  REQUIRES: offset < bytes().
  RecordPlace PlaceAt(std::uint64_t offset) const;
  // All records, by reading the headers alone.
  std::vector<RecordPlace> Scan() const { return ScanWithChecksum().places; }
  RecordScan ScanWithChecksum() const;
  // The CRC-32C of these records' data checksums, 4 bytes each as they are in the file: it changes
  // when a record is cut out, doubled, moved or exchanged as a whole.
  std::uint32_t ChecksumOf(std::span<const RecordPlace> places) const;
  // Fills `bytes`, place.size of them, with the record as it is in the file.
  void Fetch(const RecordPlace& place, std::span<std::uint8_t> bytes) const;
  // The data among the bytes that Fetch gave, both CRCs checked.
  std::span<const std::uint8_t> Check(const RecordPlace& place,
                                      std::span<const std::uint8_t> bytes) const;
  // Both; the bytes live in `buffer`, which is overwritten.
  std::span<const std::uint8_t> Read(const RecordPlace& place,
                                     std::vector<std::uint8_t>& buffer) const;

 private:
  RecordPlace PlaceOf(std::uint64_t offset, std::span<const std::uint8_t> header) const;
  std::size_t ReadBytes(std::uint64_t offset, std::span<std::uint8_t> bytes) const;

  // Throws Error(EX_DATAERR) where another file is at `path_` now.
  support::Descriptor Open() const;

  struct OpenFile {
    std::mutex mutex;
    support::Descriptor file;
  };

  std::string path_;
  std::unique_ptr<OpenFile> open_;  // null when the file is opened for each read
  FileIdentity identity_;
};

// Writes a file, complete or not at all (file.h, NewFile).
class RecordWriter {
 public:
  explicit RecordWriter(const std::string& path);

  void Append(std::span<const std::uint8_t> data);
  void Finish();  // no more records
  void Commit();  // REQUIRES: Finish()

 private:
  NewFile file_;
  std::vector<std::uint8_t> pending_;
};

// DALI's index files: one line "OFFSET SIZE" per record of a TFRecord file, in order, SIZE with the
// framing, as DALI's tfrecord2idx writes them.  Pure.

// 16 million records of one file; ImageNet's files have about 1,250.
inline constexpr std::uint64_t kMaxIndexBytes = 1u << 29;

// The records that `text` lists.  They must fill a file of `data_bytes` bytes without a gap.
// Throws Error(EX_DATAERR) naming `path`, the line, what is wrong and the command that makes a new
// index.
std::vector<RecordPlace> ParseIndex(std::string_view text, const std::string& path,
                                    std::uint64_t data_bytes);

std::string FormatIndex(const std::vector<RecordPlace>& places);

}  // namespace trainer
