// SPDX-License-Identifier: Apache-2.0

#include "launcher/topology/gpus_of_node.h"

#include <gtest/gtest.h>

#include <string>

namespace launcher {
namespace {

TEST(GpuLists, NumberAndEntryAtAPosition) {
  EXPECT_EQ(GpuNumberAt("0,2-4,7", 0), 0);
  EXPECT_EQ(GpuNumberAt("0,2-4,7", 3), 4);
  EXPECT_EQ(GpuNumberAt("0,2-4,7", 4), 7);
  EXPECT_EQ(GpuNumberAt("0,2-4,7", 5), -1);
  EXPECT_EQ(GpuNumberAt("0,MIG-3,1", 1), -1);
  EXPECT_EQ(GpuNumberAt("3a,1", 0), -1);
  EXPECT_EQ(GpuNumberAt("3-,1", 0), -1);
  EXPECT_STREQ(GpuEntryAt("MIG-a, MIG-b ,MIG-c", 1).text, "MIG-b");
  EXPECT_STREQ(GpuEntryAt("2,3", 3).text, "3");
  EXPECT_STREQ(GpuEntryAt("", 1).text, "");
  EXPECT_STREQ(GpuEntryAt(std::string(200, 'x').c_str(), 0).text, "");
  EXPECT_TRUE(AreGpuSlices("MIG-a"));
  EXPECT_FALSE(AreGpuSlices("GPU-a,MIG-b"));
}

}  // namespace
}  // namespace launcher
