// SPDX-License-Identifier: Apache-2.0
//
// Makes a data set of another one: its records in another number of files, or with some of the
// training records as the validation part of a set that has none.  Records are copied as they are,
// checksums and all, and keep their order; file i of n has the records from records * i / n on.
// Equal images are drawn together, and of each class one stays in training.
//
// The files are made in a ShardDirectory (shard_directory.h), the manifest is last: a split that
// was killed goes on, and the same set and options make the same bytes however often it was stopped
// and on however many threads.

#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ddldata/convert_progress.h"

namespace trainer {

struct SplitSetOptions {
  std::string from;           // data directory, which is only read
  std::string dir;            // made if it is not there
  int shards = 0;             // files train-*; 0: as many as `from` has
  int validation_shards = 0;  // files validation-*; 0: as many as `from` has, or one for 100
                              // images, 128 at most
  std::int64_t validation_images = 0;  // training records to draw for validation; 0: none
  std::uint64_t seed = 12345;          // of the draw
  int threads = 1;
};

struct SplitSetSummary {
  std::int64_t train_images = 0;
  std::int64_t validation_images = 0;
  int files = 0;
  int files_before = 0;  // of which an earlier split had left so many
};

// `drawn` of the numbers from 0 to records - 1, each with the same chance, in order.  Pure.
// REQUIRES: 0 <= drawn <= records <= 2^32 - 1.
std::vector<std::uint32_t> DrawRecords(std::int64_t records, std::int64_t drawn,
                                       std::uint64_t seed);

// What a draw goes by.
struct RecordIdentity {
  std::uint64_t image = 0;  // equal for equal images
  std::int64_t label = -1;  // below 0: of no class
};

// DrawRecords, where no two records have one image and each class is left one that is not drawn.
// Else records are exchanged for others until equal images are all drawn or none of them is, and
// each class is left an image; fewer than `drawn` are drawn where that cannot be otherwise.  Pure.
std::vector<std::uint32_t> DrawApart(std::span<const RecordIdentity> records, std::int64_t drawn,
                                     std::uint64_t seed);

// `stop_requested` is asked between records, from any thread.  Throws Error:
//   EX_USAGE     options that make no sense; DATA_DIR has other data files, or is of another split
//   EX_DATAERR   `from` has no data files, or not those it should have; a record is damaged
//   EX_TEMPFAIL  stop_requested: the same call goes on
//   EX_CONFIG    another process makes files in DATA_DIR
//   EX_OSERR     a file cannot be written; what is whole stays, and the same call goes on
SplitSetSummary SplitDataSet(const SplitSetOptions& options, ConvertProgress& progress,
                             const std::function<bool()>& stop_requested);

}  // namespace trainer
