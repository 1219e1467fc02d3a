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
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trainer/data/files/scan_cost.h"
#include "trainer/data/files/tfrecord.h"

namespace trainer {

struct ScanCacheOptions {
  std::string dir;  // private_directory.h; "": nothing is kept
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

}  // namespace trainer
