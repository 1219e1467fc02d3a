// SPDX-License-Identifier: Apache-2.0

#include <type_traits>

#include "trainer/backend/cuda/bottleneck/conv1_backward_with_filter.h"
#include "trainer/backend/cuda/bottleneck/data_gradient_end.cuh"
#include "trainer/backend/cuda/bottleneck/norm_backward_front.cuh"
#include "trainer/backend/cuda/bottleneck/partial_filters.cuh"
#include "trainer/backend/cuda/bottleneck/rows_product.cuh"
#include "trainer/backend/cuda/runtime/async_copy.cuh"

namespace trainer {
namespace conv1_backward_with_filter {
namespace {

constexpr int kChannels = 256;
constexpr TensorCores kCores = TensorCores::kWholeWarp;

using data_gradient_end::EndBelow;
using data_gradient_end::Images;
using data_gradient_end::Kind;
using rows_product::kBlockThreads;
using rows_product::kEdge;
using rows_product::Thread;

// The filter is in shared memory: its gradient takes the registers, 32 or 64 of a thread.
template <typename Element, int filters>
struct Tile : rows_product::Tile<Element, kCores, filters, kChannels, Major::kMN, kEdge> {
  using Base = rows_product::Tile<Element, kCores, filters, kChannels, Major::kMN, kEdge>;
  using Shared = rows_product::Shared<Tile>;
  static constexpr bool kKeepsSums = true;
  static constexpr int kKeptSteps = filters == 64 ? 1 : 0;
  static constexpr int kSharedSteps = Base::kSteps - kKeptSteps;
  static constexpr int kKeptOperands = 1;
  static constexpr int kSrcStride = kChannels + 8;  // of rows of what the convolution has read
  static_assert(Base::kPixels == kEdge && Base::kRows == 1);
  // Of the filter's gradient each warp has so many tiles down and across.
  static constexpr int kDown = 2;
  static constexpr int kWarpsDown = filters / kEdge / kDown;
  static constexpr int kAcross = kChannels / kEdge / (rows_product::kWarps / kWarpsDown);
};

// So many tiles of pixels are under way.  A tile's src is read until the one behind it is.
constexpr int kStages = 2;

template <typename Of, Kind kind>
struct Shared {
  using T = typename Of::T;
  using End = EndBelow<Of, kind>;
  using Front = rows_product::SourceBehindNorm<Of, /*is_written=*/false>;
  static constexpr int kTensors = kind == Kind::kDualNorm ? 3 : 2;

  typename Of::Shared product;
  alignas(16) T source[Of::kPixels * Of::kSourceStride];  // of every second tile
  alignas(16) T src[kStages + 1][Of::kPixels * Of::kSrcStride];
  // What each thread has behind the product: of the residual and of what batch norms have read.
  alignas(16) Eight<T> eights[kStages][kTensors][kBlockThreads];
};
template <typename Of, Kind kind>
constexpr std::size_t SharedBytes() {
  using Memory = Shared<Of, kind>;
  return sizeof(Memory) + Memory::End::kMeans * sizeof(float) +
         sizeof(typename Memory::Front::Coefficients);
}

// Starts to read what a thread has of a tile behind the product, as a group of copies.
template <typename Of, Kind kind>
__device__ inline void StartTile(const Conv1Backward& call, const Images& images, const void* src,
                                 int first, int pixels, int stage, int src_stage,
                                 Shared<Of, kind>& shared) {
  using T = typename Of::T;
  const int own_row = rows_product::OwnRow<Of>(0);
  const int column = rows_product::OwnColumn<Of>();
  const int pixel = first + own_row;
  T* const to_src = shared.src[src_stage] + own_row * Of::kSrcStride + column;
  const auto eight = [&](int tensor) { return &shared.eights[stage][tensor][Thread()]; };
  const auto copy = [&](void* to, const void* from, int row) {
    StartCopy(to,
              static_cast<const T*>(from) + static_cast<std::int64_t>(row) * kChannels + column);
  };
  if (pixel < pixels) {
    copy(to_src, src, pixel);
    const int residual = kind == Kind::kNormOfStride2 ? images.ResidualOf(pixel) : pixel;
    if (residual < 0) {
      *eight(0) = {};
    } else {
      copy(eight(0), call.residual, residual);
    }
    copy(eight(1), call.first.z, pixel);
    if constexpr (kind == Kind::kDualNorm) copy(eight(2), call.second.z, pixel);
  } else {
    StoreEight(Eight<T>{}, to_src);
  }
  EndCopyGroup();
}

// Of the filter's gradient, a warp's tiles.
template <typename Of>
class FilterSums {
  using T = typename Of::T;

 public:
  // A tile of pixels: source (pixels x filters) by src (pixels x channels).
  __device__ void Add(const T* source, const T* src) {
    Operand<T, kCores, Side::kA, Major::kMN> filters[Of::kDown];
#pragma unroll
    for (int down = 0; down < Of::kDown; ++down) {
      LoadOperand(
          [&](int line, int part) {
            return source + line * Of::kSourceStride + OwnFilter(down) + part * 8;
          },
          filters[down]);
    }
#pragma unroll
    for (int across = 0; across < Of::kAcross; ++across) {
      Operand<T, kCores, Side::kB, Major::kMN> channels;
      LoadOperand(
          [&](int line, int part) {
            return src + line * Of::kSrcStride + OwnChannel(across) + part * 8;
          },
          channels);
#pragma unroll
      for (int down = 0; down < Of::kDown; ++down) {
        MultiplyAdd(filters[down], channels, sums_[down][across]);
      }
    }
  }

  __device__ void Store(float* partial) const {
#pragma unroll
    for (int down = 0; down < Of::kDown; ++down) {
#pragma unroll
      for (int across = 0; across < Of::kAcross; ++across) {
        const float* values = sums_[down][across].values;
#pragma unroll
        for (int i = 0; i < 8; i += 2) {
          const int filter = OwnFilter(down) + TileRow<kCores>(i);
          const int channel = OwnChannel(across) + TileColumn<kCores>(i);
          *reinterpret_cast<float2*>(partial + filter * kChannels + channel) =
              make_float2(values[i], values[i + 1]);
        }
      }
    }
  }

 private:
  static __device__ int OwnFilter(int down) {
    return (Thread() / 32 % Of::kWarpsDown * Of::kDown + down) * kEdge;
  }
  static __device__ int OwnChannel(int across) {
    return (Thread() / 32 / Of::kWarpsDown * Of::kAcross + across) * kEdge;
  }

  TileSum sums_[Of::kDown][Of::kAcross] = {};
};

// Where the ReLU has let eight values pass, as bits.
template <typename T>
__device__ inline unsigned PassesOf(const T* eight) {
  float values[8];
  Load8(eight, values);
  unsigned passes = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) passes |= values[i] > 0 ? 1U << i : 0U;
  return passes;
}

template <typename Of, Kind kind>
__global__ void __launch_bounds__(kBlockThreads, 1)
    BackwardKernel(Conv1Backward call, Images images, int pixels, NormBackwardFront norm,
                   Conv1FilterGradient of_filter) {
  SynchronizeGridDependencies();
  using T = typename Of::T;
  using Memory = Shared<Of, kind>;
  auto& shared = *reinterpret_cast<Memory*>(GivenShared());
  alignas(16) __shared__ float means[Memory::End::kMeans];
  __shared__ typename Memory::Front::Coefficients coefficients;
  typename Memory::End end(call, images, pixels, kChannels, means);
  const rows_product::Product<T> product = {static_cast<const T*>(call.filter), pixels, Of::kDepth,
                                            kChannels};
  typename Memory::Front front(static_cast<const T*>(call.gradient), norm, product, coefficients);
  typename Of::FilterOperand filter[Of::kKeptOperands];
  rows_product::LoadFilter<Of>(product, shared.product, filter);

  const int own_row = rows_product::OwnRow<Of>(0);
  const int step = static_cast<int>(gridDim.y) * Of::kPixels;
  int first = static_cast<int>(blockIdx.y) * Of::kPixels;
  front.Load(first, 0);
#pragma unroll 1  // as all that is done once: registers
  for (int stage = 0; stage < kStages; ++stage) {
    StartTile<Of, kind>(call, images, of_filter.src, first + stage * step, pixels, stage, stage,
                        shared);
  }
  FilterSums<Of> sums;
  int stage = 0;
  int src_stage = 0;
  for (; first < pixels; first += step) {
    T* const source = stage == 0 ? shared.product.source : shared.source;
    front.Store(first, 0, source);
    __syncthreads();
    front.Load(first + step, 0);
    rows_product::Multiply<Of>(filter, source, shared.product);
    WaitForCopiesBut<kStages - 1>();
    __syncthreads();
    sums.Add(source, shared.src[src_stage]);
    float gradient[8];
    rows_product::ReadSums<Of>(shared.product, own_row, gradient);
    auto& eights = shared.eights[stage];
    end.Set(
        0, eights[0][Thread()], eights[1][Thread()], eights[Memory::kTensors - 1][Thread()],
        PassesOf(shared.src[src_stage] + own_row * Of::kSrcStride + rows_product::OwnColumn<Of>()));
    end.Use(0, first + own_row, gradient);
    // In place of what this thread has used, and of src of the tile before, which all have used.
    StartTile<Of, kind>(call, images, of_filter.src, first + kStages * step, pixels, stage,
                        src_stage == 0 ? kStages : src_stage - 1, shared);
    stage = 1 - stage;
    src_stage = src_stage == kStages ? 0 : src_stage + 1;
  }
  sums.Store(of_filter.scratch + static_cast<std::int64_t>(blockIdx.y) * Of::kDepth * kChannels);
  end.AddUp(shared.product);
  end.StorePartialSums();
}

// Calls call(tile, kind), whose types are those of the kernel for the shape.
template <typename Call>
auto WithKernel(const Conv1BackwardShape& shape, const Call& call) {
  using std::integral_constant;
  const auto with_type = [&](auto zero) {
    using T = decltype(zero);
    if (shape.stride == 2) {
      return call(Tile<T, 128>(), integral_constant<Kind, Kind::kNormOfStride2>());
    }
    if (shape.is_dual) return call(Tile<T, 64>(), integral_constant<Kind, Kind::kDualNorm>());
    return call(Tile<T, 64>(), integral_constant<Kind, Kind::kNorm>());
  };
  if (shape.dtype == DType::kFloat16) return with_type(__half{});
  return with_type(__nv_bfloat16{});
}

}  // namespace
}  // namespace conv1_backward_with_filter

bool HasConv1BackwardWithFilter(const Conv1BackwardShape& shape) {
  if (!HasConv1BackwardWithNorm(shape) || shape.compute_capability < 8) return false;
  return shape.channels == conv1_backward_with_filter::kChannels &&
         conv1_backward_with_filter::WithKernel(shape, [&](auto tile, auto kind) {
           using Of = decltype(tile);
           return shape.filters == Of::kDepth &&
                  conv1_backward_with_filter::SharedBytes<Of, kind>() <= shape.max_shared_bytes;
         });
}

std::int64_t Conv1BackwardWithFilterScratchFloats(const Conv1BackwardShape& shape) {
  return std::int64_t{Conv1BackwardBlocks(shape)} * shape.filters * shape.channels;
}

void RunConv1BackwardWithFilter(const Conv1BackwardShape& shape, const Conv1Backward& call,
                                const NormBackwardFront& norm, const Conv1FilterGradient& filter,
                                CUstream_st* stream) {
  DDL_CHECK(HasConv1BackwardWithFilter(shape));
  conv1_backward_with_filter::WithKernel(shape, [&](auto tile, auto kind) {
    using Of = decltype(tile);
    const int blocks = Conv1BackwardBlocks(shape);
    LaunchWithShared(sizeof(conv1_backward_with_filter::Shared<Of, kind>),
                     conv1_backward_with_filter::BackwardKernel<Of, kind>,
                     dim3(1, static_cast<unsigned>(blocks)), rows_product::kBlockThreads, stream,
                     call, data_gradient_end::Images{shape.height, shape.width},
                     static_cast<int>(shape.pixels), norm, filter);
    constexpr int kValues = Of::kDepth * conv1_backward_with_filter::kChannels;
    partial_filters::QueueAddUp<typename Of::T>(filter.scratch, blocks, kValues, kValues,
                                                filter.diff_filter, nullptr, stream);
  });
}

}  // namespace trainer
