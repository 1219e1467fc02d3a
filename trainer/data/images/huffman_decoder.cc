// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/images/huffman_decoder.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

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

namespace {

constexpr int kBlockSize = 64;
constexpr int kLongestStep = 31;  // bits: a code of 16, a value of 15
// A unit is read to its end before it is seen that the data ended within; then eight bytes are
// loaded.
constexpr std::size_t kPadding = kMaxUnitBlocks * kBlockSize * kLongestStep / 8 + 16;
constexpr int kMaxDc = 1 << 20;         // far beyond any image, far from an overflow
constexpr std::uint8_t kMarker = 0xff;  // in data it is followed by a zero
constexpr std::uint8_t kFirstRestart = 0xd0;

// [n]: where in the block the coefficient n of the zigzag order is (T.81, figure A.6).  The end of
// a block is written as a zero to its last place, which has none yet: no branch is needed.
constexpr auto kPlaces = [] {
  std::array<std::uint8_t, kBlockSize + kEndOfBlock> places{};
  int row = 0;
  int column = 0;
  for (std::size_t n = 0; n < places.size(); ++n) {
    places[n] = static_cast<std::uint8_t>(8 * row + column);
    if (row == 7 && column == 7) continue;
    const bool goes_up = (row + column) % 2 == 0;
    if (goes_up && column == 7) {
      ++row;
    } else if (goes_up) {
      ++column;
      row -= row > 0 ? 1 : 0;
    } else if (row == 7) {
      ++column;
    } else {
      ++row;
      column -= column > 0 ? 1 : 0;
    }
  }
  return places;
}();

std::uint64_t LoadBigEndian(const std::uint8_t* bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof(word));
  return std::endian::native == std::endian::little ? __builtin_bswap64(word) : word;
}

}  // namespace

// Fills up to 56 bits or more, without a branch that the processor would guess wrong.
inline void HuffmanDecoder::Fill(Bits& bits) {
  // Bits beyond `count` may be there already: they are those of the next byte, and stay the same.
  bits.window |= LoadBigEndian(bits.next) >> bits.count;
  bits.next += (63 - bits.count) >> 3;
  bits.count |= 56;
}

inline void HuffmanDecoder::Drop(int count, Bits& bits) {
  bits.window <<= count;
  bits.count -= count;
}

bool HuffmanDecoder::SetDcTable(int number, const HuffmanCodes& codes) {
  std::unique_ptr<HuffmanTable>& table = dc_tables_[static_cast<std::size_t>(number)];
  if (table == nullptr) table = std::make_unique<HuffmanTable>(HuffmanSymbols::kDifferences);
  return table->Assign(codes);
}

bool HuffmanDecoder::SetAcTable(int number, const HuffmanCodes& codes) {
  std::unique_ptr<HuffmanTable>& table = ac_tables_[static_cast<std::size_t>(number)];
  if (table == nullptr) table = std::make_unique<HuffmanTable>(HuffmanSymbols::kCoefficients);
  return table->Assign(codes);
}

void HuffmanDecoder::Start(std::span<const std::uint8_t> data, std::span<const UnitBlock> blocks,
                           int restart_interval) {
  data_ = data;
  blocks_ = blocks;
  if (segment_.size() < data.size() + kPadding) segment_.resize(data.size() + kPadding);
  is_readable_ = CopySegment();
  restart_interval_ = restart_interval;
  units_to_restart_ = restart_interval;
  next_restart_ = 0;
  last_dc_.fill(0);
}

// False if no marker is behind it.
bool HuffmanDecoder::CopySegment() {
  std::uint8_t* to = segment_.data();
  while (!data_.empty()) {
    const void* found = std::memchr(data_.data(), kMarker, data_.size());
    const std::size_t length =
        found == nullptr
            ? data_.size()
            : static_cast<std::size_t>(static_cast<const std::uint8_t*>(found) - data_.data());
    std::memcpy(to, data_.data(), length);
    to += length;
    data_ = data_.subspan(length);
    if (data_.size() < 2 || data_[1] != 0) break;
    *to++ = kMarker;
    data_ = data_.subspan(2);
  }
  std::memset(to, 0, kPadding);
  segment_end_ = to;
  bits_ = {.next = segment_.data()};
  return data_.size() >= 2 && data_[1] != kMarker;  // libjpeg looks for the end of ff ff ...
}

// Negative if more was read than there is.
std::ptrdiff_t HuffmanDecoder::BitsLeft(Bits bits) const {
  return 8 * (segment_end_ - bits.next) + bits.count;
}

bool HuffmanDecoder::BeginUnit() {
  if (!is_readable_ || restart_interval_ == 0) return is_readable_;
  if (units_to_restart_ == 0) {
    if (BitsLeft(bits_) >= 8 || data_[1] != kFirstRestart + next_restart_) return false;
    data_ = data_.subspan(2);
    is_readable_ = CopySegment();
    units_to_restart_ = restart_interval_;
    next_restart_ = (next_restart_ + 1) % 8;
    last_dc_.fill(0);
  }
  --units_to_restart_;
  return is_readable_;
}

inline bool HuffmanDecoder::ReadDifference(const UnitBlock& block, Bits& bits) {
  Fill(bits);
  const HuffmanStep step =
      dc_tables_[static_cast<std::size_t>(block.dc_table)]->StepAt(bits.window);
  Drop(step.bits, bits);
  int& dc = last_dc_[static_cast<std::size_t>(block.component)];
  dc += step.value;
  return step.bits != 0 && dc > -kMaxDc && dc < kMaxDc;
}

inline bool HuffmanDecoder::SkipCoefficients(const HuffmanTable& table, Bits& bits) {
  int place = 1;
  while (place < kBlockSize) {
    Fill(bits);
    const HuffmanLeap leap = table.LeapAt(bits.window);
    if (leap.bits != 0 && place + leap.advance < kBlockSize) [[likely]] {
      Drop(leap.bits, bits);
      if (leap.ends_block) return true;
      place += leap.advance;
    } else {  // a long code, or one of the next block is in sight
      const HuffmanStep step = table.StepAt(bits.window);
      if (step.bits == 0) return false;
      Drop(step.bits, bits);
      if (step.advance == kEndOfBlock) return true;
      place += step.advance;
    }
  }
  return place == kBlockSize;
}

inline bool HuffmanDecoder::ReadCoefficients(const HuffmanTable& table, Bits& bits,
                                             CoefficientBlock& block) {
  std::size_t place = 0;
  do {
    Fill(bits);
    const HuffmanPair pair = table.PairAt(bits.window);
    if (pair.first_bits != 0) [[likely]] {
      place += pair.advances[0];
      block[kPlaces[place]] = pair.values[0];
      if (place >= kBlockSize - 1) {  // the second is none of this block
        Drop(pair.first_bits, bits);
        break;
      }
      place += pair.advances[1];
      block[kPlaces[place]] = pair.values[1];
      Drop(pair.bits, bits);
    } else {
      const HuffmanStep step = table.StepAt(bits.window);
      if (step.bits == 0) return false;
      Drop(step.bits, bits);
      place += step.advance;
      block[kPlaces[place]] = step.value;
    }
  } while (place < kBlockSize - 1);
  return place == kBlockSize - 1 || place >= kEndOfBlock;
}

bool HuffmanDecoder::Read(CoefficientBlock* const* blocks) {
  if (!BeginUnit()) return false;
  Bits bits = bits_;
  for (const UnitBlock& block : blocks_) {
    CoefficientBlock& coefficients = **blocks++;
    if (!ReadDifference(block, bits)) return false;
    coefficients[0] =
        static_cast<std::int16_t>(last_dc_[static_cast<std::size_t>(block.component)]);
    const HuffmanTable& table = *ac_tables_[static_cast<std::size_t>(block.ac_table)];
    if (!(block.is_dc_only ? SkipCoefficients(table, bits)
                           : ReadCoefficients(table, bits, coefficients))) {
      return false;
    }
  }
  bits_ = bits;
  return BitsLeft(bits) >= 0;
}

bool HuffmanDecoder::Skip() {
  if (!BeginUnit()) return false;
  Bits bits = bits_;
  for (const UnitBlock& block : blocks_) {
    if (!ReadDifference(block, bits) ||
        !SkipCoefficients(*ac_tables_[static_cast<std::size_t>(block.ac_table)], bits)) {
      return false;
    }
  }
  bits_ = bits;
  return BitsLeft(bits) >= 0;
}

}  // namespace trainer
