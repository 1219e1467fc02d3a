// SPDX-License-Identifier: Apache-2.0

#include <atomic>

#include "tests/support/refusal.h"
#include "tests/support/test.h"
#include "tests/trainer/comm/conformance.h"
#include "tests/trainer/comm/ranks.h"
#include "tests/trainer/train/thread_ranks.h"
#include "trainer/comm/communicator.h"
#include "trainer/comm/factory.h"
#include "trainer/comm/gradient_buckets.h"
#include "trainer/comm/rank_consistency.h"
#include "trainer/comm/serial_executor.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

const std::vector<ConsistencyItem> kFacts = {{"--seed", "--seed=1"},
                                             {"--lr_init", "--lr_init=0.1"}};

std::vector<ConsistencyItem> WithSeed(int seed) {
  std::vector<ConsistencyItem> items = kFacts;
  items[0].text = "--seed=" + std::to_string(seed);
  return items;
}

TEST(RankMismatch, TheOddOneIsUnlikeMost) {
  const std::vector<std::uint64_t> ranks = {7, 5, 5, 5};
  EXPECT_EQ(CompareFingerprints(ranks), (RankMismatch{.measure = 1, .odd = 0, .unlike = 1}));
}

TEST(RankMismatch, OfTwoRanksTheFirstIsTheMeasure) {
  const std::vector<std::uint64_t> ranks = {9, 2};
  EXPECT_EQ(CompareFingerprints(ranks), (RankMismatch{.measure = 0, .odd = 1, .unlike = 1}));
}

TEST(RankMismatch, OfTwoHalvesThatOfTheFirstRankIsTheMeasure) {
  const std::vector<std::uint64_t> ranks = {9, 2, 2, 9};
  EXPECT_EQ(CompareFingerprints(ranks), (RankMismatch{.measure = 0, .odd = 1, .unlike = 2}));
}

TEST(RankMismatch, NobodyIsLikeAnother) {
  const std::vector<std::uint64_t> ranks = {3, 2, 1};
  EXPECT_EQ(CompareFingerprints(ranks), (RankMismatch{.measure = 0, .odd = 1, .unlike = 2}));
}

TEST(Difference, IsSaidByWhatEachHas) {
  EXPECT_EQ(DescribeDifference(WithSeed(2), kFacts, "rank 0 on node1"),
            "has --seed=2, but rank 0 on node1 has --seed=1");
}

TEST(Difference, AFactThatOnlyOneHasIsMissingFromTheOther) {
  std::vector<ConsistencyItem> more = kFacts;
  more.push_back({"train-2", "train-2 of 10 bytes"});
  EXPECT_EQ(DescribeDifference(kFacts, more, "rank 0"),
            "has no train-2, but rank 0 has train-2 of 10 bytes");
  EXPECT_EQ(DescribeDifference(more, kFacts, "rank 0"),
            "has train-2 of 10 bytes, but rank 0 has no train-2");
}

TEST(Difference, TheFirstThreeAreSaidAndTheOthersCounted) {
  std::vector<ConsistencyItem> own;
  std::vector<ConsistencyItem> measure;
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    own.push_back({name, std::string(name) + "=1"});
    measure.push_back({name, std::string(name) + "=0"});
  }
  EXPECT_EQ(DescribeDifference(own, measure, "rank 0"),
            "has a=1, b=1 and c=1, but rank 0 has a=0, b=0 and c=0; 2 more differ");
}

TEST(Agreement, OneRankAgreesWithItself) {
  const auto alone = MakeSingleCommunicator();
  CheckRankConsistency(*alone, "node1", kFacts, "");
}

// Whether three ranks, the last of which brings `other`, find that all have the same.
bool AllHaveTheSame(std::uint64_t usual, std::uint64_t other) {
  LocalRanks ranks(3);
  const std::vector<int> codes = ranks.Run([&](const CommOptions& options) {
    const auto communicator = MakeCommunicator(options);
    const bool all = AllHave(options.rank == 2 ? other : usual, *communicator);
    communicator->Barrier();
    if (!all) throw Error(EX_CONFIG, "not all");
  });
  EXPECT_THAT(codes, Each(codes[0])) << "ranks do not think alike";
  return codes[0] == 0;
}

TEST(Agreement, EveryBitOfANumberCounts) {
  constexpr std::uint64_t kNumber = 0x8123456789abcdef;
  EXPECT_TRUE(AllHaveTheSame(kNumber, kNumber));
  for (const int bit : {0, 31, 32, 63}) {
    EXPECT_FALSE(AllHaveTheSame(kNumber, kNumber ^ (std::uint64_t{1} << bit))) << bit;
    EXPECT_FALSE(AllHaveTheSame(kNumber ^ (std::uint64_t{1} << bit), kNumber)) << bit;
  }
}

// Ranks that each compare what `items` gives them, and add up afterwards.
std::vector<int> Compare(LocalRanks& ranks,
                         const std::function<std::vector<ConsistencyItem>(int rank)>& items) {
  return ranks.Run([&](const CommOptions& options) {
    const auto communicator = MakeCommunicator(options);
    const std::string host = "node" + std::to_string(options.rank + 1);
    CheckRankConsistency(*communicator, host, items(options.rank), "start them alike");
    double sum = 1;
    communicator->AllReduceSum({&sum, 1});
    EXPECT_EQ(sum, options.size);
  });
}

TEST(Agreement, RanksWithTheSameFactsGoOn) {
  LocalRanks ranks(3);
  EXPECT_THAT(Compare(ranks, [](int) { return kFacts; }), Each(0));
}

TEST(Agreement, TheOddRankSaysWhatItHasAndWhoHasWhat) {
  LocalRanks ranks(3);
  const std::vector<int> codes =
      Compare(ranks, [](int rank) { return WithSeed(rank == 2 ? 5 : 1); });
  EXPECT_THAT(codes, ElementsAre(EX_UNAVAILABLE, EX_UNAVAILABLE, EX_CONFIG));
  EXPECT_EQ(ranks.ErrorOf(2), "has --seed=5, but rank 0 on node1 has --seed=1: start them alike");
  EXPECT_THAT(ranks.ErrorOf(0), StartsWith("rank 2 "));
}

TEST(Agreement, ItMayBeRankZero) {
  LocalRanks ranks(4);
  const std::vector<int> codes =
      Compare(ranks, [](int rank) { return WithSeed(rank == 0 ? 5 : 1); });
  EXPECT_EQ(codes[0], EX_CONFIG);
  EXPECT_THAT(ranks.ErrorOf(0), HasSubstr("has --seed=5, but rank 1 on node2 has --seed=1"));
}

TEST(Agreement, OnlyTheFirstOfSeveralOddRanksSpeaks) {
  LocalRanks ranks(5);
  const std::vector<int> codes = Compare(ranks, [](int rank) { return WithSeed(rank % 2); });
  EXPECT_EQ(codes[1], EX_CONFIG);
  EXPECT_EQ(codes[3], EX_UNAVAILABLE);
  EXPECT_THAT(ranks.ErrorOf(1), HasSubstr("; 2 of 5 ranks are unlike rank 0: start them alike"));
}

// What is alike as one text, and not as facts.
TEST(Agreement, NamesAndTextsAreToldApart) {
  LocalRanks ranks(2);
  const ConsistencyItem early = {"a", "bc"};
  const ConsistencyItem late = {"ab", "c"};
  const std::vector<int> codes = Compare(
      ranks, [&](int rank) { return std::vector<ConsistencyItem>{rank == 0 ? early : late}; });
  EXPECT_EQ(codes[1], EX_CONFIG);
}

TEST(OrderedWorker, RunsEverythingInOrder) {
  std::vector<int> seen;
  {
    OrderedWorker worker;
    for (int i = 0; i < 1000; ++i) {
      worker.Post([&seen, i] { seen.push_back(i); });
      if (i % 100 == 0) {
        worker.Wait();
        EXPECT_EQ(seen.size(), static_cast<std::size_t>(i) + 1);
      }
    }
  }  // the destructor runs what is queued
  ASSERT_EQ(seen.size(), 1000U);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(seen[static_cast<std::size_t>(i)], i);
}

TEST(OrderedWorker, StopsAtTheFirstExceptionAndPassesItOn) {
  OrderedWorker worker;
  std::atomic<bool> ran_on = false;
  std::atomic<bool> go = false;
  worker.Post([&] {
    while (!go) std::this_thread::yield();
    throw Error(EX_UNAVAILABLE, "rank 1 died");
  });
  worker.Post([&] { ran_on = true; });
  go = true;
  EXPECT_THROW(worker.Wait(), Error);
  EXPECT_THROW(worker.Wait(), Error);
  EXPECT_THROW(worker.Post([] {}), Error);
  EXPECT_FALSE(ran_on);
}

TEST(SingleCommunicator, DoesWhatACommunicatorMust) {
  const auto comm = MakeSingleCommunicator();
  NoStream stream;
  ExpectACommunicator(*comm, stream);
}

CommOptions Options(int rank, int size, const std::string& launcher) {
  CommOptions options{.rank = rank, .size = size, .launcher = launcher};
  return options;
}

std::string Rejection(const CommOptions& options, int exit_code = EX_CONFIG) {
  return tests::Rejection<Error>(exit_code, [&] { MakeCommunicator(options); });
}

TEST(MakeCommunicator, NeedsNothingForAWorldOfOne) {
  EXPECT_EQ(MakeCommunicator(Options(0, 1, ""))->size(), 1);
  EXPECT_EQ(MakeCommunicator(Options(0, 1, "srun"))->size(), 1);
}

TEST(MakeCommunicator, RejectsToBecomeManyWorldsOfOne) {
  CommOptions options = Options(0, 1, "");
  options.started_tasks = 4;
  EXPECT_THAT(Rejection(options), HasSubstr("started 4 times"));
  EXPECT_THAT(Rejection(options), HasSubstr("put ddlrun in front"));
  options = Options(0, 4, "local");
  options.started_tasks = 2;
  EXPECT_THAT(Rejection(options), HasSubstr("WORLD_SIZE says 4"));
}

TEST(MakeCommunicator, RejectsRanksThatNobodyStarted) {
  EXPECT_THAT(Rejection(Options(1, 4, "")), HasSubstr("start them with ddlrun -n 4"));
  EXPECT_THAT(Rejection(Options(1, 4, "local")), HasSubstr("DDLRUN_RUN_DIR is not set"));
}

TEST(MakeCommunicator, RejectsNumbersThatMakeNoSense) {
  EXPECT_THAT(Rejection(Options(4, 4, "local")), HasSubstr("rank 4 of 4"));
  EXPECT_THAT(Rejection(Options(-1, 4, "local")), HasSubstr("makes no sense"));
  EXPECT_THAT(Rejection(Options(0, 0, "")), HasSubstr("makes no sense"));
  CommOptions options = Options(0, 1000, "local");
  options.run_dir = "/nonexistent";
  EXPECT_THAT(Rejection(options), HasSubstr("more than 256"));
}

TEST(MakeCommunicator, RejectsSeveralNodesWithoutPmix) {
  for (const char* pmi : {"none", "pmi2"}) {
    CommOptions options = Options(1, 4, "srun");
    options.pmi = pmi;
    options.run_dir = "/nonexistent";
    const auto says_what_is_needed =
        AllOf(HasSubstr("--mpi=" + std::string(pmi) + ", and ddltraind needs PMIx"),
              HasSubstr("--launcher=mpirun"));
    EXPECT_THAT(Rejection(options, EX_UNAVAILABLE), says_what_is_needed);
    options.is_one_node = true;  // and no run directory on it
    options.run_dir = "";
    EXPECT_THAT(Rejection(options, EX_UNAVAILABLE), says_what_is_needed);
  }
}

TEST(MakeCommunicator, LetsRanksOfSrunWithoutPmixMeetOnOneNode) {
  LocalRanks ranks(2);
  EXPECT_THAT(ranks.Run([](CommOptions options) {
    options.launcher = "srun";
    options.pmi = "none";
    options.is_one_node = true;
    EXPECT_EQ(MakeCommunicator(options)->description(), "shared memory, 2 ranks");
  }),
              ElementsAre(0, 0));
}

TEST(MakeCommunicator, LetsLocalRanksMeetThroughSharedMemory) {
  LocalRanks ranks(2);
  EXPECT_THAT(ranks.Run([](const CommOptions& options) {
    EXPECT_EQ(MakeCommunicator(options)->description(), "shared memory, 2 ranks");
  }),
              ElementsAre(0, 0));
}

constexpr std::size_t kMega = std::size_t{1} << 20;

// For gradients of one byte.
constexpr GradientBucketBytes kSmall = {.first = 2, .rest = 4, .last = 3};

TEST(GradientBuckets, StartSmallAndRunFromTheEndToTheStart) {
  // 1 MiB of the last tensor closes the first bucket at once.
  const std::vector<std::size_t> ends = {5 * kMega, 6 * kMega, 7 * kMega, 8 * kMega};
  EXPECT_THAT(PlanGradientBuckets(ends, 4),
              ElementsAre(GradientBucket{7 * kMega, kMega}, GradientBucket{0, 7 * kMega}));
}

TEST(GradientBuckets, AreClosedAtTensorBoundariesWhenFull) {
  const std::vector<std::size_t> ends = {1, 3, 6, 10, 15};
  EXPECT_THAT(PlanGradientBuckets(ends, 1, kSmall),
              ElementsAre(GradientBucket{10, 5}, GradientBucket{6, 4}, GradientBucket{1, 5},
                          GradientBucket{0, 1}));
}

TEST(GradientBuckets, EndWithASmallOneWhereMoreIsLeftOver) {
  // 7 are left over, of which 3 may be the last.
  const std::vector<std::size_t> ends = {1, 2, 3, 7, 9};
  const GradientBucketBytes large = {.first = 2, .rest = 100, .last = 3};
  EXPECT_THAT(PlanGradientBuckets(ends, 1, large),
              ElementsAre(GradientBucket{7, 2}, GradientBucket{3, 4}, GradientBucket{0, 3}));
  // Of 2 bytes each, 1 may.
  EXPECT_THAT(PlanGradientBuckets(ends, 2, large),
              ElementsAre(GradientBucket{7, 2}, GradientBucket{1, 6}, GradientBucket{0, 1}));
}

TEST(GradientBuckets, LeaveTheOneBeforeTheLastItsLeastSize) {
  // 4 are left over: cut at 3 they would be 1 and 3.
  const std::vector<std::size_t> ends = {1, 2, 3, 4, 6};
  const GradientBucketBytes large = {.first = 2, .rest = 100, .last = 3};
  EXPECT_THAT(PlanGradientBuckets(ends, 1, large),
              ElementsAre(GradientBucket{4, 2}, GradientBucket{2, 2}, GradientBucket{0, 2}));
  // So are 4 here: no cut leaves both what they need.
  const std::vector<std::size_t> apart = {3, 4, 6};
  EXPECT_THAT(PlanGradientBuckets(apart, 1, large),
              ElementsAre(GradientBucket{4, 2}, GradientBucket{0, 4}));
}

TEST(GradientBuckets, AreNotCutWhereTheLastIsSmall) {
  const std::vector<std::size_t> ends = {1, 2, 3, 5};
  EXPECT_THAT(PlanGradientBuckets(ends, 1, {.first = 2, .rest = 100, .last = 3}),
              ElementsAre(GradientBucket{3, 2}, GradientBucket{0, 3}));
  // Not even the first was full.
  EXPECT_THAT(PlanGradientBuckets(ends, 1, {.first = 6, .rest = 100, .last = 3}),
              ElementsAre(GradientBucket{0, 5}));
}

// Where the gradients of torchvision's ResNets of bottlenecks end: of one type, each at a multiple
// of 16 elements.
std::vector<std::size_t> EndsOfResNet(const std::array<int, 4>& blocks) {
  std::vector<std::size_t> ends;
  std::size_t end = 0;
  const auto add = [&](std::size_t elements) { ends.push_back(end += (elements + 15) / 16 * 16); };
  const auto add_convolution = [&](std::size_t weights, std::size_t channels) {
    add(weights);
    add(channels);
    add(channels);
  };
  add_convolution(std::size_t{64} * 3 * 7 * 7, 64);
  std::size_t channels = 64;
  for (std::size_t stage = 0; stage < blocks.size(); ++stage) {
    const std::size_t width = std::size_t{64} << stage;
    for (int block = 0; block < blocks[stage]; ++block) {
      add_convolution(channels * width, width);
      add_convolution(width * width * 9, width);
      add_convolution(width * width * 4, width * 4);
      if (block == 0) add_convolution(channels * width * 4, width * 4);
      channels = width * 4;
    }
  }
  add(channels * 1000);
  add(1000);
  return ends;
}

// In MB of fp32: the classifier 8.2; stage 4 and the end of stage 3 31.5, 26.3 and 26.6; from the
// downsampling of stage 3 to that of stage 2 8.7; stage 1 and the stem 1.0.
TEST(GradientBuckets, OfResNet50AreSix) {
  EXPECT_THAT(PlanGradientBuckets(EndsOfResNet({3, 4, 6, 3}), 4),
              ElementsAre(GradientBucket{23508032, 2049008}, GradientBucket{15632448, 7875584},
                          GradientBucket{9068608, 6563840}, GradientBucket{2431040, 6637568},
                          GradientBucket{258368, 2172672}, GradientBucket{0, 258368}));
}

// 25 MiB hold twice as many.
TEST(GradientBuckets, OfResNet50In16BitsAreFour) {
  EXPECT_THAT(PlanGradientBuckets(EndsOfResNet({3, 4, 6, 3}), 2),
              ElementsAre(GradientBucket{23508032, 2049008}, GradientBucket{9068608, 14439424},
                          GradientBucket{472640, 8595968}, GradientBucket{0, 472640}));
}

TEST(GradientBuckets, OfDeeperResNetsEndAsSmall) {
  for (const auto& blocks : {std::array{3, 4, 23, 3}, std::array{3, 8, 36, 3}}) {
    const std::vector<std::size_t> ends = EndsOfResNet(blocks);
    const auto buckets = PlanGradientBuckets(ends, 4);
    EXPECT_EQ(buckets.back(), (GradientBucket{0, 258368}));
    std::size_t end = ends.back();
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      EXPECT_EQ(buckets[i].begin + buckets[i].count, end);
      end = buckets[i].begin;
      if (i + 1 == buckets.size()) break;
      const bool is_full = i > 0 && i + 2 < buckets.size();
      EXPECT_GE(buckets[i].count * 4, is_full ? 25 * kMega : kMega);
      EXPECT_THAT(ends, Contains(end));
    }
    EXPECT_EQ(end, 0U);
  }
}

TEST(GradientBuckets, AreNoneForNoGradients) {
  EXPECT_TRUE(PlanGradientBuckets({}, 4).empty());
  const std::vector<std::size_t> empty = {0, 0};
  EXPECT_TRUE(PlanGradientBuckets(empty, 4).empty());
}

TEST(GradientBuckets, RejectEndsThatDescend) {
  const std::vector<std::size_t> ends = {5, 3};
  EXPECT_THROW(PlanGradientBuckets(ends, 4), Error);
}

using Ranks = std::vector<int>;

// What all of as many ranks get, of which rank r computes on gpus[r].
Ranks FirstsOf(const std::vector<std::string>& gpus) {
  std::vector<Ranks> firsts(gpus.size());
  RunRanks(static_cast<int>(gpus.size()), [&](Communicator& communicator) {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    firsts[rank] = FirstRanksOfGpus(communicator, gpus[rank]);
  });
  EXPECT_THAT(firsts, Each(firsts.front()));
  return firsts.front();
}

TEST(FirstRanksOfGpus, AreTheRanksThemselvesWhereNoneShares) {
  EXPECT_EQ(FirstsOf({"0000:1B:00.0"}), (Ranks{0}));
  EXPECT_EQ(FirstsOf({"0000:1B:00.0", "0000:1C:00.0", "0001:1B:00.0"}), (Ranks{0, 1, 2}));
}

TEST(FirstRanksOfGpus, AreTheLowestOnEachGpu) {
  EXPECT_EQ(FirstsOf({"0000:1B:00.0", "0000:1C:00.0", "0000:1C:00.0", "0000:1B:00.0"}),
            (Ranks{0, 1, 1, 0}));
}

TEST(FirstRanksOfGpus, RanksWithoutAGpuShareNone) {
  EXPECT_EQ(FirstsOf({"", "0000:1B:00.0", "", "0000:1B:00.0"}), (Ranks{0, 1, 2, 1}));
}

}  // namespace
}  // namespace trainer
