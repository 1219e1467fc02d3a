// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/pooling_kernels.h"
#include "trainer/backend/cuda/runtime/element.cuh"

namespace trainer {
namespace {

// Eight channels of one pixel.
struct Place {
  std::int64_t n, h, w;
  int channel;
};

__device__ Place PlaceOf(std::int64_t eight, std::int64_t height, std::int64_t width,
                         int channels) {
  const int eights = channels / 8;
  const std::int64_t pixel = eight / eights;
  return {pixel / (height * width), pixel / width % height, pixel % width,
          static_cast<int>(eight % eights) * 8};
}

template <typename T>
__global__ void MaxForward(PoolShape shape, const T* src, T* dst, std::uint8_t* winners) {
  SynchronizeGridDependencies();
  const std::int64_t eight = Item();
  if (eight >= shape.samples * shape.out_height * shape.out_width * (shape.channels / 8)) return;
  const Place to = PlaceOf(eight, shape.out_height, shape.out_width, shape.channels);
  float best[8];
  std::uint8_t winner[8] = {};
  bool is_first = true;
  for (int r = 0; r < shape.kernel; ++r) {
    const std::int64_t h = to.h * shape.stride - shape.padding + r;
    if (h < 0 || h >= shape.height) continue;
    for (int s = 0; s < shape.kernel; ++s) {
      const std::int64_t w = to.w * shape.stride - shape.padding + s;
      if (w < 0 || w >= shape.width) continue;
      float x[8];
      Load8(src + ((to.n * shape.height + h) * shape.width + w) * shape.channels + to.channel, x);
      for (int i = 0; i < 8; ++i) {
        if (!is_first && !(x[i] > best[i])) continue;
        best[i] = x[i];
        winner[i] = static_cast<std::uint8_t>(r * shape.kernel + s);
      }
      is_first = false;
    }
  }
  Store8(best, dst + eight * 8);
  for (int i = 0; i < 8; ++i) winners[eight * 8 + i] = winner[i];
}

// Each element of src looks at the windows that it is in, so that nothing is added twice at once.
template <typename T>
__global__ void MaxBackward(PoolShape shape, const T* diff_dst, const std::uint8_t* winners,
                            T* diff_src) {
  SynchronizeGridDependencies();
  const std::int64_t eight = Item();
  if (eight >= shape.samples * shape.height * shape.width * (shape.channels / 8)) return;
  const Place at = PlaceOf(eight, shape.height, shape.width, shape.channels);
  float sum[8] = {};
  for (int r = 0; r < shape.kernel; ++r) {
    const std::int64_t down = at.h + shape.padding - r;
    if (down < 0 || down % shape.stride != 0 || down / shape.stride >= shape.out_height) continue;
    for (int s = 0; s < shape.kernel; ++s) {
      const std::int64_t across = at.w + shape.padding - s;
      if (across < 0 || across % shape.stride != 0 || across / shape.stride >= shape.out_width) {
        continue;
      }
      const std::int64_t window =
          ((at.n * shape.out_height + down / shape.stride) * shape.out_width +
           across / shape.stride) *
              shape.channels +
          at.channel;
      float g[8];
      Load8(diff_dst + window, g);
      for (int i = 0; i < 8; ++i) {
        if (winners[window + i] == r * shape.kernel + s) sum[i] += g[i];
      }
    }
  }
  Store8(sum, diff_src + eight * 8);
}

template <typename T>
__global__ void AverageForward(AverageShape shape, const T* src, T* dst) {
  SynchronizeGridDependencies();
  const std::int64_t eight = Item();
  const int eights = shape.channels / 8;
  if (eight >= shape.samples * eights) return;
  const std::int64_t n = eight / eights;
  const int channel = static_cast<int>(eight % eights) * 8;
  float sum[8] = {};
  for (std::int64_t pixel = 0; pixel < shape.pixels; ++pixel) {
    float x[8];
    Load8(src + (n * shape.pixels + pixel) * shape.channels + channel, x);
    for (int i = 0; i < 8; ++i) sum[i] += x[i];
  }
  for (int i = 0; i < 8 && channel + i < shape.used; ++i) {
    Assign(dst[n * shape.used + channel + i], sum[i] / static_cast<float>(shape.pixels));
  }
}

template <typename T>
__global__ void AverageBackward(AverageShape shape, int all, const T* diff_dst, T* diff_src) {
  SynchronizeGridDependencies();
  if (Item() >= all) return;
  const int eight = static_cast<int>(Item());  // dividing 64 bits takes long
  const int eights = shape.channels / 8;
  const std::int64_t n = eight / (static_cast<int>(shape.pixels) * eights);
  const int channel = eight % eights * 8;
  float g[8] = {};
  for (int i = 0; i < 8 && channel + i < shape.used; ++i) {
    g[i] = ToFloat(diff_dst[n * shape.used + channel + i]) / static_cast<float>(shape.pixels);
  }
  Store8(g, diff_src + std::int64_t{eight} * 8);
}

}  // namespace

void MaxPoolForward(const PoolShape& shape, const void* src, void* dst, std::uint8_t* winners,
                    CUstream_st* stream) {
  const std::int64_t eights =
      shape.samples * shape.out_height * shape.out_width * (shape.channels / 8);
  WithElement(shape.dtype, [&](auto zero) {
    using T = decltype(zero);
    Launch(MaxForward<T>, BlocksFor(eights), kThreads, stream, shape, static_cast<const T*>(src),
           static_cast<T*>(dst), winners);
  });
}

void MaxPoolBackward(const PoolShape& shape, const void* diff_dst, const std::uint8_t* winners,
                     void* diff_src, CUstream_st* stream) {
  const std::int64_t eights = shape.samples * shape.height * shape.width * (shape.channels / 8);
  WithElement(shape.dtype, [&](auto zero) {
    using T = decltype(zero);
    Launch(MaxBackward<T>, BlocksFor(eights), kThreads, stream, shape,
           static_cast<const T*>(diff_dst), winners, static_cast<T*>(diff_src));
  });
}

void AveragePoolForward(const AverageShape& shape, const void* src, void* dst,
                        CUstream_st* stream) {
  WithElement(shape.dtype, [&](auto zero) {
    using T = decltype(zero);
    Launch(AverageForward<T>, BlocksFor(shape.samples * (shape.channels / 8)), kThreads, stream,
           shape, static_cast<const T*>(src), static_cast<T*>(dst));
  });
}

void AveragePoolBackward(const AverageShape& shape, const void* diff_dst, void* diff_src,
                         CUstream_st* stream) {
  const std::int64_t eights = shape.samples * shape.pixels * (shape.channels / 8);
  DDL_CHECK(eights < std::int64_t{1} << 31);
  WithElement(shape.dtype, [&](auto zero) {
    using T = decltype(zero);
    Launch(AverageBackward<T>, BlocksFor(eights), kThreads, stream, shape, static_cast<int>(eights),
           static_cast<const T*>(diff_dst), static_cast<T*>(diff_src));
  });
}

}  // namespace trainer
