// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/text/redrawn_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "trainer/telemetry/text/log.h"

namespace trainer {
namespace {

using testing::MatchesRegex;

TEST(RedrawnLine, OtherLinesBeginBehindIt) {
  std::ostringstream out;
  RedrawnLine line(out);
  line.Write("a\n");
  line.Draw("1");
  line.Draw("2");
  line.Write("b\nc\n");
  line.Write("d\n");
  line.Draw("3");
  line.End();
  line.End();
  EXPECT_EQ(out.str(), "a\n\r1\x1b[K\r2\x1b[K\nb\nc\nd\n\r3\x1b[K\n");
}

TEST(RedrawnLine, LinesOfTheLogDo) {
  std::ostringstream out;
  RedrawnLine line(out);
  const Logger log = MakeLogger(line, 2, "info");
  line.Draw("1");
  log->warn("late");
  log->debug("never");
  EXPECT_THAT(out.str(), MatchesRegex("\r1\x1b\\[K\n20[^ ]* \\[rank 2\\] warning: late\n"));
}

// A disk that was full, or a terminal that answers EIO once.
TEST(RedrawnLine, GoesOnBehindWhatWasLost) {
  struct FailsOnce : std::stringbuf {
    bool has_failed = false;
    int sync() override { return std::exchange(has_failed, true) ? 0 : -1; }
  };
  FailsOnce buffer;
  std::ostream out(&buffer);
  RedrawnLine line(out);
  line.Write("a\n");
  EXPECT_FALSE(out);
  line.Write("b\n");
  EXPECT_TRUE(out);
  EXPECT_THAT(buffer.str(), testing::EndsWith("b\n"));
}

// Whoever writes meanwhile.
TEST(RedrawnLine, IsWholeAndAloneWithManyThreads) {
  constexpr int kThreads = 4;
  constexpr int kTimes = 1000;
  std::ostringstream out;
  RedrawnLine line(out);
  const Logger log = MakeLogger(line, 0, "info");
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int time = 0; time < kTimes; ++time) {
        if (i % 2 == 0) {
          line.Draw("bar");
        } else {
          log->info("text");
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  line.End();
  int logged = 0;
  std::istringstream text(out.str());
  for (std::string found; std::getline(text, found);) {
    const bool is_bar = found.find("bar") != std::string::npos;
    const bool is_log = found.find("text") != std::string::npos;
    ASSERT_NE(is_bar, is_log) << found;
    logged += is_log ? 1 : 0;
  }
  EXPECT_EQ(logged, kThreads / 2 * kTimes);
}

}  // namespace
}  // namespace trainer
