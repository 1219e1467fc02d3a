// SPDX-License-Identifier: Apache-2.0
//
// JpegUnits against libjpeg's own reading of the same images: no pixel and no complaint differs.

#include "trainer/data/images/jpeg_units.h"

#include <gtest/gtest.h>
#include <jpeglib.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "tests/trainer/data/data_fixture.h"
#include "trainer/data/images/jpeg.h"

namespace trainer {
namespace {

struct Variant {
  std::string name;
  ImageSize size{61, 45};
  int quality = 90;
  int channels = 3;
  int luma_width = 2;  // sampling factors of the first component
  int luma_height = 2;
  int restart_interval = 0;
  bool has_own_tables = false;
  bool is_arithmetic = false;
  bool is_split = false;  // a scan for each component
};

std::string Encode(const Variant& variant) {
  const std::vector<std::uint8_t> pixels =
      MakePixels(variant.size, variant.channels, static_cast<std::uint64_t>(variant.quality));
  jpeg_error_mgr errors{};
  jpeg_compress_struct jpeg{};
  jpeg.err = jpeg_std_error(&errors);  // ends the test program
  jpeg_create_compress(&jpeg);
  unsigned char* bytes = nullptr;
  unsigned long length = 0;
  jpeg_mem_dest(&jpeg, &bytes, &length);
  jpeg.image_width = static_cast<JDIMENSION>(variant.size.width);
  jpeg.image_height = static_cast<JDIMENSION>(variant.size.height);
  jpeg.input_components = variant.channels;
  jpeg.in_color_space = variant.channels == 1   ? JCS_GRAYSCALE
                        : variant.channels == 4 ? JCS_CMYK
                                                : JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, variant.quality, TRUE);
  jpeg.comp_info[0].h_samp_factor = variant.luma_width;
  jpeg.comp_info[0].v_samp_factor = variant.luma_height;
  jpeg.restart_interval = static_cast<unsigned>(variant.restart_interval);
  jpeg.optimize_coding = variant.has_own_tables ? TRUE : FALSE;
  jpeg.arith_code = variant.is_arithmetic ? TRUE : FALSE;
  std::vector<jpeg_scan_info> scans;
  if (variant.is_split) {
    for (int component = 0; component < variant.channels; ++component) {
      scans.push_back({1, {component}, 0, DCTSIZE2 - 1, 0, 0});
    }
    jpeg.scan_info = scans.data();
    jpeg.num_scans = variant.channels;
  }
  jpeg_start_compress(&jpeg, TRUE);
  const std::size_t stride = static_cast<std::size_t>(variant.size.width * variant.channels);
  for (std::size_t y = 0; y < static_cast<std::size_t>(variant.size.height); ++y) {
    auto* row = const_cast<JSAMPROW>(pixels.data() + y * stride);
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  const std::unique_ptr<unsigned char, decltype(&std::free)> owner(bytes, std::free);
  return {reinterpret_cast<const char*>(bytes), length};
}

std::vector<Variant> ReadableVariants() {
  std::vector<Variant> variants{
      {.name = "4:2:0"},
      {.name = "4:4:4", .luma_width = 1, .luma_height = 1},
      {.name = "4:2:2", .luma_height = 1},
      {.name = "4:4:0", .luma_width = 1},
      {.name = "4:1:1", .luma_width = 4, .luma_height = 1},
      {.name = "gray", .channels = 1, .luma_width = 1, .luma_height = 1},
      {.name = "gray with factors", .channels = 1},
      {.name = "CMYK", .channels = 4, .luma_width = 1, .luma_height = 1},
      {.name = "CMYK with factors", .channels = 4},
      {.name = "one pixel", .size = {1, 1}},
      {.name = "whole units", .size = {64, 48}},
  };
  const std::size_t kinds = variants.size();
  for (std::size_t i = 0; i < kinds; ++i) {
    const auto add = [&](const std::string& name, auto change) {
      Variant variant = variants[i];
      variant.name += name;
      change(variant);
      variants.push_back(variant);
    };
    add(", every bit", [](Variant& variant) { variant.quality = 100; });
    add(", few bits", [](Variant& variant) { variant.quality = 10; });
    add(", own tables", [](Variant& variant) {
      variant.quality = 97;
      variant.has_own_tables = true;
    });
    for (const int interval : {1, 3, 4}) {
      add(", restart interval " + std::to_string(interval),
          [&](Variant& variant) { variant.restart_interval = interval; });
    }
  }
  return variants;
}

// What comes of an image: its pixels, or the complaint.
struct Outcome {
  ImagePiece piece;
  std::string complaint;
  bool used_library = true;
};

Outcome Decode(JpegDecoder& decoder, const std::string& jpeg, int reduction,
               const PixelBox* part = nullptr) {
  Outcome outcome;
  try {
    const ImageSize size = decoder.ReadHeader(AsBytes(jpeg));
    const PixelBox all{0, 0, (size.width + reduction - 1) / reduction,
                       (size.height + reduction - 1) / reduction};
    decoder.Decode(reduction, part == nullptr ? all : *part, outcome.piece);
    outcome.used_library = decoder.used_library();
  } catch (const Error& error) {
    outcome.complaint = error.what();
  }
  return outcome;
}

PixelBox RandomBox(Random& random, ImageSize size) {
  const auto below = [&](int n) {
    return static_cast<int>(random.Below(static_cast<std::uint32_t>(n)));
  };
  PixelBox box{below(size.width), below(size.height), 0, 0};
  box.width = 1 + below(size.width - box.x);
  box.height = 1 + below(size.height - box.y);
  return box;
}

TEST(JpegUnits, ReadsWhatLibjpegReads) {
  JpegDecoder ours;
  JpegDecoder library(EntropyDecoder::kLibrary);
  Random random(1, RandomPurpose::kGenerate, 0);
  for (const Variant& variant : ReadableVariants()) {
    const std::string jpeg = Encode(variant);
    for (const int reduction : {1, 2, 4, 8}) {
      const ImageSize size{(variant.size.width + reduction - 1) / reduction,
                           (variant.size.height + reduction - 1) / reduction};
      for (int i = 0; i < 12; ++i) {
        const PixelBox box =
            i == 0 ? PixelBox{0, 0, size.width, size.height} : RandomBox(random, size);
        SCOPED_TRACE(variant.name + ", reduced by " + std::to_string(reduction) + ", " +
                     std::to_string(box.width) + "x" + std::to_string(box.height) + " at " +
                     std::to_string(box.x) + "," + std::to_string(box.y));
        const Outcome found = Decode(ours, jpeg, reduction, &box);
        const Outcome wanted = Decode(library, jpeg, reduction, &box);
        ASSERT_EQ(wanted.complaint, "");
        ASSERT_EQ(found.complaint, "");
        ASSERT_EQ(found.piece.box, wanted.piece.box);
        ASSERT_EQ(found.piece.pixels, wanted.piece.pixels);
        ASSERT_FALSE(found.used_library);
        ASSERT_TRUE(wanted.used_library);
      }
    }
  }
}

TEST(JpegUnits, LeavesOtherScansToLibjpeg) {
  JpegDecoder ours;
  JpegDecoder library(EntropyDecoder::kLibrary);
  std::vector<std::string> images{MakeJpeg({61, 45}, 1, {.progressive = true}),
                                  Encode({.name = "split", .is_split = true})};
#ifdef C_ARITH_CODING_SUPPORTED
  images.push_back(Encode({.name = "arithmetic", .is_arithmetic = true}));
#endif
  for (const std::string& jpeg : images) {
    const Outcome found = Decode(ours, jpeg, 1);
    EXPECT_EQ(found.complaint, "");
    EXPECT_TRUE(found.used_library);
    EXPECT_EQ(found.piece.pixels, Decode(library, jpeg, 1).piece.pixels);
  }
}

void ExpectTheSame(const std::string& jpeg) {
  JpegDecoder ours;
  JpegDecoder library(EntropyDecoder::kLibrary);
  const Outcome found = Decode(ours, jpeg, 1);
  const Outcome wanted = Decode(library, jpeg, 1);
  ASSERT_EQ(found.complaint, wanted.complaint);
  if (!wanted.complaint.empty()) return;
  ASSERT_EQ(found.piece.pixels, wanted.piece.pixels);
}

TEST(JpegUnits, SaysOfDamageWhatLibjpegSays) {
  Random random(2, RandomPurpose::kGenerate, 0);
  for (const int interval : {0, 2}) {
    for (const bool has_own_tables : {false, true}) {
      const std::string jpeg = Encode({.name = "",
                                       .size = {40, 33},
                                       .restart_interval = interval,
                                       .has_own_tables = has_own_tables});
      const std::size_t scan = jpeg.find("\xff\xda");
      for (int i = 0; i < 1500; ++i) {
        std::string damaged = jpeg;
        for (std::uint32_t n = random.Below(3); n < 3; ++n) {
          const std::size_t at =
              i % 3 == 0 ? random.Below(static_cast<std::uint32_t>(jpeg.size()))
                         : scan + random.Below(static_cast<std::uint32_t>(jpeg.size() - scan));
          damaged[at] = random.Below(4) == 0 ? '\xff' : static_cast<char>(random.Below(256));
        }
        ASSERT_NO_FATAL_FAILURE(ExpectTheSame(damaged)) << "round " << i;
      }
    }
  }
}

TEST(JpegUnits, SaysOfATruncatedImageWhatLibjpegSays) {
  const std::string jpeg = Encode({.name = "", .size = {33, 20}, .restart_interval = 2});
  for (std::size_t length = jpeg.find("\xff\xda"); length < jpeg.size(); ++length) {
    ASSERT_NO_FATAL_FAILURE(ExpectTheSame(jpeg.substr(0, length))) << length;
  }
}

TEST(JpegUnits, GoesOnAfterDamage) {
  JpegDecoder decoder;
  const std::string jpeg = Encode({.name = ""});
  const Outcome before = Decode(decoder, jpeg, 1);
  EXPECT_NE(Decode(decoder, jpeg.substr(0, jpeg.size() / 2), 1).complaint, "");
  const Outcome after = Decode(decoder, jpeg, 1);
  EXPECT_EQ(after.piece.pixels, before.piece.pixels);
  EXPECT_FALSE(after.used_library);
}

}  // namespace
}  // namespace trainer
