// SPDX-License-Identifier: Apache-2.0
//
// Autotuning by the emulated GPU's clock, which goes on when work says so.

#include "trainer/backend/cuda/runtime/timing.h"

#include "tests/support/test.h"
#include "tests/trainer/backend/cuda_emulator/runtime_api.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

// Far more than the emulator itself takes.
constexpr std::chrono::seconds kSecond{1};

void Take(cudaStream_t stream, std::chrono::seconds time) {
  cuda_emulator::QueueWork(stream, [time] { cuda_emulator::PassTime(time); });
}

TEST(FastestOf, IsTheOneWithTheSmallestMedian) {
  struct Row {
    std::vector<int> seconds;
    std::size_t fastest;
  };
  for (const Row& row : {Row{{3, 2, 4}, 1}, {{1, 2, 4}, 0}, {{4, 3, 1}, 2}, {{2, 20, 1}, 2}}) {
    EXPECT_EQ(FastestOf(row.seconds.size(),
                        [&](std::size_t i, cudaStream_t stream) {
                          Take(stream, row.seconds[i] * kSecond);
                        }),
              row.fastest);
  }
}

// A run in four of the first is slow, as after an interruption: its mean is above that of the
// second.
TEST(FastestOf, IsNotMisledByASlowRun) {
  int runs = 0;
  EXPECT_EQ(FastestOf(2,
                      [&](std::size_t i, cudaStream_t stream) {
                        const bool is_slow = i == 0 && ++runs == 4;
                        Take(stream, is_slow ? 100 * kSecond : i == 0 ? 2 * kSecond : 3 * kSecond);
                      }),
            0U);
}

// The first is fast where its inputs are in the L2 cache, which they are not in a step.
TEST(FastestOf, FindsTheCacheFlushedBeforeEachRun) {
  std::vector<std::size_t> cleared;
  EXPECT_EQ(FastestOf(2,
                      [&](std::size_t i, cudaStream_t stream) {
                        if (i == 1) return Take(stream, 2 * kSecond);
                        cuda_emulator::QueueWork(stream, [&] {
                          const std::size_t now = cuda_emulator::ClearedBytes();
                          const bool is_cached =
                              !cleared.empty() &&
                              now - cleared.back() < 2 * cuda_emulator::kL2CacheBytes;
                          cleared.push_back(now);
                          cuda_emulator::PassTime(is_cached ? kSecond : 3 * kSecond);
                        });
                      }),
            1U);
  EXPECT_GT(cleared.size(), 2U);
}

// A run in four of the first three is slow; what the host does before does not count.
TEST(MedianSeconds, IsThatOfARunOnTheDevice) {
  int runs = 0;
  const double seconds = MedianSeconds(
      [&](cudaStream_t stream) { Take(stream, ++runs == 4 ? 100 * kSecond : 7 * kSecond); });
  EXPECT_NEAR(seconds, 7, 0.5);
}

TEST(FastestOf, LeavesOutWhatCannotRun) {
  EXPECT_EQ(FastestOf(2,
                      [](std::size_t i, cudaStream_t stream) {
                        if (i == 0) throw Error(EX_UNAVAILABLE, "not on this GPU");
                        Take(stream, kSecond);
                      }),
            1U);
  EXPECT_THROW(FastestOf(2, [](std::size_t,
                               cudaStream_t) { throw Error(EX_UNAVAILABLE, "not on this GPU"); }),
               Error);
}

}  // namespace
}  // namespace trainer
