// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/watch/slow_links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <sstream>

#include "tests/trainer/train/thread_ranks.h"

namespace trainer {
namespace {

using testing::HasSubstr;
using testing::Not;

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

constexpr SumChange kBegins = {
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
        SlowLinks links(communicator,
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

TEST(SlowLinks, TellsInTheLogOfRankZeroWhichLinkItIs) {
  const auto logs = LogsOf({"n1", "n1", "n2", "n2"});
  EXPECT_THAT(logs[0],
              HasSubstr("for 100 steps ranks have waited for their sums 110.0 ms in each, "
                        "10.0 before (the whole step takes "
                        "200.0): rank 2 on n2 hears from rank 1 on n1 at 125.0 MB/s, 250.0 "
                        "MB/s when training began (median of "
                        "the 2 links: 125.0 MB/s)"));
  EXPECT_THAT(logs[0],
              HasSubstr("sums over the ranks take no longer than before; they did for 160 steps"));
  EXPECT_EQ(logs[1] + logs[2] + logs[3], "");
}

TEST(SlowLinks, OneHostHasNone) {
  for (const std::string& log : LogsOf({"n1", "n1", "n1", "n1"})) EXPECT_EQ(log, "");
}

TEST(SlowLinks, SaysNothingWhereRanksCannotBeMeasured) {
  std::ostringstream log;
  RunRanks(2, [&](Communicator& communicator) {
    std::ostringstream other;
    SlowLinks links(communicator, MakeLogger(communicator.rank() == 0 ? log : other,
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

}  // namespace
}  // namespace trainer
