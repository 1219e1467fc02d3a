// SPDX-License-Identifier: Apache-2.0
//
// The TFRecord files of one split of a data set, seen as one list of records: files in the order of
// their names, records in the order of the files.
//
// Threads: all const functions from any number of threads.

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trainer/core/fact.h"
#include "trainer/data/record_source.h"
#include "trainer/data/tfrecord.h"

namespace trainer {

// Which rank of how many reads a data set.
struct RankShare {
  int rank = 0;
  int ranks = 1;
};

class DataSet {
 public:
  // Finds the records by the index files in `index_dir`, or, if that is "", by reading all record
  // headers, on `threads` threads.  Where the folder has a manifest (shard_manifest.h), every file
  // is compared with it; with index files, which save the reading of all headers, a rank reads the
  // checksums of every so many-th file alone: `share`.  Throws Error(EX_DATAERR): see
  // MakeRecordSource.
  DataSet(const std::string& dir, const std::string& index_dir, Split split, int threads,
          const RankShare& share = {});

  std::int64_t records() const { return first_record_.back(); }
  // One for each file, by its name without its folder: bytes, records, and where they begin.
  std::vector<Fact> facts() const;

  // The data of a record, checked; it lives in `buffer`.  REQUIRES: 0 <= record < records().
  std::span<const std::uint8_t> Read(std::int64_t record, std::vector<std::uint8_t>& buffer) const;

  // "PATH, record at offset N: WHAT".
  std::string Describe(std::int64_t record, const std::string& what) const;

 private:
  std::size_t FileOf(std::int64_t record) const;
  const RecordPlace& PlaceOf(std::size_t file, std::int64_t record) const;

  std::vector<RecordFile> files_;
  std::vector<std::vector<RecordPlace>> places_;  // by file
  std::vector<std::int64_t> first_record_;        // by file, and the total at the end
};

}  // namespace trainer
