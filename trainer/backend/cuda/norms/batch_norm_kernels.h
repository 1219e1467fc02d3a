// SPDX-License-Identifier: Apache-2.0
//
// Batch norm over rows of channels: `pixels` x `padded` elements, padded a multiple of 8, of which
// the first `channels` of each row mean something; the others are written as zero.  All queue on
// `stream`; sums are fp32 and in the same order each time.

#pragma once

#include <cstdint>

#include "trainer/core/dtype.h"

struct CUstream_st;

namespace trainer {

struct BatchNormParameters;
struct TensorDesc;

struct NormShape {
  std::int64_t pixels = 0;
  int channels = 0;
  int padded = 0;
  DType dtype = DType::kFloat32;
  int sms = 1;  // of the GPU: how many threads the work is spread over
};
// Of `images` on the current GPU.
NormShape NormShapeOf(const TensorDesc& images);

// Floats of scratch for any of the calls below: partial sums and coefficients.
std::int64_t NormScratchFloats(const NormShape& shape);
// Floats of NormSource::sums.
std::int64_t NormSumsFloats(const NormShape& shape);
// Adds `src` up into `scratch` as Forward does where it has no sums: for timing.
void RunNormSums(const NormShape& shape, const void* src, float* scratch, CUstream_st* stream);
// Floats that Forward keeps: mean, 1 / deviation, scale and shift, of `padded` channels each.
std::int64_t NormSavedFloats(const NormShape& shape);
// Bytes of a mask: bit i of byte b is of channel 8 * b + i of all.
std::int64_t NormMaskBytes(const NormShape& shape);

// What the forward pass of a batch norm keeps for backward.
struct SavedNorm {
  float* channels = nullptr;     // mean, 1 / deviation, scale and shift, of each channel
  std::uint8_t* mask = nullptr;  // of where the ReLU passes, a bit of each value
};

// All but epsilon and kept are fp32 arrays of `channels`.
struct NormParameters {
  const float* scale = nullptr;
  const float* shift = nullptr;
  float* running_mean = nullptr;
  float* running_variance = nullptr;
  float epsilon = 0;
  float kept = 0;
};

NormParameters NormParametersOf(const BatchNormParameters& parameters, float epsilon, float kept);

// What is normalized.
struct NormSource {
  const void* values = nullptr;
  // Of each channel the sum over all pixels, then of each the sum of squares, `padded` of both;
  // null: they are not known.
  const float* sums = nullptr;
  int partial_sums = 0;  // not 0: `sums` has so many of them, each of some of the pixels
};

// How the passes of one batch norm go over its tensors.  It tells in their speed alone: the same
// numbers are added in the same order.
struct NormLaunchConfig {
  int depth = 1;  // 1 or 2: times the usual loads under way in each thread
  int waves = 1;  // of the passes that write: thread blocks for each that the GPU runs at once
};

// A batch norm as far as its speed depends on it.
struct NormSize {
  NormShape shape;
  bool adds = false;
  bool has_mask = false;
};

struct NormForward {
  NormLaunchConfig config;
  NormSource src;
  const void* residual = nullptr;  // or null
  void* dst = nullptr;             // may be src
  bool relu = false;
  bool of_batch = false;         // statistics of the batch, which also move the running ones
  float* saved = nullptr;        // null: nothing is kept
  std::uint8_t* mask = nullptr;  // gets where the result is > 0; or null
  float* scratch = nullptr;
};
void RunNormForward(const NormShape& shape, const NormParameters& parameters,
                    const NormForward& call, CUstream_st* stream);

// Sums of a gradient by whoever has made it: in each of `blocks` arrays of each channel a part of
// the sum, then of each one of that of its products with the normalized src, `padded` of both.
struct NormPartialSums {
  const float* values = nullptr;  // null: they are not known
  int blocks = 0;
};

struct NormBackward {
  NormLaunchConfig config;
  const void* src = nullptr;
  const std::uint8_t* mask = nullptr;  // where the gradient passes; null: everywhere
  const void* diff_dst = nullptr;
  // Of each channel the sum of diff_dst times the normalized src, then of each that of diff_dst;
  // null: they are not known.
  const float* sums = nullptr;
  NormPartialSums partial_sums;   // the same, instead
  void* diff_src = nullptr;       // may be diff_dst
  void* diff_residual = nullptr;  // or null; may be diff_dst
  float* diff_scale = nullptr;
  float* diff_shift = nullptr;
  bool of_batch = false;
  const float* saved = nullptr;
  float* scratch = nullptr;
};
void RunNormBackward(const NormShape& shape, const float* scale, const NormBackward& call,
                     CUstream_st* stream);
// As far as it adds up: for timing.
void RunNormBackwardSums(const NormShape& shape, const NormBackward& call, CUstream_st* stream);

// Of each channel the factor of the gradient, that of src less its mean, and what is added to both:
// diff_src.
constexpr std::int64_t NormCoefficientsFloats(const NormShape& shape) {
  return std::int64_t{3} * shape.padded;
}
// As RunNormBackward up to diff_src, which is left to what reads `coefficients`; without `sums`.
void RunNormBackwardStatsOnly(const NormShape& shape, const float* scale, const NormBackward& call,
                              float* coefficients, CUstream_st* stream);

}  // namespace trainer
