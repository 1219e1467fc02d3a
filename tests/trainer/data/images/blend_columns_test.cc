// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/images/blend_columns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "trainer/core/philox.h"

namespace trainer {
namespace {

constexpr int kPixels = 50;
constexpr std::size_t kElements = std::size_t{3} * kPixels;
constexpr std::uint8_t kUntouched = 0xA5;

// What blend_columns.h says, in whole numbers that cannot overflow.
std::vector<std::uint8_t> Expected(const std::vector<std::int64_t>& values,
                                   const std::vector<Tap>& columns) {
  std::vector<std::uint8_t> out;
  for (const Tap& tap : columns) {
    for (std::size_t channel = 0; channel < 3; ++channel) {
      const std::int64_t left = values[3 * static_cast<std::size_t>(tap.first) + channel];
      const std::int64_t right = values[3 * static_cast<std::size_t>(tap.second) + channel];
      const std::int64_t sum = left * (256 - tap.weight) + right * tap.weight;
      out.push_back(static_cast<std::uint8_t>((sum + 32768) / 65536));
    }
  }
  return out;
}

// Rows of any values, of the smallest and of the largest, and any number of columns.
TEST(BlendColumns, IsTheRoundedSumWithAndWithoutVectorUnits) {
  Random random(1, RandomPurpose::kGenerate, 0);
  for (int round = 0; round < 600; ++round) {
    std::vector<std::int64_t> values;
    std::vector<std::int16_t> row;
    for (std::size_t i = 0; i <= kElements; ++i) {
      const std::int64_t any = random.Below(65281);
      values.push_back(round % 3 == 0 ? any : random.Below(2) * 65280);
      row.push_back(static_cast<std::int16_t>(values.back() - 32768));
    }
    std::vector<Tap> columns;
    for (int i = 0; i < round % 20; ++i) {
      columns.push_back({static_cast<int>(random.Below(kPixels)),
                         static_cast<int>(random.Below(kPixels)),
                         round % 2 == 0 ? static_cast<int>(random.Below(257)) : i % 2 * 256});
    }
    const std::vector<std::uint8_t> expected = Expected(values, columns);
    for (const auto blend : {BlendColumns, BlendColumnsOneByOne}) {
      std::vector<std::uint8_t> out(expected.size() + 16, kUntouched);
      blend(row.data(), columns, out.data());
      ASSERT_TRUE(std::equal(expected.begin(), expected.end(), out.begin())) << round;
      const auto behind = std::count(out.end() - 16, out.end(), kUntouched);
      ASSERT_EQ(behind, 16) << round;
    }
  }
}

}  // namespace
}  // namespace trainer
