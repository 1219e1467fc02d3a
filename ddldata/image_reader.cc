// SPDX-License-Identifier: Apache-2.0

#include "ddldata/image_reader.h"

#include <cstddef>

#include "trainer/core/error.h"

namespace trainer {
namespace {

constexpr std::size_t kMaxOpenTars = 64;

}  // namespace

ImageReader::ImageReader(const ImageListing& listing) : listing_(listing) {
  tars_.resize(listing.containers.size());
  if (tars_.size() > kMaxOpenTars) return;
  for (std::size_t i = 0; i < tars_.size(); ++i) {
    if (listing.containers[i].is_tar) tars_[i] = OpenForReading(listing.containers[i].path);
  }
}

void ImageReader::Read(const InputImage& image, std::vector<std::uint8_t>& bytes) const {
  const ImageContainer& container = listing_.containers[image.container];
  const std::string path = container.is_tar ? container.path : container.path + "/" + image.path;
  if (image.range.size > kMaxImageFileBytes) {
    throw Error(EX_DATAERR, Describe(image) + " has " + std::to_string(image.range.size) +
                                " bytes, at most " + std::to_string(kMaxImageFileBytes) +
                                " are read");
  }
  bytes.resize(image.range.size);
  const support::Descriptor& open_tar = tars_[image.container];
  support::Descriptor own;
  if (!open_tar.is_open()) own = OpenForReading(path);
  const support::Descriptor& file = open_tar.is_open() ? open_tar : own;
  const bool is_same = container.is_tar || FileSize(file, path) == image.range.size;
  if (!is_same || ReadAt(file, path, image.range.offset, bytes) < bytes.size()) {
    throw Error(EX_DATAERR, Describe(image) + ": the file changed while it was in use");
  }
}

std::string ImageReader::Describe(const InputImage& image) const {
  const ImageContainer& container = listing_.containers[image.container];
  return container.path + (container.is_tar ? ", " : "/") + image.path;
}

}  // namespace trainer
