// SPDX-License-Identifier: Apache-2.0

#include <atomic>

#include "ddldata/convert.h"
#include "tests/ddldata/annotation_text.h"
#include "tests/ddldata/convert_fixture.h"
#include "tests/ddldata/tar_text.h"
#include "tests/support/test.h"
#include "trainer/data/files/data_set.h"

namespace trainer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kBoxLines[] =
    "n01_0.JPEG,0.1000,0.2000,0.3000,0.4000\n"
    "n02_3.JPEG,0.0000,0.5000,1.0000,0.7500\n"
    "n09_1.JPEG,0.0000,0.0000,1.0000,1.0000\n"
    "n01_0.JPEG,0.5000,0.6000,0.7000,0.8000\n"
    "n03_1.JPEG,0.5000,0.6000,0.5000,0.8000\n";

class ConvertBoxesTest : public ConvertTest {
 protected:
  ConvertBoxesTest() {
    WriteImageFiles(Path("images"), MakeImageFiles(kSynsets, 5));
    WriteText(Path("boxes.csv"), kBoxLines);
  }

  ConvertOptions OptionsWithBoxes(const std::string& to) const {
    ConvertOptions options = OptionsFor(to);
    options.boxes = Path("boxes.csv");
    return options;
  }

  // Of the images that have any, by the first box's ymin.
  std::map<float, ImageExample> ImagesWithBoxes(const std::string& name, Split split) const {
    std::map<float, ImageExample> images;
    const DataSet data(Path(name), "", split, 1);
    std::vector<std::uint8_t> buffer;
    for (std::int64_t i = 0; i < data.records(); ++i) {
      ImageExample example = ParseExample(data.Read(i, buffer));
      if (!example.boxes.empty()) images[example.boxes.front().ymin] = std::move(example);
    }
    return images;
  }
};

TEST_F(ConvertBoxesTest, RecordsHaveTheBoxesOfTheirImages) {
  const ConvertSummary summary = Convert(OptionsWithBoxes("set"));
  EXPECT_EQ(summary.train_images, 15);
  EXPECT_EQ(summary.images_with_boxes, 2);
  EXPECT_EQ(ProblemsOf("set", 3), 0);
  EXPECT_THAT(messages_, HasSubstr("ddldata: note: bounding boxes without area in " +
                                   Path("boxes.csv") + ", which are left out: 1\n"));
  EXPECT_THAT(messages_, Not(HasSubstr("no training image")));
  const auto images = ImagesWithBoxes("set", Split::kTrain);
  ASSERT_EQ(images.size(), 2U);
  const ImageExample& first = images.at(0.2F);
  EXPECT_EQ(first.label, 1);
  EXPECT_EQ(first.encoded, ReadText(Path("images/n01/n01_0.JPEG")));
  EXPECT_THAT(first.boxes, ElementsAre(BoundingBox{0.1F, 0.2F, 0.3F, 0.4F},
                                       BoundingBox{0.5F, 0.6F, 0.7F, 0.8F}));
  const ImageExample& second = images.at(0.5F);
  EXPECT_EQ(second.label, 2);
  EXPECT_EQ(second.encoded, ReadText(Path("images/n02/n02_3.JPEG")));
  EXPECT_THAT(second.boxes, ElementsAre(BoundingBox{0, 0.5F, 1, 0.75F}));
}

TEST_F(ConvertBoxesTest, AnnotationsMakeTheBytesOfTheirList) {
  Convert(OptionsWithBoxes("list"));
  const auto expected = FilesOf("list");
  const ImageFiles annotations = {
      {"n01/n01_0.xml", AnnotationText(ObjectElement("20", "20", "60", "40") +
                                       ObjectElement("140", "80", "100", "60"))},
      {"n02/n02_3.xml", AnnotationText(ObjectElement("-3", "50", "222", "75"))},
      {"n03/n03_1.xml", AnnotationText(ObjectElement("100", "60", "100", "80"))}};
  WriteImageFiles(Path("annotations"), annotations);
  ConvertOptions options = OptionsFor("directory");
  options.boxes = Path("annotations");
  Convert(options);
  EXPECT_EQ(FilesOf("directory"), expected);
  WriteText(Path("boxes.tar"), TarOf(annotations));
  options.dir = Path("tar");
  options.boxes = Path("boxes.tar");
  options.threads = 4;
  Convert(options);
  EXPECT_EQ(FilesOf("tar"), expected);
}

TEST_F(ConvertBoxesTest, ImagesMadeSmallerKeepTheirBoxes) {
  ConvertOptions options = OptionsWithBoxes("set");
  options.image.shorter_side = 8;
  Convert(options);
  const auto images = ImagesWithBoxes("set", Split::kTrain);
  EXPECT_NE(images.at(0.5F).encoded, ReadText(Path("images/n02/n02_3.JPEG")));
  EXPECT_THAT(images.at(0.5F).boxes, ElementsAre(BoundingBox{0, 0.5F, 1, 0.75F}));
}

TEST_F(ConvertBoxesTest, ValidationImagesHaveNone) {
  ConvertOptions options = OptionsWithBoxes("set");
  options.validation = {.sources = {Path("images")}, .labels = "", .shards = 1};
  EXPECT_EQ(Convert(options).images_with_boxes, 2);
  EXPECT_EQ(ImagesWithBoxes("set", Split::kTrain).size(), 2U);
  EXPECT_THAT(ImagesWithBoxes("set", Split::kValidation), IsEmpty());
}

TEST_F(ConvertBoxesTest, GoesOnWithTheSameBoxesOnly) {
  Convert(OptionsWithBoxes("whole"));
  ConvertOptions options = OptionsWithBoxes("stopped");
  std::atomic<int> left = 11;
  EXPECT_THROW(ConvertUntil(options, [&] { return --left < 0; }), Error);
  EXPECT_LT(FilesOf("stopped").size(), 6U);
  WriteText(Path("other.csv"), "n01_0.JPEG,0.1000,0.2000,0.3000,0.5000\n");
  ConvertOptions other = options;
  other.boxes = Path("other.csv");
  EXPECT_EQ(RejectionOf(other).first, EX_USAGE);
  EXPECT_THAT(RejectionOf(other).second, HasSubstr("stopped is of another conversion"));
  EXPECT_THAT(RejectionOf(other).second, HasSubstr("1 of them with bounding boxes"));
  other.boxes = "";
  EXPECT_THAT(RejectionOf(other).second, HasSubstr("stopped is of another conversion"));
  EXPECT_GT(Convert(options).files_before, 0);
  EXPECT_EQ(FilesOf("stopped"), FilesOf("whole"));
  // And one that began without boxes stays so.
  Convert(OptionsFor("without"));
  other = options;
  other.dir = Path("without");
  EXPECT_THAT(RejectionOf(other).second, HasSubstr("2 of them with bounding boxes"));
}

TEST_F(ConvertBoxesTest, NotesWhereNoNameFits) {
  WriteText(Path("boxes.csv"), "n08_7.JPEG,0,0,1,1\n");
  EXPECT_EQ(Convert(OptionsWithBoxes("set")).images_with_boxes, 0);
  EXPECT_THAT(messages_, HasSubstr("ddldata: note: no training image has a bounding box in " +
                                   Path("boxes.csv") +
                                   ", which has those of 1 other image, one by the name n08_7\n"));
  Convert(OptionsFor("without"));
  EXPECT_EQ(FilesOf("set"), FilesOf("without"));
  WriteText(Path("boxes.csv"), "n01_0.JPEG,0,0,0,1\n");
  Convert(OptionsWithBoxes("empty"));
  EXPECT_THAT(messages_,
              HasSubstr("no training image has a bounding box in " + Path("boxes.csv") + "\n"));
}

TEST_F(ConvertBoxesTest, RejectsBoxesThatMakeNoSense) {
  ConvertOptions options = OptionsWithBoxes("set");
  options.validation = std::move(options.train);
  options.train = {};
  EXPECT_EQ(RejectionOf(options), std::pair(EX_USAGE, std::string("--boxes needs --train=PATH")));
  WriteText(Path("boxes.csv"), "n01_0.JPEG,0,0,1,1\nn01_0.JPEG,0,0,500,375\n");
  const auto [code, message] = RejectionOf(OptionsWithBoxes("set"));
  EXPECT_EQ(code, EX_DATAERR);
  EXPECT_THAT(message, HasSubstr(Path("boxes.csv") + ":2: the xmax \"500\" is not from 0 to 1"));
  EXPECT_FALSE(std::filesystem::exists(Path("set")));
}

TEST_F(ConvertBoxesTest, StopsWhileAnnotationsAreRead) {
  ImageFiles annotations;
  for (int i = 0; i < 1024; ++i) {
    annotations.emplace_back(std::to_string(i) + ".xml", AnnotationText(""));
  }
  WriteText(Path("boxes.tar"), TarOf(annotations));
  ConvertOptions options = OptionsFor("set");
  options.boxes = Path("boxes.tar");
  std::atomic<int> left = 1;  // not yet when the images are listed
  try {
    ConvertUntil(options, [&] { return --left < 0; });
    FAIL() << "it was not stopped";
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), EX_TEMPFAIL);
  }
  EXPECT_FALSE(std::filesystem::exists(Path("set")));
}

}  // namespace
}  // namespace trainer
