// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/files/text_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/data/data_fixture.h"

namespace trainer {
namespace {

TEST(ParseDecimal, TakesDecimalNumbersAsAWhole) {
  EXPECT_EQ(ParseDecimal("0.2620"), 0.2620);
  EXPECT_EQ(ParseDecimal("-12"), -12);
  EXPECT_EQ(ParseDecimal("+.5"), 0.5);
  EXPECT_EQ(ParseDecimal("1e-3"), 0.001);
  EXPECT_EQ(ParseDecimal("2E2"), 200);
  for (const char* none : {"", " 1", "1 ", "1,5", "nan", "inf", "-inf", "1e999", "0x10", "1.2.3",
                           "-", "1e", "--1", "1_000"}) {
    EXPECT_EQ(ParseDecimal(none), std::nullopt) << none;
  }
  EXPECT_EQ(ParseDecimal(std::string_view("1\0", 2)), std::nullopt);
}

TEST(ForEachLine, NumbersTrimmedLinesFromOne) {
  std::string seen;
  const auto take = [&](std::string_view line, std::size_t number) {
    seen += std::to_string(number) + "=" + std::string(line) + ";";
  };
  ForEachLine(" a\t\r\nb c\n", "list", take);
  EXPECT_EQ(seen, "1=a;2=b c;");
  EXPECT_EQ(DataErrorOf([&] { ForEachLine("a\n \nb", "list", take); }),
            "list:2: the line is empty");
  EXPECT_EQ(DataErrorOf([&] { ForEachLine("", "list", take); }), "list:1: the file is empty");
}

// As Notepad and Excel save "Unicode".
TEST(ForEachLine, RefusesUtf16) {
  const auto take = [](std::string_view, std::size_t) {};
  for (const std::string_view text :
       {std::string_view("\xff\xfe"
                         "a\0\n\0",
                         6),
        std::string_view("\xfe\xff\0a\0\n", 6), std::string_view("a\0\n\0", 4)}) {
    EXPECT_EQ(DataErrorOf([&] { ForEachLine(text, "list", take); }),
              "list:1: the file is UTF-16 (or has bytes of value 0): save it as UTF-8");
  }
}

TEST(Quoted, IsOneShortLine) {
  EXPECT_EQ(Quoted("a b"), "\"a b\"");
  EXPECT_EQ(Quoted("a\nb\x7f"), "\"a?b?\"");
  EXPECT_EQ(Quoted(std::string(40, 'x')), "\"" + std::string(40, 'x') + "\"");
  EXPECT_EQ(Quoted(std::string(41, 'x')), "\"" + std::string(40, 'x') + "...\"");
}

TEST(WithoutByteOrderMark, LeavesTheRest) {
  EXPECT_EQ(WithoutByteOrderMark("\xef\xbb\xbf"
                                 "a"),
            "a");
  EXPECT_EQ(WithoutByteOrderMark("a\xef\xbb\xbf"), "a\xef\xbb\xbf");
}

}  // namespace
}  // namespace trainer
