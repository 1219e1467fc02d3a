// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/runtime/copy_kernels.h"
#include "trainer/backend/cuda/runtime/element.cuh"

namespace trainer {
namespace {

__host__ __device__ std::int64_t CountOf(const Places& places) {
  return places.outer * places.height * places.width * places.channels;
}

// Where element i of the memory is in a row-major array of the logical shape; -1 for padding.
__device__ std::int64_t LogicalIndex(const Places& places, std::int64_t i) {
  const std::int64_t c = i % places.channels;
  const std::int64_t pixel = i / places.channels;
  const std::int64_t w = pixel % places.width;
  const std::int64_t h = pixel / places.width % places.height;
  const std::int64_t n = pixel / (places.width * places.height);
  if (c >= places.used || n >= places.samples) return -1;
  return ((n * places.used + c) * places.height + h) * places.width + w;
}

template <typename T>
__global__ void Import(const float* src, Places places, T* dst) {
  SynchronizeGridDependencies();
  const std::int64_t i = Item();
  if (i >= CountOf(places)) return;
  const std::int64_t from = LogicalIndex(places, i);
  Assign(dst[i], from < 0 ? 0.0F : src[from]);
}

template <typename T>
__global__ void Export(const T* src, Places places, float* dst) {
  SynchronizeGridDependencies();
  const std::int64_t i = Item();
  if (i >= CountOf(places)) return;
  const std::int64_t to = LogicalIndex(places, i);
  if (to >= 0) dst[to] = ToFloat(src[i]);
}

// The three colours of a pixel, added with a weight.
__device__ void AddPixel(const PixelsCall& call, std::int64_t n, std::int64_t h, std::int64_t w,
                         float weight, float (&sum)[8]) {
  const std::int64_t column = call.mirror[n] != 0 ? call.width - 1 - w : w;
  const std::uint8_t* pixel = call.pixels + ((n * call.height + h) * call.width + column) * 3;
  for (int c = 0; c < 3; ++c) {
    sum[c] += weight * (static_cast<float>(pixel[c]) - call.mean[c]) * call.factor[c];
  }
}

template <typename T>
__global__ void Transform(PixelsCall call, T* dst) {
  SynchronizeGridDependencies();
  const std::int64_t i = Item();
  if (i >= call.samples * call.height * call.width) return;
  const std::int64_t w = i % call.width;
  const std::int64_t h = i / call.width % call.height;
  const std::int64_t n = i / (call.width * call.height);
  const float lambda = call.lambda == nullptr ? 1.0F : call.lambda[n];
  float sum[8] = {};
  AddPixel(call, n, h, w, lambda, sum);
  if (lambda != 1) AddPixel(call, call.samples - 1 - n, h, w, 1 - lambda, sum);
  Store8(sum, dst + i * 8);
}

// Eight at a time where that is possible.
template <typename From, typename To>
__global__ void Convert(const From* src, To* dst, std::int64_t count, bool is_aligned) {
  SynchronizeGridDependencies();
  const std::int64_t first = Item() * 8;
  if (is_aligned && first + 8 <= count) {
    float values[8];
    Load8(src + first, values);
    Store8(values, dst + first);
    return;
  }
  for (std::int64_t i = first; i < first + 8 && i < count; ++i) Assign(dst[i], ToFloat(src[i]));
}

// The same of a sum.
template <typename From>
__global__ void AddTo(const From* src, float* dst, std::int64_t count, bool is_aligned) {
  SynchronizeGridDependencies();
  const std::int64_t first = Item() * 8;
  if (is_aligned && first + 8 <= count) {
    float values[8];
    float sums[8];
    Load8(src + first, values);
    Load8(dst + first, sums);
    for (int i = 0; i < 8; ++i) sums[i] += values[i];
    Store8(sums, dst + first);
    return;
  }
  for (std::int64_t i = first; i < first + 8 && i < count; ++i) dst[i] += ToFloat(src[i]);
}

__global__ void Average(const float* values, float share, const UpdateSums* sums, float* average,
                        std::int64_t count, bool is_aligned) {
  SynchronizeGridDependencies();
  if (sums->nonfinite != 0) return;
  const std::int64_t first = Item() * 8;
  if (is_aligned && first + 8 <= count) {
    float now[8];
    float then[8];
    Load8(values + first, now);
    Load8(average + first, then);
    for (int i = 0; i < 8; ++i) then[i] += share * (now[i] - then[i]);
    Store8(then, average + first);
    return;
  }
  for (std::int64_t i = first; i < first + 8 && i < count; ++i) {
    average[i] += share * (values[i] - average[i]);
  }
}

bool AreAligned(const void* src, const void* dst) {
  const auto both = reinterpret_cast<std::uintptr_t>(src) | reinterpret_cast<std::uintptr_t>(dst);
  return both % 16 == 0;
}

// MurmurHash3's finalizer.
__device__ inline unsigned Hash(std::int64_t i) {
  auto x = static_cast<unsigned>(i) * 0x9E3779B9U;
  x = (x ^ x >> 16) * 0x85EBCA6BU;
  x = (x ^ x >> 13) * 0xC2B2AE35U;
  return x ^ x >> 16;
}

__global__ void Noise(unsigned* dst, std::int64_t words) {
  SynchronizeGridDependencies();
  const std::int64_t i = Item();
  if (i < words) dst[i] = Hash(i) & 0xBFFFBFFFU;  // exponents of less than 1 in each half
}

template <typename T>
__global__ void UniformNoise(T* dst, std::int64_t count, std::int64_t seed) {
  SynchronizeGridDependencies();
  const std::int64_t i = Item();
  if (i < count) Assign(dst[i], static_cast<float>(Hash(seed * count + i) >> 8) * 0x1p-23F - 1);
}

// A column has kSumLanes threads, whose sums are added in the same order each time.
constexpr int kSumLanes = 8;
constexpr int kSumColumns = kThreads / kSumLanes;
__global__ void ColumnSums(const float* src, float* dst, std::int64_t rows, std::int64_t columns) {
  SynchronizeGridDependencies();
  __shared__ float sums[kSumLanes][kSumColumns];
  const std::int64_t c = static_cast<std::int64_t>(blockIdx.x) * kSumColumns + threadIdx.x;
  float sum = 0;
  if (c < columns) {
    for (std::int64_t r = threadIdx.y; r < rows; r += kSumLanes) sum += src[r * columns + c];
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || c >= columns) return;
  for (int lane = 1; lane < kSumLanes; ++lane) sum += sums[lane][threadIdx.x];
  dst[c] = sum;
}

}  // namespace

void ImportValues(const float* src, const Places& places, DType dtype, void* dst,
                  CUstream_st* stream) {
  WithElement(dtype, [&](auto zero) {
    using T = decltype(zero);
    Launch(Import<T>, BlocksFor(CountOf(places)), kThreads, stream, src, places,
           static_cast<T*>(dst));
  });
}

void ExportValues(const void* src, const Places& places, DType dtype, float* dst,
                  CUstream_st* stream) {
  WithElement(dtype, [&](auto zero) {
    using T = decltype(zero);
    Launch(Export<T>, BlocksFor(CountOf(places)), kThreads, stream, static_cast<const T*>(src),
           places, dst);
  });
}

void TransformPixels(const PixelsCall& call, DType dtype, void* dst, CUstream_st* stream) {
  WithElement(dtype, [&](auto zero) {
    using T = decltype(zero);
    Launch(Transform<T>, BlocksFor(call.samples * call.height * call.width), kThreads, stream, call,
           static_cast<T*>(dst));
  });
}

void ConvertToFloat(const void* src, DType dtype, float* dst, std::int64_t count,
                    CUstream_st* stream) {
  WithElement(dtype, [&](auto zero) {
    using T = decltype(zero);
    Launch(Convert<T, float>, BlocksFor((count + 7) / 8), kThreads, stream,
           static_cast<const T*>(src), dst, count, AreAligned(src, dst));
  });
}

void ConvertFromFloat(const float* src, void* dst, DType dtype, std::int64_t count,
                      CUstream_st* stream) {
  WithElement(dtype, [&](auto zero) {
    using T = decltype(zero);
    Launch(Convert<float, T>, BlocksFor((count + 7) / 8), kThreads, stream, src,
           static_cast<T*>(dst), count, AreAligned(src, dst));
  });
}

void AddAsFloat(const void* src, DType dtype, float* dst, std::int64_t count, CUstream_st* stream) {
  if (count == 0) return;
  WithElement(dtype, [&](auto zero) {
    using T = decltype(zero);
    Launch(AddTo<T>, BlocksFor((count + 7) / 8), kThreads, stream, static_cast<const T*>(src), dst,
           count, AreAligned(src, dst));
  });
}

void MoveAverage(const float* values, float share, const UpdateSums* sums, float* average,
                 std::int64_t count, CUstream_st* stream) {
  if (count == 0) return;
  Launch(Average, BlocksFor((count + 7) / 8), kThreads, stream, values, share, sums, average, count,
         AreAligned(values, average));
}

void FillWithNoise(void* dst, std::int64_t words, CUstream_st* stream) {
  if (words == 0) return;
  Launch(Noise, BlocksFor(words), kThreads, stream, static_cast<unsigned*>(dst), words);
}

void FillWithUniformNoise(void* dst, DType dtype, std::int64_t count, std::int64_t seed,
                          CUstream_st* stream) {
  if (count == 0) return;
  WithElement(dtype, [&](auto zero) {
    using T = decltype(zero);
    Launch(UniformNoise<T>, BlocksFor(count), kThreads, stream, static_cast<T*>(dst), count, seed);
  });
}

KernelCode LookForCode() {
  cudaFuncAttributes attributes = {};
  const int error = cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(&ColumnSums));
  return {error, attributes.ptxVersion};
}

void SumRows(const float* src, float* dst, std::int64_t rows, std::int64_t columns,
             CUstream_st* stream) {
  Launch(ColumnSums, dim3(static_cast<unsigned>((columns + kSumColumns - 1) / kSumColumns)),
         dim3(kSumColumns, kSumLanes), stream, src, dst, rows, columns);
}

}  // namespace trainer
