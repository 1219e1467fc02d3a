// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include "scaling/links.h"
#include "scaling/machine.h"
#include "scaling/step.h"

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

TEST(BusRates, OfAnotherTextAreRejectedByLine) {
  EXPECT_EQ(
      ParseBusRates("# a comment\n1024 fast\n").problem,
      "2: no line of all_reduce_perf: size, count, type, redop, root, time, algbw, busbw, ...");
  EXPECT_EQ(ParseBusRates("8 2 float sum -1 1 0 1\n4 1 float sum -1 1 0 1\n").problem,
            "2: sizes do not grow");
  EXPECT_EQ(ParseBusRates("").problem, "0: no line with a bus bandwidth");
  EXPECT_NE(ParseBusRates("8 2 float sum -1 1 0 nan\n").problem, "");
}

TEST(Machine, ThatNothingIsSaidOfIsAssumed) {
  const Links links = LinksOf({});
  EXPECT_EQ(links.gpus_per_node, 4);
  EXPECT_EQ(links.inside, 120e9);
  EXPECT_EQ(links.between, 12e9);
  EXPECT_EQ(DescribeLinks({}),
            "4 GPUs per node (assumed), nvlink2 (120 GB/s) inside (assumed), 1 adapter of 100 "
            "Gbit/s (assumed)");
}

TEST(Machine, IsWhatIsSaid) {
  Machine machine;
  EXPECT_EQ(SetMachineValue(machine, "gpus_per_node", "8"), "");
  EXPECT_EQ(SetMachineValue(machine, "inside", "12.5"), "");
  EXPECT_EQ(SetMachineValue(machine, "adapters", "2"), "");
  EXPECT_EQ(SetMachineValue(machine, "adapter_gbits", "200"), "");
  const Links links = LinksOf(machine);
  EXPECT_EQ(links.inside, 12.5e9);
  EXPECT_EQ(links.between, 48e9);
  EXPECT_EQ(DescribeLinks(machine), "8 GPUs per node, 12.5 GB/s inside, 2 adapters of 200 Gbit/s");
}

TEST(Machine, TakesTheLinksOfItsGpus) {
  Machine machine;
  SetMachineValue(machine, "gpu", "NVIDIA A100-SXM4-80GB");
  EXPECT_EQ(LinksOf(machine).inside, 230e9);
  EXPECT_EQ(LinksOf(machine).generation, Generation::kAmpere);
}

TEST(Machine, RejectsWhatIsNoValue) {
  Machine machine;
  EXPECT_EQ(SetMachineValue(machine, "gpus_per_node", "0"), "a whole number from 1 to 64");
  EXPECT_EQ(SetMachineValue(machine, "adapters", "two"), "a whole number from 1 to 64");
  EXPECT_EQ(SetMachineValue(machine, "adapter_gbits", "-1"), "a number above 0");
  EXPECT_EQ(SetMachineValue(machine, "file_system_gbs", "nan"), "a number above 0");
  EXPECT_EQ(SetMachineValue(machine, "inside", "nvlink"),
            "xbus, nvlink2, nvlink3, nvlink4, pcie3, pcie4, or a number of GB/s");
  EXPECT_EQ(SetMachineValue(machine, "gpu", ""), "the name of a GPU");
}

TEST(Gpus, AreKnownByPartsOfTheirNames) {
  ASSERT_NE(FindGpu("Tesla V100-SXM2-32GB"), nullptr);
  EXPECT_EQ(FindGpu("v100")->watts, 300);
  EXPECT_EQ(FindGpu("NVIDIA H200")->name, "h200");
  EXPECT_EQ(FindGpu("RTX 9090"), nullptr);
  EXPECT_EQ(FindGpu(""), nullptr);
}

TEST(Gpus, HaveASpeedForEachPrecisionThatIsKnown) {
  EXPECT_EQ(SpeedOf(*FindGpu("v100"), "fp16"), 1270);
  EXPECT_EQ(SpeedOf(*FindGpu("v100"), "fp32"), 367);
  EXPECT_EQ(SpeedOf(*FindGpu("v100"), "tf32"), 0);
  EXPECT_EQ(SpeedOf(*FindGpu("a100"), "tf32"), 938);
}

TEST(LargestBatch, IsTheLastMultipleOfEightThatFits) {
  for (const char* precision : {"fp16", "bf16", "amp", "tf32", "fp32"}) {
    for (const double memory : {8e9, 16e9, 32e9, 80e9, 141e9}) {
      const auto batch = LargestBatch(precision, memory);
      EXPECT_GT(batch, 0);
      EXPECT_EQ(batch % 8, 0);
      EXPECT_LE(EstimateMemory(precision, batch), memory) << precision << " " << memory;
      EXPECT_GT(EstimateMemory(precision, batch + 8), memory) << precision << " " << memory;
    }
  }
}

TEST(LargestBatch, IsNoneWhereNothingFits) {
  EXPECT_EQ(LargestBatch("fp16", 1e9), 0);
  EXPECT_EQ(LargestBatch("fp32", 0), 0);
}

// What people train with: 256 images in fp16 and 128 in fp32 on 16 GB of a V100.
TEST(LargestBatch, HoldsWhatAV100IsKnownToHold) {
  EXPECT_GE(LargestBatch("fp16", MemoryOf("V100")), 256);
  EXPECT_GE(LargestBatch("fp32", MemoryOf("V100")), 128);
  EXPECT_LT(LargestBatch("fp32", MemoryOf("V100")), 256);
}

TEST(MemoryOf, IsAsTheNameSaysOrElseTheLeastThatIsSold) {
  EXPECT_EQ(MemoryOf("V100-SXM2-32GB"), 32e9);
  EXPECT_EQ(MemoryOf("Tesla V100-SXM2-16GB"), 16e9);
  EXPECT_EQ(MemoryOf("v100"), 16e9);
  EXPECT_EQ(MemoryOf("A100"), 40e9);
  EXPECT_EQ(MemoryOf("NVIDIA A100-SXM4-80GB"), 80e9);
  EXPECT_EQ(MemoryOf("H100"), 80e9);
  EXPECT_EQ(MemoryOf("h200"), 141e9);
  EXPECT_EQ(MemoryOf("Some 12GB card"), 12e9);
  EXPECT_EQ(MemoryOf("GB10"), 0) << "no number before it";
  EXPECT_EQ(MemoryOf("K80"), 0);
  EXPECT_EQ(MemoryOf(""), 0);
}

// 10 GB/s between nodes of one GPU, so that hops take next to nothing of these sizes.
Links Plain() { return {.gpus_per_node = 1, .inside = 10e9, .between = 10e9}; }

// 0.3 s, of which 0.2 backward; two buckets that take 0.1 s each on two ranks.
StepWork TwoBuckets() { return {.alone = 0.3, .buckets = {{1e9, 0.5}, {1e9, 1}}}; }

TEST(ExpectedLargest, IsThatOfNormalDraws) {
  EXPECT_EQ(ExpectedLargest(1), 0);
  EXPECT_NEAR(ExpectedLargest(2), 0.5642, 1e-4);  // 1 / sqrt(pi)
  EXPECT_NEAR(ExpectedLargest(3), 0.8463, 1e-4);  // 1.5 / sqrt(pi)
  EXPECT_NEAR(ExpectedLargest(10), 1.5388, 1e-4);
  EXPECT_NEAR(ExpectedLargest(1000), 3.2414, 1e-4);
}

TEST(StepBreakdownOf, OfOneRankAreItsComputation) {
  const StepBreakdown parts = StepBreakdownOf(TwoBuckets(), Plain(), 1);
  EXPECT_EQ(parts.total(), 0.3);
  EXPECT_EQ(parts.sums, 0);
}

TEST(StepBreakdownOf, HideSumsBehindBackward) {
  // The first runs from 0.1 to 0.2 s of backward, the second behind it.
  const StepBreakdown parts = StepBreakdownOf(TwoBuckets(), Plain(), 2);
  EXPECT_NEAR(parts.sums, 0.2, 1e-3);
  EXPECT_NEAR(parts.exposed, 0.1, 1e-3);
  EXPECT_NEAR(parts.total(), 0.4, 1e-3);
}

TEST(StepBreakdownOf, QueueSumsThatBackwardCannotHide) {
  Links slow = Plain();
  slow.between = 2e9;  // 0.5 s each, from 0.1 s on
  EXPECT_NEAR(StepBreakdownOf(TwoBuckets(), slow, 2).exposed, 0.9, 1e-2);
}

TEST(StepBreakdownOf, WithoutOverlapAddAllSums) {
  StepWork work = TwoBuckets();
  work.overlaps = false;
  EXPECT_NEAR(StepBreakdownOf(work, Plain(), 2).exposed, 0.2, 1e-3);
}

TEST(StepBreakdownOf, StartSumsWithACycle) {
  StepWork work = TwoBuckets();
  work.cycle = 0.06;
  // The second waits until 0.24.
  EXPECT_NEAR(StepBreakdownOf(work, Plain(), 2).exposed, 0.14, 1e-3);
}

TEST(StepBreakdownOf, AddTheWayToHostMemoryAndBack) {
  StepWork work = TwoBuckets();
  work.staging_rate = 20e9;
  EXPECT_NEAR(StepBreakdownOf(work, Plain(), 2).exposed, 0.1 + 0.2, 1e-3);
}

TEST(StepBreakdownOf, WaitForTheSlowestRank) {
  StepWork work = TwoBuckets();
  work.spread = 0.01;
  EXPECT_NEAR(StepBreakdownOf(work, Plain(), 2).slowest, 0.005642, 1e-6);
  EXPECT_NEAR(StepBreakdownOf(work, Plain(), 1000).slowest, 0.032414, 1e-6);
}

TEST(StepBreakdownOf, WaitBetweenNodesOnly) {
  Links links = Plain();
  links.gpus_per_node = 4;
  StepWork work = TwoBuckets();
  work.wait_between = 0.02;
  EXPECT_EQ(StepBreakdownOf(work, links, 4).wait, 0);
  EXPECT_EQ(StepBreakdownOf(work, links, 8).wait, 0.02);
}

}  // namespace
}  // namespace scaling
