// SPDX-License-Identifier: Apache-2.0
//
// Which products of matrices a GPU has instructions for.

#pragma once

namespace trainer {

enum class TensorCores {
  kQuadPairs,  // m8n8k4 with fp16: what compute capability 7.x has
  kWholeWarp,  // m16n8k16 with fp16 and bf16, and ldmatrix: from 8.0 on
};
constexpr TensorCores TensorCoresOf(int compute_capability_major) {
  return compute_capability_major >= 8 ? TensorCores::kWholeWarp : TensorCores::kQuadPairs;
}

}  // namespace trainer
