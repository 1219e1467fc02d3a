// SPDX-License-Identifier: Apache-2.0
//
// Operands and results of a kernel in 16 bits, on the GPU or on the emulator, and what loops give
// in doubles.

#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tests/support/test.h"
#include "trainer/backend/cuda/runtime/runtime.h"

namespace trainer {

using Doubles = std::vector<double>;

inline void Assign(__half& dst, float value) { dst = __float2half_rn(value); }
inline void Assign(__nv_bfloat16& dst, float value) { dst = __float2bfloat16_rn(value); }
inline float ToFloat(__half value) { return __half2float(value); }
inline float ToFloat(__nv_bfloat16 value) { return __bfloat162float(value); }

// Major numbers of those compute capabilities whose code runs here.
inline std::vector<int> Capabilities() {
#ifdef DDLRUN_CUDA_EMULATOR
  return {7, 8, 9};
#else
  cudaDeviceProp properties = {};
  if (cudaGetDeviceProperties(&properties, 0) != cudaSuccess) return {};
  return {properties.major};
#endif
}

template <typename T>
class DeviceValues {
 public:
  // Not-a-number in every type.
  explicit DeviceValues(std::size_t count) : count_(count) {
    EXPECT_EQ(cudaMalloc(&data_, bytes()), cudaSuccess);
    EXPECT_EQ(cudaMemset(data_, 0xFF, bytes()), cudaSuccess);
  }
  explicit DeviceValues(const std::vector<T>& values) : DeviceValues(values.size()) {
    Copy(data_, values.data(), cudaMemcpyHostToDevice);
  }
  ~DeviceValues() { cudaFree(data_); }
  DeviceValues(const DeviceValues&) = delete;
  DeviceValues& operator=(const DeviceValues&) = delete;

  T* data() const { return static_cast<T*>(data_); }
  std::vector<T> Download() const {
    std::vector<T> values(count_);
    Copy(values.data(), data_, cudaMemcpyDeviceToHost);
    return values;
  }

 private:
  std::size_t bytes() const { return count_ * sizeof(T); }
  void Copy(void* dst, const void* src, cudaMemcpyKind kind) const {
    EXPECT_EQ(cudaMemcpyAsync(dst, src, bytes(), kind, nullptr), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }

  std::size_t count_;
  void* data_ = nullptr;
};

// Around zero.
inline std::vector<float> Noise(std::size_t count, unsigned seed, float deviation) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> values(count);
  for (float& value : values) value = normal(engine);
  return values;
}

// Small integers are exact in every type, and so is what is made of them.
enum class ValueKind { kIntegers, kNoise };
inline std::vector<float> Draw(ValueKind kind, std::size_t count, unsigned seed, float deviation) {
  std::vector<float> values = Noise(count, seed, kind == ValueKind::kNoise ? deviation : 1);
  if (kind == ValueKind::kNoise) return values;
  for (float& value : values) value = std::round(std::clamp(value, -1.0F, 1.0F));
  return values;
}

template <typename T>
std::vector<T> Stored(const std::vector<float>& values) {
  std::vector<T> stored(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) Assign(stored[i], values[i]);
  return stored;
}
template <typename T>
Doubles Loaded(const std::vector<T>& values) {
  Doubles loaded;
  for (const T& value : values) loaded.push_back(ToFloat(value));
  return loaded;
}
template <typename T>
double Rounded(double value) {
  T stored;
  Assign(stored, static_cast<float>(value));
  return ToFloat(stored);
}

// Each within `tolerance` of itself and of the typical value.
inline void ExpectNear(const Doubles& values, const Doubles& expected, double tolerance,
                       const std::string& name) {
  ASSERT_EQ(values.size(), expected.size());
  double squares = 0;
  for (const double value : expected) squares += value * value;
  const double typical = std::sqrt(squares / static_cast<double>(expected.size()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_NEAR(values[i], expected[i], tolerance * (typical + std::abs(expected[i])))
        << name << " at " << i;
  }
}

class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) GTEST_SKIP() << "no GPU";
  }
};

// What a thread block of an A100 may have, 163 KB; those of Hopper and Blackwell in servers have
// more.
inline constexpr std::size_t kSharedBytes = std::size_t{163} << 10;

// Of kernels that take up to kSharedBytes on GPUs from 8.0 on.  Those with less (99
// KB: 8.6, 8.9, 12.0) have fewer of them.
class SharedMemoryTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped() || Capabilities().back() < 8 || MaxSharedBytes() >= kSharedBytes) return;
    GTEST_SKIP() << "a thread block has " << (MaxSharedBytes() >> 10)
                 << " KB of shared memory here";
  }
};

}  // namespace trainer
