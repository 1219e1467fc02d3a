// SPDX-License-Identifier: Apache-2.0
//
// Where the images of a data set lie, as people have them, and of which class each is:
//   a directory of directories, a tar with directories
//                           the class is the directory right below (torchvision's rule), in a tar
//                           below the directory that all its images lie in
//   a tar of tars (ILSVRC2012_img_train.tar), a directory of tars, several tars
//                           the class is the name of the tar with the images
//   WebDataset's shards     the class is the number in KEY.cls, from 0; image KEY.jpg
//   images side by side, in a directory or a tar (ILSVRC2012_img_val.tar)
//                           classes by a list, which counts over all others; or the synset that
//                           each name begins or ends with (n01440764_10_n01440764.JPEG)
// Several tars whose names differ in a number alone (images_0.tar, images_1.tar) are parts of one
// set: their names are no classes.
// A tar whose images lie side by side, most with a file KEY.json, KEY.txt or the like beside them,
// is refused without labels from elsewhere: its name is hardly the class.  What would count an
// image twice is refused: a directory NAME with images and NAME.tar with images beside it, a
// directory or tar that is given or found by two paths, a tar with two images of one name.  So is a
// link to nothing, which may be a class.  Tars are read in place.  Files whose names begin with a
// dot or do not end as those of images are passed over and counted.
//
// Errors are Error(EX_DATAERR) with the path.

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ddldata/label_list.h"
#include "ddldata/tar.h"
#include "trainer/core/error.h"
#include "trainer/core/file.h"
#include "trainer/data/images/image_files.h"

namespace trainer {

// A directory, or a tar that images are read from.
struct ImageContainer {
  std::string path;
  bool is_tar = false;
  std::string root = "";  // in a tar: the directory of all its classes, with '/' behind, or ""
  std::pair<std::uint64_t, std::uint64_t> device_and_inode = {};  // the same by whatever path
};

struct InputImage {
  std::uint32_t container = 0;     // in ImageListing::containers
  std::uint32_t class_number = 0;  // in ImageListing::classes
  ByteRange range;                 // of the container's file; in a directory, of the image's own
  std::string path;                // within the container
};

struct ImageListing {
  std::vector<ImageContainer> containers;
  std::vector<InputImage> images;
  std::vector<std::string> classes;  // names, in no order
  bool is_numbered = false;          // the names are WebDataset's numbers
  std::string note;                  // what people should know of the classes, or ""
  std::int64_t others = 0;           // files that are no images by their names
  std::string one_other;             // the path of one of them, of Parquet if there is one
  // Directories and tars that have no images, and so are no classes, by their names; where
  // is_numbered, none.
  std::vector<std::string> empty_classes;
};

// Finds the images of `sources`; `labels` may be null.  `on_found` hears the number of images now
// and then, and may throw.  An image of no known class, or a source without images, is an error.
ImageListing ListImages(const std::vector<std::string>& sources, const ImageLabels* labels,
                        const std::function<void(std::int64_t)>& on_found);

// Reads images of a listing, which must outlive it.  Threads: any number.
class ImageReader {
 public:
  explicit ImageReader(const ImageListing& listing);

  // Throws Error(EX_DATAERR) if the file is not there, not as it was listed, or larger than
  // kMaxImageFileBytes.
  void Read(const InputImage& image, std::vector<std::uint8_t>& bytes) const;
  // "FOLDER/PATH" or "TAR, PATH".
  std::string Describe(const InputImage& image) const;

 private:
  const ImageListing& listing_;
  std::vector<support::Descriptor> tars_;  // by container; empty where it is opened for each read
};

}  // namespace trainer
