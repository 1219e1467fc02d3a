// SPDX-License-Identifier: Apache-2.0
//
// Reads images where a listing says that they lie.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ddldata/image_sources.h"
#include "trainer/core/file.h"
#include "trainer/data/images/image_files.h"

namespace trainer {

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
