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

#include "trainer/data/images/huffman_table.h"

namespace trainer {

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
