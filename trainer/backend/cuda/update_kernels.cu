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

// Calls visit(how many, index of the first) for the elements of a chunk: kTogether where these are
// aligned, else one, as a type that is a constant.
template <typename Visit>
__device__ void VisitChunk(const UpdateChunk& chunk, const Visit& visit) {
  const std::uint32_t aligned = chunk.begin % kTogether == 0 ? chunk.count : 0;
  const std::uint32_t together = aligned / kTogether * kTogether;
  for (std::uint32_t i = threadIdx.x * kTogether; i < together; i += kThreads * kTogether) {
    visit(std::integral_constant<int, kTogether>(), chunk.begin + i);
  }
  for (std::uint32_t i = together + threadIdx.x; i < chunk.count; i += kThreads) {
    visit(std::integral_constant<int, 1>(), chunk.begin + i);
  }
}

// Calls visit(index) for the chunks of this block.
template <typename Visit>
__device__ void ForEachChunk(const UpdateKernelCall& call, const Visit& visit) {
  for (int c = static_cast<int>(blockIdx.x); c < call.chunk_count;
       c += static_cast<int>(gridDim.x)) {
    visit(c);
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

// What a thread has added up.
struct ThreadSums {
  float squares = 0;
  float nonfinite = 0;
  float gradient_squares = 0;

  __device__ void Add(const UpdateSums& sums) {
    squares += sums.sum_of_squares;
    nonfinite = fmaxf(nonfinite, sums.nonfinite);
    gradient_squares += sums.gradient_squares;
  }

  template <typename T>
  __device__ void AddChunk(const UpdateKernelCall& call, const UpdateChunk& chunk) {
    VisitChunk(chunk, [&](auto how_many, std::size_t i) {
      constexpr int count = decltype(how_many)::value;
      float weight[count];
      float gradient[count];
      Load(call.weight + i, weight);
      LoadGradients<T>(call.gradients, i, gradient);
      for (int k = 0; k < count; ++k) {
        if (chunk.decay != 0) squares += weight[k] * weight[k];
        if (!isfinite(gradient[k])) nonfinite = 1;
        gradient_squares += gradient[k] * gradient[k];
      }
    });
  }

  // Those of all threads of the block, in each of them.
  __device__ UpdateSums OfBlock() const {
    const float all_squares = SumOverBlock<kThreads>(squares);
    const float all_nonfinite = OverBlock<kThreads>(nonfinite, 0.0F, Larger());
    return {all_squares, all_nonfinite, SumOverBlock<kThreads>(gradient_squares)};
  }
};

template <typename T>
__global__ void Inspect(UpdateKernelCall call, UpdateSums* of_blocks) {
  SynchronizeGridDependencies();
  ThreadSums own;
  ForEachChunk(call, [&](int c) { own.AddChunk<T>(call, call.chunks[c]); });
  const UpdateSums sums = own.OfBlock();
  if (threadIdx.x == 0) of_blocks[blockIdx.x] = sums;
}

__global__ void AddParts(const UpdateSums* parts, int count, const UpdateParameters* parameters,
                         UpdateSums* sums) {
  SynchronizeGridDependencies();
  ThreadSums own;
  const UpdateSums* before = parameters->before;
  if (before != nullptr) own.nonfinite = before->nonfinite;
  for (int p = static_cast<int>(threadIdx.x); p < count; p += kThreads) own.Add(parts[p]);
  const UpdateSums all = own.OfBlock();
  if (threadIdx.x == 0) *sums = all;
}

// A block each.
template <typename T>
__global__ void InspectChunks(UpdateKernelCall call, UpdateSums* of_chunks) {
  SynchronizeGridDependencies();
  ForEachChunk(call, [&](int c) {
    ThreadSums own;
    own.AddChunk<T>(call, call.chunks[c]);
    const UpdateSums sums = own.OfBlock();
    if (threadIdx.x == 0) of_chunks[c] = sums;
  });
}

// A block for each tensor.
__global__ void FindRatios(UpdateKernelCall call, LarsMemory memory) {
  SynchronizeGridDependencies();
  const auto tensor = static_cast<int>(blockIdx.x);
  const std::uint32_t first = memory.first_chunks[tensor];
  const std::uint32_t end = memory.first_chunks[tensor + 1];
  ThreadSums own;
  for (std::uint32_t c = first + threadIdx.x; c < end; c += kThreads) own.Add(memory.of_chunks[c]);
  const UpdateSums sums = own.OfBlock();
  if (threadIdx.x != 0) return;
  memory.of_tensors[tensor] = sums;
  // Of a tensor without decay no squares are added up.
  const float of_weight = sqrtf(sums.sum_of_squares);
  const float of_gradient = call.parameters->gradient_scale * sqrtf(sums.gradient_squares);
  memory.ratios[tensor] =
      of_weight > 0 && of_gradient > 0
          ? kLarsEta * of_weight / (of_gradient + call.parameters->weight_decay * of_weight)
          : 1.0F;
}

// `ratios` of the segments: LARS, else SGD.
template <typename T, bool is_lars>
__global__ void Update(UpdateKernelCall call, const float* ratios, const UpdateSums* sums) {
  SynchronizeGridDependencies();
  if (sums->nonfinite != 0) return;
  const UpdateParameters parameters = *call.parameters;
  T* copy = static_cast<T*>(call.compute_copy);
  ForEachChunk(call, [&](int c) {
    const UpdateChunk chunk = call.chunks[c];
    const float rate = parameters.learning_rate * (is_lars ? ratios[chunk.segment] : 1.0F);
    VisitChunk(chunk, [&](auto how_many, std::size_t i) {
      constexpr int count = decltype(how_many)::value;
      float weight[count];
      float momentum[count];
      float gradient[count];
      Load(call.weight + i, weight);
      Load(call.momentum + i, momentum);
      LoadGradients<T>(call.gradients, i, gradient);
      for (int k = 0; k < count; ++k) {
        const float g = parameters.gradient_scale * gradient[k] +
                        (chunk.decay != 0 ? parameters.weight_decay * weight[k] : 0.0F);
        momentum[k] = parameters.momentum_factor * momentum[k] + (is_lars ? rate * g : g);
        weight[k] -= is_lars ? momentum[k] : rate * momentum[k];
      }
      Store(momentum, call.momentum + i);
      Store(weight, call.weight + i);
      if (copy != nullptr) Store(weight, copy + i);
    });
  });
}

dim3 GridOf(const UpdateKernelCall& call) {
  return dim3(static_cast<unsigned>(std::clamp(call.chunk_count, 1, kUpdateBlocks)));
}

}  // namespace

void RunSgd(const UpdateKernelCall& call, UpdateSums* of_blocks, UpdateSums* sums,
            CUstream_st* stream) {
  const dim3 grid = GridOf(call);
  const float* no_ratios = nullptr;
  WithElement(call.compute_type, [&](auto zero) {
    Launch(Inspect<decltype(zero)>, grid, kThreads, stream, call, of_blocks);
    Launch(AddParts, 1, kThreads, stream, of_blocks, static_cast<int>(grid.x), call.parameters,
           sums);
    Launch(Update<decltype(zero), false>, grid, kThreads, stream, call, no_ratios, sums);
  });
}

void RunLars(const UpdateKernelCall& call, const LarsMemory& memory, UpdateSums* sums,
             CUstream_st* stream) {
  const dim3 grid = GridOf(call);
  const dim3 tensors(static_cast<unsigned>(memory.tensor_count));
  WithElement(call.compute_type, [&](auto zero) {
    Launch(InspectChunks<decltype(zero)>, grid, kThreads, stream, call, memory.of_chunks);
    Launch(FindRatios, tensors, kThreads, stream, call, memory);
    Launch(AddParts, 1, kThreads, stream, memory.of_tensors, memory.tensor_count, call.parameters,
           sums);
    Launch(Update<decltype(zero), true>, grid, kThreads, stream, call, memory.ratios, sums);
  });
}

}  // namespace trainer
