// SPDX-License-Identifier: Apache-2.0

#include "launcher/health/node/gpu_details.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "launcher/health/node/gpu_facts.h"
#include "tests/support/folders.h"

namespace launcher {
namespace {

const std::string kNvmlOfTests = tests::BuildFolder() + "/tests/libfake_nvml.so";

// The text of the detail of this name; "" where there is none.
std::string TextOf(const Details& details, const std::string& name) {
  for (const Detail& detail : details) {
    if (detail.name == name) return detail.text;
  }
  return "";
}

Details PlacesOf(const std::string& nvml) {
  GpuSources sources;
  sources.nvml = kNvmlOfTests;
  NodeFacts facts;
  ReadGpuFacts(sources, facts);
  Details details;
  ReadGpuPlaces(nvml, "/nowhere", facts.gpus, details);
  return details;
}

TEST(GpuDetails, TellTheDriver) {
  Details details;
  ReadGpuLibraries(kNvmlOfTests, "/nowhere", details);
  EXPECT_EQ(TextOf(details, "NVIDIA driver"), "535.104.05, CUDA up to 12.2");
}

TEST(GpuDetails, TellEachGpuAndTheWayBetween) {
  const Details details = PlacesOf(kNvmlOfTests);
  EXPECT_EQ(TextOf(details, "GPU 0"),
            "PCI 0004:04:00.0, 16384 MiB, 300 W at most, slowed down by heat");
  EXPECT_EQ(TextOf(details, "GPU 1"), "PCI 0004:05:00.0, 16384 MiB, 300 W at most");
  EXPECT_EQ(TextOf(details, "pairs of GPUs"), "between NUMA nodes: all");
  setenv("FAKE_NVML", "nvlink", 1);
  EXPECT_EQ(TextOf(PlacesOf(kNvmlOfTests), "pairs of GPUs"), "NVLink: all");
  unsetenv("FAKE_NVML");
}

TEST(GpuDetails, WithoutNvmlAreThePlacesAlone) {
  const Details details = PlacesOf("/nowhere/libnvidia-ml.so");
  ASSERT_EQ(details.size(), 2U);
  EXPECT_EQ(details[1].text, "PCI 0004:05:00.0");
}

TEST(GpuDetails, ReadVersionsOfOldAndNewLibraries) {
  EXPECT_EQ(NcclVersionText(2708), "2.7.8");
  EXPECT_EQ(NcclVersionText(20906), "2.9.6");
  EXPECT_EQ(NcclVersionText(21805), "2.18.5");
  EXPECT_EQ(CudnnVersionText(7605), "7.6.5");
  EXPECT_EQ(CudnnVersionText(8902), "8.9.2");
  EXPECT_EQ(CudnnVersionText(91900), "9.19.0");
}

}  // namespace
}  // namespace launcher
