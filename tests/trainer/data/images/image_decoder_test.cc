// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/images/image_decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/ddldata/convert_fixture.h"
#include "tests/trainer/data/png_text.h"
#include "trainer/data/images/augment.h"
#include "trainer/data/images/image_loader.h"

namespace trainer {
namespace {

using std::string_literals::operator""s;
using ::testing::HasSubstr;

std::vector<std::uint8_t> Loaded(const std::string& file, int size) {
  ImageLoader loader;
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(size * size * 3));
  const ImageSize whole = loader.ReadHeader(AsBytes(file));
  loader.Load(CentreView(whole, size), size, pixels);
  return pixels;
}

TEST(ImageDecoder, ReadsPngAndJpegByTheirBytesOneAfterAnother) {
  if (const std::string why = WhyNoPng(); !why.empty()) GTEST_SKIP() << why;
  ImageDecoder decoder;
  ImagePiece piece;
  const std::string jpeg = MakeJpeg({24, 16}, 1);
  for (int round = 0; round < 2; ++round) {
    const std::string png = RedAndBluePng();
    EXPECT_EQ(decoder.ReadHeader(AsBytes(png)), (ImageSize{16, 8}));
    EXPECT_FALSE(decoder.is_plain_jpeg());
    ASSERT_EQ(decoder.max_reduction(), 1);
    decoder.Decode(1, {12, 0, 2, 2}, piece);
    EXPECT_EQ(piece.box, (PixelBox{0, 0, 16, 8}));
    EXPECT_EQ(piece.pixels[0], 255);                 // red
    EXPECT_EQ(piece.pixels[(15 + 1) * 3 - 1], 255);  // blue
    EXPECT_EQ(decoder.ReadHeader(AsBytes(jpeg)), (ImageSize{24, 16}));
    EXPECT_TRUE(decoder.is_plain_jpeg());
    EXPECT_EQ(decoder.max_reduction(), 8);
    decoder.Decode(8, {0, 0, 3, 2}, piece);
  }
}

// Large enough that a JPEG would be decoded reduced.
TEST(ImageLoader, LoadsPngOfAnyColoursAsTheNetworkSeesIt) {
  if (const std::string why = WhyNoPng(); !why.empty()) GTEST_SKIP() << why;
  const std::vector<std::string> gray(64, std::string(64, '\x60'));
  std::string red_row;
  std::string clear_row;
  for (int i = 0; i < 64; ++i) {
    red_row += "\xff\0\0"s;
    clear_row += "\0\0\xff\0"s;
  }
  const struct {
    PngPicture picture;
    std::vector<std::uint8_t> colour;
  } cases[] = {
      {{64, 64, PngColors::kGray, 8, gray}, {0x60, 0x60, 0x60}},
      {{64, 64, PngColors::kRgb, 8, std::vector<std::string>(64, red_row)}, {255, 0, 0}},
      {{64, 64, PngColors::kRgba, 8, std::vector<std::string>(64, clear_row)}, {0, 0, 255}},
  };
  for (const auto& test : cases) {
    const auto pixels = Loaded(PngOf(test.picture), 8);
    for (std::size_t i = 0; i < pixels.size(); ++i) ASSERT_EQ(pixels[i], test.colour[i % 3]) << i;
  }
}

TEST(ImageDecoder, NamesKindsOfImagesThatItDoesNotRead) {
  const struct {
    std::string file;
    const char* name;
  } cases[] = {{"GIF89a.........", "a GIF image"},
               {"RIFF\x10\0\0\0WEBPVP8 "s, "a WebP image"},
               {"BM......", "a BMP image"},
               {"II*\0\x08\0\0\0"s, "a TIFF image"},
               {"\0\0\0\x20"s + "ftypheic....", "a HEIC image"},
               {"\0\0\0\x20"s + "ftypavif....", "an AVIF image"}};
  for (const auto& test : cases) {
    ImageDecoder decoder;
    EXPECT_THAT(DataErrorOf([&] { decoder.ReadHeader(AsBytes(test.file)); }),
                HasSubstr("it is "s + test.name));
  }
  ImageDecoder decoder;
  EXPECT_THAT(DataErrorOf([&] { decoder.ReadHeader({}); }), HasSubstr("empty"));
}

TEST(ImageDecoder, RefusesADamagedPng) {
  if (const std::string why = WhyNoPng(); !why.empty()) GTEST_SKIP() << why;
  ImageDecoder decoder;
  const std::string png = RedAndBluePng();
  for (const std::size_t bytes : {9, 30, 50}) {
    EXPECT_NE(DataErrorOf([&] { decoder.ReadHeader(AsBytes(png.substr(0, bytes))); }), "");
  }
}

}  // namespace
}  // namespace trainer
