// SPDX-License-Identifier: Apache-2.0
//
// Max pooling and the average over an image, on channels-last images of `channels` (padded to a
// multiple of 8).  All queue on `stream`.

#pragma once

#include <cstdint>

#include "trainer/core/dtype.h"

struct CUstream_st;

namespace trainer {

struct PoolShape {
  std::int64_t samples = 0;
  std::int64_t height = 0, width = 0;          // of src
  std::int64_t out_height = 0, out_width = 0;  // of dst
  int channels = 0;
  int kernel = 0, stride = 0, padding = 0;
  DType dtype = DType::kFloat32;
};

// `winners`: a byte for each element of dst, the place in its window that the value came from.
void MaxPoolForward(const PoolShape& shape, const void* src, void* dst, std::uint8_t* winners,
                    CUstream_st* stream);
void MaxPoolBackward(const PoolShape& shape, const void* diff_dst, const std::uint8_t* winners,
                     void* diff_src, CUstream_st* stream);

// Rows of `used` dense features on one side, images of padded channels on the other.
struct AverageShape {
  std::int64_t samples = 0;
  std::int64_t pixels = 0;
  int used = 0;
  int channels = 0;
  DType dtype = DType::kFloat32;
};
void AveragePoolForward(const AverageShape& shape, const void* src, void* dst, CUstream_st* stream);
void AveragePoolBackward(const AverageShape& shape, const void* diff_dst, void* diff_src,
                         CUstream_st* stream);

}  // namespace trainer
