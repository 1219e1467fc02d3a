// SPDX-License-Identifier: Apache-2.0
//
// The inner loops of Winograd's convolution F(4x4, 3x3), compiled once for each instruction set as
// loops.h is.  Pure, one thread, deterministic.
//
// A tile is 4x4 results, which need 6x6 values of src.  In the space of the transforms a tile has
// 36 places; place p of all tiles and channels is a matrix of its own, and the convolution a
// product of matrices for each place: 36 products for 16 results where the definition takes 144.
// Interpolation at 0, +-5/8, +-3/2 and infinity loses less than the textbook's 0, +-1, +-2 (Alam et
// al., "Winograd Convolution for Deep Neural Networks: Efficient Point Selection", 2022).

#pragma once

#include <cstdint>

namespace trainer::detail {

inline constexpr std::int64_t kTile = 4;     // results of a tile, each way
inline constexpr std::int64_t kPlaces = 36;  // of a tile when transformed

// `block` channels of one image: height * width rows of `block` neighbours.
struct TileWindow {
  std::int64_t height = 0, width = 0;
  std::int64_t y = 0, x = 0;  // of the tile's first result; what lies outside of the image is zero
};

// c[r][j] = sum over d of a[r * a_row + d * a_depth] * b[d * b_depth + j], j < 2 * block.
struct MatrixProduct {
  std::int64_t rows = 0, depth = 0;
  const float* a = nullptr;
  std::int64_t a_row = 0, a_depth = 0;
  const float* b = nullptr;
  std::int64_t b_depth = 0;
  float* c = nullptr;
  std::int64_t c_row = 0;
  bool adds = false;  // to what is in c
};

// `places`: place p of the block at places + p * stride.
struct WinogradLoops {
  std::int64_t block = 0;

  void (*src_to_places)(const TileWindow& window, const float* image, float* places,
                        std::int64_t stride);
  void (*places_to_dst)(const TileWindow& window, const float* places, std::int64_t stride,
                        bool adds, float* image);
  // The transpose of places_to_dst.
  void (*diff_dst_to_places)(const TileWindow& window, const float* image, float* places,
                             std::int64_t stride);
  // Tap (y, x) of the filter at filter + (3 * y + x) * tap_stride; a negative stride with `filter`
  // at the last tap turns the filter round.
  void (*filter_to_places)(const float* filter, std::int64_t tap_stride, float* places,
                           std::int64_t stride);
  // The transpose of filter_to_places.
  void (*places_to_diff_filter)(const float* places, std::int64_t stride, float* filter,
                                std::int64_t tap_stride);
  void (*multiply)(const MatrixProduct& product);
};

extern const WinogradLoops kAvx2WinogradLoops;  // x86-64 only, as the next
extern const WinogradLoops kAvx512WinogradLoops;

// Those for activations in blocks of `block` channels; null where this machine has none.
const WinogradLoops* WinogradLoopsFor(std::int64_t block);

}  // namespace trainer::detail
