// SPDX-License-Identifier: Apache-2.0
//
// The coefficients of a sequential JPEG with one scan, unit by unit (ITU-T T.81, F.2): what a
// decoder spends most of its time on.  Of data without any damage they are those of libjpeg bit for
// bit; of other data only that is said (doc/decisions/0045).

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace trainer {

// One Huffman table of a JPEG (ITU-T T.81, annex C) as look-up tables: what a code and the value
// behind it say is found by one look, as long as both together are short.

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

inline constexpr int kMaxUnitBlocks = 10;  // of a unit (MCU), by T.81, B.2.3
inline constexpr int kMaxComponents = 4;

// The coefficients of 8 x 8 pixels, row by row.
using CoefficientBlock = std::int16_t[64];

// A block of every unit.
struct UnitBlock {
  int component;    // below kMaxComponents
  int dc_table;     // below kMaxComponents
  int ac_table;     // below kMaxComponents
  bool is_dc_only;  // whether coefficients other than the first are not wanted
};

// Decodes one scan after another.  Not thread-safe: one per thread.
class HuffmanDecoder {
 public:
  // Of a DC or AC table that UnitBlock numbers.  False if it is no table: nothing can be decoded.
  bool SetDcTable(int number, const HuffmanCodes& codes);
  bool SetAcTable(int number, const HuffmanCodes& codes);

  // Begins a scan.  `data` begins behind the scan's header; it need not end with the scan, and must
  // live as long as it is read.  `restart_interval`: units between two restart markers; 0: none.
  // REQUIRES: the tables that `blocks` name are set.
  void Start(std::span<const std::uint8_t> data, std::span<const UnitBlock> blocks,
             int restart_interval);

  // The next unit.  REQUIRES: `blocks` has one for each of Start's, filled with zeros.  False: the
  // data is damaged or at its end, and nothing more can be read; blocks have anything.
  bool Read(CoefficientBlock* const* blocks);
  // Goes past the next unit.
  bool Skip();

 private:
  // The bits that come next: `count` at the upper end of `window`, and those from `next` on.
  struct Bits {
    std::uint64_t window = 0;
    int count = 0;
    const std::uint8_t* next = nullptr;
  };

  static void Fill(Bits& bits);
  static void Drop(int count, Bits& bits);
  bool CopySegment();
  std::ptrdiff_t BitsLeft(Bits bits) const;
  bool BeginUnit();
  bool ReadDifference(const UnitBlock& block, Bits& bits);
  static bool ReadCoefficients(const HuffmanTable& table, Bits& bits, CoefficientBlock& block);
  static bool SkipCoefficients(const HuffmanTable& table, Bits& bits);

  std::span<const std::uint8_t> data_;  // from the marker behind `segment_` on
  bool is_readable_ = false;            // whether there is one
  std::span<const UnitBlock> blocks_;
  // The data up to the next marker as it was before zeros were put behind bytes of 0xff, and zeros.
  std::vector<std::uint8_t> segment_;
  const std::uint8_t* segment_end_ = nullptr;  // where the zeros begin
  Bits bits_;
  int restart_interval_ = 0;
  int units_to_restart_ = 0;
  int next_restart_ = 0;
  std::array<int, kMaxComponents> last_dc_{};
  std::array<std::unique_ptr<HuffmanTable>, kMaxComponents> dc_tables_;
  std::array<std::unique_ptr<HuffmanTable>, kMaxComponents> ac_tables_;
};

}  // namespace trainer
