// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/images/huffman_table.h"

#include <algorithm>

namespace trainer {
namespace {

constexpr int kLongestCode = 16;
constexpr std::uint8_t kSixteenZeros = 0xf0;

// T.81, figure F.12: values whose first bit is 0 are negative.
std::int16_t Extend(std::uint64_t value, int bits) {
  const int number = static_cast<int>(value);
  const bool is_negative = number < 1 << (bits - 1);
  return static_cast<std::int16_t>(is_negative ? number - (1 << bits) + 1 : number);
}

}  // namespace

bool HuffmanTable::Assign(const HuffmanCodes& codes) {
  if (is_usable_ && codes == codes_) return true;
  codes_ = codes;
  is_usable_ = false;
  int code = 0;
  int index = 0;
  for (std::size_t bits = 1; bits <= kLongestCode; ++bits) {
    first_code_[bits] = code;
    first_index_[bits] = index;
    code += codes.counts[bits - 1];
    index += codes.counts[bits - 1];
    if (code > 1 << bits || index > 256) return false;
    code *= 2;
  }
  FillCodes();
  if (kind_ == HuffmanSymbols::kCoefficients) {
    FillPairs();
    FillLeaps();
  }
  is_usable_ = true;
  return true;
}

// What `symbol`, whose code has `code_bits`, and the bits behind it say; `suffix_code` has those at
// its upper end.
HuffmanStep HuffmanTable::StepOf(std::uint8_t symbol, int code_bits,
                                 std::uint64_t suffix_code) const {
  const int value_bits = symbol % 16;
  const int zeros = symbol / 16;
  const auto bits = static_cast<std::uint8_t>(code_bits + value_bits);
  const auto advance = static_cast<std::uint8_t>(zeros + 1);
  if (value_bits != 0) return {Extend(suffix_code >> (64 - value_bits), value_bits), bits, advance};
  if (kind_ == HuffmanSymbols::kDifferences || symbol == kSixteenZeros) return {0, bits, advance};
  if (symbol == 0) return {0, bits, kEndOfBlock};
  return {};  // is none of a sequential image
}

void HuffmanTable::FillCodes() {
  short_codes_.fill({});
  auto entry = short_codes_.begin();
  auto symbol = codes_.symbols.begin();
  for (int bits = 1; bits <= kHuffmanLookBits; ++bits) {
    for (int n = codes_.counts[static_cast<std::size_t>(bits) - 1]; n > 0; --n, ++symbol) {
      const auto end = entry + (1 << (kHuffmanLookBits - bits));
      std::fill(entry, end, Code{*symbol, static_cast<std::uint8_t>(bits)});
      entry = end;
    }
  }
}

void HuffmanTable::FillPairs() {
  for (std::size_t look = 0; look < pairs_.size(); ++look) {
    const std::uint64_t window = std::uint64_t{look} << (64 - kHuffmanLookBits);
    const HuffmanStep first = ShortStepAt(window);
    HuffmanPair pair{{first.value, first.value}, {first.advance, 0}, first.bits, first.bits};
    if (first.bits != 0) {
      const HuffmanStep second = ShortStepAt(window << first.bits);
      if (second.bits != 0 && first.bits + second.bits <= kHuffmanLookBits) {
        pair.values[1] = second.value;
        pair.advances[1] = second.advance;
        pair.bits = static_cast<std::uint8_t>(first.bits + second.bits);
      }
    }
    pairs_[look] = pair;
  }
}

void HuffmanTable::FillLeaps() {
  for (std::size_t look = 0; look < leaps_.size(); ++look) {
    const std::uint64_t window = std::uint64_t{look} << (64 - kHuffmanLookBits);
    HuffmanLeap leap{};
    while (!leap.ends_block) {
      const HuffmanPair& pair = pairs_[Look(window << leap.bits)];
      if (pair.first_bits == 0 || leap.bits + pair.first_bits > kHuffmanLookBits) break;
      leap.bits = static_cast<std::uint8_t>(leap.bits + pair.first_bits);
      leap.ends_block = pair.advances[0] == kEndOfBlock;
      if (!leap.ends_block)
        leap.advance = static_cast<std::uint8_t>(leap.advance + pair.advances[0]);
    }
    leaps_[look] = leap;
  }
}

// The next step if it fits into a look.
HuffmanStep HuffmanTable::ShortStepAt(std::uint64_t window) const {
  const Code code = short_codes_[Look(window)];
  const HuffmanStep step =
      code.bits != 0 ? StepOf(code.symbol, code.bits, window << code.bits) : HuffmanStep{};
  return step.bits <= kHuffmanLookBits ? step : HuffmanStep{};
}

HuffmanStep HuffmanTable::StepAt(std::uint64_t window) const {
  const Code code = short_codes_[Look(window)];
  if (code.bits != 0) return StepOf(code.symbol, code.bits, window << code.bits);
  for (int bits = kHuffmanLookBits + 1; bits <= kLongestCode; ++bits) {
    const auto at = static_cast<std::size_t>(bits);
    const int offset = static_cast<int>(window >> (64 - bits)) - first_code_[at];
    if (offset < codes_.counts[at - 1]) {
      const int index = first_index_[at] + offset;
      return StepOf(codes_.symbols[static_cast<std::size_t>(index)], bits, window << bits);
    }
  }
  return {};
}

}  // namespace trainer
