// SPDX-License-Identifier: Apache-2.0

#include "ddldata/stored_image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/ddldata/convert_fixture.h"
#include "tests/trainer/data/data_fixture.h"

namespace trainer {
namespace {

using ::testing::HasSubstr;

StoredImage Store(const std::string& file, const StoredImageOptions& options = {}) {
  return ImageStore(options).Store(AsBytes(file));
}

// The colour of the pixel at (x, y) of a JPEG.
std::vector<int> ColorAt(const std::string& jpeg, int x, int y) {
  JpegDecoder decoder;
  const ImageSize size = decoder.ReadHeader(AsBytes(jpeg));
  ImagePiece piece;
  decoder.Decode(1, {0, 0, size.width, size.height}, piece);
  const auto at = static_cast<std::size_t>((y * size.width + x) * 3);
  return {piece.pixels[at], piece.pixels[at + 1], piece.pixels[at + 2]};
}

TEST(ImageStore, KeepsJpegsAsTheyAre) {
  const std::string color = MakeJpeg({40, 30});
  EXPECT_EQ(Store(color).encoded, color);
  EXPECT_EQ(Store(color).size, (ImageSize{40, 30}));
  const std::string gray =
      EncodeJpeg(MakePixels({20, 30}, 1, 1), {20, 30}, {.colors = JpegColors::kGray});
  EXPECT_EQ(Store(gray).encoded, gray);
  // Also when it is small enough already.
  EXPECT_EQ(Store(color, {.shorter_side = 30}).encoded, color);
}

TEST(ImageStore, MakesRgbOfCmyk) {
  const std::string cmyk = EncodeJpeg(std::vector<std::uint8_t>(16 * 16 * 4, 200), {16, 16},
                                      {.colors = JpegColors::kCmyk});
  JpegDecoder decoder;
  decoder.ReadHeader(AsBytes(cmyk));
  EXPECT_TRUE(decoder.is_cmyk());
  const StoredImage stored = Store(cmyk);
  EXPECT_NE(stored.encoded, cmyk);
  EXPECT_EQ(stored.size, (ImageSize{16, 16}));
  decoder.ReadHeader(AsBytes(stored.encoded));
  EXPECT_FALSE(decoder.is_cmyk());
  EXPECT_EQ(ColorAt(stored.encoded, 5, 5), ColorAt(cmyk, 5, 5));
}

TEST(ImageStore, MakesJpegsOfPng) {
  if (const std::string why = WhyNoPng(); !why.empty()) GTEST_SKIP() << why;
  const StoredImage stored = Store(RedAndBluePng());
  EXPECT_EQ(stored.size, (ImageSize{16, 8}));
  const std::vector<int> red = ColorAt(stored.encoded, 2, 4);
  const std::vector<int> blue = ColorAt(stored.encoded, 13, 4);
  EXPECT_GT(red[0], 240);
  EXPECT_LT(red[2], 15);
  EXPECT_GT(blue[2], 240);
  EXPECT_LT(blue[0], 15);
}

// 16 bits are of the same scale as 8, and not linear light.
TEST(ImageStore, KeepsTheUpperHalfOf16Bits) {
  if (const std::string why = WhyNoPng(); !why.empty()) GTEST_SKIP() << why;
  for (const int value : ColorAt(Store(DeepGrayPng()).encoded, 4, 4)) EXPECT_NEAR(value, 0x40, 1);
}

TEST(ImageStore, MakesLargeImagesSmaller) {
  const StoredImage stored = Store(MakeJpeg({80, 60}), {.shorter_side = 30, .quality = 80});
  EXPECT_EQ(stored.size, (ImageSize{40, 30}));
  JpegDecoder decoder;
  EXPECT_EQ(decoder.ReadHeader(AsBytes(stored.encoded)), stored.size);
  EXPECT_GT(Store(MakeJpeg({80, 60}), {.shorter_side = 30, .quality = 95}).encoded.size(),
            stored.encoded.size());
}

TEST(ImageStore, RefusesWhatIsNoImage) {
  EXPECT_THAT(DataErrorOf([] { Store("GIF89a..."); }), HasSubstr("it is a GIF image"));
  EXPECT_THAT(DataErrorOf([] { Store(""); }), HasSubstr("it is empty"));
  const std::string jpeg = MakeJpeg({40, 30});
  EXPECT_THAT(DataErrorOf([&] { Store(jpeg.substr(0, jpeg.size() / 2)); }),
              HasSubstr("cannot decode the JPEG image: "));
  const std::string cut = RedAndBluePng().substr(0, 60);
  EXPECT_THAT(DataErrorOf([&] { Store(cut); }), HasSubstr("PNG"));
}

}  // namespace
}  // namespace trainer
