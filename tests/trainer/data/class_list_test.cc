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

}  // namespace
}  // namespace trainer
