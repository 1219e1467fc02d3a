// SPDX-License-Identifier: Apache-2.0
//
// NormBackwardFront as what is in front of a product over rows (rows_product.cuh,
// streamed_product.cuh).

#pragma once

#include "trainer/backend/cuda/bottleneck/norm_backward_front.h"
#include "trainer/backend/cuda/bottleneck/rows_product.cuh"
#include "trainer/backend/cuda/norms/batch_norm_passes.cuh"

namespace trainer {
namespace rows_product {

// Where columns are in several thread blocks, each makes the gradient of src, and the first of them
// writes it, if anything else reads it.
template <typename Of, bool is_written = true>
class SourceBehindNorm {
  using T = typename Of::T;

 public:
  // Of each channel, for all threads: registers do not suffice.  A thread has four words of two
  // channels; those of all threads that are first words follow each other, and so on, so that
  // neighbours read neighbours.
  static constexpr int kWord = Of::kDepth / 4;
  struct Coefficients {
    alignas(8) float of_gradient[Of::kDepth];
    float of_input[Of::kDepth];
    float mean[Of::kDepth];
    float rest[Of::kDepth];
  };

  // `coefficients` are in shared memory: the block is to wait before Store.
  __device__ SourceBehindNorm(const T* gradient, const NormBackwardFront& norm,
                              const Product<T>& of, Coefficients& coefficients)
      : gradient_(gradient), norm_(norm), of_(of), by_(coefficients) {
    for (int channel = Thread(); channel < of.depth; channel += kBlockThreads) {
      const batch_norm::Coefficients made = CoefficientsOf(channel);
      const int at = channel % 8 / 2 * kWord + channel / 8 * 2 + channel % 2;
      by_.of_gradient[at] = made.of_gradient;
      by_.of_input[at] = made.of_input;
      by_.mean[at] = norm.saved[channel];
      by_.rest[at] = made.rest;
    }
  }

  __device__ void Load(int first, int depth) {
    channel_ = depth + SourceChannel<Of>();
#pragma unroll
    for (int e = 0; e < Of::kSourceRows; ++e) {
      eights_[e] = src_[e] = {};  // what was there before is not kept, which would take registers
      if (!IsThere(e, first)) continue;
      const std::int64_t at = ElementOf(e, first);
      eights_[e] = LoadEight(gradient_ + at);
      src_[e] = LoadEight(static_cast<const T*>(norm_.src) + at);
    }
  }

  __device__ void Store(int first, int depth, T* rows) {
    channel_ = depth + SourceChannel<Of>();
#pragma unroll
    for (int word = 0; word < 4; ++word) Differentiate(word);
#pragma unroll
    for (int e = 0; e < Of::kSourceRows; ++e) {
      if (!HasSourceRow<Of>(e)) continue;
      const bool is_there = IsThere(e, first);
      StoreSource<Of>(e, is_there ? eights_[e] : Eight<T>{}, rows);
      if (is_written && is_there && blockIdx.x == 0) {
        StoreEight(eights_[e], static_cast<T*>(norm_.diff_src) + ElementOf(e, first));
      }
    }
  }

 private:
  // The first block of all also keeps the gradients of scale and shift.
  __device__ batch_norm::Coefficients CoefficientsOf(int channel) const {
    if (norm_.coefficients != nullptr) {
      const float* of = norm_.coefficients + channel;
      return {of[0], of[of_.depth], of[2 * of_.depth]};
    }
    const batch_norm::GradientEnd end = {.pixels = static_cast<float>(of_.pixels),
                                         .channels = norm_.channels,
                                         .padded = of_.depth,
                                         .scale = norm_.scale,
                                         .inverse = norm_.saved + of_.depth,
                                         .of_batch = norm_.of_batch,
                                         .diff_scale = norm_.diff_scale,
                                         .diff_shift = norm_.diff_shift};
    const float products = norm_.sums[channel];
    const float sum = norm_.sums[of_.depth + channel];
    if (blockIdx.x == 0 && blockIdx.y == 0) end.Keep(channel, sum, products);
    return end.Of(channel, sum, products);
  }
  // One word of all eights, in its place.
  __device__ void Differentiate(int word) {
    const auto two = [&](const float* of) {
      return *reinterpret_cast<const float2*>(of + word * kWord + channel_ / 4);
    };
    const float2 of_gradient = two(by_.of_gradient);
    const float2 of_input = two(by_.of_input);
    const float2 mean = two(by_.mean);
    const float2 rest = two(by_.rest);
#pragma unroll
    for (int e = 0; e < Of::kSourceRows; ++e) {
      const float2 g = ToFloats(eights_[e].words[word], T{});
      const float2 x = ToFloats(src_[e].words[word], T{});
      eights_[e].words[word] = ToWord(
          batch_norm::Differentiate(g.x, x.x, mean.x, of_gradient.x, of_input.x, rest.x),
          batch_norm::Differentiate(g.y, x.y, mean.y, of_gradient.y, of_input.y, rest.y), T{});
    }
  }
  __device__ bool IsThere(int e, int first) const {
    return HasSourceRow<Of>(e) && first + SourceRow<Of>(e) < of_.pixels && channel_ < of_.depth;
  }
  // The first summand is the same for all threads.
  __device__ std::int64_t ElementOf(int e, int first) const {
    return static_cast<std::int64_t>(first) * of_.depth + (SourceRow<Of>(e) * of_.depth + channel_);
  }

  const T* const gradient_;
  const NormBackwardFront& norm_;
  const Product<T>& of_;
  int channel_ = 0;  // of what is loaded, or stored
  Coefficients& by_;
  Eight<T> eights_[Of::kSourceRows] = {};  // the gradient, then that of src
  Eight<T> src_[Of::kSourceRows] = {};
};

}  // namespace rows_product
}  // namespace trainer
