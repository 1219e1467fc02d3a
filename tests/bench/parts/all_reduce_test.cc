// SPDX-License-Identifier: Apache-2.0

#include "bench/parts/all_reduce.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/trainer/comm/ranks.h"
#include "trainer/backend/registry.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string AllReduceRefusal(const std::function<void(AllReduceOptions&)>& change) {
  AllReduceOptions options;
  change(options);
  try {
    CheckAllReduceOptions(options);
  } catch (const trainer::Error& error) {
    EXPECT_EQ(error.exit_code(), EX_USAGE);
    return error.what();
  }
  return "";
}

TEST(CheckAllReduceOptions, RefusesWhatMakesNoSense) {
  EXPECT_EQ(AllReduceRefusal([](auto&) {}), "");
  EXPECT_THAT(AllReduceRefusal([](auto& o) { o.min_bytes = 3; }), HasSubstr("--min_bytes=3"));
  EXPECT_EQ(AllReduceRefusal([](auto& o) { o.min_bytes = o.max_bytes = 4; }), "");
  EXPECT_THAT(AllReduceRefusal([](auto& o) { o.max_bytes = 7; }), HasSubstr("--max_bytes=7"));
  EXPECT_THAT(AllReduceRefusal([](auto& o) { o.max_bytes = (1LL << 40) + 1; }), HasSubstr("1T"));
  EXPECT_THAT(AllReduceRefusal([](auto& o) { o.factor = 1; }), HasSubstr("--factor=1"));
  EXPECT_THAT(AllReduceRefusal([](auto& o) { o.iterations = 0; }), HasSubstr("--iterations=0"));
  EXPECT_EQ(AllReduceRefusal([](auto& o) { o.warmup_iterations = 0; }), "");
  EXPECT_THAT(AllReduceRefusal([](auto& o) { o.warmup_iterations = -1; }),
              HasSubstr("--warmup_iterations=-1"));
}

TEST(SizesOf, AreWholeNumbersUpToTheLargest) {
  AllReduceOptions options;
  options.max_bytes = 64;
  EXPECT_THAT(SizesOf(options), ElementsAre(8, 16, 32, 64));
  options.max_bytes = 63;
  EXPECT_THAT(SizesOf(options), ElementsAre(8, 16, 32));
  options.min_bytes = 10;
  options.max_bytes = 95;
  options.factor = 3;
  EXPECT_THAT(SizesOf(options), ElementsAre(8, 28, 88));
}

TEST(SumOf, IsThatOfTheSharesOfAllRanks) {
  EXPECT_EQ(ShareOf(0, 0), 1);
  EXPECT_EQ(ShareOf(2, 8), 3 * 2);
  EXPECT_EQ(ShareOf(16, 6), 7);
  EXPECT_EQ(SumOf(1, 6), 7);
  EXPECT_EQ(SumOf(4, 1), 2 * (1 + 2 + 3 + 4));
}

// Sums nothing, and counts what it is told.
class CountingCommunicator : public trainer::Communicator {
 public:
  explicit CountingCommunicator(int ranks) : ranks_(ranks) {}
  int rank() const override { return 0; }
  int size() const override { return ranks_; }
  std::string description() const override { return "counting"; }
  void StartAllReduce(void*, std::size_t count, trainer::DType dtype, trainer::Reduction reduction,
                      trainer::Stream&) override {
    EXPECT_EQ(dtype, trainer::DType::kFloat32);
    EXPECT_EQ(reduction, trainer::Reduction::kSum);
    counts.push_back(count);
  }
  void Finish(trainer::Stream&) override { ++waits; }
  void AllReduceSum(std::span<double>) override {}
  void AllReduceMax(std::span<double>) override {}
  void Broadcast(void*, std::size_t, int) override {}
  void Barrier() override { ++barriers; }
  void Abort(int exit_code) override { std::exit(exit_code); }

  std::vector<std::size_t> counts;
  int waits = 0;
  int barriers = 0;

 private:
  int ranks_;
};

TEST(AllReduceBench, CountsNumbersThatAreNotTheSum) {
  const auto backend = trainer::MakeBackend("reference", {});
  CountingCommunicator communicator(3);
  AllReduceBench bench(communicator, *backend, 64);
  const AllReduceTimes times = bench.Measure(40, 0, 1, Waiting::kAtTheEnd);
  EXPECT_EQ(times.wrong, 10);
  CountingCommunicator alone(1);
  EXPECT_EQ(AllReduceBench(alone, *backend, 64).Measure(40, 0, 1, Waiting::kAtTheEnd).wrong, 0);
  EXPECT_THROW(bench.Measure(68, 0, 1, Waiting::kAtTheEnd), trainer::Error);
}

TEST(AllReduceBench, WaitsAtTheEndOrForEachSum) {
  const auto backend = trainer::MakeBackend("reference", {});
  CountingCommunicator communicator(2);
  AllReduceBench bench(communicator, *backend, 64);
  const AllReduceTimes times = bench.Measure(64, 3, 5, Waiting::kAtTheEnd);
  EXPECT_EQ(times.bytes, 64);
  EXPECT_EQ(times.iterations, 5);
  EXPECT_EQ(communicator.counts.size(), 1U + 3 + 5);  // the check, warm-up, those timed
  EXPECT_THAT(communicator.counts, Each(16U));
  EXPECT_EQ(communicator.waits, 3);
  EXPECT_EQ(communicator.barriers, 2);
  bench.Measure(64, 3, 5, Waiting::kEach);
  EXPECT_EQ(communicator.waits, 3 + 1 + 3 + 5);
  EXPECT_EQ(communicator.barriers, 2 + (1 + 3) + (1 + 5));
}

// Real ranks: the sums are right, and every rank has the same times.
TEST(AllReduceBench, MeasuresRanksThatMeetInSharedMemory) {
  trainer::LocalRanks ranks(3);
  const std::vector<int> codes = ranks.Run([](const trainer::CommOptions& options) {
    const auto communicator = trainer::MakeCommunicator(options);
    const auto backend = trainer::MakeBackend("reference", {});
    AllReduceBench bench(*communicator, *backend, 1 << 20);
    for (const Waiting waiting : {Waiting::kAtTheEnd, Waiting::kEach}) {
      const AllReduceTimes times = bench.Measure(1 << 20, 1, 3, waiting);
      DDL_CHECK(times.wrong == 0);
      DDL_CHECK(times.min_seconds > 0 && times.min_seconds <= times.mean_seconds);
      DDL_CHECK(times.mean_seconds <= times.max_seconds * (1 + 1e-12));
      std::array<double, 2> own = {times.mean_seconds, -times.mean_seconds};
      communicator->AllReduceMax(own);
      DDL_CHECK(own[0] == -own[1]);
    }
  });
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(codes[static_cast<std::size_t>(rank)], 0) << ranks.ErrorOf(rank);
  }
}

}  // namespace
}  // namespace bench
