// SPDX-License-Identifier: Apache-2.0
//
// The TFRecord files of one split of a data set, seen as one list of records: files in the order of
// their names, records in the order of the files.
//
// Threads: all const functions from any number of threads.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/core/consistency_item.h"
#include "trainer/data/files/data_files.h"
#include "trainer/data/files/record_cache.h"
#include "trainer/data/files/scan_cache.h"
#include "trainer/data/files/tfrecord.h"

namespace trainer {

// Which rank of how many reads a data set.
struct RankShare {
  int rank = 0;
  int ranks = 1;
};

class DataSet {
 public:
  // Finds the records by the index files in `index_dir`, or, if that is "", by a scan of all record
  // headers or what is kept of one (scan_cache.h), on `threads` threads or, as they wait for
  // storage, 32 if that is more.  As many files stay open as may (data_set.h).  Where the
  // directory has a manifest (data_files.h), every file is compared with it; with index files,
  // which save the reading of all headers, a rank reads the checksums of every so many-th file
  // alone: `share`. Records are kept on the node, and read from there, as `records` has it. Throws
  // Error(EX_DATAERR): see MakeTfRecordLoader.
  DataSet(const std::string& dir, const std::string& index_dir, Split split, int threads,
          const RankShare& share = {}, const ScanCacheOptions& scans = {},
          const RecordCacheOptions& records = {});

  std::int64_t records() const { return first_record_.back(); }
  // One for each file, by its name without its directory: bytes, records, and where they begin.
  std::vector<ConsistencyItem> items() const;

  // What is to be known of it, "" if nothing: that files are opened for each read, as this process
  // may not have all of them open, which is slow.
  const std::string& note() const { return note_; }

  // By file, RecordFile::ChecksumOf all its records, where it was read.
  const std::vector<std::optional<std::uint32_t>>& checksums() const { return checksums_; }
  // What it took to find the records; of index files, the time.
  const ScanCost& scan_cost() const { return scan_cost_; }
  // Nothing where no records are kept.
  std::optional<RecordCacheUse> record_cache() const;

  // Of a record.  REQUIRES: 0 <= record < records().
  // Its bytes in the file.
  std::size_t SizeOf(std::int64_t record) const;
  // Fills `bytes`, SizeOf(record) of them; the data among them, checked.
  void Fetch(std::int64_t record, std::span<std::uint8_t> bytes) const;
  std::span<const std::uint8_t> Check(std::int64_t record,
                                      std::span<const std::uint8_t> bytes) const;
  // Both; they live in `buffer`.
  std::span<const std::uint8_t> Read(std::int64_t record, std::vector<std::uint8_t>& buffer) const;

  // The same from the file itself, which neither uses nor adds to what is kept on the node.
  std::span<const std::uint8_t> ReadFromFile(std::int64_t record,
                                             std::vector<std::uint8_t>& buffer) const;

  // "PATH, record at offset N: WHAT".
  std::string Describe(std::int64_t record, const std::string& what) const;

 private:
  void OpenFiles(const std::vector<std::string>& paths, std::size_t room, int threads);
  void FindByIndex(const std::string& index_dir, int threads, const RankShare& share,
                   bool has_manifest);
  void FindByScan(const std::string& set, int threads, const ScanCacheOptions& scans);
  std::size_t FileOf(std::int64_t record) const;
  const RecordPlace& PlaceOf(std::size_t file, std::int64_t record) const;

  std::string note_;
  ScanCost scan_cost_;
  std::vector<RecordFile> files_;
  std::vector<std::vector<RecordPlace>> places_;  // by file
  std::vector<std::optional<std::uint32_t>> checksums_;
  std::vector<std::int64_t> first_record_;  // by file, and the total at the end
  std::unique_ptr<RecordCache> kept_;       // null where no records are kept
};

// How many data files stay open.  A set may have more than a process may open (RLIMIT_NOFILE,
// often 1,024): to open a file anew for each record costs a shared file system more than to read
// it.

// In files: what a process may open, what it could raise that to, and what it has open.
struct OpenFileLimits {
  std::size_t soft = 0;
  std::size_t hard = 0;
  std::size_t open = 0;
};

struct OpenFileBudget {
  std::size_t soft = 0;   // the limit to set
  std::size_t files = 0;  // that may stay open
  bool operator==(const OpenFileBudget&) const = default;
};

// For `wanted` files, with 1,024 left for everything else, or half of the limit where that is less.
// The limit is raised as far as this takes it, and never lowered.  Pure.
OpenFileBudget BudgetOpenFiles(const OpenFileLimits& limits, std::size_t wanted);

// Sets the limit of this process by such a plan; how many of `wanted` files may stay open.
std::size_t RaiseOpenFileLimit(std::size_t wanted);

}  // namespace trainer
