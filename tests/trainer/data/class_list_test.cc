// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/class_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/data/data_fixture.h"

namespace trainer {
namespace {

using ::testing::ElementsAre;

std::string ClassListError(const std::string& text) {
  return DataErrorOf([&] { ParseClassList(text, "list"); });
}

TEST(ParseClassList, HasNamesAndTexts) {
  EXPECT_THAT(ParseClassList("n01440764 tench, Tinca tinca\nn01443537\tgoldfish\r\nn01484850", "l"),
              ElementsAre(ImageClass{"n01440764", "tench, Tinca tinca"},
                          ImageClass{"n01443537", "goldfish"}, ImageClass{"n01484850", ""}));
}

// As editors of Windows write them.
TEST(ParseClassList, MayBeginWithAByteOrderMark) {
  EXPECT_THAT(ParseClassList("\xEF\xBB\xBF"
                             "cat\r\ndog\r\n",
                             "list"),
              ElementsAre(ImageClass{"cat", ""}, ImageClass{"dog", ""}));
}

TEST(ParseClassList, RefusesWithTheLine) {
  EXPECT_EQ(ClassListError("a\nb\na x\n"), "list:3: the class a is there twice");
  EXPECT_EQ(ClassListError("a\n\nb\n"), "list:2: the line is empty");
  EXPECT_EQ(ClassListError(""), "list:1: the file is empty");
}

TEST(Labels, AreALineForEachClassWithTabs) {
  EXPECT_EQ(FormatLabels({{"n01440764", "tench, Tinca tinca"}, {"cat", ""}, {"", ""}, {"", "x"}}),
            "label\tclass\ttext\n"
            "1\tn01440764\ttench, Tinca tinca\n"
            "2\tcat\t\n"
            "3\t2\t\n"
            "4\t3\tx\n");
}

TEST(Labels, ComeBackWhateverIsInThem) {
  const std::vector<ImageClass> classes = {{"Golden Retriever", "a dog"},
                                           {"a\tb", "two\nlines"},
                                           {"c\\t\\", "\\n"},
                                           {"10", "\r"},
                                           {"label", "class\ttext"}};
  EXPECT_EQ(ParseClassList(FormatLabels(classes), "labels.txt"), classes);
}

TEST(Labels, AreRefusedWithTheLine) {
  const std::string header = "label\tclass\ttext\n";
  EXPECT_EQ(ClassListError(header + "1\ta\t\n3\tb\t\n"),
            "list:3: expected the label 2, a tab and its class");
  EXPECT_EQ(ClassListError(header + "1 a\n"), "list:2: expected the label 1, a tab and its class");
  EXPECT_EQ(ClassListError(header + "1\ta\n2\ta\n"), "list:3: the class a is there twice");
  EXPECT_EQ(ClassListError(header + "1\t\tx\n"), "list:2: the label 1 has no class");
}

TEST(Labels, AreWrittenBesideADataSetOnceAndForAll) {
  const TempDir dir;
  EXPECT_TRUE(ReadLabels(dir.path()).empty());
  const std::vector<ImageClass> classes = {{"a", ""}, {"b", "text"}};
  WriteLabels(dir.path(), classes);
  EXPECT_EQ(ReadLabels(dir.path()), classes);
  WriteLabels(dir.path(), classes);
  EXPECT_THROW(WriteLabels(dir.path(), {{"a", ""}}), Error);
  EXPECT_EQ(ReadLabels(dir.path()), classes);
  // As TF-Slim has them.
  WriteText(dir / "labels.txt", "0:daisy\n1:dandelion\n");
  EXPECT_EQ(DataErrorOf([&] { ReadLabels(dir.path()); }),
            dir.path() + "/labels.txt:1: this is not what ddldata convert writes");
  EXPECT_THROW(WriteLabels(dir.path(), classes), Error);
  EXPECT_EQ(ReadText(dir / "labels.txt"), "0:daisy\n1:dandelion\n");
}

}  // namespace
}  // namespace trainer
