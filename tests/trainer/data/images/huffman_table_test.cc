// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/images/huffman_table.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>

#include "trainer/core/philox.h"

namespace trainer {
namespace {

// The luminance coefficients of T.81, table K.5, whose codes have 2 to 16 bits.
constexpr HuffmanCodes kLuminance{
    {0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 0x7d},
    {0x01, 0x02, 0x03, 0x00, 0x04, 0x11, 0x05, 0x12, 0x21, 0x31, 0x41, 0x06, 0x13, 0x51, 0x61,
     0x07, 0x22, 0x71, 0x14, 0x32, 0x81, 0x91, 0xa1, 0x08, 0x23, 0x42, 0xb1, 0xc1, 0x15, 0x52,
     0xd1, 0xf0, 0x24, 0x33, 0x62, 0x72, 0x82, 0x09, 0x0a, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x25,
     0x26, 0x27, 0x28, 0x29, 0x2a, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39, 0x3a, 0x43, 0x44, 0x45,
     0x46, 0x47, 0x48, 0x49, 0x4a, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5a, 0x63, 0x64,
     0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7a, 0x83,
     0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99,
     0x9a, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6,
     0xb7, 0xb8, 0xb9, 0xba, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xd2, 0xd3,
     0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda, 0xe1, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8,
     0xe9, 0xea, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa}};

// As T.81 describes it, bit by bit (figures F.12, F.13, F.16).
HuffmanStep PlainStep(const HuffmanCodes& codes, std::uint64_t window) {
  int code = 0;
  int first_code = 0;
  std::size_t first_symbol = 0;
  for (int bits = 1; bits <= 16; ++bits) {
    code = static_cast<int>(window >> (64 - bits));
    const int count = codes.counts[static_cast<std::size_t>(bits) - 1];
    if (code - first_code < count) {
      const int symbol = codes.symbols[first_symbol + static_cast<std::size_t>(code - first_code)];
      int value = 0;
      for (int bit = 0; bit < symbol % 16; ++bit) {
        value = 2 * value + static_cast<int>(window << (bits + bit) >> 63);
      }
      if (symbol % 16 != 0 && value < 1 << (symbol % 16 - 1)) value += 1 - (1 << (symbol % 16));
      const bool is_end = symbol == 0;
      if (symbol % 16 == 0 && !is_end && symbol != 0xf0) return {};
      return {static_cast<std::int16_t>(value), static_cast<std::uint8_t>(bits + symbol % 16),
              is_end ? kEndOfBlock : static_cast<std::uint8_t>(symbol / 16 + 1)};
    }
    first_code = 2 * (first_code + count);
    first_symbol += static_cast<std::size_t>(count);
  }
  return {};
}

bool AreEqual(const HuffmanStep& a, const HuffmanStep& b) {
  return a.value == b.value && a.bits == b.bits && a.advance == b.advance;
}

std::unique_ptr<HuffmanTable> CoefficientTable(const HuffmanCodes& codes) {
  auto table = std::make_unique<HuffmanTable>(HuffmanSymbols::kCoefficients);
  EXPECT_TRUE(table->Assign(codes));
  return table;
}

template <typename Check>
void ForManyWindows(Check check) {
  Random random(1, RandomPurpose::kGenerate, 0);
  for (int i = 0; i < 200'000; ++i) {
    std::uint64_t window = std::uint64_t{random.Next()} << 32 | random.Next();
    if (i % 4 == 0) window |= std::uint64_t{0xff} << 56;  // the long codes begin with ones
    ASSERT_NO_FATAL_FAILURE(check(window)) << std::hex << window;
  }
}

TEST(HuffmanTable, StepsAreTheStandards) {
  const auto table = CoefficientTable(kLuminance);
  ForManyWindows([&](std::uint64_t window) {
    ASSERT_TRUE(AreEqual(table->StepAt(window), PlainStep(kLuminance, window)));
  });
}

TEST(HuffmanTable, PairIsTheNextTwoSteps) {
  const auto table = CoefficientTable(kLuminance);
  ForManyWindows([&](std::uint64_t window) {
    const HuffmanPair pair = table->PairAt(window);
    const HuffmanStep first = PlainStep(kLuminance, window);
    if (first.bits == 0 || first.bits > kHuffmanLookBits) {
      ASSERT_EQ(pair.first_bits, 0);
      return;
    }
    ASSERT_TRUE(AreEqual({pair.values[0], pair.first_bits, pair.advances[0]}, first));
    const HuffmanStep second = PlainStep(kLuminance, window << first.bits);
    if (second.bits == 0 || first.bits + second.bits > kHuffmanLookBits) {
      ASSERT_TRUE(
          AreEqual({pair.values[1], pair.bits, pair.advances[1]}, {first.value, first.bits, 0}));
    } else {
      ASSERT_TRUE(AreEqual(
          {pair.values[1], pair.bits, pair.advances[1]},
          {second.value, static_cast<std::uint8_t>(first.bits + second.bits), second.advance}));
    }
  });
}

TEST(HuffmanTable, LeapIsAllStepsInSight) {
  const auto table = CoefficientTable(kLuminance);
  ForManyWindows([&](std::uint64_t window) {
    int bits = 0;
    int advance = 0;
    bool ends_block = false;
    while (!ends_block) {
      const HuffmanStep step = PlainStep(kLuminance, window << bits);
      if (step.bits == 0 || bits + step.bits > kHuffmanLookBits) break;
      bits += step.bits;
      ends_block = step.advance == kEndOfBlock;
      if (!ends_block) advance += step.advance;
    }
    const HuffmanLeap leap = table->LeapAt(window);
    ASSERT_EQ(leap.bits, bits);
    ASSERT_EQ(leap.advance, advance);
    ASSERT_EQ(leap.ends_block, ends_block);
  });
}

TEST(HuffmanTable, DifferencesHaveNoZerosBeforeThem) {
  HuffmanTable table(HuffmanSymbols::kDifferences);
  // 0: no bits, 10: 15 bits.
  ASSERT_TRUE(table.Assign({{1, 1}, {0, 15}}));
  EXPECT_TRUE(AreEqual(table.StepAt(0), {0, 1, 1}));
  EXPECT_TRUE(
      AreEqual(table.StepAt(std::uint64_t{0b10'0000'0000'0000'000} << 47), {-32767, 17, 1}));
  EXPECT_TRUE(AreEqual(table.StepAt(std::uint64_t{0b10'1111'1111'1111'111} << 47), {32767, 17, 1}));
  EXPECT_EQ(table.StepAt(~std::uint64_t{0}).bits, 0) << "11 is no code";
}

TEST(HuffmanTable, SymbolsOfProgressiveImagesAreNoSteps) {
  const auto table = CoefficientTable({{2}, {0x30, 0xf0}});
  EXPECT_EQ(table->StepAt(0).bits, 0);
  EXPECT_EQ(table->PairAt(0).first_bits, 0);
  EXPECT_EQ(table->LeapAt(0).bits, 0);
  EXPECT_TRUE(AreEqual(table->StepAt(std::uint64_t{1} << 63), {0, 1, 16}));
}

TEST(HuffmanTable, RefusesWhatIsNoPrefixCode) {
  HuffmanTable table(HuffmanSymbols::kDifferences);
  EXPECT_TRUE(table.Assign({{2}, {}}));
  EXPECT_FALSE(table.Assign({{3}, {}}));
  EXPECT_FALSE(table.Assign({{1, 3}, {}}));
  EXPECT_FALSE(table.Assign({{1, 3}, {}})) << "once more";
  EXPECT_FALSE(table.Assign({{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 200, 57}, {}}))
      << "257 codes";
}

TEST(HuffmanTable, AnotherTableTakesThePlace) {
  HuffmanTable table(HuffmanSymbols::kCoefficients);
  ASSERT_TRUE(table.Assign(kLuminance));
  ASSERT_TRUE(table.Assign({{0, 1}, {0x02}}));
  EXPECT_TRUE(AreEqual(table.StepAt(0), {-3, 4, 1}));
  EXPECT_EQ(table.StepAt(~std::uint64_t{0}).bits, 0);
  EXPECT_EQ(table.PairAt(~std::uint64_t{0}).first_bits, 0);
  EXPECT_EQ(table.LeapAt(~std::uint64_t{0}).bits, 0);
}

}  // namespace
}  // namespace trainer
