// SPDX-License-Identifier: Apache-2.0
//
// The units (MCUs) of an image that libjpeg-turbo has opened, by a HuffmanDecoder instead of the
// library's: what its structures say of them, and which of them are wanted at all.

#pragma once

#include <array>

#include "trainer/data/images/huffman_decoder.h"

struct jpeg_decompress_struct;

namespace trainer {

// Columns of pixels of the image as it is decoded, reduced or not.
struct ColumnRange {
  unsigned first;
  unsigned width;
};

// Not thread-safe: one per thread.
class JpegUnits {
 public:
  // Begins with the first unit of the scan.  False if it is none for a HuffmanDecoder, being
  // progressive, arithmetic, one of several, or lossless.  REQUIRES: jpeg_start_decompress was the
  // last to read of `jpeg`, all of whose data is in memory.
  bool Start(const jpeg_decompress_struct& jpeg, ColumnRange wanted);

  // The next unit, which libjpeg wants in `blocks`, filled with zeros; null: not at all.  Blocks of
  // columns that are not wanted stay zero.  False: as by HuffmanDecoder::Read.
  bool Next(CoefficientBlock* const* blocks);

 private:
  HuffmanDecoder decoder_;
  std::array<UnitBlock, kMaxUnitBlocks> blocks_{};
  unsigned columns_ = 0;  // of units
  unsigned column_ = 0;
  unsigned first_wanted_ = 0;
  unsigned end_of_wanted_ = 0;
};

}  // namespace trainer
