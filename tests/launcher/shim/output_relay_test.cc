// SPDX-License-Identifier: Apache-2.0

#include "launcher/shim/output_relay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace launcher {
namespace {

using ::testing::ElementsAre;

void Add(const std::string& text, StreamTail* tail) { tail->Add(text.data(), text.size()); }

std::vector<std::string> LinesOf(const StreamTail& tail) {
  std::vector<std::string> lines;
  for (int i = 0; i < tail.size(); ++i) lines.emplace_back(tail.line(i));
  return lines;
}

TEST(ShimTail, PutsLinesTogetherFromPiecesAndPassesEmptyOnesOver) {
  StreamTail tail;
  Add("a\n\nb", &tail);
  Add("c\rd", &tail);
  EXPECT_THAT(LinesOf(tail), ElementsAre("a", "bc"));
  tail.End();
  tail.End();
  EXPECT_THAT(LinesOf(tail), ElementsAre("a", "bc", "d"));
}

TEST(ShimTail, KeepsTheLastTenLinesAndTheStartOfLongOnes) {
  StreamTail tail;
  for (int i = 0; i < 25; ++i) Add(std::to_string(i) + "\n", &tail);
  Add(std::string(5000, 'x') + "\n", &tail);
  ASSERT_EQ(LinesOf(tail).size(), 10U);
  EXPECT_EQ(LinesOf(tail).front(), "16");
  EXPECT_EQ(LinesOf(tail).back(), std::string(kReportedLineBytes, 'x'));
}

}  // namespace
}  // namespace launcher
