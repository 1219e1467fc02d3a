// SPDX-License-Identifier: Apache-2.0
//
// What a data set is made of.

#include <algorithm>
#include <cstdio>

#include "ddldata/bounding_boxes.h"
#include "ddldata/exif.h"
#include "ddldata/label_list.h"
#include "ddldata/tar.h"
#include "tests/fuzz/fuzz.h"
#include "trainer/core/error.h"

namespace {

using fuzz::Require;
using trainer::Error;
using trainer::kTarBlockBytes;

[[maybe_unused]] void MendHeaders(std::vector<std::uint8_t>& bytes) {
  constexpr std::size_t kChecksumAt = 148;
  constexpr std::size_t kChecksumLength = 8;
  for (std::size_t begin = 0; begin + kTarBlockBytes <= bytes.size(); begin += kTarBlockBytes) {
    const auto block = bytes.begin() + static_cast<std::ptrdiff_t>(begin);
    if (std::all_of(block, block + kTarBlockBytes, [](std::uint8_t byte) { return byte == 0; })) {
      continue;
    }
    std::fill_n(block + kChecksumAt, kChecksumLength, ' ');
    unsigned sum = 0;
    for (std::size_t i = 0; i < kTarBlockBytes; ++i) sum += bytes[begin + i];
    char digits[8];
    std::snprintf(digits, sizeof digits, "%06o", sum);
    std::copy_n(digits, 7, block + kChecksumAt);
  }
}

}  // namespace

// An archive: members that lie one behind the other within it.  The second pass writes good
// checksums over the bytes first, so that the other fields reach the code behind the check.
FUZZ(tar) {
  std::vector<std::uint8_t> bytes(text.begin(), text.end());
  for (const bool is_mended : {false, true}) {
    if (is_mended) MendHeaders(bytes);
    const std::string path = fuzz::MemoryFile(bytes);
    const support::Descriptor file = trainer::OpenForReading(path);
    trainer::TarReader reader(file, path, {0, bytes.size()});
    fuzz::MayBeDamaged<Error>("", [&] {
      std::uint64_t end = 0;
      while (const auto member = reader.Next()) {
        Require(member->offset >= end + kTarBlockBytes && member->offset <= bytes.size());
        Require(member->size <= bytes.size() - member->offset);
        const std::string name = "/" + member->name + "/";
        Require(name.find("/../") == std::string::npos && !member->name.starts_with('/'));
        end = member->offset + member->size;
      }
    });
  }
}

// An annotation: bounding boxes within the image.
FUZZ(annotation) {
  fuzz::MayBeDamaged<Error>("a.xml:", [&] {
    for (const trainer::BoundingBox& box : trainer::ParseAnnotation(text, "a.xml").boxes) {
      Require(0 <= box.xmin && box.xmin <= box.xmax && box.xmax <= 1);
      Require(0 <= box.ymin && box.ymin <= box.ymax && box.ymax <= 1);
    }
  });
}

// An image file: an orientation that there is.
FUZZ(exif) {
  const int orientation =
      trainer::ExifOrientation({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  Require(orientation >= 1 && orientation <= 8);
}

// A list of bounding boxes: boxes that have an area within the image.
FUZZ(box_list) {
  fuzz::MayBeDamaged<Error>("list:", [&] {
    const trainer::BoxList list = trainer::ParseBoxList(text, "list");
    Require(list.images() > 0 || list.without_area() > 0);
    for (const trainer::BoundingBox& box : list.BoxesOf(list.first_name())) {
      Require(0 <= box.xmin && box.xmin < box.xmax && box.xmax <= 1);
      Require(0 <= box.ymin && box.ymin < box.ymax && box.ymax <= 1);
    }
  });
}

// A list of classes, which have names, and one of labels.
FUZZ(label_list) {
  fuzz::MayBeDamaged<Error>("list:", [&] {
    for (const trainer::ImageClass& one : trainer::ParseClassList(text, "list")) {
      Require(!one.name.empty());
    }
  });
  fuzz::MayBeDamaged<Error>("list:", [&] { trainer::ImageLabels(text, "list", {}); });
  fuzz::MayBeDamaged<Error>("list:", [&] {
    trainer::ImageLabels(text, "list", {{"a", ""}, {"b", ""}});
  });
}
