// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "trainer/backend/cuda/block_sum.cuh"
#include "trainer/backend/cuda/element.cuh"
#include "trainer/backend/cuda/update_kernels.h"

namespace trainer {
namespace {

// Calls visit(index, decay) for the elements of this block's chunks.
template <typename Visit>
__device__ void ForEachElement(const UpdateKernelCall& call, const Visit& visit) {
  for (int c = static_cast<int>(blockIdx.x); c < call.chunk_count;
       c += static_cast<int>(gridDim.x)) {
    const UpdateChunk chunk = call.chunks[c];
    for (std::uint32_t i = threadIdx.x; i < chunk.count; i += kThreads) {
      visit(chunk.begin + i, chunk.decay != 0);
    }
  }
}

template <typename T>
__device__ float GradientAt(const FlatGradients& gradients, std::size_t i) {
  if (i < gradients.compute_from) return gradients.fp32[i];
  return ToFloat(static_cast<const T*>(gradients.compute)[i]);
}

template <typename T>
__global__ void Inspect(UpdateKernelCall call, UpdateSums* of_blocks) {
  float squares = 0;
  float nonfinite = 0;
  ForEachElement(call, [&](std::size_t i, bool decay) {
    if (decay) squares += call.weight[i] * call.weight[i];
    if (!isfinite(GradientAt<T>(call.gradients, i))) nonfinite = 1;
  });
  squares = SumOverBlock<kThreads>(squares);
  nonfinite = OverBlock<kThreads>(nonfinite, 0.0F, Larger());
  if (threadIdx.x == 0) of_blocks[blockIdx.x] = {squares, nonfinite};
}

__global__ void AddBlocks(const UpdateSums* of_blocks, int blocks, UpdateSums* sums) {
  float squares = 0;
  float nonfinite = 0;
  for (int b = static_cast<int>(threadIdx.x); b < blocks; b += kThreads) {
    squares += of_blocks[b].sum_of_squares;
    nonfinite = fmaxf(nonfinite, of_blocks[b].nonfinite);
  }
  squares = SumOverBlock<kThreads>(squares);
  nonfinite = OverBlock<kThreads>(nonfinite, 0.0F, Larger());
  if (threadIdx.x == 0) *sums = {squares, nonfinite};
}

template <typename T>
__global__ void Update(UpdateKernelCall call, const UpdateSums* sums) {
  if (sums->nonfinite != 0) return;
  const SgdCall told = *call.told;
  T* copy = static_cast<T*>(call.compute_copy);
  ForEachElement(call, [&](std::size_t i, bool decay) {
    float weight = call.weight[i];
    const float gradient = told.gradient_scale * GradientAt<T>(call.gradients, i) +
                           (decay ? told.weight_decay * weight : 0.0F);
    const float momentum = told.momentum_factor * call.momentum[i] + gradient;
    weight -= told.learning_rate * momentum;
    call.momentum[i] = momentum;
    call.weight[i] = weight;
    if (copy != nullptr) Assign(copy[i], weight);
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
