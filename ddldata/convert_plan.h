// SPDX-License-Identifier: Apache-2.0
//
// Which image becomes which record of which file, decided before the first is written: labels,
// order, bounding boxes and files of a conversion, and the text that tells one conversion from
// another.  Pure.
//
// The rules are those of TensorFlow's build_imagenet_data.py: labels count the classes from 1 in
// the order of their names; the images of a split are shuffled by a seed; file i of n has the
// images from images * i / n on.  Its shuffling is Python's own, so the order is another one.

#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ddldata/bounding_boxes.h"
#include "ddldata/image_sources.h"
#include "ddldata/label_list.h"
#include "ddldata/shard_directory.h"
#include "ddldata/stored_image.h"
#include "trainer/data/images/image.h"
#include "trainer/data/tfrecord_loader.h"

namespace trainer {

// Images of a split for one file, unless told otherwise; and at most as many files as TensorFlow's
// converter makes of ImageNet.
inline constexpr std::int64_t kImagesOfShard = 100;
inline constexpr int kMaxTrainShards = 1024;
inline constexpr int kMaxValidationShards = 128;
inline constexpr int kMaxShardNumber = 99999;  // five digits in the name

// The class of label n is number n - 1; where a listing has numbers instead of names, names are
// "". `listed` is --class_list, empty if there is none: then the names are those of the training
// images, sorted, or those of the validation images where there are no others.  Throws
// Error(EX_DATAERR) when an image's class is not among them, a validation image has a number that
// no training image has and that is not listed, or one split alone has numbers.
std::vector<ImageClass> NumberClasses(const ImageListing& train, const ImageListing& validation,
                                      const std::vector<ImageClass>& listed);

// Names that are numbers, behind the same beginning ("10", "class10"), which labels count in
// another order than the numbers: what people should know of that, else "".
std::string DescribeOrderOfNumbers(const std::vector<ImageClass>& classes);

// WebDataset's numbers, none of which is 0 in one split, as where they were counted from 1; and
// names that differ in capital letters, in blanks at their ends or in the form of accents alone:
// what people should know of that, else "".
std::string DescribeNumbersFromOne(const ImageListing& train, const ImageListing& validation);
std::string DescribeAlikeClasses(const std::vector<ImageClass>& classes);

// A place in the order of a split.
struct PlannedImage {
  std::uint32_t image = 0;  // in ImageListing::images
  std::int32_t label = 0;   // from 1
};

// One split of a conversion.
struct SplitOrder {
  Split split = Split::kTrain;
  std::vector<PlannedImage> order;
  int shards = 0;
  // Of each image of the listing; empty where there are none.  They are those of a BoxList, which
  // must outlive them.
  std::vector<std::span<const BoundingBox>> boxes;

  std::span<const BoundingBox> BoxesOf(const PlannedImage& place) const {
    return boxes.empty() ? std::span<const BoundingBox>() : boxes[place.image];
  }
  std::int64_t ImagesWithBoxes() const;
  std::int64_t ShardBegin(int shard) const { return std::ssize(order) * shard / shards; }
  std::string ShardName(int shard) const { return trainer::ShardName(split, shard, shards); }
};

// The order depends on labels, names without directories and the seed alone, not on where the
// images lie.  `shards`: 0 is one for kImagesOfShard images, up to the split's most.  Throws
// Error(EX_USAGE) when there are more shards than images.
SplitOrder PlanSplit(Split split, const ImageListing& listing,
                     const std::vector<ImageClass>& classes, std::uint64_t seed, int shards);

// The boxes of each image of `listing`, by its name.  Throws Error(EX_DATAERR) when a name that has
// boxes is that of two images.
std::vector<std::span<const BoundingBox>> PlanBoxes(const ImageListing& listing,
                                                    const BoxList& boxes);

// What a conversion makes, as the text of DATA_DIR/ddldata.conversion.  Equal texts are of equal
// conversions; of images it has names, labels, sizes and bounding boxes, not the contents.
// `listings` are those of `plans`.
std::string DescribeConversion(std::uint64_t seed, const StoredImageOptions& image_options,
                               const std::vector<ImageClass>& classes,
                               std::span<const SplitOrder> plans,
                               std::span<const ImageListing> listings);

// The end of a message about the class `name`, which is not among `names`: "; CLASS differs ..." of
// one that differs in capital letters, in blanks at its ends or in the Unicode form of accents
// only; "" if there is none.
std::string DescribeLikeClass(const std::string& name, const std::set<std::string>& names);

// The classes of `listed`, --class_list, that no image of either split has: a note, "" for none.
std::string DescribeUnusedClasses(const ImageListing& train, const ImageListing& validation,
                                  const std::vector<ImageClass>& listed);

// Why images of directories that are all of one class are most likely not: they lie in several
// directories of it, as where a directory too high was given.  Names the one that is meant, the
// first from above with several directories, of those of splits that of the training; "" where
// there are several classes, or images right in the one, unless there are ten times more in its
// directories.
std::string DescribeOneClass(const ImageListing& listing);

// What people should know of class directories, in a directory or a tar, that have the names of
// splits, or that all have directories which others have too, as 2019/cat and 2020/cat: a sentence;
// "" for others.
std::string DescribeNestedDirectories(const ImageListing& listing);

}  // namespace trainer
