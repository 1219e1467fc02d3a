// SPDX-License-Identifier: Apache-2.0

#include "launcher/report/software.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace launcher {
namespace {

TEST(ConfigurationLines, HaveWhatDecidesHowRanksStart) {
  const std::vector<ReportLine> lines = ConfigurationLines(
      "Configuration data as of 2026-11-27T09:30:00\n"
      "AccountingStoragePass   = secret\n"
      "MpiDefault              = pmix\n"
      "MpiParams               = (null)\n"
      "SlurmctldHost[0]        = master(10.0.0.1)\n"
      "TaskPlugin              = task/affinity,task/cgroup\n"
      "SwitchType              = \n"
      "\nCgroup Support Configuration:\n"
      "ConstrainDevices        = yes\n");
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0].name, "MpiDefault");
  EXPECT_EQ(lines[0].text, "pmix");
  EXPECT_EQ(lines[1].text, "task/affinity,task/cgroup");
  EXPECT_EQ(lines[2].name, "ConstrainDevices");
}

}  // namespace
}  // namespace launcher
