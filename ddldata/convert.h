// SPDX-License-Identifier: Apache-2.0
//
// Makes sharded TFRecords of images as people have them, in the names and features of TensorFlow's
// build_imagenet_data.py.
//
// The files are made in a ShardDirectory (shard_directory.h), beside labels.txt (class_list.h),
// which says what class each label is; the manifest (data_files.h) is last. So a conversion
// that was killed goes on with the files that are missing, and the same options make the same bytes
// however often it was stopped and on however many threads.

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ddldata/convert_progress.h"
#include "ddldata/stored_image.h"
#include "trainer/data/tfrecord_loader.h"

namespace trainer {

// Where the images of a split come from.
struct ConvertedSplit {
  std::vector<std::string> sources;  // image_sources.h; none: the split is not made
  std::string labels;                // a file for ImageLabels; "": the sources tell the classes
  int shards = 0;                    // 0: PlanSplit chooses
};

struct ConvertOptions {
  std::string dir;  // made if it is not there
  ConvertedSplit train;
  ConvertedSplit validation;
  std::string boxes;           // for ReadBoxes, of the training images; "": there are none
  std::string class_list;      // a file for ParseClassList; "": the classes of the images, sorted
  std::string class_numbers;   // the same for numbers in the label lists; "": there are none
  std::uint64_t seed = 12345;  // of the order; TensorFlow's converter has this number
  StoredImageOptions image;
  BadRecords bad_images = BadRecords::kStop;
  int threads = 1;
};

struct ConvertSummary {
  std::int64_t classes = 0;
  std::int64_t train_images = 0;       // in the files
  std::int64_t validation_images = 0;  // in the files
  std::int64_t left_out = 0;           // found, but not in the files, of both splits
  std::int64_t images_with_boxes = 0;  // training images, those left out too
  int files = 0;
  int files_before = 0;  // of which an earlier conversion had left so many
};

// Memory is bounded by the names of the images, by the bounding boxes and by one image for each
// thread.  `stop_requested` is asked between images, from any thread.  Throws Error:
//   EX_USAGE     options that make no sense; DATA_DIR has other data files, another conversion, or
//                another labels.txt
//   EX_DATAERR   a source, a list, bounding boxes, or an image with BadRecords::kStop; all
//                images of a file are bad
//   EX_TEMPFAIL  stop_requested: the same call goes on
//   EX_CONFIG    another conversion is at work in DATA_DIR
//   EX_OSERR     a file cannot be written; what is whole stays, and the same call goes on
ConvertSummary ConvertImages(const ConvertOptions& options, ConvertProgress& progress,
                             const std::function<bool()>& stop_requested);

}  // namespace trainer
