// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/images/jpeg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/trainer/data/data_fixture.h"

namespace trainer {
namespace {

using ::testing::HasSubstr;

ImagePiece DecodeAll(const std::string& jpeg, int reduction = 1) {
  JpegDecoder decoder;
  const ImageSize size = decoder.ReadHeader(AsBytes(jpeg));
  ImagePiece piece;
  decoder.Decode(
      reduction,
      {0, 0, (size.width + reduction - 1) / reduction, (size.height + reduction - 1) / reduction},
      piece);
  return piece;
}

const std::uint8_t* PixelAt(const ImagePiece& piece, int x, int y) {
  return &piece.pixels[static_cast<std::size_t>((y - piece.box.y) * piece.box.width +
                                                (x - piece.box.x)) *
                       3];
}

std::string RefusalOfJpeg(const std::string& jpeg) {
  return DataErrorOf([&] { DecodeAll(jpeg); });
}

TEST(Jpeg, GivesBackThePicture) {
  const ImageSize size{50, 34};
  std::vector<std::uint8_t> pixels;
  for (int y = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x) {
      pixels.insert(pixels.end(),
                    {static_cast<std::uint8_t>(4 * x), static_cast<std::uint8_t>(7 * y),
                     static_cast<std::uint8_t>(200 - 2 * x - y)});
    }
  }
  const ImagePiece piece = DecodeAll(EncodeJpeg(pixels, size, {.quality = 100}));
  EXPECT_EQ(piece.box, (PixelBox{0, 0, 50, 34}));
  ASSERT_EQ(piece.pixels.size(), pixels.size());
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    ASSERT_NEAR(piece.pixels[i], pixels[i], 8) << i;
  }
}

TEST(Jpeg, PieceEqualsTheWholeImage) {
  for (const bool progressive : {false, true}) {
    const std::string jpeg = MakeJpeg({150, 117}, 3, {.progressive = progressive});
    JpegDecoder decoder;
    Random random(5, RandomPurpose::kGenerate, 0);
    for (const int reduction : {1, 2, 4, 8}) {
      const ImagePiece whole = DecodeAll(jpeg, reduction);
      for (int i = 0; i < 40; ++i) {
        const auto below = [&](int n) {
          return static_cast<int>(random.Below(static_cast<std::uint32_t>(n)));
        };
        PixelBox box{below(whole.box.width), below(whole.box.height), 0, 0};
        box.width = 1 + below(whole.box.width - box.x);
        box.height = 1 + below(whole.box.height - box.y);
        ImagePiece piece;
        decoder.ReadHeader(AsBytes(jpeg));
        decoder.Decode(reduction, box, piece);
        for (int y = box.y; y < box.y + box.height; ++y) {
          for (int x = box.x; x < box.x + box.width; ++x) {
            for (int c = 0; c < 3; ++c) {
              ASSERT_EQ(PixelAt(piece, x, y)[c], PixelAt(whole, x, y)[c])
                  << x << "," << y << " of " << box.x << "," << box.y << " " << box.width << "x"
                  << box.height << " reduced by " << reduction;
            }
          }
        }
      }
    }
  }
}

TEST(Jpeg, GrayBecomesRgb) {
  const ImageSize size{20, 10};
  const std::vector<std::uint8_t> gray(200, 77);
  const ImagePiece piece = DecodeAll(EncodeJpeg(gray, size, {.colors = JpegColors::kGray}));
  EXPECT_EQ(piece.pixels, std::vector<std::uint8_t>(600, 77));
}

TEST(Jpeg, AdobesCmykBecomesRgb) {
  const ImageSize size{16, 16};
  std::vector<std::uint8_t> cmyk;
  for (int i = 0; i < 256; ++i) cmyk.insert(cmyk.end(), {255, 128, 0, 200});
  const ImagePiece piece =
      DecodeAll(EncodeJpeg(cmyk, size, {.quality = 100, .colors = JpegColors::kCmyk}));
  EXPECT_NEAR(piece.pixels[0], 200, 2);  // 255 * 200 / 255
  EXPECT_NEAR(piece.pixels[1], 100, 2);
  EXPECT_NEAR(piece.pixels[2], 0, 2);
}

TEST(Jpeg, NamesWhatIsNotAJpeg) {
  EXPECT_EQ(RefusalOfJpeg(""), "the image is not a JPEG file: it is empty");
  EXPECT_EQ(RefusalOfJpeg("Not an image\nat all"),
            "the image is not a JPEG file: it is text that begins with \"Not an image\"");
  EXPECT_EQ(RefusalOfJpeg("\x89PNG\r\n\x1a\n...."),
            "the image is not a JPEG file: it is a PNG image");
  EXPECT_EQ(RefusalOfJpeg("GIF89a"), "the image is not a JPEG file: it is a GIF image");
  const std::string not_jpeg = "the image is not a JPEG file: it is ";
  EXPECT_EQ(RefusalOfJpeg("\x1f\x8b\x08"), not_jpeg + "compressed: unpack it with gunzip");
  EXPECT_EQ(RefusalOfJpeg("PK\x03\x04"), not_jpeg + "a ZIP archive: unpack it with unzip");
  EXPECT_EQ(RefusalOfJpeg("icns...."), not_jpeg + "an icon of macOS");
  EXPECT_EQ(RefusalOfJpeg("version https://git-lfs.github.com/spec/v1\noid sha256:1\n"),
            not_jpeg + "a pointer of Git LFS: git lfs pull gets the image");
  EXPECT_EQ(RefusalOfJpeg(std::string(4, '\x01')),
            "the image is not a JPEG file: it does not begin with the bytes ff d8");
}

TEST(Jpeg, RefusesTruncatedImages) {
  for (const bool progressive : {false, true}) {
    const std::string jpeg = MakeJpeg({64, 64}, 1, {.progressive = progressive});
    for (const std::size_t length :
         {std::size_t{2}, jpeg.size() / 4, jpeg.size() / 2, jpeg.size() - 20}) {
      EXPECT_THAT(RefusalOfJpeg(jpeg.substr(0, length)),
                  HasSubstr("cannot decode the JPEG image: "))
          << length;
    }
  }
}

TEST(Jpeg, RefusesDamagedData) {
  std::string jpeg = MakeJpeg({64, 64});
  for (std::size_t i = jpeg.size() / 2; i < jpeg.size() / 2 + 40; ++i) jpeg[i] = '\xff';
  EXPECT_THAT(RefusalOfJpeg(jpeg), HasSubstr("Corrupt JPEG data"));
}

TEST(Jpeg, GoesOnAfterARefusal) {
  JpegDecoder decoder;
  const std::string jpeg = MakeJpeg({64, 48});
  ImagePiece piece;
  const std::string cut = jpeg.substr(0, jpeg.size() / 2);
  decoder.ReadHeader(AsBytes(cut));
  EXPECT_THROW(decoder.Decode(1, {0, 0, 64, 48}, piece), Error);
  EXPECT_EQ(decoder.ReadHeader(AsBytes(jpeg)), (ImageSize{64, 48}));
  decoder.Decode(1, {0, 0, 64, 48}, piece);
  EXPECT_EQ(piece.pixels, DecodeAll(jpeg).pixels);
}

TEST(Jpeg, StrayBytesBetweenMarkersAreNoDamage) {
  const std::string jpeg = MakeJpeg({16, 16});
  const std::string stray = jpeg.substr(0, 2) + "xy" + jpeg.substr(2);
  EXPECT_EQ(DecodeAll(stray).pixels, DecodeAll(jpeg).pixels);
}

TEST(Jpeg, RefusesImagesThatClaimToBeHuge) {
  std::string jpeg = MakeJpeg({16, 16});
  const std::size_t frame = jpeg.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  jpeg.replace(frame + 5, 4, "\xff\x00\xff\x00", 4);
  EXPECT_EQ(RefusalOfJpeg(jpeg),
            "the JPEG image is too large: 65280 x 65280 pixels, at most 100000000 are decoded");
}

}  // namespace
}  // namespace trainer
