// SPDX-License-Identifier: Apache-2.0

#include <nlohmann/json.hpp>

#include "ddldata/label_list.h"
#include "ddldata/stats.h"
#include "ddldata/stored_image.h"
#include "ddldata/synth.h"
#include "tests/ddldata/convert_fixture.h"
#include "tests/support/test.h"
#include "tests/trainer/data/data_fixture.h"

namespace trainer {
namespace {

constexpr int kClasses = 10;

std::array<double, 3> MeanColor(const Picture& picture) {
  std::array<double, 3> mean{};
  for (std::size_t i = 0; i < picture.pixels.size(); ++i) mean[i % 3] += picture.pixels[i];
  for (double& channel : mean) channel /= static_cast<double>(picture.pixels.size()) / 3;
  return mean;
}

Picture PaintNumber(int class_index, std::uint64_t number) {
  Random random(3, RandomPurpose::kGenerate, number);
  return Render(class_index, {48, 40}, random);
}

double SquaredDistance(const std::array<double, 3>& a, const std::array<double, 3>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < 3; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

// The nearest mean colour of a class, learnt from 1000 pictures and tried on 1000 others, must be
// near chance: 10 %.
TEST(Painter, MeanColorTellsNothingOfTheClass) {
  constexpr std::uint64_t kPictures = 1000;
  std::array<std::array<double, 3>, kClasses> means{};
  for (std::uint64_t i = 0; i < kPictures; ++i) {
    const auto color = MeanColor(PaintNumber(static_cast<int>(i % kClasses), i));
    for (std::size_t c = 0; c < 3; ++c) means[i % kClasses][c] += color[c] * kClasses / kPictures;
  }
  int right = 0;
  for (std::uint64_t i = kPictures; i < 2 * kPictures; ++i) {
    const auto color = MeanColor(PaintNumber(static_cast<int>(i % kClasses), i));
    std::size_t nearest = 0;
    for (std::size_t c = 1; c < kClasses; ++c) {
      if (SquaredDistance(color, means[c]) < SquaredDistance(color, means[nearest])) nearest = c;
    }
    right += nearest == i % kClasses ? 1 : 0;
  }
  EXPECT_LT(right, 150);  // 100 by chance, deviation 9.5
}

// With the same random numbers two classes differ in the object alone.
TEST(Painter, ClassesDifferWithinTheBoxOnly) {
  const Picture disc = PaintNumber(0, 5);
  const Picture star = PaintNumber(9, 5);
  EXPECT_EQ(disc.box, star.box);
  int inside = 0;
  for (int y = 0; y < disc.size.height; ++y) {
    for (int x = 0; x < disc.size.width; ++x) {
      const auto at = static_cast<std::size_t>(y * disc.size.width + x) * 3;
      if (disc.pixels[at] == star.pixels[at]) continue;
      ++inside;
      // Tilted corners reach a little over the box.
      EXPECT_GE(x + 1, disc.box.xmin * 48 - 3);
      EXPECT_LE(x, disc.box.xmax * 48 + 3);
      EXPECT_GE(y + 1, disc.box.ymin * 40 - 3);
      EXPECT_LE(y, disc.box.ymax * 40 + 3);
    }
  }
  EXPECT_GT(inside, 100);
}

TEST(Painter, SameNumbersPaintTheSamePicture) {
  EXPECT_EQ(PaintNumber(3, 8).pixels, PaintNumber(3, 8).pixels);
  EXPECT_NE(PaintNumber(3, 8).pixels, PaintNumber(3, 9).pixels);
}

TEST(Painter, EachClassHasADescriptionOfItsOwn) {
  std::set<std::string> names;
  for (int c = 0; c < kMaxSyntheticClasses; ++c) names.insert(DescribeSyntheticClass(c));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kMaxSyntheticClasses));
}

// In double precision, straight from the definition.
std::vector<std::uint8_t> ShrinkByDefinition(const std::vector<std::uint8_t>& pixels,
                                             ImageSize size, ImageSize target) {
  const auto weight = [](int j, int i, double scale) {
    return std::max(0.0, 1 - std::abs((j + 0.5) - (i + 0.5) * scale) / scale);
  };
  const double x_scale = static_cast<double>(size.width) / target.width;
  const double y_scale = static_cast<double>(size.height) / target.height;
  std::vector<std::uint8_t> small;
  for (int y = 0; y < target.height; ++y) {
    for (int x = 0; x < target.width; ++x) {
      for (int color = 0; color < 3; ++color) {
        double sum = 0;
        double weights = 0;
        for (int row = 0; row < size.height; ++row) {
          for (int column = 0; column < size.width; ++column) {
            const double one = weight(column, x, x_scale) * weight(row, y, y_scale);
            sum += one * pixels[static_cast<std::size_t>((row * size.width + column) * 3 + color)];
            weights += one;
          }
        }
        small.push_back(static_cast<std::uint8_t>(std::lround(sum / weights)));
      }
    }
  }
  return small;
}

TEST(SizeWithShorterSide, KeepsTheProportions) {
  EXPECT_EQ(SizeWithShorterSide({500, 375}, 256), (ImageSize{341, 256}));
  EXPECT_EQ(SizeWithShorterSide({375, 500}, 256), (ImageSize{256, 341}));
  EXPECT_EQ(SizeWithShorterSide({3, 1000}, 1), (ImageSize{1, 333}));
}

TEST(Shrink, IsTheMeanByATriangle) {
  for (const auto& [size, target] : {std::pair<ImageSize, ImageSize>{{40, 30}, {13, 10}},
                                     {{31, 64}, {31, 17}},
                                     {{9, 7}, {1, 1}},
                                     {{100, 3}, {33, 2}}}) {
    const std::vector<std::uint8_t> pixels = MakePixels(size, 3, 5);
    const std::vector<std::uint8_t> small = Shrink(pixels, size, target);
    const std::vector<std::uint8_t> expected = ShrinkByDefinition(pixels, size, target);
    ASSERT_EQ(small.size(), expected.size());
    for (std::size_t i = 0; i < small.size(); ++i) EXPECT_NEAR(small[i], expected[i], 1) << i;
  }
}

TEST(Shrink, KeepsWhatIsEvenAndWhatHasItsSizeAlready) {
  const std::vector<std::uint8_t> white(40 * 30 * 3, 255);
  EXPECT_THAT(Shrink(white, {40, 30}, {17, 11}), Each(255));
  const std::vector<std::uint8_t> row = {1, 2, 3, 40, 50, 60, 200, 201, 202};
  EXPECT_THAT(Shrink(row, {3, 1}, {3, 1}), ElementsAre(1, 2, 3, 40, 50, 60, 200, 201, 202));
}

class StatsTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return dir_ / name; }
  void Write(const std::string& name, const std::vector<std::string>& records) const {
    WriteRecords(Path(name), records);
  }
  DataStats Measure() const { return MeasureDataSet(dir_.path(), 2); }

  TemporaryDirectory dir_;
};

TEST_F(StatsTest, CountsImagesClassesAndSizes) {
  Write("train-0", {MakeImageRecord(1, 1, {40, 30}), MakeImageRecord(1, 2, {20, 50})});
  Write("train-1", {MakeImageRecord(3, 3, {60, 10}), MakeImageRecord(1, 4, {40, 20})});
  // One without bounding boxes.
  Write("validation-0", {MakeImageRecord(2, 5, {16, 16}), MakeRecordOf(MakeJpeg({20, 20}, 9), 2)});
  const DataStats stats = Measure();
  ASSERT_THAT(stats.splits, SizeIs(2));
  const SplitStats& train = stats.splits[0];
  EXPECT_EQ(train.name, "train");
  EXPECT_EQ(train.files, 2);
  EXPECT_EQ(train.records, 4);
  EXPECT_EQ(train.bytes, fs::file_size(Path("train-0")) + fs::file_size(Path("train-1")));
  EXPECT_EQ(train.classes, 2);
  EXPECT_EQ(train.images_per_class.min, 1);
  EXPECT_EQ(train.images_per_class.max, 3);
  EXPECT_EQ(train.width.min, 20);
  EXPECT_EQ(train.width.median, 40);
  EXPECT_EQ(train.width.max, 60);
  EXPECT_EQ(train.height.median, 20);
  EXPECT_EQ(train.images_with_boxes, 4);
  EXPECT_EQ(stats.splits[1].records, 2);
  EXPECT_EQ(stats.splits[1].images_with_boxes, 1);
  EXPECT_THAT(stats.duplicates, SizeIs(0));
  const std::string text = FormatStats(stats);
  EXPECT_THAT(text, HasSubstr("  bounding boxes    of 4 images\n"));
  EXPECT_THAT(text, HasSubstr("  bounding boxes    of 1 image\n"));
  EXPECT_THAT(text, HasSubstr("  images per class  1 to 3, median 1\n"));
  EXPECT_THAT(text, HasSubstr("  width, pixels     20 to 60, median 40\n"));
  EXPECT_THAT(text, HasSubstr("0 images more than once; 0 in both splits, 0 with two labels\n"));
}

TEST_F(StatsTest, FindsImagesThatAreThereAgain) {
  const std::string once = MakeImageRecord(1, 1);
  Write("train-0", {once, MakeImageRecord(2, 2), MakeImageRecord(2, 3)});
  Write("train-1", {MakeImageRecord(2, 2), MakeImageRecord(1, 3)});
  Write("validation-0", {MakeImageRecord(2, 2), MakeImageRecord(1, 9)});
  const DataStats stats = Measure();
  ASSERT_THAT(stats.duplicates, SizeIs(2));
  const std::string second =
      Path("train-0") + ", record at offset " + std::to_string(once.size() + 16);
  EXPECT_THAT(stats.duplicates[0].records,
              ElementsAre(second, Path("train-1") + ", record at offset 0",
                          Path("validation-0") + ", record at offset 0"));
  EXPECT_TRUE(stats.duplicates[0].is_in_both_splits);
  EXPECT_FALSE(stats.duplicates[0].has_two_labels);
  EXPECT_THAT(stats.duplicates[1].records, SizeIs(2));
  EXPECT_FALSE(stats.duplicates[1].is_in_both_splits);
  EXPECT_TRUE(stats.duplicates[1].has_two_labels);
  const std::string text = FormatStats(stats);
  EXPECT_THAT(text, HasSubstr("2 images more than once; 1 in both splits, 1 with two labels\n  " +
                              second + "\n    = " + Path("train-1") + ", record at offset 0\n"));
}

TEST_F(StatsTest, HasAllOfItAsJson) {
  Write("train-0", {MakeImageRecord(1, 1), MakeImageRecord(2, 1)});
  const auto json = nlohmann::json::parse(FormatStatsAsJson(Measure()));
  EXPECT_EQ(json["splits"]["train"]["records"], 2);
  EXPECT_EQ(json["splits"]["train"]["images_with_boxes"], 2);
  EXPECT_EQ(json["splits"]["train"]["width"]["max"], 40);
  EXPECT_FALSE(json["splits"].contains("validation"));
  EXPECT_EQ(json["duplicates"][0]["records"].size(), 2U);
  EXPECT_EQ(json["duplicates"][0]["two_labels"], true);
}

TEST_F(StatsTest, NamesTheFirstFewDuplicates) {
  std::vector<std::string> records;
  for (std::uint64_t seed = 1; seed <= 7; ++seed) {
    records.push_back(MakeImageRecord(1, seed));
    records.push_back(records.back());
  }
  Write("train-0", records);
  EXPECT_THAT(FormatStats(Measure()), HasSubstr("\n  ...: --json lists all\n"));
  Write("train-0", std::vector<std::string>(6, MakeImageRecord(1)));
  EXPECT_THAT(FormatStats(Measure()), HasSubstr("\n    and 2 more\n"));
}

TEST_F(StatsTest, RejectsWhatCannotBeRead) {
  EXPECT_THAT(DataErrorOf([&] { Measure(); }), HasSubstr("has no file train-* or validation-*"));
  Write("train-0", {MakeImageRecord(1, 1), MakeRecordOf("text")});
  EXPECT_THAT(
      DataErrorOf([&] { Measure(); }),
      HasSubstr("train-0, record at offset " + std::to_string(MakeImageRecord(1, 1).size() + 16) +
                ": the image is not a JPEG file"));
}

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

TEST(ImageStore, RejectsWhatIsNoImage) {
  EXPECT_THAT(DataErrorOf([] { Store("GIF89a..."); }), HasSubstr("it is a GIF image"));
  EXPECT_THAT(DataErrorOf([] { Store(""); }), HasSubstr("it is empty"));
  const std::string jpeg = MakeJpeg({40, 30});
  EXPECT_THAT(DataErrorOf([&] { Store(jpeg.substr(0, jpeg.size() / 2)); }),
              HasSubstr("cannot decode the JPEG image: "));
  const std::string cut = RedAndBluePng().substr(0, 60);
  EXPECT_THAT(DataErrorOf([&] { Store(cut); }), HasSubstr("PNG"));
}

const std::vector<ImageClass> kNoNumbers;

std::string LabelsError(const std::string& text,
                        const std::vector<ImageClass>& numbers = kNoNumbers) {
  return DataErrorOf([&] { ImageLabels(text, "labels", numbers); });
}

// As editors of Windows write them.
TEST(ImageLabels, MayBeginWithAByteOrderMark) {
  const ImageLabels labels(
      "\xEF\xBB\xBF"
      "cat\ncat\n",
      "labels", kNoNumbers);
  EXPECT_THAT(labels.ClassesOf({"1.jpg", "2.jpg"}, "set"), ElementsAre("cat", "cat"));
}

TEST(ImageLabels, AreInTheOrderOfTheNames) {
  // As in TensorFlow's imagenet_2012_validation_synset_labels.txt.
  const ImageLabels labels("n02\nn01\nn02\n", "labels", kNoNumbers);
  EXPECT_THAT(labels.ClassesOf({"1.JPEG", "2.JPEG", "3.JPEG"}, "val.tar"),
              ElementsAre("n02", "n01", "n02"));
}

TEST(ImageLabels, MayBeNumbersOfAList) {
  // As in ILSVRC2012_validation_ground_truth.txt.
  const ImageLabels labels("2\n1\n", "labels", ParseClassList("n07\nn03\n", "numbers"));
  EXPECT_THAT(labels.ClassesOf({"1.JPEG", "2.JPEG"}, "val.tar"), ElementsAre("n03", "n07"));
}

TEST(ImageLabels, MayNameTheirFiles) {
  // As in LOC_val_solution.csv, which is in no order.
  const ImageLabels labels(
      "ImageId,PredictionString\nval_2,n02 85 131 499 254 \nval_1,n01 1 2 3 4 n01 5 6 7 8\n",
      "labels", kNoNumbers);
  EXPECT_THAT(labels.ClassesOf({"val_1.JPEG", "val_2.JPEG"}, "val"), ElementsAre("n01", "n02"));
  const ImageLabels blanks("b.png dog\na.c.jpg\tcat\n", "labels", kNoNumbers);
  EXPECT_THAT(blanks.ClassesOf({"a.c.jpg", "b.png"}, "val"), ElementsAre("cat", "dog"));
}

TEST(ImageLabels, MayHaveBlanksInNames) {
  const ImageLabels labels(
      "stop 1.jpg,bus stop\n"
      "v2.jpg , bus stop , and more\n"
      "my cat.jpg\tcat, black\tand more\n"
      "dog.jpg  dog  and more\n",
      "labels", kNoNumbers);
  EXPECT_THAT(labels.ClassesOf({"dog.jpg", "my cat.jpg", "stop 1.jpg", "v2.jpg"}, "val"),
              ElementsAre("dog", "cat, black", "bus stop", "bus stop"));
}

// As spreadsheets and tables of Python write them.
TEST(ImageLabels, MayHaveQuotesAndDirectories) {
  const ImageLabels labels(
      "\"a.jpg\",\"bus stop, red\"\n"
      "b.jpg,\"the \"\"old\"\" one\"\n"
      "\"c, d.jpg\",cat,\"and, more\"\n"
      "set/train/e.jpg,dog\n",
      "labels", kNoNumbers);
  EXPECT_THAT(labels.ClassesOf({"a.jpg", "b.jpg", "c, d.jpg", "e.jpg"}, "val"),
              ElementsAre("bus stop, red", "the \"old\" one", "cat", "dog"));
  const ImageLabels in_order("\"cat\"\n\"stop, bus\"\n", "labels", kNoNumbers);
  EXPECT_THAT(in_order.ClassesOf({"1.jpg", "2.jpg"}, "val"), ElementsAre("cat", "stop, bus"));
  const ImageLabels open("\"\n\"x\"y\n", "labels", kNoNumbers);
  EXPECT_THAT(open.ClassesOf({"1.jpg", "2.jpg"}, "val"), ElementsAre("\"", "\"x\"y"));
}

TEST(ImageLabels, RejectsFilesAsClasses) {
  for (const std::string line : {"1.jpg;cat", "1;cat", "1.jpg|cat", "1.jpg:cat", "1.jpg",
                                 "set/1.jpg;cat", "\"1.jpg\";\"cat\""}) {
    const ImageLabels labels("cat\n" + line + "\n", "labels", kNoNumbers);
    EXPECT_EQ(DataErrorOf([&] {
                labels.ClassesOf({"1.jpg", "2.jpg"}, "val");
              }),
              "labels:2: \"" + line +
                  "\" begins with the name of an image: write FILE,CLASS, with a comma");
  }
  const ImageLabels classes("wild;tame\n1st\nx.jpg\n", "labels", kNoNumbers);
  EXPECT_THAT(classes.ClassesOf({"1.jpg", "2.jpg", "cat.jpg"}, "val").size(), 3);
}

TEST(ImageLabels, RejectsWithTheLine) {
  EXPECT_THAT(LabelsError("490\n361\n"),
              HasSubstr("labels:1: the class is the number 490: which one that is must be said by "
                        "--class_numbers=FILE"));
  const std::vector<ImageClass> two = ParseClassList("a\nb\n", "numbers");
  EXPECT_EQ(LabelsError("2\n3\n", two),
            "labels:2: the class 3 is not 1 to 2, the lines of --class_numbers");
  EXPECT_THAT(LabelsError("0\n", two), HasSubstr("labels:1: the class 0 is not 1 to 2"));
  EXPECT_THAT(LabelsError("cat\nb.jpg dog\n"), HasSubstr("labels:2: each line must be CLASS, or"));
  EXPECT_THAT(LabelsError("b.jpg dog\ncat\n"), HasSubstr("labels:2: each line must be CLASS, or"));
  EXPECT_EQ(LabelsError("b.jpg dog\nb.png cat\n"), "labels:2: the image b is there twice");
  EXPECT_EQ(LabelsError("b.jpg,\n"), "labels:1: there is no class behind the file");
  EXPECT_EQ(LabelsError(""), "labels:1: the file is empty");
}

TEST(ImageLabels, RejectsOtherImages) {
  const ImageLabels in_order("a\nb\n", "labels", kNoNumbers);
  EXPECT_EQ(DataErrorOf([&] { in_order.ClassesOf({"1.jpg"}, "val.tar"); }),
            "labels names the classes of 2 images, but val.tar has 1: the two are not of one set; "
            "is the first line a header? Then remove it");
  EXPECT_THAT(DataErrorOf([&] {
                in_order.ClassesOf({"1.jpg", "2.jpg", "3.jpg"}, "val.tar");
              }),
              EndsWith("the two are not of one set"));
  const ImageLabels by_file("x a\ny b\n", "labels", kNoNumbers);
  EXPECT_EQ(DataErrorOf([&] {
              by_file.ClassesOf({"x.jpg", "z.jpg"}, "val.tar");
            }),
            "labels has no line for the image z.jpg of val.tar; it has one for \"x\"");
  const ImageLabels header("file,label\nx,a\n", "labels", kNoNumbers);
  EXPECT_THAT(DataErrorOf([&] { header.ClassesOf({"x.jpg"}, "val"); }),
              HasSubstr("not of one set; is the first line a header? Then remove it"));
}

}  // namespace
}  // namespace trainer
