// SPDX-License-Identifier: Apache-2.0
//
// JPEG decoding, by libjpeg-turbo: no more of the image than is asked for, and no finer.  Gray and
// CMYK images become RGB (ImageNet has both).  Input is not trusted: sizes, memory and the number
// of scans are limited, and data that is damaged or missing is an error.
//
// Errors are Error(EX_DATAERR) without the name of the record.

#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "trainer/data/images/huffman_decoder.h"
#include "trainer/data/images/image.h"

namespace trainer {

inline constexpr std::int64_t kMaxJpegPixels = 100'000'000;  // ImageNet's largest has 61 million
inline constexpr int kMaxJpegScans = 200;                    // progressive images have about 10
// How many scans an image may have, of each of which a scan may touch all.
constexpr std::int64_t MaxJpegScans(std::int64_t pixels) {
  constexpr std::int64_t kMaxScannedPixels = 1'000'000'000;  // some seconds
  return std::clamp<std::int64_t>(kMaxScannedPixels / std::max<std::int64_t>(pixels, 1), 1,
                                  kMaxJpegScans);
}
inline constexpr long kMaxJpegMemoryBytes = 1L << 30;  // libjpeg's own tables and coefficients

// Who reads the Huffman codes, which makes no difference but of time (doc/decisions/0045).
enum class EntropyDecoder {
  kFastest,  // JpegUnits where it can, else libjpeg
  kLibrary,  // libjpeg
};

// Decodes one image after another, keeping its memory.  Not thread-safe: one per thread.
class JpegDecoder {
 public:
  explicit JpegDecoder(EntropyDecoder entropy_decoder = EntropyDecoder::kFastest);
  ~JpegDecoder();
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  // Begins an image: its size.  `data` must live until the image's Decode returns.
  ImageSize ReadHeader(std::span<const std::uint8_t> data);
  // Of the image of the last ReadHeader: whether its pixels are stored as CMYK.
  bool is_cmyk() const;

  // Decodes the image of the last ReadHeader, once, reduced by `reduction` (1, 2, 4, 8): the
  // reduced image has ceil(width / reduction) x ceil(height / reduction) pixels.  `piece` gets the
  // pixels of `box`, which is in pixels of the reduced image, or more around them; they equal those
  // of the whole reduced image.  REQUIRES: `box` is not empty and within the reduced image. Damage
  // behind the last row of `box` is not noticed.
  void Decode(int reduction, const PixelBox& box, ImagePiece& piece);
  // Whether libjpeg read the codes of the last image that was decoded.
  bool used_library() const { return used_library_; }

 private:
  void DecodeBy(EntropyDecoder entropy_decoder, int reduction, const PixelBox& box,
                ImagePiece& piece);

  struct State;
  std::unique_ptr<State> state_;
  const EntropyDecoder entropy_decoder_;
  bool used_library_ = true;
};

}  // namespace trainer

// The units (MCUs) of an image that libjpeg-turbo has opened, by a HuffmanDecoder instead of the
// library's: what its structures say of them, and which of them are wanted at all.

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
