// SPDX-License-Identifier: Apache-2.0

#include "support/number.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace support {
namespace {

TEST(WholeNumber, IsAllOfTheText) {
  EXPECT_EQ(WholeNumber<int>("29500"), 29500);
  EXPECT_EQ(WholeNumber<int>("007"), 7);
  EXPECT_EQ(WholeNumber<int>("-1"), -1);
  EXPECT_EQ(WholeNumber<std::int64_t>("4294996796"), 4294996796);
  EXPECT_EQ(WholeNumber<double>("2.5e3"), 2500.0);
  EXPECT_EQ(WholeNumber<std::uint64_t>("ff", 16), 255U);
}

TEST(WholeNumber, IsNoneWithAnythingElse) {
  for (const std::string text : {"", "29500abc", "abc", "1 ", " 1", "+1", "1,2", "0x10", "1.0",
                                 "4294996796", "-2147483649", "--1", "-"}) {
    EXPECT_EQ(WholeNumber<int>(text), std::nullopt) << text;
  }
  EXPECT_EQ(WholeNumber<int>(std::string("1\0", 2)), std::nullopt);
  for (const std::string text : {"-1", "18446744073709551616"}) {
    EXPECT_EQ(WholeNumber<std::uint64_t>(text), std::nullopt) << text;
  }
  for (const std::string text : {"", "1.5s", "1,5", ".", "1e999"}) {
    EXPECT_EQ(WholeNumber<double>(text), std::nullopt) << text;
  }
  for (const std::string text : {"0xff", "fg", ""}) {
    EXPECT_EQ(WholeNumber<unsigned>(text, 16), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace support
