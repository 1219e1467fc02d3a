// SPDX-License-Identifier: Apache-2.0
//
// What the emulated runtime is stricter about than a host program would be.

#include "tests/trainer/backend/cuda_emulator/runtime_api.h"

#include <unistd.h>

#include <thread>

#include "tests/support/test.h"
#include "tests/trainer/backend/cuda_emulator/traffic.h"

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

TEST(EmulatedRuntime, RejectsToTakeHostMemoryForTheDevices) {
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

TEST(EmulatedRuntime, TimeThatWorkPassesIsItsOwn) {
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&begin, 0), cudaSuccess);
  ASSERT_EQ(cudaEventCreateWithFlags(&end, 0), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(begin), cudaSuccess);
  cuda_emulator::QueueWork(nullptr, [] { cuda_emulator::PassTime(std::chrono::hours(2)); });
  EXPECT_EQ(cudaEventRecord(end), cudaSuccess);
  float milliseconds = 0;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begin, end), cudaSuccess);
  EXPECT_GE(milliseconds, 7'200'000);
  EXPECT_LT(milliseconds, 10'000'000);
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
}

// In whole pages.
TEST(EmulatedRuntime, CountsWhatWorkReadsAndWrites) {
  if (!cuda_emulator::CanCountTraffic()) GTEST_SKIP() << "bytes are counted on x86-64 alone";
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  char* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 2 * page + 100), cudaSuccess);
  const auto count = [&](auto work) {
    cuda_emulator::CountTraffic(true);
    cuda_emulator::QueueWork(nullptr, work);
    cuda_emulator::CountTraffic(false);
    const auto [read, written] = cuda_emulator::TrafficSoFar();
    return std::pair(read / page, written / page);
  };
  volatile char* at = memory;
  EXPECT_EQ(count([] {}), std::pair(0UL, 0UL));
  EXPECT_EQ(count([=] { static_cast<void>(at[0] + at[1]); }), std::pair(1UL, 0UL));
  EXPECT_EQ(count([=] { at[page] = at[1]; }), std::pair(1UL, 1UL));
  EXPECT_EQ(count([=] { at[1] = at[0]; }), std::pair(1UL, 1UL)) << "in place";
  EXPECT_EQ(count([=] {
              at[0] = 1;
              at[1] = at[0];
            }),
            std::pair(0UL, 1UL))
      << "written first";
  EXPECT_EQ(count([=] { at[2 * page] = 1; }), std::pair(0UL, 0UL)) << "in no whole page";
  EXPECT_EQ(count([=] {
              cuda_emulator::QueueWork(nullptr, [=] { at[0] = 1; });
              cuda_emulator::QueueWork(nullptr, [=] { at[0] = 1; });
            }),
            std::pair(0UL, 2UL))
      << "each piece of work by itself";
  at[0] = 2;  // nothing is protected any more
  EXPECT_EQ(cuda_emulator::TrafficSoFar().written, 2 * page);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST(EmulatedRuntime, StreamsHaveThePriorityInRangeThatIsNearest) {
  int min = 1;
  int greatest = 1;
  ASSERT_EQ(cudaDeviceGetStreamPriorityRange(&min, &greatest), cudaSuccess);
  EXPECT_EQ(cudaDeviceGetStreamPriorityRange(nullptr, nullptr), cudaSuccess);
  EXPECT_EQ(min, 0);
  EXPECT_LT(greatest, min) << "a lower number is a greater priority";
  const auto made_with = [](int priority) {
    cudaStream_t stream = nullptr;
    EXPECT_EQ(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority), cudaSuccess);
    int made = 1;
    EXPECT_EQ(cudaStreamGetPriority(stream, &made), cudaSuccess);
    cudaStreamDestroy(stream);
    return made;
  };
  EXPECT_EQ(made_with(greatest), greatest);
  EXPECT_EQ(made_with(greatest + 1), greatest + 1);
  EXPECT_EQ(made_with(greatest - 1), greatest);
  EXPECT_EQ(made_with(min + 1), min);
}

// A stream with 4 bytes on the device.
class EmulatedGraph : public testing::Test {
 protected:
  EmulatedGraph() {
    cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
    cudaMalloc(&device_, sizeof(int));
    cudaMemsetAsync(device_, 0, sizeof(int));
  }
  ~EmulatedGraph() override {
    cudaFree(device_);
    cudaStreamDestroy(stream_);
    cudaGetLastError();
  }

  void Begin() {
    ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  }
  void AddOne() {
    cuda_emulator::QueueWork(stream_, [device = device_] { ++*device; });
  }

  cudaStream_t stream_ = nullptr;
  int* device_ = nullptr;
};

TEST_F(EmulatedGraph, DoesWhatWasRecordedAtEachLaunchAndNotBefore) {
  int host = 10;
  Begin();
  cudaMemcpyAsync(device_, &host, sizeof host, cudaMemcpyHostToDevice, stream_);
  AddOne();
  cudaMemcpyAsync(&host, device_, sizeof host, cudaMemcpyDeviceToHost, stream_);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaGraphInstantiateWithFlags(&executable, graph, 0), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(host, 10);
  EXPECT_EQ(cudaGraphLaunch(executable, stream_), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(executable, stream_), cudaSuccess);
  EXPECT_EQ(host, 12);
  EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
}

TEST_F(EmulatedGraph, IsSpoiltByWaitingAndAllocating) {
  for (const int mistake : {0, 1, 2}) {
    Begin();
    void* memory = nullptr;
    EXPECT_EQ(mistake == 0   ? cudaMalloc(&memory, 4)
              : mistake == 1 ? cudaStreamSynchronize(stream_)
                             : cudaDeviceSynchronize(),
              cudaErrorStreamCaptureUnsupported);
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(graph, nullptr);
    EXPECT_EQ(cudaGetLastError(), cudaErrorStreamCaptureInvalidated) << "kept until asked for";
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  }
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
}

TEST_F(EmulatedGraph, IsSpoiltByTwoThreadsThatAddAtOneTime) {
  enum class Mistake { kWork, kEventRecord, kWait, kEnd };
  for (const auto mistake :
       {Mistake::kWork, Mistake::kEventRecord, Mistake::kWait, Mistake::kEnd}) {
    cudaEvent_t event = nullptr;
    cudaStream_t other = nullptr;
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    Begin();
    cudaEventRecord(event, stream_);
    std::shared_ptr<void> adding;
    std::thread([&] {
      adding = cuda_emulator::BeginAdding(stream_);
      AddOne();
    }).join();
    cudaError_t rejected = cudaErrorStreamCaptureInvalidated;
    if (mistake == Mistake::kWork) rejected = cudaMemsetAsync(device_, 0, sizeof(int), stream_);
    if (mistake == Mistake::kEventRecord) rejected = cudaEventRecord(event, stream_);
    if (mistake == Mistake::kWait) rejected = cudaStreamWaitEvent(other, event);
    EXPECT_EQ(rejected, cudaErrorStreamCaptureInvalidated);
    if (mistake != Mistake::kEnd) adding.reset();
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureInvalidated);
    cudaEventDestroy(event);
    cudaStreamDestroy(other);
  }
}

TEST_F(EmulatedGraph, TakesWorkOfThreadsOneAfterTheOther) {
  Begin();
  AddOne();
  std::thread([&] {
    const std::shared_ptr<void> adding = cuda_emulator::BeginAdding(stream_);
    AddOne();
  }).join();
  AddOne();
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  cudaGraphDestroy(graph);
}

TEST_F(EmulatedGraph, TellsTimeByExternalEventsAlone) {
  cudaEvent_t external = nullptr;
  cudaEvent_t internal = nullptr;
  cudaEventCreateWithFlags(&external, cudaEventDefault);
  cudaEventCreateWithFlags(&internal, cudaEventDefault);
  EXPECT_EQ(cudaEventRecordWithFlags(external, stream_, cudaEventRecordExternal),
            cudaErrorInvalidValue);
  Begin();
  EXPECT_EQ(cudaEventRecordWithFlags(external, stream_, cudaEventRecordExternal), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(internal, stream_), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(stream_, external), cudaErrorStreamCaptureIsolation);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  cudaGraphExec_t executable = nullptr;
  cudaGraphInstantiateWithFlags(&executable, graph, 0);
  float milliseconds = 0;
  EXPECT_NE(cudaEventElapsedTime(&milliseconds, external, external), cudaSuccess);
  cudaGraphLaunch(executable, stream_);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, external, external), cudaSuccess);
  EXPECT_NE(cudaEventElapsedTime(&milliseconds, internal, internal), cudaSuccess);
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  cudaEventDestroy(external);
  cudaEventDestroy(internal);
}

// Another stream adds one between two that this one adds; in the graph if this one waits for it.
class EmulatedFork : public EmulatedGraph {
 protected:
  EmulatedFork() {
    cudaStreamCreateWithFlags(&other_, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&forked_, cudaEventDisableTiming);
    cudaEventCreateWithFlags(&joined_, cudaEventDisableTiming);
  }
  ~EmulatedFork() override {
    cudaEventDestroy(joined_);
    cudaEventDestroy(forked_);
    cudaStreamDestroy(other_);
  }

  cudaError_t RecordWithJoin(bool join, cudaGraph_t* graph) {
    Begin();
    AddOne();
    cudaEventRecord(forked_, stream_);
    EXPECT_EQ(cudaStreamWaitEvent(other_, forked_), cudaSuccess);
    cuda_emulator::QueueWork(other_, [device = device_] { ++*device; });
    cudaEventRecord(joined_, other_);
    if (join) {
      EXPECT_EQ(cudaStreamWaitEvent(stream_, joined_), cudaSuccess);
    }
    AddOne();
    return cudaStreamEndCapture(stream_, graph);
  }

  cudaStream_t other_ = nullptr;
  cudaEvent_t forked_ = nullptr;
  cudaEvent_t joined_ = nullptr;
};

TEST_F(EmulatedFork, IsPartOfTheGraph) {
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(RecordWithJoin(true, &graph), cudaSuccess);
  EXPECT_EQ(*device_, 0);
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaGraphInstantiateWithFlags(&executable, graph, 0), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(executable, stream_), cudaSuccess);
  EXPECT_EQ(*device_, 3);
  cuda_emulator::QueueWork(other_, [device = device_] { ++*device; });  // records no more
  EXPECT_EQ(*device_, 4);
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
}

// As on the real one: the priorities of streams are lost in a graph that does not ask for them.
TEST_F(EmulatedFork, KeepsItsPriorityInTheGraphIfAskedTo) {
  cudaStreamDestroy(other_);
  cudaStreamCreateWithPriority(&other_, cudaStreamNonBlocking, -1);
  using Count = std::map<int, int>;
  for (const auto& [flags, expected] :
       {std::pair(0U, Count{{0, 3}}),
        std::pair(cudaGraphInstantiateFlagUseNodePriority, Count{{-1, 1}, {0, 2}})}) {
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(RecordWithJoin(true, &graph), cudaSuccess);
    cudaGraphExec_t executable = nullptr;
    ASSERT_EQ(cudaGraphInstantiateWithFlags(&executable, graph, flags), cudaSuccess);
    cuda_emulator::TakeWorkByPriority();
    EXPECT_EQ(cudaGraphLaunch(executable, stream_), cudaSuccess);
    EXPECT_EQ(cuda_emulator::TakeWorkByPriority(), expected);
    cudaGraphExecDestroy(executable);
    cudaGraphDestroy(graph);
  }
}

TEST_F(EmulatedFork, MustBeWaitedFor) {
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(RecordWithJoin(false, &graph), cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(graph, nullptr);
}

}  // namespace
