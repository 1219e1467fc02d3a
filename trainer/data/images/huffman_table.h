// SPDX-License-Identifier: Apache-2.0
//
// One Huffman table of a JPEG (ITU-T T.81, annex C) as look-up tables: what a code and the value
// behind it say is found by one look, as long as both together are short.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace trainer {

inline constexpr int kHuffmanLookBits = 10;

// As a JPEG's DHT marker has it: codes are given out in order, the shortest first.
struct HuffmanCodes {
  std::array<std::uint8_t, 16> counts;    // of the codes of 1 to 16 bits
  std::array<std::uint8_t, 256> symbols;  // that the codes stand for

  bool operator==(const HuffmanCodes&) const = default;
};

enum class HuffmanSymbols {
  kDifferences,   // DC: the symbol is how many bits the value has, 0 to 15
  kCoefficients,  // AC: that, and 16 times the zeros before it; 0 ends the block
};

// A code and the value behind it.
struct HuffmanStep {
  std::int16_t value;
  std::uint8_t bits;     // of both; 0: no step
  std::uint8_t advance;  // how many coefficients further `value` is; kEndOfBlock: there are no more
};
inline constexpr std::uint8_t kEndOfBlock = 128;

// Two steps, or one and nothing: the second's value is the first's then, and 0 further.
struct HuffmanPair {
  std::int16_t values[2];
  std::uint8_t advances[2];
  std::uint8_t first_bits;  // 0: the first step is too long to be here
  std::uint8_t bits;        // of both
};

// As many steps as are in sight, without their values.
struct HuffmanLeap {
  std::uint8_t bits;  // 0: the first step is too long to be here
  std::uint8_t advance;
  bool ends_block;  // behind `advance` coefficients
  std::uint8_t unused;
};

class HuffmanTable {
 public:
  explicit HuffmanTable(HuffmanSymbols kind) : kind_(kind) {}

  // Replaces the codes.  False, and the table must not be used, if their lengths are not those of a
  // prefix code.
  bool Assign(const HuffmanCodes& codes);

  // `window` has the next bits at its upper end; behind the last there are zeros.
  HuffmanStep StepAt(std::uint64_t window) const;
  HuffmanPair PairAt(std::uint64_t window) const { return pairs_[Look(window)]; }
  HuffmanLeap LeapAt(std::uint64_t window) const { return leaps_[Look(window)]; }

 private:
  static std::size_t Look(std::uint64_t window) { return window >> (64 - kHuffmanLookBits); }
  HuffmanStep StepOf(std::uint8_t symbol, int code_bits, std::uint64_t suffix_code) const;
  HuffmanStep ShortStepAt(std::uint64_t window) const;
  void FillCodes();
  void FillPairs();
  void FillLeaps();

  // A code of no more than kHuffmanLookBits.
  struct Code {
    std::uint8_t symbol;
    std::uint8_t bits;  // 0: none
  };

  const HuffmanSymbols kind_;
  HuffmanCodes codes_{};
  bool is_usable_ = false;
  std::array<int, 17> first_code_{};   // [n]: of n bits
  std::array<int, 17> first_index_{};  // [n]: of its symbol
  std::array<Code, 1 << kHuffmanLookBits> short_codes_;
  std::array<HuffmanPair, 1 << kHuffmanLookBits> pairs_;
  std::array<HuffmanLeap, 1 << kHuffmanLookBits> leaps_;
};

}  // namespace trainer
