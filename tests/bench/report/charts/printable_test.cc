// SPDX-License-Identifier: Apache-2.0

#include "bench/report/charts/printable.h"

#include <gtest/gtest.h>

#include <limits>

namespace bench {
namespace {

TEST(Printable, KeepsTextAndReplacesTheRest) {
  EXPECT_EQ(Printable("plain, caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x9A\x80"),
            "plain, caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x9A\x80");
  EXPECT_EQ(Printable("caf\xE9!"), "caf\xEF\xBF\xBD!");
  EXPECT_EQ(Printable("half \xE2\x82"), "half \xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(Printable("a\x1B[2Jb\nc\x7F"), "a [2Jb c ");
  EXPECT_EQ(Printable("a\xC2\x9B"
                      "b"),
            "a b");  // C1: CSI in one letter
  EXPECT_EQ(Printable("a\xE2\x80\xAE"
                      "b\xE2\x81\xA6"),
            "a b ");  // writes from the right
  EXPECT_EQ(Printable(""), "");
}

TEST(LettersIn, CountsLettersNotBytes) {
  EXPECT_EQ(LettersIn("caf\xC3\xA9"), 4U);
  EXPECT_EQ(LettersIn(""), 0U);
}

TEST(Shortened, KeepsBothEnds) {
  EXPECT_EQ(Shortened("abcdef", 6), "abcdef");
  EXPECT_EQ(Shortened("abcdefg", 6),
            "ab\xE2\x80\xA6"
            "efg");
  EXPECT_EQ(Shortened("abcdefg", 3), "a\xE2\x80\xA6g");
  EXPECT_EQ(Shortened("\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9", 3),
            "\xC3\xA9\xE2\x80\xA6\xC3\xA9");
}

TEST(FourDigits, HasFourThatCountAndNoExponent) {
  EXPECT_EQ(FourDigits(0), "0");
  EXPECT_EQ(FourDigits(0.0123449), "0.01234");
  EXPECT_EQ(FourDigits(-1.5), "-1.500");
  EXPECT_EQ(FourDigits(12.345), "12.35");
  EXPECT_EQ(FourDigits(123456.7), "123457");
  EXPECT_EQ(FourDigits(std::numeric_limits<double>::quiet_NaN()), "-");
}

}  // namespace
}  // namespace bench
