// SPDX-License-Identifier: Apache-2.0
//
// The emulator by itself, by kernels as the back end has them.

#include <cuda_runtime.h>

#include <numeric>
#include <stdexcept>
#include <thread>

#include "tests/support/refusal.h"
#include "tests/support/test.h"
#include "tests/trainer/backend/cuda_emulator/device_vector.h"
#include "trainer/backend/cuda/runtime/async_copy.cuh"
#include "trainer/backend/cuda/runtime/launch.cuh"

namespace {

using cuda_emulator::DeviceVector;

using trainer::Launch;

// What the launch throws, "" if nothing.
template <typename... Parameters, typename... Arguments>
std::string Failure(void (*kernel)(Parameters...), dim3 grid, dim3 block, Arguments... arguments) {
  return tests::Rejection<std::runtime_error>(
      [&] { Launch(kernel, grid, block, nullptr, arguments...); });
}

__global__ void NumberThreads(int* out, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  out[i] = i;
}

TEST(Emulator, RunsEveryThreadOfEveryBlockOnce) {
  DeviceVector<int> out(1003, -1);
  Launch(NumberThreads, 4, 256, nullptr, out.data(), 1000);
  DeviceVector<int> expected(1003, -1);
  std::iota(expected.begin(), expected.begin() + 1000, 0);
  EXPECT_EQ(out, expected);
}

__global__ void NumberInThreeDimensions(unsigned* out) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  out[block * (blockDim.x * blockDim.y * blockDim.z) + thread] += block + 1;
}

TEST(Emulator, KnowsThreeDimensions) {
  DeviceVector<unsigned> out(24 * 30);
  Launch(NumberInThreeDimensions, dim3(2, 3, 4), dim3(5, 3, 2), nullptr, out.data());
  for (unsigned i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], i / 30 + 1);
}

// As reductions of the back end are: a tree in shared memory.
template <typename T>
__global__ void SumBlocks(const T* in, T* out) {
  __shared__ T partial[256];
  partial[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = partial[0];
}

template <typename T>
void ExpectBlockSums() {
  DeviceVector<T> in(6 * 256);
  std::iota(in.begin(), in.end(), T{0});
  DeviceVector<T> out(6);
  Launch(SumBlocks<T>, 6, 256, nullptr, in.data(), out.data());
  for (int block = 0; block < 6; ++block) {
    EXPECT_EQ(out[block], T(256 * (256 * block) + 255 * 128)) << block;
  }
}

TEST(Emulator, SharedMemoryAndBarriersSumABlock) {
  ExpectBlockSums<float>();
  ExpectBlockSums<int>();
}

__global__ void ForgetABarrier(float* out, int step) {
  __shared__ float value[64];
  value[threadIdx.x] = static_cast<float>(threadIdx.x);
  out[blockIdx.x * 64 + threadIdx.x] = value[(threadIdx.x + 64 + step) % 64];
}

TEST(Emulator, ShowsAMissingBarrierInEitherDirection) {
  for (const int step : {-1, 1}) {
    DeviceVector<float> out(128);
    Launch(ForgetABarrier, 2, 64, nullptr, out.data(), step);
    int unwritten = 0;
    for (const float value : out) unwritten += std::isnan(value) ? 1 : 0;
    EXPECT_GE(unwritten, 63) << step;
  }
}

template <typename T>
__global__ void ReadUnwrittenSharedMemory(T* out) {
  __shared__ T value[2];
  out[blockIdx.x * 2 + threadIdx.x] = value[threadIdx.x];
  value[threadIdx.x] = 1;
}

// The second round overwrites what slower warps have yet to read.
__global__ void ReuseWithoutABarrier(int* out) {
  __shared__ int value;
  for (int round = 0; round < 2; ++round) {
    const int from_lane_0 = __shfl_sync(0xFFFFFFFF, round, 0);
    if (threadIdx.x == 0) value = from_lane_0;
    __syncthreads();
    out[round * 64 + threadIdx.x] = value;
  }
}

TEST(Emulator, ShowsAMissingBarrierBeforeSharedMemoryIsUsedAgain) {
  DeviceVector<int> out(2 * 2 * 64);
  Launch(ReuseWithoutABarrier, 2, 64, nullptr, out.data());
  EXPECT_NE(std::count(out.begin(), out.begin() + 64, 0), 64);
}

thread_local int not_of_a_kernel = 5;

TEST(Emulator, SharedMemoryIsNotANumberWhenABlockBegins) {
  DeviceVector<float> out(6);
  Launch(ReadUnwrittenSharedMemory<float>, 3, 2, nullptr, out.data());
  EXPECT_THAT(out, Each(testing::IsNan()));
  EXPECT_EQ(not_of_a_kernel, 5);
}

// What a thread's copy has left behind before and after it has waited for it.
__global__ void CopyFours(const float* in, float* before, float* after) {
  alignas(16) __shared__ float fours[2 * 64];
  const unsigned first = 4 * threadIdx.x;
  for (unsigned i = 0; i < 4; ++i) fours[first + i] = 1;
  trainer::StartCopy(fours + first, in + first);
  for (unsigned i = 0; i < 4; ++i) before[first + i] = fours[first + i];
  trainer::WaitForCopies();
  for (unsigned i = 0; i < 4; ++i) after[first + i] = fours[first + i];
}
// Of three groups of one copy each, when all but the last are waited for, and when all are.
__global__ void CopyInGroups(const float* in, float* some, float* all) {
  alignas(16) __shared__ float fours[4 * 3];
  for (int group = 0; group < 3; ++group) {
    trainer::StartCopy(fours + 4 * group, in + 4 * group);
    trainer::EndCopyGroup();
  }
  trainer::WaitForCopiesBut<1>();
  for (int i = 0; i < 12; ++i) some[i] = fours[i];
  trainer::WaitForCopiesBut<0>();
  for (int i = 0; i < 12; ++i) all[i] = fours[i];
}
__global__ void CopyFromAnOddPlace(const float* in) {
  alignas(16) __shared__ float fours[4];
  trainer::StartCopy(fours, in + 1);
}
__global__ void WriteWhereACopyGoes(const float* in) {
  alignas(16) __shared__ float fours[4];
  if (threadIdx.x == 0) trainer::StartCopy(fours, in);
  __syncthreads();
  if (threadIdx.x == 1) fours[3] = 1;
  __syncthreads();
  trainer::WaitForCopies();
}

TEST(Emulator, ACopyIsThereWhenItsThreadHasWaited) {
  DeviceVector<float> in(128);
  std::iota(in.begin(), in.end(), 0.0F);
  DeviceVector<float> before(128);
  DeviceVector<float> after(128);
  Launch(CopyFours, 2, 32, nullptr, in.data(), before.data(), after.data());
  EXPECT_THAT(before, Each(testing::IsNan()));
  EXPECT_EQ(after, in);
  EXPECT_THAT(Failure(CopyFromAnOddPlace, 1, 1, in.data()), HasSubstr("not aligned"));
  EXPECT_THAT(Failure(WriteWhereACopyGoes, 1, 2, in.data()),
              AllOf(HasSubstr("written to while the copy of"), HasSubstr("async_copy.cuh:")));
}

TEST(Emulator, CopiesComeInGroups) {
  DeviceVector<float> in(12);
  std::iota(in.begin(), in.end(), 0.0F);
  DeviceVector<float> some(12);
  DeviceVector<float> all(12);
  Launch(CopyInGroups, 1, 1, nullptr, in.data(), some.data(), all.data());
  EXPECT_EQ(some[7], 7);
  EXPECT_TRUE(std::isnan(some[8]));
  EXPECT_EQ(all, in);
}

__global__ void SumWarps(const float* in, float* out) {
  float sum = in[threadIdx.x];
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(0xFFFFFFFF, sum, lanes);
  out[threadIdx.x] = sum;
}

TEST(Emulator, ShufflesSumWarps) {
  DeviceVector<float> in(96);
  std::iota(in.begin(), in.end(), 0.0F);
  DeviceVector<float> out(96);
  Launch(SumWarps, 1, 96, nullptr, in.data(), out.data());
  for (int i = 0; i < 96; ++i) EXPECT_EQ(out[i], 32 * 32 * (i / 32) + 496) << i;
}

__global__ void ShuffleOtherWays(int* from_three, int* from_next) {
  const int lane = static_cast<int>(threadIdx.x);
  from_three[lane] = __shfl_sync(0xFFFFFFFF, 10 * lane, 3);
  from_next[lane] = __shfl_down_sync(0xFFFFFFFF, 10 * lane, 1);
  __syncwarp();
}

TEST(Emulator, ShufflesFromOneLaneAndFromHigherOnes) {
  DeviceVector<int> from_three(32);
  DeviceVector<int> from_next(32);
  Launch(ShuffleOtherWays, 1, 32, nullptr, from_three.data(), from_next.data());
  EXPECT_THAT(from_three, Each(30));
  for (int i = 0; i < 31; ++i) EXPECT_EQ(from_next[i], 10 * (i + 1));
  EXPECT_EQ(from_next[31], 310);
}

__global__ void ShuffleAfterSomeReturned(float* out) {
  if (threadIdx.x >= 20) return;
  out[threadIdx.x] = __shfl_xor_sync(0xFFFFFFFF, 1.0F, 16);
}

TEST(Emulator, AShuffleFromALaneThatReturnedGivesNoNumber) {
  DeviceVector<float> out(20);
  Launch(ShuffleAfterSomeReturned, 1, 40, nullptr, out.data());
  for (int i = 0; i < 20; ++i) EXPECT_EQ(std::isnan(out[i]), i >= 4 && i < 16) << i;
}

// Warps that wait for each other at a barrier between shuffles of their own.
__global__ void SumBlockByWarps(float* out) {
  __shared__ float partial[8];
  float sum = 1;
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(0xFFFFFFFF, sum, lanes);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  sum = threadIdx.x < 8 ? partial[threadIdx.x] : 0;
  for (int lanes = 4; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(0xFFFFFFFF, sum, lanes);
  if (threadIdx.x == 0) *out = sum;
}

TEST(Emulator, MixesShufflesAndBarriers) {
  DeviceVector<float> sum(1);
  Launch(SumBlockByWarps, 1, 256, nullptr, sum.data());
  EXPECT_EQ(sum[0], 256);
}

__global__ void WaitForReturned() {
  if (threadIdx.x == 7) return;
  __syncthreads();
}
__global__ void WaitInTwoPlaces() {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}
__global__ void ShuffleInHalfAWarp() {
  if (threadIdx.x < 16) {
    __shfl_xor_sync(0xFFFFFFFF, 1, 1);
  } else {
    __syncthreads();
  }
}
__global__ void ShuffleWithAPartialMask() { __shfl_xor_sync(0xFFFF, 1, 1); }

TEST(Emulator, ABarrierThatNotAllReachIsAnError) {
  EXPECT_THAT(Failure(WaitForReturned, 1, 64),
              AllOf(HasSubstr("thread (0, 0, 0) waits in __syncthreads at"),
                    HasSubstr("emulator_test.cc:"), HasSubstr("thread (7, 0, 0) has returned")));
  EXPECT_THAT(Failure(WaitInTwoPlaces, 1, 64), HasSubstr("but thread (32, 0, 0) waits in"));
}

TEST(Emulator, AShuffleThatNotAllReachIsAnError) {
  EXPECT_THAT(Failure(ShuffleInHalfAWarp, 1, 64),
              AllOf(HasSubstr("thread (0, 0, 0) waits in a shuffle or __syncwarp at"),
                    HasSubstr("but thread (16, 0, 0) waits in __syncthreads at")));
  EXPECT_THAT(Failure(ShuffleWithAPartialMask, 1, 32), HasSubstr("whole warps only"));
}

TEST(Emulator, RejectsALaunchThatNoGpuAccepts) {
  EXPECT_THAT(Failure(WaitForReturned, 1, 1025), HasSubstr("no such launch"));
  EXPECT_THAT(Failure(WaitForReturned, 0, 32), HasSubstr("no such launch"));
  EXPECT_THAT(Failure(WaitForReturned, dim3(1, 65536), 32), HasSubstr("no such launch"));
}

TEST(Emulator, WorksAfterAFailedLaunch) {
  EXPECT_NE(Failure(WaitForReturned, 1, 64), "");
  ExpectBlockSums<float>();
}

TEST(Emulator, RunsLaunchesOfSeveralThreads) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([] {
      for (int round = 0; round < 10; ++round) ExpectBlockSums<float>();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

__global__ void Count(int* ints, unsigned* unsigneds, float* floats, int* largest) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  atomicAdd(ints, i);
  atomicAdd(unsigneds, 2U);
  atomicAdd(floats, 0.5F);
  atomicMax(largest, i == 77 ? 1000 : i);
}

TEST(Emulator, AtomicsSeeEveryThread) {
  DeviceVector<int> ints = {0, -1};
  DeviceVector<unsigned> unsigneds(1);
  DeviceVector<float> floats(1);
  Launch(Count, 4, 64, nullptr, ints.data(), unsigneds.data(), floats.data(), ints.data() + 1);
  EXPECT_EQ(ints[0], 255 * 128);
  EXPECT_EQ(unsigneds[0], 512U);
  EXPECT_EQ(floats[0], 128);
  EXPECT_EQ(ints[1], 1000);
}

__global__ void ReadNothing(const float* /*values*/, std::size_t /*count*/) {}

struct Values {
  bool is_large;
  const float* values;
};
__global__ void ReadNothingOf(int /*number*/, Values /*values*/) {}

struct Size {
  int height, width;
};
__global__ void ReadSize(Size /*size*/) {}

TEST(Emulator, RejectsAddressesOfTheHost) {
  const float on_stack = 0;
  const std::vector<float> on_heap(1);
  static const float is_static = 0;
  for (const float* values : {&on_stack, on_heap.data(), &is_static}) {
    EXPECT_THAT(Failure(ReadNothing, 1, 1, values, 1), HasSubstr("argument 1 is or holds 0x"));
  }
  if (cuda_emulator::kLooksIntoStructs) {
    EXPECT_THAT(Failure(ReadNothingOf, 1, 1, 5, Values{true, &on_stack}),
                HasSubstr("argument 2 is or holds 0x"));
  }
  const float* released = nullptr;
  {
    const DeviceVector<float> values(1);
    released = values.data();
  }
  EXPECT_THAT(Failure(ReadNothing, 1, 1, released, 1), HasSubstr("argument 1 is or holds 0x"));
}

TEST(Emulator, TakesMemoryOfTheDeviceAndPinnedMemory) {
  const DeviceVector<float> values(100);
  void* pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(&pinned, 8), cudaSuccess);
  const float* const end = values.data() + values.size();
  for (const float* ok :
       {values.data(), values.data() + 50, end, static_cast<const float*>(pinned)}) {
    EXPECT_EQ(Failure(ReadNothing, 1, 1, ok, 1), "");
    EXPECT_EQ(Failure(ReadNothingOf, 1, 1, 5, Values{true, ok}), "");
  }
  EXPECT_EQ(Failure(ReadNothing, 1, 1, nullptr, ~std::size_t{0}), "");
  for (const int edge : {1, 2, 8, 64, 224, 2048}) {
    EXPECT_EQ(Failure(ReadSize, 1, 1, Size{edge, edge}), "");
  }
  ASSERT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

}  // namespace
