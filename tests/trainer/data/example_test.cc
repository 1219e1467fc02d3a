// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/example.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "tests/trainer/data/data_fixture.h"

namespace trainer {
namespace {

using ::testing::ElementsAre;

// One field of type "length-delimited" of the protocol buffer wire format.
std::string Field(int number, const std::string& content) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(content.size())} +
         content;
}

// A map entry: key, and the Feature with the list of kind `list` (1 bytes, 2 floats, 3 integers).
std::string Entry(const std::string& key, int list, const std::string& values) {
  return Field(1, Field(1, key) + Field(2, Field(list, values)));
}

std::string ExampleOf(const std::string& entries) { return Field(1, entries); }

const std::string kEncoded = Entry("image/encoded", 1, Field(1, "jpeg"));
const std::string kLabel = Entry("image/class/label", 3, Field(1, "\x07"));

std::string RefusalOfExample(const std::string& bytes) {
  return DataErrorOf([&] { ParseExample(AsBytes(bytes)); });
}

TEST(Example, ReadsTensorFlowsWireFormat) {
  const ImageExample example = ParseExample(AsBytes(ExampleOf(kEncoded + kLabel)));
  EXPECT_EQ(example.encoded, "jpeg");
  EXPECT_EQ(example.label, 7);
  EXPECT_TRUE(example.boxes.empty());
}

TEST(Example, GivesBackWhatWasWritten) {
  ImageExample example;
  example.encoded = std::string("\0\xff data", 7);
  example.label = 1000;
  example.boxes = {{0.1F, 0.2F, 0.3F, 0.4F}, {0, 0, 1, 1}};
  const std::string bytes = SerializeExample(example);
  EXPECT_EQ(bytes, SerializeExample(example));
  const ImageExample read = ParseExample(AsBytes(bytes));
  EXPECT_EQ(read.encoded, example.encoded);
  EXPECT_EQ(read.label, 1000);
  EXPECT_THAT(read.boxes, ElementsAre(example.boxes[0], example.boxes[1]));
}

TEST(Example, RefusesWhatIsNoExample) {
  EXPECT_EQ(RefusalOfExample("this is text"), "the data is not a tf.train.Example");
  EXPECT_EQ(RefusalOfExample(ExampleOf(kEncoded + kLabel).substr(0, 20)),
            "the data is not a tf.train.Example");
}

TEST(Example, RefusesMissingFeatures) {
  EXPECT_EQ(RefusalOfExample(""), "the Example has no feature image/encoded");
  EXPECT_EQ(RefusalOfExample(ExampleOf(kLabel)),
            "the Example has no feature image/encoded; it has image/class/label");
  EXPECT_EQ(RefusalOfExample(ExampleOf(kEncoded)),
            "the Example has no feature image/class/label; it has image/encoded");
}

TEST(Example, SaysWhichFeaturesAnotherProgramGaveIt) {
  const auto named = [](const std::string& name) { return Entry(name, 1, Field(1, "x")); };
  EXPECT_EQ(RefusalOfExample(ExampleOf(named("label") + named("image") + named("file\x1bname"))),
            "the Example has no feature image/encoded; it has image, label");
  EXPECT_EQ(RefusalOfExample(ExampleOf(named("a") + named("b") + named("c") + named("d") +
                                       named("e") + named("f"))),
            "the Example has no feature image/encoded; it has a, b, c, d, e, ...");
}

TEST(Example, RefusesFeaturesOfAnotherType) {
  EXPECT_EQ(RefusalOfExample(ExampleOf(Entry("image/encoded", 3, Field(1, "\x07")) + kLabel)),
            "the feature image/encoded is not one string of bytes");
  EXPECT_EQ(RefusalOfExample(ExampleOf(kEncoded + Entry("image/class/label", 1, Field(1, "7")))),
            "the feature image/class/label is not one integer");
  EXPECT_EQ(
      RefusalOfExample(ExampleOf(kEncoded + Entry("image/class/label", 3, Field(1, "\x07\x08")))),
      "the feature image/class/label is not one integer");
}

TEST(Example, RefusesBoxesOutsideTheImage) {
  for (const float corner : {-0.01F, 1.01F, std::numeric_limits<float>::quiet_NaN()}) {
    ImageExample example;
    example.boxes = {{0, 0, 1, corner}};
    EXPECT_THAT(RefusalOfExample(SerializeExample(example)),
                ::testing::StartsWith("the feature image/object/bbox/ymax has the value "));
  }
}

TEST(Example, RefusesBoxesWithMissingCorners) {
  const std::string corner = Entry("image/object/bbox/xmin", 2, Field(1, std::string(4, '\0')));
  EXPECT_EQ(RefusalOfExample(ExampleOf(kEncoded + kLabel + corner)),
            "the features image/object/bbox/{xmin,ymin,xmax,ymax} differ in length");
}

}  // namespace
}  // namespace trainer
