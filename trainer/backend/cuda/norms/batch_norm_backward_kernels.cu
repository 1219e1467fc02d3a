// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/norms/batch_norm_kernels.h"
#include "trainer/backend/cuda/norms/batch_norm_passes.cuh"

namespace trainer {
namespace batch_norm {
namespace {

// What the sums of a gradient become.
struct GradientEnd {
  float pixels;
  int channels, padded;
  const float* scale;
  const float* inverse;
  bool of_batch;
  float* diff_scale;
  float* diff_shift;
  BackwardCoefficients to;

  // `products`: of the gradient and the normalized input.
  __device__ void Finish(int channel, float sum, float products) const {
    const bool is_used = channel < channels;
    const float factor = is_used ? scale[channel] * inverse[channel] : 0.0F;
    const float share = of_batch ? factor / pixels : 0.0F;
    to.of_gradient[channel] = factor;
    to.of_input[channel] = -share * inverse[channel] * products;
    to.rest[channel] = -share * sum;
    if (!is_used) return;
    diff_scale[channel] = products;
    diff_shift[channel] = sum;
  }
};

__global__ void FinishGradient(const float* partial, int blocks, GradientEnd end) {
  const TwoSums sums = SumOfPartials(partial, blocks, end.padded);
  const int channel = LaneChannel();
  if (threadIdx.y == 0 && channel < end.padded) end.Finish(channel, sums.first, sums.second);
}

// Of sums as NormBackward::sums has them.
__global__ void FinishSummedGradient(const float* sums, GradientEnd end) {
  const int channel = static_cast<int>(Item());
  if (channel < end.padded) end.Finish(channel, sums[end.padded + channel], sums[channel]);
}

template <typename T, int depth, Gate gate>
__global__ void __launch_bounds__(kThreads, WritersAtOnce(depth, gate))
    Differentiate(const T* src, const void* gate_of, const T* diff_dst, const float* means,
                  BackwardCoefficients by, int pixels, int padded, int columns, int waves,
                  T* diff_src, T* diff_residual) {
  constexpr int kAtOnce = depth * kPixelsAtOnce<T>;
  const Track track = TrackOf(columns, pixels, waves);
  if (track.channel >= padded) return;
  const GateChannels<T, gate> relu(gate_of, padded, track.channel);
  const BackwardChannels channels(means, by, track.channel);
  Eight<T> x[kAtOnce];
  Eight<T> g[kAtOnce];
  unsigned loaded[kAtOnce];
  const auto load = [&](int u, std::int64_t at) {
    x[u] = LoadEight(src + at);
    g[u] = LoadEight(diff_dst + at);
    loaded[u] = relu.Load(at);
  };
  const auto write = [&](int u, std::int64_t at) {
    float dx[8];
    float gradient[8];
    Widen(x[u], dx);
    Widen(g[u], gradient);
    const unsigned passes = relu.Passes(loaded[u], dx);
    for (int i = 0; i < 8; ++i) {
      if ((passes >> i & 1U) == 0) gradient[i] = 0;
      dx[i] = channels.Differentiate(i, gradient[i], dx[i]);
    }
    if (diff_residual != nullptr) Store8(gradient, diff_residual + at);
    Store8(dx, diff_src + at);
  };
  Walk<kAtOnce, From::kEnd>(track, pixels, padded, load, write);
}

GradientEnd EndOf(const NormShape& shape, const float* scale, const float* inverse, bool of_batch,
                  float* diff_scale, float* diff_shift, const BackwardCoefficients& to) {
  return {.pixels = static_cast<float>(shape.pixels),
          .channels = shape.channels,
          .padded = shape.padded,
          .scale = scale,
          .inverse = inverse,
          .of_batch = of_batch,
          .diff_scale = diff_scale,
          .diff_shift = diff_shift,
          .to = to};
}

// What a backward pass makes of its scratch.
struct BackwardScratch {
  BackwardCoefficients by;
  float* partial;

  BackwardScratch(const NormShape& shape, float* scratch)
      : by(CoefficientsIn(scratch, shape.padded)), partial(scratch + 3 * shape.padded) {}
};

template <typename T, Gate gate, int depth>
void QueueSums(const NormShape& shape, const NormBackward& call, const void* gate_of,
               CUstream_st* stream) {
  const Sweep sweep = SweepOf(shape);
  Launch(GradientSums<T, depth, gate>, sweep.grid(), kThreads, stream,
         static_cast<const T*>(call.src), gate_of, static_cast<const T*>(call.diff_dst), call.saved,
         call.saved + shape.padded, shape.pixels, shape.padded, sweep.columns,
         BackwardScratch(shape, call.scratch).partial);
}

template <typename T, Gate gate, int depth>
void QueueDifferentiate(const NormShape& shape, const NormBackward& call, const void* gate_of,
                        const BackwardCoefficients& by, CUstream_st* stream) {
  const Sweep sweep = SweepOf(shape, WritersAtOnce(depth, gate));
  const int waves = call.pace.waves;
  Launch(Differentiate<T, depth, gate>, sweep.grid(waves), kThreads, stream,
         static_cast<const T*>(call.src), gate_of, static_cast<const T*>(call.diff_dst), call.saved,
         by, shape.pixels, shape.padded, sweep.columns, waves, static_cast<T*>(call.diff_src),
         static_cast<T*>(call.diff_residual));
}

// Between the two.
void QueueEnd(const NormShape& shape, const float* scale, const NormBackward& call,
              CUstream_st* stream) {
  const BackwardScratch scratch(shape, call.scratch);
  const float* inverse = call.saved + shape.padded;
  if (call.sums == nullptr) {
    FinishGradientSums(shape, SweepOf(shape), scratch.partial, scale, inverse, call.of_batch,
                       call.diff_scale, call.diff_shift, scratch.by, stream);
  } else {
    Launch(
        FinishSummedGradient, BlocksFor(shape.padded), kThreads, stream, call.sums,
        EndOf(shape, scale, inverse, call.of_batch, call.diff_scale, call.diff_shift, scratch.by));
  }
}

// `sums_depth` keeps the registers of GradientSums within what three blocks leave.
template <typename T, Gate gate, int depth, int sums_depth>
void QueueBackward(const NormShape& shape, const float* scale, const NormBackward& call,
                   const void* gate_of, CUstream_st* stream) {
  if (call.sums == nullptr) QueueSums<T, gate, sums_depth>(shape, call, gate_of, stream);
  QueueEnd(shape, scale, call, stream);
  QueueDifferentiate<T, gate, depth>(shape, call, gate_of, BackwardScratch(shape, call.scratch).by,
                                     stream);
}

}  // namespace

void DifferentiateMasked(const NormShape& shape, const NormBackward& call,
                         const BackwardCoefficients& by, CUstream_st* stream) {
  WithElement(shape.dtype, [&](auto zero) {
    WithDepth(call.pace.depth, [&](auto depth) {
      QueueDifferentiate<decltype(zero), Gate::kMask, depth>(shape, call, call.mask, by, stream);
    });
  });
}

void FinishGradientSums(const NormShape& shape, const Sweep& sweep, const float* partial,
                        const float* scale, const float* inverse, bool of_batch, float* diff_scale,
                        float* diff_shift, const BackwardCoefficients& to, CUstream_st* stream) {
  Launch(FinishGradient, LaneGrid(shape.padded), dim3(kLaneChannels, kLanes), stream, partial,
         sweep.blocks, EndOf(shape, scale, inverse, of_batch, diff_scale, diff_shift, to));
}

}  // namespace batch_norm

void RunNormBackward(const NormShape& shape, const float* scale, const NormBackward& call,
                     CUstream_st* stream) {
  using batch_norm::Gate;
  WithElement(shape.dtype, [&](auto zero) {
    using T = decltype(zero);
    batch_norm::WithDepth(call.pace.depth, [&](auto depth) {
      if (call.applied == nullptr) {
        batch_norm::QueueBackward<T, Gate::kMask, depth, depth>(shape, scale, call, call.mask,
                                                                stream);
      } else {
        batch_norm::QueueBackward<T, Gate::kInput, depth, 1>(shape, scale, call, call.applied,
                                                             stream);
      }
    });
  });
}

void RunNormBackwardSums(const NormShape& shape, const NormBackward& call, CUstream_st* stream) {
  WithElement(shape.dtype, [&](auto zero) {
    batch_norm::WithDepth(call.pace.depth, [&](auto depth) {
      batch_norm::QueueSums<decltype(zero), batch_norm::Gate::kMask, depth>(shape, call, call.mask,
                                                                            stream);
    });
  });
}

void RunNormBackwardUnapplied(const NormShape& shape, const float* scale, const NormBackward& call,
                              float* coefficients, CUstream_st* stream) {
  DDL_CHECK(call.sums == nullptr && call.applied == nullptr);
  RunNormBackwardSums(shape, call, stream);
  batch_norm::FinishGradientSums(
      shape, batch_norm::SweepOf(shape), batch_norm::BackwardScratch(shape, call.scratch).partial,
      scale, call.saved + shape.padded, call.of_batch, call.diff_scale, call.diff_shift,
      batch_norm::CoefficientsIn(coefficients, shape.padded), stream);
}

}  // namespace trainer
