// SPDX-License-Identifier: Apache-2.0

#include "trainer/core/data_identity.h"

#include "tests/support/test.h"

namespace trainer {
namespace {

TEST(NameAsText, IsUtf8OnOneLineAndAnotherForEachName) {
  const std::pair<std::string, std::string> cases[] = {
      {"", ""},
      {"tench, Tinca \"tinca\"", "tench, Tinca \"tinca\""},
      {"a\\b", "a\\\\b"},
      {"\\xe9", "\\\\xe9"},
      {"caf\xe9", "caf\\xe9"},
      {"caf\xc3\xa9", "caf\xc3\xa9"},
      {"\xe2\x82\xac\xf0\x9f\x90\xb1", "\xe2\x82\xac\xf0\x9f\x90\xb1"},
      {"a\nb\tc\x7f", "a\\x0ab\\x09c\\x7f"},
      {"\xc3", "\\xc3"},                    // cut off
      {"\xc3(", "\\xc3("},                  // not followed by what must follow
      {"\xc0\x80", "\\xc0\\x80"},           // overlong
      {"\xe0\x9f\xbf", "\\xe0\\x9f\\xbf"},  // overlong
      {"\xf0\x8f\x80\x80", "\\xf0\\x8f\\x80\\x80"},
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},       // a surrogate
      {"\xed\x9f\xbf", "\xed\x9f\xbf"},          // the last before them
      {"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"},  // the last of all
      {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},
      {"\xf5\x80\x80\x80", "\\xf5\\x80\\x80\\x80"},
      {"\xc3\xa9\xff", "\\xc3\\xa9\\xff"},
  };
  for (const auto& [name, text] : cases) EXPECT_EQ(NameAsText(name), text);
}

TEST(IsOtherData, GoesByTheManifestsWhereBothHaveOne) {
  const SplitIdentity one = {"8 images in 1 files, listing 01", "aa"};
  const std::pair<SplitIdentity, bool> cases[] = {
      {one, false},
      {{"8 images in 1 files, listing 01", "ab"}, true},
      {{"8 images in 1 files, listing 02", "aa"}, false},
      {{"8 images in 1 files, listing 01", ""}, false},
      {{"8 images in 1 files, listing 02", ""}, true},
      {{"", "ab"}, true},
      {{"", ""}, false},
  };
  for (const auto& [other, is_other] : cases) {
    EXPECT_EQ(IsOtherData(one, other), is_other) << other.files << " " << other.manifest;
    EXPECT_EQ(IsOtherData(other, one), is_other) << other.files << " " << other.manifest;
  }
}

TEST(DescribeOtherData, SaysWhatTellsTheTwoApart) {
  const SplitIdentity then = {"8 images in 1 files, listing 01", "aa"};
  EXPECT_EQ(DescribeOtherData(then, {"9 images in 12 files, listing 02", "ab"}),
            "8 images in 1 file (now 9 images in 12 files)");
  EXPECT_EQ(DescribeOtherData(then, {"synthetic images", ""}),
            "8 images in 1 file (now synthetic images)");
  EXPECT_EQ(DescribeOtherData(then, {"8 images in 1 files, listing 02", "ab"}),
            "8 images in 1 file (now as many, but files of other names or sizes: listing 01, now "
            "02)");
  EXPECT_EQ(
      DescribeOtherData(then, {"8 images in 1 files, listing 01", "ab"}),
      "8 images in 1 file (now as many in files of the same names and sizes, but other images "
      "or other labels: checksum in ddldata.manifest aa, now ab)");
}

TEST(DescribeOtherClasses, NamesTheFirstLabelThatHasAnotherClass) {
  using Names = std::vector<std::string>;
  struct Case {
    Names ours;
    Names theirs;
    std::string difference;
    std::string of_renamed;  // where ours may be renamed
  };
  const Case cases[] = {
      {{"cat", "dog"}, {"cat", "dog"}, "", ""},
      {{}, {"cat"}, "", ""},
      {{"cat"}, {}, "", ""},
      {{"cat"}, {"cat", "dog"}, "", ""},
      {{"cat", "dog", "eel"}, {"cat", "dog"}, "", ""},
      {{"cat", "eel", "dog"},
       {"cat", "dog", "eel"},
       "label 2 is \"eel\" in d, and \"dog\" in w",
       "label 2 is \"eel\" in d, and \"dog\" in w"},
      {{"Katze", "Hund"}, {"cat", "dog"}, "label 1 is \"Katze\" in d, and \"cat\" in w", ""},
      {{"Katze", "cat"},
       {"cat", "dog"},
       "label 1 is \"Katze\" in d, and \"cat\" in w",
       "label 2 is \"cat\" in d, and \"dog\" in w"},
      {{"cat "}, {"cat"}, "label 1 is \"cat \" in d, and \"cat\" in w", ""},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(DescribeOtherClasses({one.ours, "d"}, {one.theirs, "w"}, false), one.difference);
    EXPECT_EQ(DescribeOtherClasses({one.ours, "d"}, {one.theirs, "w"}, true), one.of_renamed);
  }
}

}  // namespace
}  // namespace trainer
