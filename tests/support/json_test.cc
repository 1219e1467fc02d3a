// SPDX-License-Identifier: Apache-2.0

#include "support/json.h"

#include <limits>

#include "tests/support/test.h"

namespace support {
namespace {

TEST(ParseJson, RefusesWhatIsOverItsLimits) {
  constexpr JsonLimits kLimits = {.bytes = 40, .depth = 2, .values = 4};
  const struct {
    const char* text;
    const char* over;
  } cases[] = {{"[[1]]", ""},
               {"[[],[],[]]", ""},
               {"{\"a\":{\"b\":1}}", ""},
               {"[[[1]]]", "nested deeper than 2 levels"},
               {"{\"a\":[{}]}", "nested deeper than 2 levels"},
               {"[\"[[[[[{{{{\"]", ""},
               {"[\"\\\"[[[[[\"]", ""},
               {"[\"\\\\\",[[1]]]", "nested deeper than 2 levels"},
               {"]]]][[", ""},
               {"[1,2,3,4]", ""},
               {"[1,2,3,4,5]", "of more than 4 values"},
               {"[\",,,,,,,\"]", ""},
               {"1234567890123456789012345678901234567890", ""},
               {"12345678901234567890123456789012345678901", "longer than 40 bytes"}};
  for (const auto& [text, over] : cases) {
    EXPECT_EQ(JsonOverLimit(text, kLimits), over) << text;
    EXPECT_TRUE(*over == '\0' || ParseJson<>(text, kLimits).is_discarded()) << text;
  }
  EXPECT_EQ(ParseJson<>("[[1]]", kLimits)[0][0], 1);
  EXPECT_TRUE(ParseJson<>("[1", kLimits).is_discarded());
  const std::string deep = std::string(10'000'000, '[');
  EXPECT_TRUE(ParseJson<>(deep, {.bytes = deep.size(), .depth = 8, .values = 9}).is_discarded());
}

TEST(IntegerOf, TakesWholeNumbersWithinTheirRangeAlone) {
  const auto in = [](const char* text, int min, int max) {
    return IntegerOf<int>(nlohmann::json::parse(text), min, max);
  };
  EXPECT_EQ(in("5", 0, 10), 5);
  EXPECT_EQ(in("0", 0, 10), 0);
  EXPECT_EQ(in("10", 0, 10), 10);
  EXPECT_EQ(in("-3", -3, 10), -3);
  for (const char* text :
       {"-1", "11", "1e100", "5.0", "2222222222222222222222222222222222222222222222222222222",
        "-9223372036854775808", "18446744073709551615", "4294967301", "\"5\"", "null", "true",
        "[5]"}) {
    EXPECT_EQ(in(text, 0, 10), std::nullopt) << text;
  }
  constexpr auto kMax = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(IntegerOf<std::uint64_t>(nlohmann::json(kMax), 0, kMax), kMax);
  EXPECT_EQ(IntegerOf<std::uint64_t>(nlohmann::json(-1), 0, kMax), std::nullopt);
  EXPECT_EQ(
      IntegerOf<std::int64_t>(nlohmann::json(kMax), 0, std::numeric_limits<std::int64_t>::max()),
      std::nullopt);
}

}  // namespace
}  // namespace support
