// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/images/jpeg.h"

#include <jpeglib.h>

#include <cstdlib>

#include "tests/support/test.h"
#include "tests/trainer/data/data_fixture.h"
#include "trainer/core/philox.h"
#include "trainer/data/images/huffman_decoder.h"

namespace trainer {
namespace {

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

std::string RejectionOfJpeg(const std::string& jpeg) {
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
  EXPECT_EQ(RejectionOfJpeg(""), "the image is not a JPEG file: it is empty");
  EXPECT_EQ(RejectionOfJpeg("Not an image\nat all"),
            "the image is not a JPEG file: it is text that begins with \"Not an image\"");
  EXPECT_EQ(RejectionOfJpeg("\x89PNG\r\n\x1a\n...."),
            "the image is not a JPEG file: it is a PNG image");
  // By git's autocrlf, or a transfer as text.
  for (const char* start : {"\x89PNG\n\x1a\n", "\x89PNG\r\r\n\x1a\r\n"}) {
    EXPECT_EQ(RejectionOfJpeg(start),
              "the image is not a JPEG file: it is a PNG image whose ends of "
              "lines were changed, as of a text: get it anew");
  }
  EXPECT_EQ(RejectionOfJpeg("GIF89a"), "the image is not a JPEG file: it is a GIF image");
  const std::string not_jpeg = "the image is not a JPEG file: it is ";
  EXPECT_EQ(RejectionOfJpeg("\x1f\x8b\x08"), not_jpeg + "compressed: unpack it with gunzip");
  EXPECT_EQ(RejectionOfJpeg("PK\x03\x04"), not_jpeg + "a ZIP archive: unpack it with unzip");
  EXPECT_EQ(RejectionOfJpeg("icns...."), not_jpeg + "an icon of macOS");
  EXPECT_EQ(RejectionOfJpeg("version https://git-lfs.github.com/spec/v1\noid sha256:1\n"),
            not_jpeg + "a pointer of Git LFS: git lfs pull gets the image");
  EXPECT_EQ(RejectionOfJpeg(std::string(4, '\x01')),
            "the image is not a JPEG file: it does not begin with the bytes ff d8");
}

TEST(Jpeg, RejectsTruncatedImages) {
  for (const bool progressive : {false, true}) {
    const std::string jpeg = MakeJpeg({64, 64}, 1, {.progressive = progressive});
    for (const std::size_t length :
         {std::size_t{2}, jpeg.size() / 4, jpeg.size() / 2, jpeg.size() - 20}) {
      EXPECT_THAT(RejectionOfJpeg(jpeg.substr(0, length)),
                  HasSubstr("cannot decode the JPEG image: "))
          << length;
    }
  }
}

TEST(Jpeg, RejectsDamagedData) {
  std::string jpeg = MakeJpeg({64, 64});
  for (std::size_t i = jpeg.size() / 2; i < jpeg.size() / 2 + 40; ++i) jpeg[i] = '\xff';
  EXPECT_THAT(RejectionOfJpeg(jpeg), HasSubstr("Corrupt JPEG data"));
}

TEST(Jpeg, GoesOnAfterARejection) {
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

TEST(Jpeg, RejectsImagesThatClaimToBeHuge) {
  std::string jpeg = MakeJpeg({16, 16});
  const std::size_t frame = jpeg.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  jpeg.replace(frame + 5, 4, "\xff\x00\xff\x00", 4);
  EXPECT_EQ(RejectionOfJpeg(jpeg),
            "the JPEG image is too large: 65280 x 65280 pixels, at most 100000000 are decoded");
}

// JpegUnits against libjpeg's own reading of the same images: no pixel and no complaint differs.

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
  bool is_progressive = false;
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
  if (variant.is_progressive) {
    scans = {{1, {0}, 0, 0, 0, 0}, {1, {0}, 1, DCTSIZE2 - 1, 0, 0}};
    jpeg.scan_info = scans.data();
    jpeg.num_scans = 2;
  }
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

// Progressive, of one grey image and then of scans that each touch all of its blocks again.
std::string ManyScans(ImageSize size, int more_scans) {
  std::string jpeg = Encode({.name = "",
                             .size = size,
                             .channels = 1,
                             .luma_width = 1,
                             .luma_height = 1,
                             .has_own_tables = true,
                             .is_progressive = true});
  const std::size_t last = jpeg.rfind("\xff\xda");
  const std::string scan = jpeg.substr(last, jpeg.size() - 2 - last);
  for (int i = 0; i < more_scans; ++i) jpeg.insert(jpeg.size() - 2, scan);
  return jpeg;
}

TEST(Jpeg, RejectsImagesOfMorePixelsTimesScansThanARecordIsWorth) {
  EXPECT_EQ(DecodeAll(ManyScans({16, 16}, 150)).pixels.size(), 3 * 16 * 16);
  EXPECT_EQ(RejectionOfJpeg(ManyScans({16, 16}, 250)),
            "cannot decode the JPEG image: more than 200 scans of 256 pixels");
  EXPECT_EQ(MaxJpegScans(1), 200);
  EXPECT_EQ(MaxJpegScans(5'000'000), 200);
  EXPECT_EQ(MaxJpegScans(61'000'000), 16);  // ImageNet's largest
  EXPECT_EQ(MaxJpegScans(kMaxJpegPixels), 10);
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

// The luminance coefficients of T.81, table K.5, whose codes have 2 to 16 bits.
constexpr HuffmanCodes kLuminance{
    {0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 0x7d},
    {0x01, 0x02, 0x03, 0x00, 0x04, 0x11, 0x05, 0x12, 0x21, 0x31, 0x41, 0x06, 0x13, 0x51, 0x61,
     0x07, 0x22, 0x71, 0x14, 0x32, 0x81, 0x91, 0xa1, 0x08, 0x23, 0x42, 0xb1, 0xc1, 0x15, 0x52,
     0xd1, 0xf0, 0x24, 0x33, 0x62, 0x72, 0x82, 0x09, 0x0a, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x25,
     0x26, 0x27, 0x28, 0x29, 0x2a, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39, 0x3a, 0x43, 0x44, 0x45,
     0x46, 0x47, 0x48, 0x49, 0x4a, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5a, 0x63, 0x64,
     0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7a, 0x83,
     0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99,
     0x9a, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6,
     0xb7, 0xb8, 0xb9, 0xba, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xd2, 0xd3,
     0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda, 0xe1, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8,
     0xe9, 0xea, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa}};

// As T.81 describes it, bit by bit (figures F.12, F.13, F.16).
HuffmanStep PlainStep(const HuffmanCodes& codes, std::uint64_t window) {
  int code = 0;
  int first_code = 0;
  std::size_t first_symbol = 0;
  for (int bits = 1; bits <= 16; ++bits) {
    code = static_cast<int>(window >> (64 - bits));
    const int count = codes.counts[static_cast<std::size_t>(bits) - 1];
    if (code - first_code < count) {
      const int symbol = codes.symbols[first_symbol + static_cast<std::size_t>(code - first_code)];
      int value = 0;
      for (int bit = 0; bit < symbol % 16; ++bit) {
        value = 2 * value + static_cast<int>(window << (bits + bit) >> 63);
      }
      if (symbol % 16 != 0 && value < 1 << (symbol % 16 - 1)) value += 1 - (1 << (symbol % 16));
      const bool is_end = symbol == 0;
      if (symbol % 16 == 0 && !is_end && symbol != 0xf0) return {};
      return {static_cast<std::int16_t>(value), static_cast<std::uint8_t>(bits + symbol % 16),
              is_end ? kEndOfBlock : static_cast<std::uint8_t>(symbol / 16 + 1)};
    }
    first_code = 2 * (first_code + count);
    first_symbol += static_cast<std::size_t>(count);
  }
  return {};
}

bool AreEqual(const HuffmanStep& a, const HuffmanStep& b) {
  return a.value == b.value && a.bits == b.bits && a.advance == b.advance;
}

std::unique_ptr<HuffmanTable> CoefficientTable(const HuffmanCodes& codes) {
  auto table = std::make_unique<HuffmanTable>(HuffmanSymbols::kCoefficients);
  EXPECT_TRUE(table->Assign(codes));
  return table;
}

template <typename Check>
void ForManyWindows(Check check) {
  Random random(1, RandomPurpose::kGenerate, 0);
  for (int i = 0; i < 200'000; ++i) {
    std::uint64_t window = std::uint64_t{random.Next()} << 32 | random.Next();
    if (i % 4 == 0) window |= std::uint64_t{0xff} << 56;  // the long codes begin with ones
    ASSERT_NO_FATAL_FAILURE(check(window)) << std::hex << window;
  }
}

TEST(HuffmanTable, StepsAreTheStandards) {
  const auto table = CoefficientTable(kLuminance);
  ForManyWindows([&](std::uint64_t window) {
    ASSERT_TRUE(AreEqual(table->StepAt(window), PlainStep(kLuminance, window)));
  });
}

TEST(HuffmanTable, PairIsTheNextTwoSteps) {
  const auto table = CoefficientTable(kLuminance);
  ForManyWindows([&](std::uint64_t window) {
    const HuffmanPair pair = table->PairAt(window);
    const HuffmanStep first = PlainStep(kLuminance, window);
    if (first.bits == 0 || first.bits > kHuffmanLookBits) {
      ASSERT_EQ(pair.first_bits, 0);
      return;
    }
    ASSERT_TRUE(AreEqual({pair.values[0], pair.first_bits, pair.advances[0]}, first));
    const HuffmanStep second = PlainStep(kLuminance, window << first.bits);
    if (second.bits == 0 || first.bits + second.bits > kHuffmanLookBits) {
      ASSERT_TRUE(
          AreEqual({pair.values[1], pair.bits, pair.advances[1]}, {first.value, first.bits, 0}));
    } else {
      ASSERT_TRUE(AreEqual(
          {pair.values[1], pair.bits, pair.advances[1]},
          {second.value, static_cast<std::uint8_t>(first.bits + second.bits), second.advance}));
    }
  });
}

TEST(HuffmanTable, LeapIsAllStepsInSight) {
  const auto table = CoefficientTable(kLuminance);
  ForManyWindows([&](std::uint64_t window) {
    int bits = 0;
    int advance = 0;
    bool ends_block = false;
    while (!ends_block) {
      const HuffmanStep step = PlainStep(kLuminance, window << bits);
      if (step.bits == 0 || bits + step.bits > kHuffmanLookBits) break;
      bits += step.bits;
      ends_block = step.advance == kEndOfBlock;
      if (!ends_block) advance += step.advance;
    }
    const HuffmanLeap leap = table->LeapAt(window);
    ASSERT_EQ(leap.bits, bits);
    ASSERT_EQ(leap.advance, advance);
    ASSERT_EQ(leap.ends_block, ends_block);
  });
}

TEST(HuffmanTable, DifferencesHaveNoZerosBeforeThem) {
  HuffmanTable table(HuffmanSymbols::kDifferences);
  // 0: no bits, 10: 15 bits.
  ASSERT_TRUE(table.Assign({{1, 1}, {0, 15}}));
  EXPECT_TRUE(AreEqual(table.StepAt(0), {0, 1, 1}));
  EXPECT_TRUE(
      AreEqual(table.StepAt(std::uint64_t{0b10'0000'0000'0000'000} << 47), {-32767, 17, 1}));
  EXPECT_TRUE(AreEqual(table.StepAt(std::uint64_t{0b10'1111'1111'1111'111} << 47), {32767, 17, 1}));
  EXPECT_EQ(table.StepAt(~std::uint64_t{0}).bits, 0) << "11 is no code";
}

TEST(HuffmanTable, SymbolsOfProgressiveImagesAreNoSteps) {
  const auto table = CoefficientTable({{2}, {0x30, 0xf0}});
  EXPECT_EQ(table->StepAt(0).bits, 0);
  EXPECT_EQ(table->PairAt(0).first_bits, 0);
  EXPECT_EQ(table->LeapAt(0).bits, 0);
  EXPECT_TRUE(AreEqual(table->StepAt(std::uint64_t{1} << 63), {0, 1, 16}));
}

TEST(HuffmanTable, RejectsWhatIsNoPrefixCode) {
  HuffmanTable table(HuffmanSymbols::kDifferences);
  EXPECT_TRUE(table.Assign({{2}, {}}));
  EXPECT_FALSE(table.Assign({{3}, {}}));
  EXPECT_FALSE(table.Assign({{1, 3}, {}}));
  EXPECT_FALSE(table.Assign({{1, 3}, {}})) << "once more";
  EXPECT_FALSE(table.Assign({{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 200, 57}, {}}))
      << "257 codes";
}

TEST(HuffmanTable, AnotherTableTakesThePlace) {
  HuffmanTable table(HuffmanSymbols::kCoefficients);
  ASSERT_TRUE(table.Assign(kLuminance));
  ASSERT_TRUE(table.Assign({{0, 1}, {0x02}}));
  EXPECT_TRUE(AreEqual(table.StepAt(0), {-3, 4, 1}));
  EXPECT_EQ(table.StepAt(~std::uint64_t{0}).bits, 0);
  EXPECT_EQ(table.PairAt(~std::uint64_t{0}).first_bits, 0);
  EXPECT_EQ(table.LeapAt(~std::uint64_t{0}).bits, 0);
}

}  // namespace
}  // namespace trainer
