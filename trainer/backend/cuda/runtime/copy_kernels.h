// SPDX-License-Identifier: Apache-2.0
//
// Kernels that bring numbers into the back end's layout and out of it, add them up and
// average them.  All queue on `stream`; all memory is the device's.  And whether the current GPU
// can run kernels of this build at all.

#pragma once

#include <cstdint>

#include "trainer/backend/calls.h"
#include "trainer/core/dtype.h"

struct CUstream_st;

namespace trainer {

// A tensor in memory: `outer` x height x width x `channels` elements, of which `samples` x `used`
// mean something.
struct Places {
  std::int64_t outer = 1, samples = 1, used = 1, channels = 1, height = 1, width = 1;
};

// fp32 row-major values of the logical shape, to and from a tensor.
void ImportValues(const float* src, const Places& places, DType dtype, void* dst,
                  CUstream_st* stream);
void ExportValues(const void* src, const Places& places, DType dtype, float* dst,
                  CUstream_st* stream);

// uint8 pixels to images of 3 channels, padded to 8, as InputTransform has it.
struct PixelsCall {
  const std::uint8_t* pixels = nullptr;
  const std::uint8_t* mirror = nullptr;
  std::int64_t samples = 0, height = 0, width = 0;
  const float* lambda = nullptr;       // null: 1 for all
  float mean[3] = {}, factor[3] = {};  // (pixel - mean) * factor
};
void TransformPixels(const PixelsCall& call, DType dtype, void* dst, CUstream_st* stream);

// dst = src in another type.
void ConvertToFloat(const void* src, DType dtype, float* dst, std::int64_t count,
                    CUstream_st* stream);
void ConvertFromFloat(const float* src, void* dst, DType dtype, std::int64_t count,
                      CUstream_st* stream);

// dst += src.
void AddAsFloat(const void* src, DType dtype, float* dst, std::int64_t count, CUstream_st* stream);

// As Backend::MoveAverage.
void MoveAverage(const float* values, float share, const UpdateSums* sums, float* average,
                 std::int64_t count, CUstream_st* stream);

// `words` * 4 bytes of what looks like random numbers between -2 and 2 in every type: multiplying
// zeros takes a GPU less power, and so less time, than multiplying what a network holds.
void FillWithNoise(void* dst, std::int64_t words, CUstream_st* stream);

// `count` values between -1 and 1, each as likely as the others; of each seed others.
void FillWithUniformNoise(void* dst, DType dtype, std::int64_t count, std::int64_t seed,
                          CUstream_st* stream);

// Looks for the code of one of them, for all: each file of kernels is compiled for the same GPUs.
// Returns a cudaError_t, and the compute capability it was compiled for, 10 for 1.0: the GPU's, or
// an earlier one where the driver translates PTX.
struct KernelCode {
  int error = 0;
  int compiled_for = 0;
};
KernelCode LookForCode();

// dst[c] = sum over r of src[r, c].
void SumRows(const float* src, float* dst, std::int64_t rows, std::int64_t columns,
             CUstream_st* stream);

}  // namespace trainer
