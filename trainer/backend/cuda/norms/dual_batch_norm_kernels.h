// SPDX-License-Identifier: Apache-2.0
//
// The sum of two batch norms with a ReLU behind it, max(y of the first + y of the second, 0), in
// passes that each go over both: neither the second one's result nor the gradient behind the ReLU
// is ever in memory.  As batch_norm_kernels.h in everything else.

#pragma once

#include "trainer/backend/cuda/norms/batch_norm_kernels.h"

namespace trainer {

// Floats of scratch for the calls below, and floats that Forward keeps: of the first, then of the
// second.
std::int64_t DualNormScratchFloats(const NormShape& shape);
std::int64_t DualNormSavedFloats(const NormShape& shape);

struct DualNormForward {
  NormSource first;
  NormSource second;
  void* dst = nullptr;
  bool of_batch = false;
  float* saved = nullptr;        // null: nothing is kept
  std::uint8_t* mask = nullptr;  // gets where the result is > 0; or null
  float* scratch = nullptr;
};
void RunDualNormForward(const NormShape& shape, const NormParameters& first,
                        const NormParameters& second, const DualNormForward& call,
                        CUstream_st* stream);

struct DualNormGradients {
  const float* scale = nullptr;  // the parameter
  void* diff_src = nullptr;      // that of the second may be diff_dst
  float* diff_scale = nullptr;
  float* diff_shift = nullptr;
  NormPartialSums partial_sums;  // of both or of none
};
struct DualNormBackward {
  const void* first = nullptr;
  const void* second = nullptr;
  const std::uint8_t* mask = nullptr;  // null: diff_dst is behind the ReLU already
  const void* diff_dst = nullptr;
  bool of_batch = false;
  const float* saved = nullptr;
  // Null, or gets what NormCoefficientsFloats says: then diff_src of the first is left to what
  // reads that, and that of the second is not diff_dst.
  float* first_coefficients = nullptr;
  float* scratch = nullptr;
};
void RunDualNormBackward(const NormShape& shape, const DualNormGradients& first,
                         const DualNormGradients& second, const DualNormBackward& call,
                         CUstream_st* stream);

}  // namespace trainer
