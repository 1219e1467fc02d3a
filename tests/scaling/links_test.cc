// SPDX-License-Identifier: Apache-2.0

#include "scaling/links.h"

#include <gtest/gtest.h>

#include "scaling/bus_rates.h"

namespace scaling {
namespace {

constexpr double kMega = 1e6;

Links Bede() { return {.gpus_per_node = 4, .inside = 32e9, .between = 2 * AdapterRate(100)}; }

TEST(JoinedLinks, AreTheSlowerOfBoth) {
  const Links quick = {.gpus_per_node = 8,
                       .inside = 360e9,
                       .between = 48e9,
                       .more_delay = 1e-6,
                       .generation = Generation::kHopper};
  const Links pcie = {.gpus_per_node = 2,
                      .inside = 12e9,
                      .inside_is_pcie = true,
                      .between = 96e9,
                      .more_delay = 2e-6};
  for (const Links& both : {JoinedLinks(quick, 20, pcie, 4), JoinedLinks(pcie, 8, quick, 3)}) {
    EXPECT_EQ(both.nodes, 7) << "20 ranks fill three of eight";
    EXPECT_EQ(NodesOf(both, 28), 7);
    EXPECT_EQ(both.gpus_per_node, 8);
    EXPECT_EQ(both.inside, 12e9);
    EXPECT_TRUE(both.inside_is_pcie);
    EXPECT_EQ(both.between, 48e9);
    EXPECT_EQ(both.more_delay, 2e-6);
    EXPECT_EQ(both.generation, Generation::kVolta);
  }
}

TEST(JoinedLinks, NodesOfOneGpuHaveNoneInside) {
  const Links one = {.gpus_per_node = 1, .inside = 1e9, .inside_is_pcie = true};
  for (const Links& both : {JoinedLinks(one, 3, Bede(), 2), JoinedLinks(Bede(), 8, one, 3)}) {
    EXPECT_EQ(both.nodes, 5);
    EXPECT_EQ(both.inside, 32e9);
    EXPECT_FALSE(both.inside_is_pcie);
  }
}

TEST(AllReduce, OfOneRankTakesNoTime) { EXPECT_EQ(AllReduceSeconds(Bede(), 1, 102 * kMega), 0); }

TEST(AllReduce, OfManyBytesIsBoundByTheRing) {
  // 2 (n - 1) / n of the bytes over the slowest link, and 3.4 us for each of 6 hops.
  EXPECT_NEAR(AllReduceSeconds(Bede(), 4, 100 * kMega), 1.5 * 100e6 / 32e9 + 28.8e-6, 1e-9);
  // Of eight nodes the adapters are the slowest link: 16 of 62 hops are between nodes.
  EXPECT_NEAR(AllReduceSeconds(Bede(), 32, 1000 * kMega),
              2 * 31.0 / 32 * 1e9 / 24e9 + (8.4 + 46 * 3.4 + 16 * 14.0) * 1e-6, 1e-9);
}

TEST(AllReduce, OfFewBytesIsBoundByHops) {
  // A tree by LL: the chain of 4 GPUs, and log2(8) hops between nodes, both ways.
  EXPECT_NEAR(AllReduceSeconds(Bede(), 32, 8), (6.8 + 6 * 0.6 + 6 * 5.0) * 1e-6, 1e-8);
  // A ring's hops grow with the ranks, a tree's with their logarithm.
  const double at_512 = AllReduceSeconds(Bede(), 512 * 4, 8);
  const double at_4096 = AllReduceSeconds(Bede(), 4096 * 4, 8);
  EXPECT_NEAR(at_4096 - at_512, 6 * 5.0e-6, 1e-9);
}

TEST(AllReduce, HardlyGrowsFromFourNodesToEight) {
  const double four = AllReduceSeconds(Bede(), 16, 102 * kMega);
  const double eight = AllReduceSeconds(Bede(), 32, 102 * kMega);
  EXPECT_GT(eight, four);
  EXPECT_LT(eight, 1.1 * four);
}

TEST(AllReduce, TakesWhatWasMeasuredBetweenNodes) {
  Links links = Bede();
  links.measured = {{1e6, 4e9}, {1e8, 16e9}};
  EXPECT_NEAR(AllReduceSeconds(links, 8, 1e8), 2 * 7.0 / 8 * 1e8 / 16e9, 1e-9);
  EXPECT_NEAR(AllReduceSeconds(links, 8, 1e7), 2 * 7.0 / 8 * 1e7 / 8e9, 1e-9);
  EXPECT_NEAR(AllReduceSeconds(links, 8, 1e9), 2 * 7.0 / 8 * 1e9 / 16e9, 1e-9);
  // Inside a node the link counts.
  EXPECT_NEAR(AllReduceSeconds(links, 4, 1e9), 1.5 * 1e9 / 32e9, 1e-4);
}

TEST(InsideNames, AreLinksThatGpusHave) {
  EXPECT_EQ(InsideOfName("xbus")->rate, 32e9);
  EXPECT_TRUE(InsideOfName("pcie3")->is_pcie);
  EXPECT_EQ(InsideOfName("nvlink3")->generation, Generation::kAmpere);
  EXPECT_FALSE(InsideOfName("nvlink9"));
}

constexpr char kTable[] =
    "# nThread 1 nGpus 1 minBytes 8\n"
    "#       size         count      type   redop    root     time   algbw   busbw #wrong\n"
    "           8             2     float     sum      -1    24.31    0.00    0.00      0    23.0 "
    "0.00 0.00 0\n"
    "     1048576        262144     float     sum      -1   200.00    5.24    9.83      0   199.0 "
    "5.2 9.8 0\n"
    "\n"
    "   134217728      33554432     float     sum      -1 12000.00   11.18   20.97      0 12000 "
    "11.2 20.9 0\n"
    "# Avg bus bandwidth    : 10.2\n";

TEST(BusRates, AreReadFromTheTableOfNcclTests) {
  const BusRateTable table = ParseBusRates(kTable);
  EXPECT_EQ(table.problem, "");
  ASSERT_EQ(table.rates.size(), 2u);
  EXPECT_EQ(table.rates[0].bytes, 1048576);
  EXPECT_NEAR(table.rates[1].rate, 20.97e9, 1);
}

TEST(BusRates, OfAnotherTextAreRefusedByLine) {
  EXPECT_EQ(
      ParseBusRates("# a comment\n1024 fast\n").problem,
      "2: no line of all_reduce_perf: size, count, type, redop, root, time, algbw, busbw, ...");
  EXPECT_EQ(ParseBusRates("8 2 float sum -1 1 0 1\n4 1 float sum -1 1 0 1\n").problem,
            "2: sizes do not grow");
  EXPECT_EQ(ParseBusRates("").problem, "0: no line with a bus bandwidth");
  EXPECT_NE(ParseBusRates("8 2 float sum -1 1 0 nan\n").problem, "");
}

}  // namespace
}  // namespace scaling
