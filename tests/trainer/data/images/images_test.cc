// SPDX-License-Identifier: Apache-2.0

#include "tests/ddldata/convert_fixture.h"
#include "tests/support/test.h"
#include "tests/trainer/data/data_fixture.h"
#include "tests/trainer/data/png_text.h"
#include "trainer/data/images/augment.h"
#include "trainer/data/images/image_files.h"
#include "trainer/data/images/image_loader.h"
#include "trainer/data/images/png.h"

namespace trainer {
namespace {

using std::string_literals::operator""s;

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

TEST(ImageDecoder, RejectsADamagedPng) {
  if (const std::string why = WhyNoPng(); !why.empty()) GTEST_SKIP() << why;
  ImageDecoder decoder;
  const std::string png = RedAndBluePng();
  for (const std::size_t bytes : {9, 30, 50}) {
    EXPECT_NE(DataErrorOf([&] { decoder.ReadHeader(AsBytes(png.substr(0, bytes))); }), "");
  }
}

class ImageFilesTest : public ::testing::Test {
 protected:
  fs::path Make(const std::string& name) {
    const fs::path path = root_ / name;
    fs::create_directories(path.parent_path());
    WriteText(path.string(), "x");
    return path;
  }
  const TemporaryDirectory dir_;
  const fs::path root_ = dir_ / "images";
};

TEST_F(ImageFilesTest, FilesAreTakenWhateverTheirNamesInTheOrderGiven) {
  const fs::path b = Make("b.JPEG");
  const fs::path a = Make("a");
  const fs::path hidden = Make(".c");
  const std::vector<fs::path> given = {b, a, hidden, b};
  EXPECT_THAT(FindImageFiles(given), ElementsAre(b, a, hidden, b));
}

TEST(HasImageEnding, KnowsImagesThatNobodyDecodes) {
  for (const char* name :
       {"a.HEIC", "a.heif", "a.avif", "a.jp2", "a.jxl", "a.tga", "a.pgm", "a.WebP"}) {
    EXPECT_TRUE(HasImageEnding(name)) << name;
  }
  for (const char* name : {"heic", "a.heic.txt", "a.json", "a.mp4"}) {
    EXPECT_FALSE(HasImageEnding(name)) << name;
  }
}

TEST_F(ImageFilesTest, DirectoriesAreTakenWithAllImagesBelow) {
  const fs::path last = Make("z.png");
  const fs::path deep = Make("cat/2020/one.jpg");
  const fs::path upper = Make("A.JPEG");
  Make("notes.txt");
  Make("cat/.hidden.jpg");
  Make(".git/x.jpg");
  Make("lost+found/x.jpg");
  Make("@eaDir/x.jpg/thumb.jpg");
  const fs::path other = Make("other");
  const std::vector<fs::path> given = {other, root_};
  EXPECT_THAT(FindImageFiles(given), ElementsAre(other, upper, deep, last));
}

TEST_F(ImageFilesTest, RejectsWhatIsNotThereOrHasNoImages) {
  Make("texts/a.txt");
  const auto rejection = [&](const fs::path& path) {
    const std::vector<fs::path> given = {path};
    return DataErrorOf([&] { FindImageFiles(given); });
  };
  EXPECT_THAT(rejection(root_ / "absent.jpg"), HasSubstr("absent.jpg: No such file"));
  EXPECT_THAT(rejection(root_ / "texts"), HasSubstr("texts has no images"));
  EXPECT_THAT(rejection(root_ / "*.jpg"), EndsWith("; write it without quotes, so that the shell "
                                                   "makes the names"));
  EXPECT_THAT(rejection("https://a.org/b.jpg"), EndsWith("; what is elsewhere is not read: "
                                                         "download it, and give its path"));
  EXPECT_THAT(rejection((root_ / "texts").string() + ",b"),
              EndsWith("; write several as words of their own, with a space between them"));
  EXPECT_THAT(rejection(root_ / "a,b"), EndsWith(": No such file or directory"));
  fs::create_directory_symlink(root_, root_ / "texts" / "round");
  EXPECT_THAT(rejection(root_ / "texts"), HasSubstr("a link to a directory above?"));
}

// The whole image, made smaller by the decoder.
ImagePiece DecodeWhole(const std::string& jpeg, int reduction) {
  JpegDecoder decoder;
  const ImageSize size = decoder.ReadHeader(AsBytes(jpeg));
  const PixelBox box{0, 0, (size.width + reduction - 1) / reduction,
                     (size.height + reduction - 1) / reduction};
  ImagePiece piece;
  decoder.Decode(reduction, box, piece);
  return piece;
}

// The largest that leaves as many pixels as the output has.
int ReductionFor(const View& view, int size) {
  int reduction = 1;
  for (const int next : {2, 4, 8}) {
    if (std::min(view.width, view.height) / next >= size) reduction = next;
  }
  return reduction;
}

// Channel `channel` of the pixel of `whole` at the place (x, y), pixel (0, 0) being at (0.5, 0.5),
// by bilinear interpolation between the pixels that `view` may read.
double Interpolate(const ImagePiece& whole, const View& view, int reduction, double x, double y,
                   int channel) {
  const PixelBox& box = view.readable;
  const double first_x = std::floor(static_cast<double>(box.x) / reduction);
  const double first_y = std::floor(static_cast<double>(box.y) / reduction);
  const double last_x = std::ceil(static_cast<double>(box.x + box.width) / reduction) - 1;
  const double last_y = std::ceil(static_cast<double>(box.y + box.height) / reduction) - 1;
  const auto pixel = [&](double column, double row) {
    const auto i = static_cast<std::size_t>(std::clamp(column, first_x, last_x));
    const auto j = static_cast<std::size_t>(std::clamp(row, first_y, last_y));
    const auto width = static_cast<std::size_t>(whole.box.width);
    return static_cast<double>(
        whole.pixels[(j * width + i) * 3 + static_cast<std::size_t>(channel)]);
  };
  const double left = std::floor(x - 0.5);
  const double top = std::floor(y - 0.5);
  const double right_part = x - 0.5 - left;
  const double bottom_part = y - 0.5 - top;
  return (1 - bottom_part) *
             ((1 - right_part) * pixel(left, top) + right_part * pixel(left + 1, top)) +
         bottom_part *
             ((1 - right_part) * pixel(left, top + 1) + right_part * pixel(left + 1, top + 1));
}

// Loads views of one image and compares each pixel with the plain computation.
class Comparison {
 public:
  explicit Comparison(ImageSize size) : size_(size), jpeg_(MakeJpeg(size)) {}

  // Within 2 levels: weights of 8 bits are off by half a level along each axis at most, and the
  // result is rounded.  On the average there is no difference.
  void Check(const View& view, int size) {
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(size * size * 3));
    ASSERT_EQ(loader_.ReadHeader(AsBytes(jpeg_)), size_);
    loader_.Load(view, size, pixels);
    const int reduction = ReductionFor(view, size);
    if (!whole_.contains(reduction)) whole_[reduction] = DecodeWhole(jpeg_, reduction);
    double sum = 0;
    for (std::size_t i = 0; i < pixels.size(); ++i) {
      const int channel = static_cast<int>(i % 3);
      const int column = static_cast<int>(i) / 3 % size;
      const int row = static_cast<int>(i) / 3 / size;
      const double x = (view.x + (column + 0.5) * view.width / size) / reduction;
      const double y = (view.y + (row + 0.5) * view.height / size) / reduction;
      const double expected = Interpolate(whole_[reduction], view, reduction, x, y, channel);
      ASSERT_NEAR(pixels[i], expected, 2)
          << "column " << column << ", row " << row << ", reduced by " << reduction;
      sum += pixels[i] - expected;
    }
    EXPECT_NEAR(sum / static_cast<double>(pixels.size()), 0, 0.1);
  }

  // By which the decoder has made the image smaller.
  std::set<int> reductions() const {
    std::set<int> all;
    for (const auto& [reduction, piece] : whole_) all.insert(reduction);
    return all;
  }

 private:
  ImageSize size_;
  std::string jpeg_;
  ImageLoader loader_;
  std::map<int, ImagePiece> whole_;  // by reduction
};

TEST(ImageLoader, GivesTheRandomCropsThatWereDrawn) {
  constexpr ImageSize kSize{611, 473};
  for (const Augmentation augmentation :
       {Augmentation::kTensorFlow, Augmentation::kDali, Augmentation::kTorchvision}) {
    Comparison comparison(kSize);
    for (std::uint64_t sample = 0; sample < 30; ++sample) {
      Random random(4, RandomPurpose::kAugment, sample);
      const View view = TrainingView(kSize, {}, RulesOf(augmentation), random);
      SCOPED_TRACE(::testing::Message() << "sample " << sample);
      ASSERT_NO_FATAL_FAILURE(comparison.Check(view, 48));
    }
    EXPECT_EQ(comparison.reductions(), (std::set<int>{2, 4, 8}));
  }
}

TEST(ImageLoader, EnlargesASmallCrop) {
  Comparison comparison({90, 70});
  ASSERT_NO_FATAL_FAILURE(comparison.Check({11, 9, 40, 31, {11, 9, 40, 31}, false}, 64));
  EXPECT_EQ(comparison.reductions(), std::set<int>{1});
}

TEST(ImageLoader, GivesTheCentreForAnEvaluation) {
  for (const ImageSize size : {ImageSize{500, 375}, ImageSize{97, 230}, ImageSize{64, 64}}) {
    Comparison comparison(size);
    ASSERT_NO_FATAL_FAILURE(comparison.Check(CentreView(size, 56), 56));
  }
}

using Values = std::vector<std::uint8_t>;

class Png : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNoPng(); !why.empty()) GTEST_SKIP() << why;
  }
};

Values PixelsOf(const PngPicture& picture) { return DecodePng(AsBytes(PngOf(picture))).pixels; }

std::string RejectionOfPng(const std::string& file) {
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

TEST_F(Png, RejectsWhatIsDamaged) {
  const std::string file = PngOf({.rows = {FromHex("4080c0")}});
  const std::size_t pixels = file.find("IDAT");
  for (const std::size_t size : {std::size_t{8}, std::size_t{20}, pixels - 4, pixels + 8}) {
    EXPECT_EQ(RejectionOfPng(file.substr(0, size)),
              "cannot decode the PNG image: read beyond end of data");
  }
  std::string changed = file;
  changed[pixels + 12] ^= 1;
  EXPECT_THAT(RejectionOfPng(changed), HasSubstr("cannot decode the PNG image: "));
  EXPECT_THAT(RejectionOfPng(PngOf({.height = 2, .rows = {FromHex("4080c0")}})),
              HasSubstr("cannot decode the PNG image: "));
}

TEST_F(Png, RejectsTooManyPixelsBeforeThereIsRoomForThem) {
  EXPECT_THAT(RejectionOfPng(PngOf({.width = 65501, .rows = {""}})),
              HasSubstr("the PNG image is too large: 65501 x 1 pixels, at most "));
  EXPECT_THAT(RejectionOfPng(PngOf({.width = 65500, .height = 65500, .rows = {""}})),
              HasSubstr("the PNG image is too large: 65500 x 65500 pixels, at most "));
  EXPECT_THAT(RejectionOfPng(PngOf({.width = 2000000, .rows = {""}})), HasSubstr("PNG image: "));
}

}  // namespace
}  // namespace trainer
