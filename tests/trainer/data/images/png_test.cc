// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/images/png.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "tests/ddldata/convert_fixture.h"
#include "tests/trainer/data/data_fixture.h"
#include "tests/trainer/data/png_text.h"

namespace trainer {
namespace {

using ::testing::HasSubstr;

using Values = std::vector<std::uint8_t>;

class Png : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNoPng(); !why.empty()) GTEST_SKIP() << why;
  }
};

Values PixelsOf(const PngPicture& picture) { return DecodePng(AsBytes(PngOf(picture))).pixels; }

std::string RefusalOfPng(const std::string& file) {
  return DataErrorOf([&] { DecodePng(AsBytes(file)); });
}

const std::pair<std::string, std::string> kLinearLight = {"gAMA", BigEndian(100000)};

TEST_F(Png, GammaChangesNoValue) {
  EXPECT_EQ(PixelsOf({.rows = {FromHex("4080c0")}, .chunks = {kLinearLight}}),
            (Values{0x40, 0x80, 0xc0}));
  EXPECT_EQ(PixelsOf({.width = 2,
                      .colors = PngColors::kGray,
                      .rows = {FromHex("40c0")},
                      .chunks = {kLinearLight}}),
            (Values{0x40, 0x40, 0x40, 0xc0, 0xc0, 0xc0}));
}

TEST_F(Png, OfSixteenBitsTheUpperEightCount) {
  EXPECT_EQ(PixelsOf({.bits = 16, .rows = {FromHex("40ff800000ff")}, .chunks = {kLinearLight}}),
            (Values{0x40, 0x80, 0x00}));
  EXPECT_EQ(PixelsOf({.colors = PngColors::kGrayAlpha, .bits = 16, .rows = {FromHex("7fff0000")}}),
            (Values{0x7f, 0x7f, 0x7f}));
}

TEST_F(Png, TransparentPixelsHaveTheirColour) {
  EXPECT_EQ(PixelsOf({.width = 2,
                      .colors = PngColors::kRgba,
                      .rows = {FromHex("4080c000") + FromHex("10203080")}}),
            (Values{0x40, 0x80, 0xc0, 0x10, 0x20, 0x30}));
  EXPECT_EQ(PixelsOf({.width = 2, .colors = PngColors::kGrayAlpha, .rows = {FromHex("40005080")}}),
            (Values{0x40, 0x40, 0x40, 0x50, 0x50, 0x50}));
  // One colour that is transparent.
  EXPECT_EQ(PixelsOf({.rows = {FromHex("4080c0")}, .chunks = {{"tRNS", FromHex("0040008000c0")}}}),
            (Values{0x40, 0x80, 0xc0}));
  EXPECT_EQ(PixelsOf({.colors = PngColors::kGray,
                      .rows = {FromHex("40")},
                      .chunks = {{"tRNS", FromHex("0040")}}}),
            (Values{0x40, 0x40, 0x40}));
}

TEST_F(Png, PalettesBecomeColours) {
  const std::pair<std::string, std::string> palette = {"PLTE", FromHex("4080c0102030")};
  EXPECT_EQ(PixelsOf({.width = 2,
                      .colors = PngColors::kPalette,
                      .rows = {FromHex("0001")},
                      .chunks = {kLinearLight, palette, {"tRNS", FromHex("0080")}}}),
            (Values{0x40, 0x80, 0xc0, 0x10, 0x20, 0x30}));
  EXPECT_EQ(PixelsOf({.width = 2,
                      .colors = PngColors::kPalette,
                      .bits = 1,
                      .rows = {"\x40"},
                      .chunks = {palette}}),
            (Values{0x40, 0x80, 0xc0, 0x10, 0x20, 0x30}));
}

TEST_F(Png, GrayOfFewBitsIsStretched) {
  EXPECT_EQ(PixelsOf({.width = 3, .colors = PngColors::kGray, .bits = 1, .rows = {"\x40"}}),
            (Values{0, 0, 0, 255, 255, 255, 0, 0, 0}));
  EXPECT_EQ(PixelsOf({.width = 2, .colors = PngColors::kGray, .bits = 4, .rows = {"\x4f"}}),
            (Values{0x44, 0x44, 0x44, 255, 255, 255}));
}

// Adam7: first column and row of each pass, and the steps between them.
TEST_F(Png, InterlacedImagesAreWhole) {
  struct Pass {
    unsigned x, y, dx, dy;
  };
  constexpr std::array<Pass, 7> kPasses = {{{0, 0, 8, 8},
                                            {4, 0, 8, 8},
                                            {0, 4, 4, 8},
                                            {2, 0, 4, 4},
                                            {0, 2, 2, 4},
                                            {1, 0, 2, 2},
                                            {0, 1, 1, 2}}};
  PngPicture picture{.width = 9, .height = 10, .rows = {}, .is_interlaced = true};
  for (const Pass& pass : kPasses) {
    for (unsigned y = pass.y; y < picture.height; y += pass.dy) {
      std::string row;
      for (unsigned x = pass.x; x < picture.width; x += pass.dx) {
        row += {static_cast<char>(x), static_cast<char>(y), static_cast<char>(x * y)};
      }
      if (!row.empty()) picture.rows.push_back(row);
    }
  }
  Values expected;
  for (unsigned y = 0; y < picture.height; ++y) {
    for (unsigned x = 0; x < picture.width; ++x) {
      for (const unsigned value : {x, y, x * y}) {
        expected.push_back(static_cast<std::uint8_t>(value));
      }
    }
  }
  const DecodedPicture decoded = DecodePng(AsBytes(PngOf(picture)));
  EXPECT_EQ(decoded.size, (ImageSize{9, 10}));
  EXPECT_EQ(decoded.pixels, expected);
}

TEST_F(Png, WarningsAreNotPrinted) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(PixelsOf({.rows = {FromHex("4080c0")}, .chunks = {{"gAMA", "?"}}}),
            (Values{0x40, 0x80, 0xc0}));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST_F(Png, RefusesWhatIsDamaged) {
  const std::string file = PngOf({.rows = {FromHex("4080c0")}});
  const std::size_t pixels = file.find("IDAT");
  for (const std::size_t size : {std::size_t{8}, std::size_t{20}, pixels - 4, pixels + 8}) {
    EXPECT_EQ(RefusalOfPng(file.substr(0, size)),
              "cannot decode the PNG image: read beyond end of data");
  }
  std::string changed = file;
  changed[pixels + 12] ^= 1;
  EXPECT_THAT(RefusalOfPng(changed), HasSubstr("cannot decode the PNG image: "));
  EXPECT_THAT(RefusalOfPng(PngOf({.height = 2, .rows = {FromHex("4080c0")}})),
              HasSubstr("cannot decode the PNG image: "));
}

TEST_F(Png, RefusesTooManyPixelsBeforeThereIsRoomForThem) {
  EXPECT_THAT(RefusalOfPng(PngOf({.width = 65501, .rows = {""}})),
              HasSubstr("the PNG image is too large: 65501 x 1 pixels, at most "));
  EXPECT_THAT(RefusalOfPng(PngOf({.width = 65500, .height = 65500, .rows = {""}})),
              HasSubstr("the PNG image is too large: 65500 x 65500 pixels, at most "));
  EXPECT_THAT(RefusalOfPng(PngOf({.width = 2000000, .rows = {""}})), HasSubstr("PNG image: "));
}

}  // namespace
}  // namespace trainer
