// SPDX-License-Identifier: Apache-2.0

#include "tests/support/test.h"
#include "tests/trainer/train/faulty_ranks.h"
#include "tests/trainer/train/thread_ranks.h"
#include "trainer/train/monitor/rank_comparison.h"
#include "trainer/train/monitor/stragglers.h"

namespace trainer {
namespace {

// 2 and 2.2 by turns: mean 2.1, standard deviation 0.1.
void Fill(SpikeDetector& watch, int count) {
  for (int i = 0; i < count; ++i) EXPECT_FALSE(watch.Add(i % 2 == 0 ? 2 : 2.2)) << i;
}

TEST(SpikeDetector, FindsWhatIsSixDeviationsAboveTheWindow) {
  SpikeDetector watch(0.1);
  Fill(watch, 128);
  EXPECT_FALSE(watch.Add(2.69));
  SpikeDetector other(0.1);
  Fill(other, 128);
  const auto outlier = other.Add(2.71);
  ASSERT_TRUE(outlier);
  EXPECT_NEAR(outlier->mean, 2.1, 1e-12);
  EXPECT_NEAR(outlier->deviation, 0.1, 1e-12);
}

TEST(SpikeDetector, KnowsNothingBeforeItsWindowIsFull) {
  SpikeDetector watch(0.1);
  Fill(watch, 127);
  EXPECT_FALSE(watch.Add(100));
}

TEST(SpikeDetector, AFallIsNoOutlier) {
  SpikeDetector watch(0.1);
  Fill(watch, 128);
  EXPECT_FALSE(watch.Add(0));
}

TEST(SpikeDetector, NumbersThatHardlyChangeHaveRoom) {
  SpikeDetector watch(0.1);
  for (int i = 0; i < 128; ++i) EXPECT_FALSE(watch.Add(2));
  EXPECT_FALSE(watch.Add(2.19));
  EXPECT_TRUE(watch.Add(3));
}

TEST(SpikeDetector, ANewLevelIsNotToldForEver) {
  SpikeDetector watch(0.1);
  Fill(watch, 128);
  int logged = 0;
  for (int i = 0; i < 128; ++i) logged += watch.Add(6) ? 1 : 0;
  EXPECT_GE(logged, 1);
  EXPECT_LE(logged, 5);
}

TEST(SpikeDetector, LeavesOutWhatIsNoNumber) {
  SpikeDetector watch(0.1);
  Fill(watch, 128);
  EXPECT_FALSE(watch.Add(NAN));
  EXPECT_FALSE(watch.Add(INFINITY));
  EXPECT_TRUE(watch.Add(3));
}

RankDifference Describe(const std::vector<std::uint64_t>& checksums,
                        const std::vector<std::string>& hosts) {
  return DescribeRankDifference(300, checksums, hosts);
}

TEST(RankComparison, NamesTheRankThatIsUnlikeTheMajority) {
  const RankDifference found = Describe({7, 7, 8, 7}, {"n1", "n1", "n2", "n2"});
  EXPECT_EQ(found.speaker, 2);
  EXPECT_EQ(found.message,
            "after step 300 rank 2 on n2 has other weights or momentum than the 3 ranks that are "
            "alike: a GPU, memory, or what carried a sum fails; no checkpoint has it; give the "
            "same command again without that node (sbatch --exclude=n2)");
}

TEST(RankComparison, NamesSeveralAndTheirNodes) {
  const RankDifference found = Describe({5, 7, 8, 7, 7, 7}, {"n2", "n1", "n3", "n1", "n1", "n1"});
  EXPECT_EQ(found.speaker, 0);
  EXPECT_THAT(found.message,
              AllOf(StartsWith("after step 300 rank 0 on n2 and rank 2 on n3 have other weights"),
                    HasSubstr("without those nodes (sbatch --exclude=n2,n3)")));
}

TEST(RankComparison, NamesEightAndCountsTheOthers) {
  std::vector<std::uint64_t> checksums(21, 7);
  for (std::size_t rank = 0; rank < 10; ++rank) checksums[rank] = rank + 100;
  EXPECT_THAT(Describe(checksums, std::vector<std::string>(21)).message,
              AllOf(HasSubstr("rank 6, rank 7 and 2 others have"), HasSubstr("the 11 ranks"),
                    EndsWith("give the same command again")));
}

TEST(RankComparison, OfTwoNobodyCanTell) {
  const RankDifference found = Describe({7, 8}, {"n1", "n2"});
  EXPECT_EQ(found.speaker, 0);
  EXPECT_THAT(found.message,
              StartsWith("after step 300 rank 1 on n2 has other weights or momentum than rank 0 on "
                         "n1, and without a majority that is alike nobody can tell which are "
                         "right: "));
}

TEST(RankComparison, NorOfTwoHalves) {
  EXPECT_THAT(Describe({7, 7, 8, 8}, {"", "", "", ""}).message,
              HasSubstr("rank 2 and rank 3 have other weights or momentum than rank 0 and rank 1, "
                        "and without a majority"));
}

TrainConfig ParanoidConfig(const TemporaryDirectory& directory) {
  TrainConfig config = SmallConfig(directory.path());
  config.checkpoint_every = 0;
  config.paranoid = 2;
  return config;
}

TEST(RankComparison, FindsARankWhoseSumHadAnotherBitOnEveryBackEnd) {
  for (const std::string& backend : BackendNames()) {
    if (!BackendProblem(backend).empty()) continue;
    SCOPED_TRACE(backend);
    const TemporaryDirectory directory;
    const Fault fault = {.rank = 1, .steps = {2}, .is_own_share = false};
    const auto ends = TrainWith(fault, ParanoidConfig(directory), 3, true, backend);
    EXPECT_THAT(ends[1].message, StartsWith("after step 4 rank 1 on node1 has other weights or "
                                            "momentum than the 2 ranks that are alike"));
    EXPECT_EQ(ends[1].exit_code, EX_OSERR);
    EXPECT_EQ(ends[0].message, "a rank is gone");
    EXPECT_EQ(ends[2].message, "a rank is gone");
    EXPECT_FALSE(fs::exists(directory.path() / "checkpoints"));
  }
}

TEST(RankComparison, ComparesBeforeACheckpointToo) {
  const TemporaryDirectory directory;
  TrainConfig config = ParanoidConfig(directory);
  config.paranoid = 1000;
  config.checkpoint_every = 3;
  const Fault fault = {.rank = 0, .steps = {1}, .is_own_share = false};
  const auto ends = TrainWith(fault, config, 3, true);
  EXPECT_THAT(ends[0].message, StartsWith("after step 3 rank 0 on node0 has other weights"));
  EXPECT_FALSE(fs::exists(directory.path() / "checkpoints"));
}

TEST(RankComparison, ChangesNothingWhereAllAreAlike) {
  const TemporaryDirectory compared;
  const TemporaryDirectory plain;
  TrainConfig config = ParanoidConfig(compared);
  config.paranoid = 1;
  for (const FaultyEnd& end : TrainWith({}, config, 3)) EXPECT_EQ(end.message, "");
  TrainWith({}, SmallConfig(plain.path()), 3);
  EXPECT_EQ(TensorsAt(compared.path(), 6), TensorsAt(plain.path(), 6));
}

TEST(RankComparison, OneRankIsToldThatThereIsNothingToCompare) {
  const TemporaryDirectory directory;
  const auto ends = TrainWith({}, ParanoidConfig(directory), 1);
  EXPECT_EQ(ends[0].message, "");
  EXPECT_THAT(ends[0].log, HasSubstr("--paranoid compares ranks: one rank has none"));
}

TEST(CompareLinks, ALinkIsSlowBesideTheOthersOrBesideItself) {
  const std::array<int, 4> ranks = {0, 2, 4, 6};
  const std::vector<double> first = {10, 1, 10, 1, 20, 1, 10, 1};
  const std::vector<double> now = {10, 1, 6.9, 1, 13.9, 1, 10, 1};
  const auto links = CompareLinks(ranks, first, now);
  ASSERT_EQ(links.size(), 4U);
  EXPECT_EQ(links[0].rank, 2) << "the slowest first";
  EXPECT_EQ(links[0].now, 6.9);
  EXPECT_TRUE(links[0].is_slow);
  EXPECT_EQ(links[3].rank, 4);
  EXPECT_EQ(links[3].first, 20);
  EXPECT_TRUE(links[3].is_slow) << "quicker than the others, and slower than it was";
  EXPECT_FALSE(links[1].is_slow);
  EXPECT_FALSE(links[2].is_slow);
}

TEST(CompareLinks, SeventyPercentIsNotSlow) {
  const std::array<int, 3> ranks = {0, 1, 2};
  for (const MeasuredLink& link :
       CompareLinks(ranks, std::vector<double>{10, 10, 9}, std::vector<double>{7.1, 10, 10})) {
    EXPECT_FALSE(link.is_slow) << link.rank;
  }
}

constexpr AllReduceWaitChange kBegins = {
    .begins = true, .steps = 100, .seconds = 0.0904, .best = 0.0402, .step = 0.28};

TEST(DescribeSums, NamesTheLinkAndWhatItWas) {
  const std::vector<std::string> hosts = {"n1", "n1", "n2", "n2"};
  const std::array<int, 2> ranks = {0, 2};
  EXPECT_EQ(DescribeSums(kBegins,
                         CompareLinks(ranks, std::vector<double>{12e9, 0, 12e9, 0},
                                      std::vector<double>{11.9e9, 0, 1e9, 0}),
                         hosts),
            "for 100 steps ranks have waited for their sums 90.4 ms in each, 40.2 before (the "
            "whole step takes 280.0): rank 2 on n2 hears "
            "from rank 1 on n1 at 1.0 GB/s, 12.0 GB/s when training began (median of the 2 links: "
            "1.0 GB/s)");
}

TEST(DescribeSums, SaysWhereNoLinkIsSlow) {
  const std::vector<std::string> hosts = {"n1", "n2"};
  const std::array<int, 2> ranks = {0, 1};
  EXPECT_THAT(
      DescribeSums(
          kBegins,
          CompareLinks(ranks, std::vector<double>{5e6, 5e6}, std::vector<double>{5e6, 5e6}), hosts),
      HasSubstr("280.0): now no link between hosts is slower than it was when training began"));
}

TEST(DescribeSums, CutsLongLists) {
  const std::vector<std::string> hosts = {"n1", "n2", "n3", "n4", "n5", "n6"};
  const std::array<int, 6> ranks = {0, 1, 2, 3, 4, 5};
  const auto text = DescribeSums(
      kBegins, CompareLinks(ranks, std::vector<double>(6, 5e6), std::vector<double>(6, 1e6)),
      hosts);
  EXPECT_THAT(text, HasSubstr("rank 0 on n1 hears from rank 5 on n6 at 1.0 MB/s"));
  EXPECT_THAT(text, HasSubstr("rank 3 on n4 hears"));
  EXPECT_THAT(text, Not(HasSubstr("rank 4 on n5 hears")));
  EXPECT_THAT(text, HasSubstr("; 2 more links of this kind (median of the 6 links: 1.0 MB/s)"));
}

// Two ranks on each host.  The link to rank 2 loses half its rate after it was measured first.
std::vector<std::string> LogsOf(const std::vector<std::string>& hosts) {
  std::vector<std::ostringstream> logs(4);
  std::array<int, 4> measured{};
  RunRanks(
      4,
      [&](Communicator& communicator) {
        const int rank = communicator.rank();
        SlowLinkReporter links(communicator,
                               MakeLogger(logs[static_cast<std::size_t>(rank)], rank, "info"));
        links.Start(hosts);
        links.Start(hosts);  // training has gone back
        StepTimes times;
        for (int step = 0; step < 400; ++step) {
          times.step = step < 130 || step >= 290 ? 0.1 : 0.2;
          links.After(std::vector{0.08, 0.09, 0.09, 0.08}, times);
        }
      },
      [&](int rank) {
        const bool is_slow = rank == 2 && measured[static_cast<std::size_t>(rank)]++ >= 5;
        return is_slow ? 8e-9 : 4e-9;
      });
  std::vector<std::string> texts;
  for (const std::ostringstream& log : logs) texts.push_back(log.str());
  return texts;
}

TEST(SlowLinkReporter, TellsInTheLogOfRankZeroWhichLinkItIs) {
  const auto logs = LogsOf({"n1", "n1", "n2", "n2"});
  EXPECT_THAT(logs[0],
              HasSubstr("for 100 steps ranks have waited for their sums 110.0 ms in each, "
                        "10.0 before (the whole step takes "
                        "200.0): rank 2 on n2 hears from rank 1 on n1 at 125.0 MB/s, 250.0 "
                        "MB/s when training began (median of "
                        "the 2 links: 125.0 MB/s)"));
  EXPECT_THAT(logs[0],
              HasSubstr("the all-reduce takes no longer than before; they did for 160 steps"));
  EXPECT_EQ(logs[1] + logs[2] + logs[3], "");
}

TEST(SlowLinkReporter, OneHostHasNone) {
  for (const std::string& log : LogsOf({"n1", "n1", "n1", "n1"})) EXPECT_EQ(log, "");
}

TEST(SlowLinkReporter, SaysNothingWhereRanksCannotBeMeasured) {
  std::ostringstream log;
  RunRanks(2, [&](Communicator& communicator) {
    std::ostringstream other;
    SlowLinkReporter links(communicator, MakeLogger(communicator.rank() == 0 ? log : other,
                                                    communicator.rank(), "info"));
    links.Start({"n1", "n2"});
    StepTimes times;
    for (int step = 0; step < 400; ++step) {
      times.step = step < 130 ? 0.1 : 0.2;
      links.After(std::vector{0.09, 0.09}, times);
    }
  });
  EXPECT_EQ(log.str(), "");
}

// What is said in `steps` steps like this.
std::vector<StragglerTransition> After(StragglerDetector& watch, std::int64_t steps,
                                       const std::vector<double>& busy_seconds) {
  std::vector<StragglerTransition> all;
  for (std::int64_t step = 0; step < steps; ++step) {
    for (const StragglerTransition& change : watch.Add(busy_seconds)) all.push_back(change);
  }
  return all;
}

TEST(StragglerDetector, TellsOfTwentyPercentAfterAHundredStepsOnce) {
  StragglerDetector watch(4);
  EXPECT_THAT(After(watch, 99, {0.1, 0.1, 0.12, 0.1}), IsEmpty());
  const auto changes = After(watch, 1, {0.1, 0.1, 0.12, 0.1});
  ASSERT_THAT(changes, SizeIs(1));
  EXPECT_EQ(changes[0].rank, 2);
  EXPECT_TRUE(changes[0].begins);
  EXPECT_EQ(changes[0].steps, 100);
  EXPECT_NEAR(changes[0].seconds, 0.12, 1e-9);
  EXPECT_NEAR(changes[0].median, 0.1, 1e-9);
  EXPECT_THAT(After(watch, 1000, {0.1, 0.1, 0.12, 0.1}), IsEmpty());
}

TEST(StragglerDetector, SaysNothingOfNineteenPercent) {
  StragglerDetector watch(4);
  EXPECT_THAT(After(watch, 1000, {0.1, 0.1, 0.119, 0.1}), IsEmpty());
}

TEST(StragglerDetector, TellsWhenItHasBeenOverForAHundredSteps) {
  StragglerDetector watch(3);
  EXPECT_THAT(After(watch, 150, {1, 2, 1}), SizeIs(1));
  EXPECT_THAT(After(watch, 99, {1, 1, 1}), IsEmpty());
  const auto changes = After(watch, 1, {1, 1, 1});
  ASSERT_THAT(changes, SizeIs(1));
  EXPECT_EQ(changes[0].rank, 1);
  EXPECT_FALSE(changes[0].begins);
  EXPECT_EQ(changes[0].steps, 150);
  EXPECT_THAT(After(watch, 100, {1, 2, 1}), SizeIs(1)) << "a new spell";
}

TEST(StragglerDetector, ASpellGoesOnAfterAFewQuickSteps) {
  StragglerDetector watch(3);
  EXPECT_THAT(After(watch, 100, {1, 2, 1}), SizeIs(1));
  for (int i = 0; i < 5; ++i) {
    EXPECT_THAT(After(watch, 90, {1, 1, 1}), IsEmpty());
    EXPECT_THAT(After(watch, 10, {1, 2, 1}), IsEmpty());
  }
  const auto changes = After(watch, 100, {1, 1, 1});
  ASSERT_THAT(changes, SizeIs(1));
  EXPECT_EQ(changes[0].steps, 600);
}

TEST(StragglerDetector, OneLongStepIsNoHundred) {
  StragglerDetector watch(3);
  EXPECT_THAT(After(watch, 50, {1, 1, 1}), IsEmpty());
  EXPECT_THAT(After(watch, 1, {1, 1000, 1}), IsEmpty());
  EXPECT_THAT(After(watch, 500, {1, 1, 1}), IsEmpty());
}

TEST(StragglerDetector, SlowInNineBlocksIsNotSlowInTen) {
  StragglerDetector watch(3);
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(After(watch, 90, {1, 2, 1}), IsEmpty());
    EXPECT_THAT(After(watch, 10, {1, 1, 1}), IsEmpty());
  }
}

TEST(StragglerDetector, OfTwoRanksTheQuickerIsTheMeasure) {
  StragglerDetector watch(2);
  const auto changes = After(watch, 100, {1.25, 1});
  ASSERT_THAT(changes, SizeIs(1));
  EXPECT_EQ(changes[0].rank, 0);
  EXPECT_DOUBLE_EQ(changes[0].median, 1);
}

TEST(StragglerDetector, OneRankHasNoneToBeComparedWith) {
  StragglerDetector watch(1);
  EXPECT_THAT(After(watch, 300, {1}), IsEmpty());
}

TEST(StragglerDetector, TwoRanksOfFiveAreToldInTheirOrder) {
  StragglerDetector watch(5);
  const auto changes = After(watch, 100, {1, 1, 3, 1, 2});
  ASSERT_THAT(changes, SizeIs(2));
  EXPECT_EQ(changes[0].rank, 2);
  EXPECT_EQ(changes[1].rank, 4);
}

TEST(StragglerDetector, WhatIsNotKnownIsNotJudged) {
  StragglerDetector watch(3);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(After(watch, 200, {0, 0, 0}), IsEmpty());
  EXPECT_THAT(After(watch, 200, {nan, nan, nan}), IsEmpty());
  EXPECT_THAT(After(watch, 90, {1, 2, 1}), IsEmpty());
  EXPECT_THAT(After(watch, 10, {1, nan, 1}), IsEmpty());
  EXPECT_THAT(After(watch, 10, {1, 0, 1}), IsEmpty());
  EXPECT_THAT(After(watch, 10, {1, -1, 1}), IsEmpty());
  EXPECT_THAT(After(watch, 10, {1, 2, 1}), SizeIs(1)) << "unknown steps neither count nor break it";
}

TEST(StragglerReporter, TellsWhatTheRankSaysOfItselfInTheLogOfRankZero) {
  std::vector<std::ostringstream> logs(3);
  RunRanks(3, [&](Communicator& communicator) {
    const int rank = communicator.rank();
    StragglerReporter stragglers({communicator,
                                  MakeLogger(logs[static_cast<std::size_t>(rank)], rank, "info"),
                                  "node" + std::to_string(rank),
                                  [rank] { return "GPU " + std::to_string(rank) + ": 84 C"; }});
    StepTimes times;
    times[StepPhase::kForward] = 0.05 * (rank + 1);
    times[StepPhase::kExposedAllReduce] = 9;
    for (int step = 0; step < 150; ++step) stragglers.After(std::vector{1.0, 1.0, 1.5}, times);
    for (int step = 0; step < 100; ++step) stragglers.After(std::vector{1.0, 1.0, 1.0}, times);
  });
  EXPECT_THAT(logs[0].str(),
              HasSubstr("rank 2 on node2 has been 50 % slower than the median of the ranks for 100 "
                        "steps: in each it is busy for 1500.0 ms, they for 1000.0 (ms: input wait "
                        "0.0, forward 150.0, backward 0.0, update 0.0; GPU 2: 84 C)"));
  EXPECT_THAT(logs[0].str(), HasSubstr("rank 2 on node2 is no longer slower than the other ranks; "
                                       "it was for 150 steps"));
  EXPECT_EQ(logs[1].str() + logs[2].str(), "");
}

TEST(StragglerReporter, CutsLongLists) {
  std::ostringstream log;
  RunRanks(21, [&](Communicator& communicator) {
    std::ostringstream other;
    StragglerReporter stragglers(
        {communicator, MakeLogger(communicator.rank() == 0 ? log : other, 0, "info"), "", {}});
    std::vector<double> seconds(21, 1);
    std::fill_n(seconds.begin(), 10, 2);
    for (int step = 0; step < 100; ++step) stragglers.After(seconds, {});
  });
  EXPECT_THAT(log.str(), HasSubstr("rank 7 has been 100 % slower"));
  EXPECT_THAT(log.str(), Not(HasSubstr("rank 8 has")));
  EXPECT_THAT(log.str(), HasSubstr("the same of 2 more ranks"));
}

// Steps in which the busier of two ranks computes for a second; the last thing that is said.
std::optional<AllReduceWaitChange> After(AllReduceWaitMonitor& watch, std::int64_t steps,
                                         double waited) {
  std::optional<AllReduceWaitChange> said;
  for (std::int64_t i = 0; i < steps; ++i) {
    if (const auto change = watch.Add(1 + waited, std::vector{0.5, 1.0})) {
      EXPECT_FALSE(said.has_value()) << "one thing at a time";
      said = change;
    }
  }
  return said;
}

TEST(AllReduceWaitMonitor, TellsOfATwentiethOfAStepAfterAHundredSteps) {
  AllReduceWaitMonitor watch;
  EXPECT_FALSE(After(watch, 100, 0.1));
  EXPECT_FALSE(After(watch, 99, 0.16));
  const auto change = After(watch, 1, 0.16);
  ASSERT_TRUE(change.has_value());
  EXPECT_TRUE(change->begins);
  EXPECT_EQ(change->steps, 100);
  EXPECT_NEAR(change->seconds, 0.16, 1e-9);
  EXPECT_NEAR(change->best, 0.1, 1e-9);
  EXPECT_NEAR(change->step, 1.16, 1e-9);
  EXPECT_FALSE(After(watch, 1000, 0.16)) << "once";
}

TEST(AllReduceWaitMonitor, SaysNothingOfLess) {
  AllReduceWaitMonitor watch;
  EXPECT_FALSE(After(watch, 100, 0.1));
  EXPECT_FALSE(After(watch, 1000, 0.157)) << "0.057 of 1.157";
}

TEST(AllReduceWaitMonitor, OneTenOfGoodStepsBeginsAfresh) {
  AllReduceWaitMonitor watch;
  EXPECT_FALSE(After(watch, 100, 0));
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(After(watch, 90, 0.5));
    EXPECT_FALSE(After(watch, 10, 0));
  }
  EXPECT_TRUE(After(watch, 100, 0.5));
}

TEST(AllReduceWaitMonitor, TellsWhenItHasBeenOverForAHundredSteps) {
  AllReduceWaitMonitor watch;
  EXPECT_FALSE(After(watch, 100, 0));
  EXPECT_TRUE(After(watch, 130, 0.5));
  EXPECT_FALSE(After(watch, 99, 0));
  const auto change = After(watch, 1, 0);
  ASSERT_TRUE(change.has_value());
  EXPECT_FALSE(change->begins);
  EXPECT_EQ(change->steps, 130);
  EXPECT_TRUE(After(watch, 100, 0.5)) << "a new spell";
}

TEST(AllReduceWaitMonitor, WhatIsSlowFromTheFirstStepIsTheMeasure) {
  AllReduceWaitMonitor watch;
  EXPECT_FALSE(After(watch, 1000, 0.5));
  EXPECT_FALSE(After(watch, 1000, 0)) << "better is no change";
  EXPECT_TRUE(After(watch, 100, 0.5));
}

// It makes all ranks wait, but not the busiest.
TEST(AllReduceWaitMonitor, ASlowRankIsNoLongSum) {
  AllReduceWaitMonitor watch;
  EXPECT_FALSE(After(watch, 100, 0.1));
  for (int i = 0; i < 500; ++i) EXPECT_FALSE(watch.Add(2.1, std::vector{0.5, 2.0}));
}

TEST(AllReduceWaitMonitor, WhatIsNotKnownCountsAsNoWait) {
  AllReduceWaitMonitor watch;
  EXPECT_FALSE(After(watch, 100, 0.1));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (int i = 0; i < 500; ++i) EXPECT_FALSE(watch.Add(2, std::vector{0.0, nan}));
  for (int i = 0; i < 99; ++i) EXPECT_FALSE(watch.Add(2, std::vector{nan, 1.0}));
  EXPECT_TRUE(watch.Add(2, std::vector{nan, 1.0})) << "of those that are known the busiest";
}

}  // namespace
}  // namespace trainer
