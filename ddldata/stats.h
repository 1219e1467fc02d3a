// SPDX-License-Identifier: Apache-2.0
//
// What a data set is made of: records, bytes, classes, sizes of images, and images that are in it
// more than once.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trainer {

// Of a list of numbers; all 0 if it is empty.
struct NumberRange {
  std::int64_t min = 0;
  std::int64_t median = 0;  // the lower one of two
  std::int64_t max = 0;
};

struct SplitStats {
  std::string name;  // "train", "validation"
  int files = 0;
  std::int64_t records = 0;
  std::uint64_t bytes = 0;             // of the files
  std::int64_t images_with_boxes = 0;  // bounding boxes
  std::int64_t classes = 0;
  NumberRange images_per_class;
  NumberRange width;   // pixels
  NumberRange height;  // pixels
  NumberRange image_bytes;
};

// The same image, byte for byte, in two records or more.
struct DuplicateImage {
  std::vector<std::string> records;  // "PATH, record at offset N", sorted
  bool is_in_both_splits = false;
  bool has_two_labels = false;
};

struct DataStats {
  std::vector<SplitStats> splits;  // those there are
  std::vector<DuplicateImage> duplicates;
};

// Reads all records of all data files, their checksums and the headers of their images, on
// `threads` threads; needs about 70 bytes of memory for each record.  Throws Error(EX_DATAERR) when
// there is no data file, a file is missing, or a record is damaged or holds no JPEG.
DataStats MeasureDataSet(const std::string& data_dir, int threads);

// A table, and the first few duplicates.
std::string FormatStats(const DataStats& stats);
// One object, with every duplicate.
std::string FormatStatsAsJson(const DataStats& stats);

}  // namespace trainer
