// SPDX-License-Identifier: Apache-2.0
//
// What the emulated runtime is stricter about than a host program would be.

#include "tests/trainer/backend/cuda_emulator/runtime_api.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace {

TEST(EmulatedRuntime, DeviceMemoryStartsWithAllBitsSetAndCopies) {
  std::uint32_t* device = nullptr;
  ASSERT_EQ(cudaMalloc(&device, 16), cudaSuccess);
  std::vector<std::uint32_t> host(4);
  EXPECT_EQ(cudaMemcpyAsync(host.data(), device, 16, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(host, std::vector<std::uint32_t>(4, ~0U));
  host = {1, 2, 3, 4};
  EXPECT_EQ(cudaMemcpyAsync(device, host.data(), 16, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(device + 1, 0, 8), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(host.data(), device, 16, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(host, (std::vector<std::uint32_t>{1, 0, 0, 4}));
  EXPECT_EQ(cudaFree(device), cudaSuccess);
}

TEST(EmulatedRuntime, RefusesToTakeHostMemoryForTheDevices) {
  std::byte* device = nullptr;
  ASSERT_EQ(cudaMalloc(&device, 16), cudaSuccess);
  std::vector<std::byte> host(32);
  EXPECT_EQ(cudaMemcpyAsync(host.data(), device, 16, cudaMemcpyHostToDevice),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(device, host.data(), 17, cudaMemcpyHostToDevice),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemsetAsync(host.data(), 0, 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(host.data()), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaFree(device), cudaSuccess);
}

TEST(EmulatedRuntime, MemoryIsLimitedAndCounted) {
  std::size_t before = 0;
  std::size_t total = 0;
  ASSERT_EQ(cudaMemGetInfo(&before, &total), cudaSuccess);
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, total + 1), cudaErrorMemoryAllocation);
  EXPECT_EQ(memory, nullptr);
  ASSERT_EQ(cudaMalloc(&memory, 1000), cudaSuccess);
  std::size_t free = 0;
  EXPECT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  EXPECT_EQ(free, before - 1000);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  cudaGetLastError();
}

TEST(EmulatedRuntime, EventsThatCannotTellTimeSaySo) {
  cudaEvent_t timed = nullptr;
  cudaEvent_t untimed = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&timed, 0), cudaSuccess);
  ASSERT_EQ(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming), cudaSuccess);
  float milliseconds = -1;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, timed, timed), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventRecord(timed), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(untimed), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, timed, untimed), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, timed, timed), cudaSuccess);
  EXPECT_EQ(milliseconds, 0);
  cudaEventDestroy(timed);
  cudaEventDestroy(untimed);
  cudaGetLastError();
}

}  // namespace
