// SPDX-License-Identifier: Apache-2.0

#include "support/unknown_argument.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <string>

namespace support {
namespace {

TEST(DescribeUnknownArgument, NamesWhatWasMeantOrWhereAllAreListed) {
  CLI::App app;
  int steps = 0;
  app.add_option("-s,--steps", steps);
  app.add_subcommand("sweep");
  const auto described = [&](const std::string& argument) {
    return DescribeUnknownArgument(argument, app, "ddlbench");
  };
  EXPECT_EQ(described("--step"), "unknown argument --step; did you mean --steps?");
  EXPECT_EQ(described("--step=9"), "unknown argument --step=9; did you mean --steps?");
  EXPECT_EQ(described("swep"), "unknown argument swep; did you mean sweep?");
  EXPECT_EQ(described("--colour"), "unknown argument --colour (ddlbench --help lists all)");
}

}  // namespace
}  // namespace support
