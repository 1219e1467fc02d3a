// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/failure_report.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

TEST(Tail, KeepsTheLastLinesShort) {
  Tail tail;
  tail.Add("");
  for (int i = 0; i < 15; ++i) tail.Add(std::to_string(i));
  tail.Add(std::string(1000, 'x'));
  EXPECT_EQ(tail.lines().size(), std::size_t{kReportedLines});
  EXPECT_EQ(tail.lines().front(), "6");
  EXPECT_EQ(tail.lines().back().size(), kReportedLineBytes);
}

}  // namespace
}  // namespace launcher
