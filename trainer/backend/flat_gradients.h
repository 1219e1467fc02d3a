// SPDX-License-Identifier: Apache-2.0
//
// Where the gradients of the flat parameter memory (model/parameters.h) are.  Plain, so that
// kernels can include it.

#pragma once

#include <cstddef>
#include <cstdint>

namespace trainer {

// Element i is fp32[i], from `compute_from` on compute[i], which is of the compute type.
// `compute_from` is a multiple of 8, unless `compute` is null.
struct FlatGradients {
  float* fp32 = nullptr;
  void* compute = nullptr;
  std::size_t compute_from = SIZE_MAX;
};

}  // namespace trainer
