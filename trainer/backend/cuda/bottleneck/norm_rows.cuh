// SPDX-License-Identifier: Apache-2.0
//
// What is in front of and behind the product of a 1x1 convolution, forward (conv1x1_forward.h), as
// rows_product.cuh has such: batch norms with a ReLU, and the sums for the batch norm that follows.

#pragma once

#include "trainer/backend/cuda/bottleneck/conv1x1_forward.h"
#include "trainer/backend/cuda/bottleneck/rows_product.cuh"
#include "trainer/backend/cuda/norms/batch_norm_passes.cuh"

namespace trainer {
namespace norm_rows {

using batch_norm::ForwardChannels;
using batch_norm::Statistics;

// Thread blocks with other columns of the same pixels do the same; those with the first ones write.
template <typename Of, NormsInFront norms>
class NormalizedRows {
  using T = typename Of::T;
  static constexpr bool kIsDual = norms == NormsInFront::kDualNorm;
  static constexpr bool kHasMore = norms != NormsInFront::kNorm;

 public:
  // Of each channel, for all threads: registers do not suffice.  y is the first one's values less
  // the mean, times the factor, and `shift`, which is that of both.  A thread has four words of two
  // channels; those of all threads that are first words follow each other, and so on, so that
  // neighbours read neighbours.
  static constexpr int kWord = Of::kDepth / 4;
  struct Coefficients {
    alignas(8) float factor[Of::kDepth];
    float mean[Of::kDepth];
    float shift[Of::kDepth];
    float second_factor[kIsDual ? Of::kDepth : 2];
    float second_mean[kIsDual ? Of::kDepth : 2];
  };

  // `coefficients` are in shared memory: the block is to wait before Store.
  __device__ NormalizedRows(const NormsForward& call, const Statistics& first,
                            const Statistics& second, int pixels, Coefficients& coefficients)
      : call_(call), pixels_(pixels), channels_(first.padded), by_(coefficients) {
    // Those of the first block keep and move what Statistics say.
    const batch_norm::Track track = {rows_product::Thread() * 8,
                                     static_cast<int>(blockIdx.x + blockIdx.y), 0, 0};
    if (track.channel >= channels_) return;
    const ForwardChannels of_first(first, track);
    Keep(of_first.factor, by_.factor + track.channel / 4);
    Keep(of_first.mean, by_.mean + track.channel / 4);
    if constexpr (kIsDual) {
      ForwardChannels of_second(second, track);
      for (int i = 0; i < 8; ++i) of_second.shift[i] += of_first.shift[i];
      Keep(of_second.factor, by_.second_factor + track.channel / 4);
      Keep(of_second.mean, by_.second_mean + track.channel / 4);
      Keep(of_second.shift, by_.shift + track.channel / 4);
    } else {
      Keep(of_first.shift, by_.shift + track.channel / 4);
    }
  }

  __device__ void Load(int first, int depth) {
    channel_ = depth + rows_product::SourceChannel<Of>();
    const auto* more = static_cast<const T*>(kIsDual ? call_.second.src.values : call_.residual);
#pragma unroll
    for (int e = 0; e < Of::kSourceRows; ++e) {
      z_[e] = {};  // what was there before is not kept, which would take registers
      if constexpr (kHasMore) more_[e] = {};
      if (!IsThere(e, first)) continue;
      const std::int64_t at = ElementOf(e, first);
      z_[e] = LoadEight(static_cast<const T*>(call_.first.src.values) + at);
      if constexpr (kHasMore) more_[e] = LoadEight(more + at);
    }
  }

  __device__ void Store(int first, int depth, T* rows) {
    channel_ = depth + rows_product::SourceChannel<Of>();
    unsigned passes = 0;  // of row e eight bits from 8 * e on
    static_assert(Of::kSourceRows <= 4);
#pragma unroll
    for (int word = 0; word < 4; ++word) Normalize(word, passes);
#pragma unroll
    for (int e = 0; e < Of::kSourceRows; ++e) {
      if (!rows_product::HasSourceRow<Of>(e)) continue;
      if (!IsThere(e, first)) {
        rows_product::StoreSource<Of>(e, Eight<T>{}, rows);
        continue;
      }
      rows_product::StoreSource<Of>(e, z_[e], rows);
      if (blockIdx.x != 0) continue;
      const std::int64_t at = ElementOf(e, first);
      if (call_.dst != nullptr) StoreEight(z_[e], static_cast<T*>(call_.dst) + at);
      if (call_.mask != nullptr) call_.mask[at / 8] = static_cast<std::uint8_t>(passes >> 8 * e);
    }
  }

 private:
  // One word of all eights, in its place.
  __device__ void Normalize(int word, unsigned& passes) {
    const auto coefficients = [&](const float* of) {
      return *reinterpret_cast<const float2*>(of + word * kWord + channel_ / 4);
    };
    const float2 factor = coefficients(by_.factor);
    const float2 mean = coefficients(by_.mean);
    const float2 shift = coefficients(by_.shift);
    const float2 second_factor = kIsDual ? coefficients(by_.second_factor) : float2{};
    const float2 second_mean = kIsDual ? coefficients(by_.second_mean) : float2{};
#pragma unroll
    for (int e = 0; e < Of::kSourceRows; ++e) {
      const float2 x = ToFloats(z_[e].words[word], T{});
      float y[2];  // in the order of the passes
      if constexpr (!kHasMore) {
        y[0] = (x.x - mean.x) * factor.x + shift.x;
        y[1] = (x.y - mean.y) * factor.y + shift.y;
      } else if constexpr (kIsDual) {
        const float2 more = ToFloats(more_[e].words[word], T{});
        y[0] = (x.x - mean.x) * factor.x + ((more.x - second_mean.x) * second_factor.x + shift.x);
        y[1] = (x.y - mean.y) * factor.y + ((more.y - second_mean.y) * second_factor.y + shift.y);
      } else {
        const float2 more = ToFloats(more_[e].words[word], T{});
        y[0] = ((x.x - mean.x) * factor.x + shift.x) + more.x;
        y[1] = ((x.y - mean.y) * factor.y + shift.y) + more.y;
      }
      passes |= batch_norm::Rectify(y) << (8 * e + 2 * word);
      z_[e].words[word] = ToWord(y[0], y[1], T{});
    }
  }
  static __device__ void Keep(const float (&values)[8], float* to) {
    for (int i = 0; i < 8; ++i) to[i / 2 * kWord + i % 2] = values[i];
  }
  __device__ bool IsThere(int e, int first) const {
    return rows_product::HasSourceRow<Of>(e) && first + rows_product::SourceRow<Of>(e) < pixels_ &&
           channel_ < channels_;
  }
  // The first summand is the same for all threads.
  __device__ std::int64_t ElementOf(int e, int first) const {
    return static_cast<std::int64_t>(first) * channels_ +
           (rows_product::SourceRow<Of>(e) * channels_ + channel_);
  }

  const NormsForward& call_;
  const int pixels_, channels_;
  int channel_ = 0;  // of what is loaded, or stored
  Coefficients& by_;
  Eight<T> z_[Of::kSourceRows] = {};
  Eight<T> more_[kHasMore ? Of::kSourceRows : 1] = {};
};

// Behind the product: writes, and adds up what was written, and its squares.
template <typename Of>
class SummedRows {
  using T = typename Of::T;

 public:
  __device__ SummedRows(T* dst, int pixels, int filters)
      : dst_(dst), pixels_(pixels), filters_(filters), filter_(rows_product::OwnColumn<Of>()) {}

  __device__ void Load(int /*e*/, int /*pixel*/) {}
  __device__ void Use(int /*e*/, int pixel, const float (&product)[8]) {
    if (pixel >= pixels_ || filter_ >= filters_) return;
    const Eight<T> stored = Narrow<T>(product);
    StoreEight(stored, dst_ + static_cast<std::int64_t>(pixel) * filters_ + filter_);
    float values[8];
    Widen(stored, values);  // what the batch norm reads
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      sum_[i] += values[i];
      squares_[i] += values[i] * values[i];
    }
  }

  // What was used so far, which makes room in registers.  `shared`: of the product.
  __device__ void AddUp(typename Of::Shared& shared) {
    all_ += rows_product::SumOverRows<Of>(sum_, shared);
    all_squares_ += rows_product::SumOverRows<Of>(squares_, shared);
#pragma unroll
    for (int i = 0; i < 8; ++i) sum_[i] = squares_[i] = 0;
  }
  // Of all that was added up.
  __device__ void StorePartialSums(float* partial) const {
    const int filter = rows_product::OwnSum<Of>();
    if (rows_product::Thread() >= Of::kColumns || filter >= filters_) return;
    float* to = partial + static_cast<std::int64_t>(blockIdx.y) * 2 * filters_ + filter;
    to[0] = all_;
    to[filters_] = all_squares_;
  }

 private:
  T* const dst_;
  const int pixels_, filters_, filter_;
  float sum_[8] = {};
  float squares_[8] = {};
  float all_ = 0;  // of the column OwnSum()
  float all_squares_ = 0;
};

}  // namespace norm_rows
}  // namespace trainer
