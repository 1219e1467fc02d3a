// SPDX-License-Identifier: Apache-2.0

#include "scaling/machine.h"

#include <gtest/gtest.h>

#include "scaling/gpus.h"

namespace scaling {
namespace {

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

TEST(Machine, RefusesWhatIsNoValue) {
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

}  // namespace
}  // namespace scaling
