// SPDX-License-Identifier: Apache-2.0

#include "launcher/base/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace launcher {
namespace {

TEST(Environment, SnapshotHoldsValuesWithEqualsSignsAndNewlines) {
  setenv("DDLRUN_TEST_VALUE", "a=b\nc", 1);
  EXPECT_EQ(SnapshotEnvironment().at("DDLRUN_TEST_VALUE"), "a=b\nc");
  unsetenv("DDLRUN_TEST_VALUE");
}

TEST(Environment, StringsAreForExecve) {
  EXPECT_THAT(ToStrings({{"B", "2"}, {"A", ""}}), testing::ElementsAre("A=", "B=2"));
}

TEST(Environment, CanDoWithoutDefaultsOfSlurmTools) {
  EXPECT_THAT(ToStrings(WithoutDefaultsOfSlurmTools({{"SCANCEL_STATE", "PENDING"},
                                                     {"SLURM_CONF", "a"},
                                                     {"SQUEUE_FORMAT", "%i"},
                                                     {"SQUEUED", "b"}})),
              testing::ElementsAre("SLURM_CONF=a", "SQUEUED=b"));
}

TEST(Environment, AnEmptyVariableCountsAsNotSet) {
  const Environment environment = {{"EMPTY", ""}, {"FULL", "x"}};
  EXPECT_EQ(ValueOr(environment, "FULL", "y"), "x");
  EXPECT_EQ(ValueOr(environment, "EMPTY", "y"), "y");
  EXPECT_EQ(ValueOr(environment, "MISSING", "y"), "y");
}

}  // namespace
}  // namespace launcher
