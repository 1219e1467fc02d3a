// SPDX-License-Identifier: Apache-2.0

#include "rankfile/scanner.h"

#include <gtest/gtest.h>

namespace rankfile {
namespace {

TEST(Scanner, RefusesTextThatIsTooLong) {
  const std::string longest(kMaxTextBytes, ' ');
  EXPECT_NO_THROW(Scanner(longest, "text"));
  EXPECT_THROW(Scanner(longest + ' ', "text"), ParseError);
}

TEST(Scanner, CountsLinesAndColumns) {
  Scanner scanner("a\nbc", "text");
  EXPECT_EQ(scanner.Here(), (Position{.line = 1, .column = 1}));
  scanner.Next();
  EXPECT_EQ(scanner.Here(), (Position{.line = 1, .column = 2}));
  EXPECT_TRUE(scanner.Eat("\nb"));
  EXPECT_EQ(scanner.Here(), (Position{.line = 2, .column = 2}));
}

TEST(Scanner, TakesAZeroByteForACharacterAndNotForTheEnd) {
  Scanner scanner(std::string_view("\0", 1), "text");
  EXPECT_FALSE(scanner.AtEnd());
  EXPECT_THROW(scanner.ExpectEnd("nothing"), ParseError);
}

}  // namespace
}  // namespace rankfile
