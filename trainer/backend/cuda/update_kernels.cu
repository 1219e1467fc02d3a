// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <type_traits>

#include "trainer/backend/cuda/runtime/block_sum.cuh"
#include "trainer/backend/cuda/runtime/element.cuh"
#include "trainer/backend/cuda/update_kernels.h"

namespace trainer {
namespace {

// Several neighbours at once keep more of the memory busy.
constexpr int kTogether = static_cast<int>(kUpdateAlignment);

// Calls visit(how many, index of the first, decay) for the elements of this block's chunks:
// kTogether where these are aligned, else one, as a type that is a constant.
template <typename Visit>
__device__ void ForEachElement(const UpdateKernelCall& call, const Visit& visit) {
  for (int c = static_cast<int>(blockIdx.x); c < call.chunk_count;
       c += static_cast<int>(gridDim.x)) {
    const UpdateChunk chunk = call.chunks[c];
    const bool decay = chunk.decay != 0;
    const std::uint32_t aligned = chunk.begin % kTogether == 0 ? chunk.count : 0;
    const std::uint32_t together = aligned / kTogether * kTogether;
    for (std::uint32_t i = threadIdx.x * kTogether; i < together; i += kThreads * kTogether) {
      visit(std::integral_constant<int, kTogether>(), chunk.begin + i, decay);
    }
    for (std::uint32_t i = together + threadIdx.x; i < chunk.count; i += kThreads) {
      visit(std::integral_constant<int, 1>(), chunk.begin + i, decay);
    }
  }
}

template <typename T>
__device__ void Load(const T* src, float (&values)[kTogether]) {
  Load8(src, values);
}
template <typename T>
__device__ void Load(const T* src, float (&values)[1]) {
  values[0] = ToFloat(*src);
}
template <typename T>
__device__ void Store(const float (&values)[kTogether], T* dst) {
  Store8(values, dst);
}
template <typename T>
__device__ void Store(const float (&values)[1], T* dst) {
  Assign(*dst, values[0]);
}

template <typename T, int count>
__device__ void LoadGradients(const FlatGradients& gradients, std::size_t i,
                              float (&values)[count]) {
  if (i < gradients.compute_from) {
    Load(gradients.fp32 + i, values);
  } else {
    Load(static_cast<const T*>(gradients.compute) + i, values);
  }
}

template <typename T>
__global__ void Inspect(UpdateKernelCall call, UpdateSums* of_blocks) {
  float squares = 0;
  float nonfinite = 0;
  float gradient_squares = 0;
  ForEachElement(call, [&](auto how_many, std::size_t i, bool decay) {
    constexpr int count = decltype(how_many)::value;
    float weight[count];
    float gradient[count];
    Load(call.weight + i, weight);
    LoadGradients<T>(call.gradients, i, gradient);
    for (int k = 0; k < count; ++k) {
      if (decay) squares += weight[k] * weight[k];
      if (!isfinite(gradient[k])) nonfinite = 1;
      gradient_squares += gradient[k] * gradient[k];
    }
  });
  squares = SumOverBlock<kThreads>(squares);
  nonfinite = OverBlock<kThreads>(nonfinite, 0.0F, Larger());
  gradient_squares = SumOverBlock<kThreads>(gradient_squares);
  if (threadIdx.x == 0) of_blocks[blockIdx.x] = {squares, nonfinite, gradient_squares};
}

__global__ void AddBlocks(const UpdateSums* of_blocks, int blocks, UpdateSums* sums) {
  float squares = 0;
  float nonfinite = 0;
  float gradient_squares = 0;
  for (int b = static_cast<int>(threadIdx.x); b < blocks; b += kThreads) {
    squares += of_blocks[b].sum_of_squares;
    nonfinite = fmaxf(nonfinite, of_blocks[b].nonfinite);
    gradient_squares += of_blocks[b].gradient_squares;
  }
  squares = SumOverBlock<kThreads>(squares);
  nonfinite = OverBlock<kThreads>(nonfinite, 0.0F, Larger());
  gradient_squares = SumOverBlock<kThreads>(gradient_squares);
  if (threadIdx.x == 0) *sums = {squares, nonfinite, gradient_squares};
}

template <typename T>
__global__ void Update(UpdateKernelCall call, const UpdateSums* sums) {
  if (sums->nonfinite != 0) return;
  const SgdParameters parameters = *call.parameters;
  T* copy = static_cast<T*>(call.compute_copy);
  ForEachElement(call, [&](auto how_many, std::size_t i, bool decay) {
    constexpr int count = decltype(how_many)::value;
    float weight[count];
    float momentum[count];
    float gradient[count];
    Load(call.weight + i, weight);
    Load(call.momentum + i, momentum);
    LoadGradients<T>(call.gradients, i, gradient);
    for (int k = 0; k < count; ++k) {
      const float g = parameters.gradient_scale * gradient[k] +
                      (decay ? parameters.weight_decay * weight[k] : 0.0F);
      momentum[k] = parameters.momentum_factor * momentum[k] + g;
      weight[k] -= parameters.learning_rate * momentum[k];
    }
    Store(momentum, call.momentum + i);
    Store(weight, call.weight + i);
    if (copy != nullptr) Store(weight, copy + i);
  });
}

}  // namespace

void RunUpdate(const UpdateKernelCall& call, UpdateSums* of_blocks, UpdateSums* sums,
               CUstream_st* stream) {
  const int blocks = std::clamp(call.chunk_count, 1, kUpdateBlocks);
  const dim3 grid(static_cast<unsigned>(blocks));
  WithElement(call.compute_type, [&](auto zero) {
    Launch(Inspect<decltype(zero)>, grid, kThreads, stream, call, of_blocks);
    Launch(AddBlocks, 1, kThreads, stream, of_blocks, blocks, sums);
    Launch(Update<decltype(zero)>, grid, kThreads, stream, call, sums);
  });
}

}  // namespace trainer
