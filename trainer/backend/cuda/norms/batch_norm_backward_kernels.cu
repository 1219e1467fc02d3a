// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/norms/batch_norm_kernels.h"
#include "trainer/backend/cuda/norms/batch_norm_passes.cuh"

namespace trainer {
namespace batch_norm {
namespace {

__global__ void FinishGradient(const float* partial, int blocks, GradientEnd end,
                               BackwardCoefficients to) {
  SynchronizeGridDependencies();
  const TwoSums sums = SumOfPartials(partial, blocks, end.padded);
  const int channel = LaneChannel();
  if (threadIdx.y != 0 || channel >= end.padded) return;
  const Coefficients of = end.Of(channel, sums.first, sums.second);
  to.of_gradient[channel] = of.of_gradient;
  to.of_input[channel] = of.of_input;
  to.rest[channel] = of.rest;
  end.Keep(channel, sums.first, sums.second);
}

// Sums as NormBackward::sums has them: each thread makes the coefficients of its own channels.
struct SummedGradient {
  const float* sums;
  GradientEnd end;
};

__device__ inline BackwardChannels ChannelsOf(const Track& track, const float* means,
                                              const BackwardCoefficients& by) {
  return {means, by, track.channel};
}
// The thread with the first pixel of all also keeps the gradients of scale and shift.
__device__ inline BackwardChannels ChannelsOf(const Track& track, const float* means,
                                              const SummedGradient& by) {
  BackwardChannels channels;
  LoadChannels(means, track.channel, channels.mean);
  for (int i = 0; i < 8; ++i) {
    const int channel = track.channel + i;
    const float products = by.sums[channel];
    const float sum = by.sums[by.end.padded + channel];
    const Coefficients of = by.end.Of(channel, sum, products);
    channels.of_gradient[i] = of.of_gradient;
    channels.of_input[i] = of.of_input;
    channels.rest[i] = of.rest;
    if (track.first == 0) by.end.Keep(channel, sum, products);
  }
  return channels;
}

// By: BackwardCoefficients, or the SummedGradient that they are made of.
template <typename T, int depth, typename By>
__global__ void __launch_bounds__(kThreads, WritersAtOnce(depth))
    Differentiate(const T* src, const std::uint8_t* mask, const T* diff_dst, const float* means,
                  By by, int pixels, int padded, int columns, int waves, T* diff_src,
                  T* diff_residual) {
  SynchronizeGridDependencies();
  constexpr int kAtOnce = depth * kPixelsAtOnce<T>;
  const Track track = TrackOf(columns, pixels, waves);
  if (track.channel >= padded) return;
  const BackwardChannels channels = ChannelsOf(track, means, by);
  Eight<T> x[kAtOnce];
  Eight<T> g[kAtOnce];
  unsigned passes[kAtOnce];
  const auto load = [&](int u, std::int64_t at) {
    x[u] = LoadEight(src + at);
    g[u] = LoadEight(diff_dst + at);
    passes[u] = LoadMask(mask, at);
  };
  const auto write = [&](int u, std::int64_t at) {
    float dx[8];
    float gradient[8];
    Widen(x[u], dx);
    Widen(g[u], gradient);
    for (int i = 0; i < 8; ++i) {
      if ((passes[u] >> i & 1U) == 0) gradient[i] = 0;
      dx[i] = channels.Differentiate(i, gradient[i], dx[i]);
    }
    if (diff_residual != nullptr) Store8(gradient, diff_residual + at);
    Store8(dx, diff_src + at);
  };
  Walk<kAtOnce, From::kEnd>(track, pixels, padded, load, write);
}

// What a backward pass makes of its scratch.
struct BackwardScratch {
  BackwardCoefficients by;
  float* partial;

  BackwardScratch(const NormShape& shape, float* scratch)
      : by(CoefficientsIn(scratch, shape.padded)), partial(scratch + 3 * shape.padded) {}
};

template <typename By>
void RunDifferentiateBy(const NormShape& shape, const NormBackward& call, const By& by,
                        CUstream_st* stream) {
  const Sweep sweep = SweepOf(shape, WritersAtOnce(call.config.depth));
  const int waves = call.config.waves;
  WithElement(shape.dtype, [&](auto zero) {
    WithDepth(call.config.depth, [&](auto depth) {
      using T = decltype(zero);
      Launch(Differentiate<T, depth, By>, sweep.grid(waves), kThreads, stream,
             static_cast<const T*>(call.src), call.mask, static_cast<const T*>(call.diff_dst),
             call.saved, by, shape.pixels, shape.padded, sweep.columns, waves,
             static_cast<T*>(call.diff_src), static_cast<T*>(call.diff_residual));
    });
  });
}

}  // namespace

void RunDifferentiate(const NormShape& shape, const NormBackward& call,
                      const BackwardCoefficients& by, CUstream_st* stream) {
  RunDifferentiateBy(shape, call, by, stream);
}

void FinishGradientSums(const NormShape& shape, const NormPartialSums& partial, const float* scale,
                        const float* inverse, bool of_batch, float* diff_scale, float* diff_shift,
                        const BackwardCoefficients& to, CUstream_st* stream) {
  Launch(FinishGradient, LaneGrid(shape.padded), dim3(kLaneChannels, kLanes), stream,
         partial.values, partial.blocks,
         EndOf(shape, scale, inverse, of_batch, diff_scale, diff_shift), to);
}

namespace {

// The call's partial sums, or those of a pass of their own.
void FinishPartialSums(const NormShape& shape, const float* scale, const NormBackward& call,
                       const BackwardCoefficients& to, CUstream_st* stream) {
  NormPartialSums partial = call.partial_sums;
  if (partial.values == nullptr) {
    RunNormBackwardSums(shape, call, stream);
    partial = {BackwardScratch(shape, call.scratch).partial, SweepOf(shape).blocks};
  }
  FinishGradientSums(shape, partial, scale, call.saved + shape.padded, call.of_batch,
                     call.diff_scale, call.diff_shift, to, stream);
}

}  // namespace
}  // namespace batch_norm

void RunNormBackward(const NormShape& shape, const float* scale, const NormBackward& call,
                     CUstream_st* stream) {
  if (call.sums == nullptr) {
    const batch_norm::BackwardScratch scratch(shape, call.scratch);
    batch_norm::FinishPartialSums(shape, scale, call, scratch.by, stream);
    batch_norm::RunDifferentiate(shape, call, scratch.by, stream);
  } else {
    const batch_norm::SummedGradient by = {
        call.sums, batch_norm::EndOf(shape, scale, call.saved + shape.padded, call.of_batch,
                                     call.diff_scale, call.diff_shift)};
    batch_norm::RunDifferentiateBy(shape, call, by, stream);
  }
}

void RunNormBackwardSums(const NormShape& shape, const NormBackward& call, CUstream_st* stream) {
  const batch_norm::Sweep sweep = batch_norm::SweepOf(shape);
  float* partial = batch_norm::BackwardScratch(shape, call.scratch).partial;
  WithElement(shape.dtype, [&](auto zero) {
    batch_norm::WithDepth(call.config.depth, [&](auto depth) {
      using T = decltype(zero);
      Launch(batch_norm::GradientSums<T, depth>, sweep.grid(), kThreads, stream,
             static_cast<const T*>(call.src), call.mask, static_cast<const T*>(call.diff_dst),
             call.saved, call.saved + shape.padded, shape.pixels, shape.padded, sweep.columns,
             partial);
    });
  });
}

void RunNormBackwardStatsOnly(const NormShape& shape, const float* scale, const NormBackward& call,
                              float* coefficients, CUstream_st* stream) {
  DDL_CHECK(call.sums == nullptr);
  batch_norm::FinishPartialSums(shape, scale, call,
                                batch_norm::CoefficientsIn(coefficients, shape.padded), stream);
}

}  // namespace trainer
