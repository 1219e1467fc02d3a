// SPDX-License-Identifier: Apache-2.0

#include <type_traits>

#include "trainer/backend/cuda/bottleneck/conv1_forward.h"
#include "trainer/backend/cuda/bottleneck/rows_product.cuh"
#include "trainer/backend/cuda/norms/batch_norm_passes.cuh"

namespace trainer {
namespace conv1_forward {
namespace {

using batch_norm::ForwardChannels;
using batch_norm::Statistics;

constexpr int kMaxChannels = 512;
constexpr int kMaxFilters = 128;
// The same where registers have room for the filter.
constexpr int kMaxKeptChannels = 256;
constexpr int kMaxFiltersOfQuadPairs = 64;

// In front of the product: the end of the block below.
template <typename Of, bool is_dual>
class EndBelow {
  using T = typename Of::T;

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
    float second_factor[is_dual ? Of::kDepth : 2];
    float second_mean[is_dual ? Of::kDepth : 2];
  };

  // `coefficients` are in shared memory: the block is to wait before Store.
  __device__ EndBelow(const BlockEndForward& call, const Statistics& first,
                      const Statistics& second, int pixels, Coefficients& coefficients)
      : call_(call),
        pixels_(pixels),
        channels_(first.padded),
        channel_(rows_product::SourceChannel<Of>()),
        by_(coefficients) {
    // Those of the first block keep and move what Statistics say.
    const batch_norm::Track track = {rows_product::Thread() * 8, static_cast<int>(blockIdx.y), 0,
                                     0};
    if (track.channel >= channels_) return;
    const ForwardChannels of_first(first, track);
    Keep(of_first.factor, by_.factor + track.channel / 4);
    Keep(of_first.mean, by_.mean + track.channel / 4);
    if constexpr (is_dual) {
      ForwardChannels of_second(second, track);
      for (int i = 0; i < 8; ++i) of_second.shift[i] += of_first.shift[i];
      Keep(of_second.factor, by_.second_factor + track.channel / 4);
      Keep(of_second.mean, by_.second_mean + track.channel / 4);
      Keep(of_second.shift, by_.shift + track.channel / 4);
    } else {
      Keep(of_first.shift, by_.shift + track.channel / 4);
    }
  }

  __device__ void Load(int first) {
    const auto* more = static_cast<const T*>(is_dual ? call_.second.src.values : call_.residual);
#pragma unroll
    for (int e = 0; e < Of::kSourceRows; ++e) {
      if (!IsThere(e, first)) continue;
      const std::int64_t at = ElementOf(e, first);
      z_[e] = LoadEight(static_cast<const T*>(call_.first.src.values) + at);
      more_[e] = LoadEight(more + at);
    }
  }

  __device__ void Store(int first, rows_product::Shared<Of>& shared) {
    unsigned passes = 0;  // of row e eight bits from 8 * e on
    static_assert(Of::kSourceRows <= 4);
#pragma unroll
    for (int word = 0; word < 4; ++word) Normalize(word, passes);
#pragma unroll
    for (int e = 0; e < Of::kSourceRows; ++e) {
      if (!rows_product::HasSourceRow<Of>(e)) continue;
      if (!IsThere(e, first)) {
        rows_product::StoreSource<Of>(e, Eight<T>{}, shared);
        continue;
      }
      rows_product::StoreSource<Of>(e, z_[e], shared);
      const std::int64_t at = ElementOf(e, first);
      StoreEight(z_[e], static_cast<T*>(call_.dst) + at);
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
    const float2 second_factor = is_dual ? coefficients(by_.second_factor) : float2{};
    const float2 second_mean = is_dual ? coefficients(by_.second_mean) : float2{};
#pragma unroll
    for (int e = 0; e < Of::kSourceRows; ++e) {
      const float2 x = ToFloats(z_[e].words[word], T{});
      const float2 more = ToFloats(more_[e].words[word], T{});
      float y[2];  // in the order of the passes
      if constexpr (is_dual) {
        y[0] = (x.x - mean.x) * factor.x + ((more.x - second_mean.x) * second_factor.x + shift.x);
        y[1] = (x.y - mean.y) * factor.y + ((more.y - second_mean.y) * second_factor.y + shift.y);
      } else {
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

  const BlockEndForward& call_;
  const int pixels_, channels_, channel_;
  Coefficients& by_;
  Eight<T> z_[Of::kSourceRows] = {};
  Eight<T> more_[Of::kSourceRows] = {};
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

  // `shared`: of the product, which is done.
  __device__ void StorePartialSums(float* partial, rows_product::Shared<Of>& shared) {
    float* to = partial + static_cast<std::int64_t>(blockIdx.y) * 2 * filters_;
    rows_product::SumOverRows<Of>(sum_, filters_, shared, to);
    rows_product::SumOverRows<Of>(squares_, filters_, shared, to + filters_);
  }

 private:
  T* const dst_;
  const int pixels_, filters_, filter_;
  float sum_[8] = {};
  float squares_[8] = {};
};

template <typename Of, bool is_dual>
__global__ void __launch_bounds__(rows_product::kBlockThreads, 1)
    ForwardKernel(Conv1Forward call, Statistics first, Statistics second, int pixels, int filters) {
  using T = typename Of::T;
  using End = EndBelow<Of, is_dual>;
  auto& shared = *reinterpret_cast<rows_product::Shared<Of>*>(GivenShared());
  __shared__ typename End::Coefficients coefficients;
  End front(call.end, first, second, pixels, coefficients);
  SummedRows<Of> behind(static_cast<T*>(call.dst), pixels, filters);
  const rows_product::Product<T> product = {static_cast<const T*>(call.filter), pixels,
                                            first.padded, filters};
  rows_product::MultiplyRows<Of>(product, shared, front, behind);
  if (call.partial_sums != nullptr) behind.StorePartialSums(call.partial_sums, shared);
}

// All filters are in one thread block: what is in front of them is done once.
template <typename T, TensorCores cores, int channels, int filters>
using Tile = rows_product::Tile<T, cores, channels, filters, Major::kK>;

template <typename T, typename Call>
auto WithTileOf(const Conv1ForwardShape& shape, const Call& call) {
  if constexpr (std::is_same_v<T, __half>) {
    if (TensorCoresOf(shape.compute_capability) == TensorCores::kQuadPairs) {
      return call(Tile<T, TensorCores::kQuadPairs, kMaxKeptChannels, kMaxFiltersOfQuadPairs>());
    }
  }
  constexpr TensorCores kCores = TensorCores::kWholeWarp;
  if (shape.src.padded > kMaxKeptChannels)
    return call(Tile<T, kCores, kMaxChannels, kMaxFilters>());
  if (shape.filters <= 64) return call(Tile<T, kCores, kMaxKeptChannels, 64>());
  return call(Tile<T, kCores, kMaxKeptChannels, kMaxFilters>());
}
// Calls call(tile), whose type is that of a product of so many filters.
template <typename Call>
auto WithTile(const Conv1ForwardShape& shape, const Call& call) {
  if (shape.src.dtype == DType::kFloat16) return WithTileOf<__half>(shape, call);
  return WithTileOf<__nv_bfloat16>(shape, call);
}

// Of a thread block, all in all.
std::size_t SharedBytes(const Conv1ForwardShape& shape) {
  return WithTile(shape, [](auto tile) {
    using Of = decltype(tile);
    return sizeof(rows_product::Shared<Of>) + sizeof(typename EndBelow<Of, true>::Coefficients);
  });
}

template <typename Of>
dim3 GridOf(const Conv1ForwardShape& shape) {
  return rows_product::GridOf<Of>(shape.src.pixels, shape.filters, shape.src.sms);
}

template <typename Of>
void Queue(const Conv1ForwardShape& shape, const Conv1Forward& call, const Statistics& first,
           const Statistics& second, CUstream_st* stream) {
  LaunchWithShared(sizeof(rows_product::Shared<Of>),
                   shape.is_dual ? ForwardKernel<Of, true> : ForwardKernel<Of, false>,
                   GridOf<Of>(shape), rows_product::kBlockThreads, stream, call, first, second,
                   static_cast<int>(shape.src.pixels), shape.filters);
}

}  // namespace
}  // namespace conv1_forward

bool HasConv1Forward(const Conv1ForwardShape& shape) {
  const DType dtype = shape.src.dtype;
  if (dtype != DType::kFloat16 && dtype != DType::kBFloat16) return false;
  const int channels = shape.src.padded;
  if (shape.compute_capability == 7) {
    return dtype == DType::kFloat16 && channels <= conv1_forward::kMaxKeptChannels &&
           shape.filters <= conv1_forward::kMaxFiltersOfQuadPairs;
  }
  return shape.compute_capability > 7 && channels <= conv1_forward::kMaxChannels &&
         shape.filters <= conv1_forward::kMaxFilters &&
         conv1_forward::SharedBytes(shape) <= shape.max_shared_bytes;
}

int Conv1ForwardBlocks(const Conv1ForwardShape& shape) {
  return conv1_forward::WithTile(shape, [&](auto tile) {
    return static_cast<int>(conv1_forward::GridOf<decltype(tile)>(shape).y);
  });
}

void RunConv1Forward(const Conv1ForwardShape& shape, const Conv1Forward& call,
                     CUstream_st* stream) {
  DDL_CHECK(HasConv1Forward(shape));
  const BlockEndForward& end = call.end;
  const batch_norm::Statistics first =
      batch_norm::FindStatistics(shape.src, end.first.parameters, end.first.src, end.of_batch,
                                 end.saved, call.scratch, stream);
  batch_norm::Statistics second = {};
  if (shape.is_dual) {
    // Its means go where the first one's partial sums are no longer needed.
    second = batch_norm::FindStatistics(
        shape.src, end.second.parameters, end.second.src, end.of_batch,
        end.saved == nullptr ? nullptr : end.saved + NormSavedFloats(shape.src),
        call.scratch + 2 * shape.src.padded, stream);
  }
  conv1_forward::WithTile(shape, [&](auto tile) {
    conv1_forward::Queue<decltype(tile)>(shape, call, first, second, stream);
  });
}

}  // namespace trainer
