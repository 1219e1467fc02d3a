// SPDX-License-Identifier: Apache-2.0

#include "ddldata/bounding_boxes.h"
#include "tests/support/test.h"
#include "tests/trainer/data/data_fixture.h"

namespace trainer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string BoxListError(const std::string& text) {
  return DataErrorOf([&] { ParseBoxList(text, "boxes.csv"); });
}

TEST(ParseBoxList, HasTheBoxesOfEachImageInTheirOrder) {
  // As in TensorFlow's imagenet_2012_bounding_boxes.csv.
  const BoxList list = ParseBoxList(
      "n00007846_64193.JPEG,0.0060,0.2620,0.7545,0.9940\n"
      "n00007846_6.JPEG,0.1,0.2,0.3,0.4\n"
      "n00007846_64193.JPEG,0.0000,0.0000,1.0000,1.0000\n",
      "boxes.csv");
  EXPECT_EQ(list.images(), 2);
  EXPECT_EQ(list.without_area(), 0);
  EXPECT_EQ(list.first_name(), "n00007846_6");
  EXPECT_THAT(
      list.BoxesOf("n00007846_64193.JPEG"),
      ElementsAre(BoundingBox{0.0060F, 0.2620F, 0.7545F, 0.9940F}, BoundingBox{0, 0, 1, 1}));
  EXPECT_THAT(list.BoxesOf("n00007846_6.JPEG"), ElementsAre(BoundingBox{0.1F, 0.2F, 0.3F, 0.4F}));
  EXPECT_THAT(list.BoxesOf("n00007846_64194.JPEG"), IsEmpty());
}

TEST(ParseBoxList, DirectoriesAndEndingsOfNamesDoNotCount) {
  const BoxList list =
      ParseBoxList("\xef\xbb\xbfn01/n01_1.JPEG , 0 ,0.5,1e0,1\r\nn01_2,0,0,1,1\r\n", "boxes.csv");
  EXPECT_THAT(list.BoxesOf("n01_1.jpg"), ElementsAre(BoundingBox{0, 0.5F, 1, 1}));
  EXPECT_THAT(list.BoxesOf("set/n01_1"), ElementsAre(BoundingBox{0, 0.5F, 1, 1}));
  EXPECT_THAT(list.BoxesOf("n01_2.JPEG"), ElementsAre(BoundingBox{0, 0, 1, 1}));
}

TEST(ParseBoxList, AllowsWhatRoundingCanDo) {
  const BoxList list = ParseBoxList("a,-0.0001,-0.0,1.0001,1.00005\n", "boxes.csv");
  ASSERT_THAT(list.BoxesOf("a"), ElementsAre(BoundingBox{0, 0, 1, 1}));
  EXPECT_FALSE(std::signbit(list.BoxesOf("a")[0].ymin));
  for (const char* text : {"a,-0.00011,0,1,1", "a,0,-1,1,1", "a,0,0,1.00011,1", "a,0,0,1,375"}) {
    EXPECT_THAT(BoxListError(text), HasSubstr("boxes.csv:1: the ")) << text;
    EXPECT_THAT(BoxListError(text), HasSubstr(" is not from 0 to 1: a bounding box is in parts"));
  }
  EXPECT_THAT(BoxListError("a,0,0,1,375"), HasSubstr("the ymax \"375\" is"));
}

TEST(ParseBoxList, CountsBoxesWithoutArea) {
  const BoxList list =
      ParseBoxList("a,0.5,0,0.5,1\nb,0,0.2,1,0.2\nb,0,0.2,1,0.2001\n", "boxes.csv");
  EXPECT_EQ(list.without_area(), 2);
  EXPECT_EQ(list.images(), 1);
  EXPECT_THAT(list.BoxesOf("a"), IsEmpty());
  EXPECT_THAT(list.BoxesOf("b"), ElementsAre(BoundingBox{0, 0.2F, 1, 0.2001F}));
}

TEST(ParseBoxList, RejectsWithTheLine) {
  const std::string good = "a,0,0,1,1\n";
  for (const char* line : {"a,0,0,1", "a,0,0,1,1,", "a,0,0,1,1,5", ",0,0,1,1", "<annotation>",
                           "ImageId,PredictionString", "n01_1,n01 115 49 448 294"}) {
    EXPECT_EQ(BoxListError(good + line),
              "boxes.csv:2: expected FILE,xmin,ymin,xmax,ymax, not \"" + std::string(line) + "\"");
  }
  EXPECT_EQ(BoxListError(good + "a,nan,0,1,1"), "boxes.csv:2: the xmin \"nan\" is not numeric");
  EXPECT_EQ(BoxListError("a,0,inf,1,1"), "boxes.csv:1: the ymin \"inf\" is not numeric");
  EXPECT_EQ(BoxListError("a,0,0,,1"), "boxes.csv:1: the xmax \"\" is not numeric");
  EXPECT_EQ(BoxListError("a,0,0,1,0.5x"), "boxes.csv:1: the ymax \"0.5x\" is not numeric");
  // The columns of another tool.
  EXPECT_EQ(BoxListError("a,0.2,0.8,0.1,0.9"),
            "boxes.csv:1: the xmin is greater than the xmax: the columns are "
            "FILE,xmin,ymin,xmax,ymax");
  EXPECT_THAT(BoxListError("a,0.2,0.8,0.3,0.7"), HasSubstr("the ymin is greater than the ymax"));
  EXPECT_EQ(BoxListError(good + "\n" + good), "boxes.csv:2: the line is empty");
  EXPECT_EQ(BoxListError(""), "boxes.csv:1: the file is empty");
}

TEST(ParseBoxList, LimitsTheBoxesOfAnImage) {
  std::string text;
  for (std::size_t i = 0; i < kMaxBoxesOfImage; ++i) text += "a,0,0,1,1\n";
  EXPECT_EQ(ParseBoxList(text + "b,0,0,1,1\n", "boxes.csv").BoxesOf("a").size(), kMaxBoxesOfImage);
  EXPECT_EQ(BoxListError(text + "a,0,0,1,1\n"),
            "boxes.csv:10001: the image has more than 10000 bounding boxes");
}

}  // namespace
}  // namespace trainer
