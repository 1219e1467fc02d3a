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

TEST(Environment, AnEmptyVariableCountsAsNotSet) {
  const Environment environment = {{"EMPTY", ""}, {"FULL", "x"}};
  EXPECT_EQ(ValueOr(environment, "FULL", "y"), "x");
  EXPECT_EQ(ValueOr(environment, "EMPTY", "y"), "y");
  EXPECT_EQ(ValueOr(environment, "MISSING", "y"), "y");
}

}  // namespace
}  // namespace launcher
