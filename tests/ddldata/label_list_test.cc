// SPDX-License-Identifier: Apache-2.0

#include "ddldata/label_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/data/data_fixture.h"

namespace trainer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

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
TEST(ImageLabels, MayHaveQuotesAndFolders) {
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

TEST(ImageLabels, RefusesFilesAsClasses) {
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

TEST(ImageLabels, RefusesWithTheLine) {
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

TEST(ImageLabels, RefusesOtherImages) {
  const ImageLabels in_order("a\nb\n", "labels", kNoNumbers);
  EXPECT_EQ(DataErrorOf([&] { in_order.ClassesOf({"1.jpg"}, "val.tar"); }),
            "labels names the classes of 2 images, but val.tar has 1: the two are not of one set; "
            "is the first line a header? Then remove it");
  EXPECT_THAT(DataErrorOf([&] {
                in_order.ClassesOf({"1.jpg", "2.jpg", "3.jpg"}, "val.tar");
              }),
              ::testing::EndsWith("the two are not of one set"));
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
