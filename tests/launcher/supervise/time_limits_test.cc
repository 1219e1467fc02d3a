// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/time_limits.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/test.h"

namespace launcher {
namespace {

TEST(Deadlines, TheFirstOfThemCounts) {
  using std::chrono::microseconds;
  const std::chrono::steady_clock::time_point now{std::chrono::seconds(10)};
  EXPECT_EQ(MillisecondsLeft({}, now), -1);
  EXPECT_EQ(MillisecondsLeft({std::nullopt, std::nullopt}, now), -1);
  EXPECT_EQ(
      MillisecondsLeft({now + microseconds(5000), std::nullopt, now + microseconds(2001)}, now), 3);
  EXPECT_EQ(MillisecondsLeft({now + microseconds(5000), now - microseconds(5000)}, now), 0);
}

using Over = TimeLimits::Over;
using std::chrono::milliseconds;

constexpr milliseconds kStart{100};
constexpr milliseconds kEnd{1000};

TimeLimits::Clock::time_point At(int ms) { return TimeLimits::Clock::time_point(milliseconds(ms)); }

TEST(TimeLimits, OfAStart) {
  TimeLimits limits(kStart, kEnd, 2);
  EXPECT_FALSE(limits.is_starting());
  EXPECT_EQ(limits.deadline(), std::nullopt);
  limits.ExpectStart(At(10));
  EXPECT_TRUE(limits.is_starting());
  EXPECT_EQ(limits.deadline(), At(110));
  limits.SetStarted(1, At(50));
  EXPECT_EQ(limits.Look(At(109)), Over::kNothing);
  EXPECT_EQ(limits.Look(At(110)), Over::kStart);
  limits.SetStarted(2, At(111));
  EXPECT_FALSE(limits.is_starting());
  EXPECT_EQ(limits.Look(At(100000)), Over::kNothing);
}

TEST(TimeLimits, OfAStartDoesNotCountTheWaitForResources) {
  TimeLimits limits(kStart, kEnd, 2);
  limits.ExpectStart(At(0));
  limits.AwaitResources();
  EXPECT_EQ(limits.Look(At(5000)), Over::kNothing);
  limits.BeginAnew(At(5000));  // they still wait
  EXPECT_EQ(limits.deadline(), std::nullopt);
  limits.ExpectStart(At(6000));
  EXPECT_EQ(limits.Look(At(6100)), Over::kStart);
}

TEST(TimeLimits, OfAStartEndWhereNobodyHearsOfIt) {
  TimeLimits limits(kStart, kEnd, 2);
  limits.ExpectStart(At(0));
  limits.GiveStartUp();
  EXPECT_EQ(limits.Look(At(5000)), Over::kNothing);
  limits.SetEnded(1, At(5000));
  EXPECT_EQ(limits.Look(At(6000)), Over::kEnd);
}

TEST(TimeLimits, OfAnEndBeginWithTheFirstRank) {
  TimeLimits limits(kStart, kEnd, 3);
  limits.SetEnded(0, At(10));
  EXPECT_EQ(limits.deadline(), std::nullopt);
  limits.SetEnded(1, At(10));
  limits.SetEnded(2, At(500));
  limits.AwaitResources();  // only of a start
  EXPECT_EQ(limits.Look(At(1009)), Over::kNothing);
  EXPECT_EQ(limits.Look(At(1010)), Over::kEnd);
  limits.SetEnded(3, At(1011));
  EXPECT_EQ(limits.Look(At(100000)), Over::kNothing);
}

TEST(TimeLimits, OfAnEndBeginWhenAllHaveStarted) {
  TimeLimits limits(kStart, kEnd, 2);
  limits.ExpectStart(At(0));
  limits.SetEnded(1, At(10));
  EXPECT_EQ(limits.deadline(), At(100));
  limits.SetStarted(2, At(50));
  EXPECT_EQ(limits.deadline(), At(1050));
}

TEST(TimeLimits, BeginAnew) {
  TimeLimits limits(kStart, kEnd, 2);
  limits.ExpectStart(At(0));
  limits.BeginAnew(At(100));
  EXPECT_EQ(limits.deadline(), At(200));
  limits.SetStarted(2, At(150));
  limits.BeginAnew(At(150));
  EXPECT_EQ(limits.deadline(), std::nullopt);
  limits.SetEnded(1, At(200));
  limits.BeginAnew(At(1200));
  EXPECT_EQ(limits.deadline(), At(2200));
}

TEST(TimeLimits, AreNoneWhereTheyAreZero) {
  TimeLimits limits(milliseconds(0), milliseconds(0), 2);
  limits.ExpectStart(At(0));
  EXPECT_EQ(limits.Look(At(100000)), Over::kNothing);
  limits.SetStarted(2, At(0));
  limits.SetEnded(1, At(0));
  EXPECT_EQ(limits.Look(At(100000)), Over::kNothing);
}

using std::chrono::seconds;
using Clock = TimeLimitWatcher::Clock;

class EndOfJobTest : public testing::Test {
 protected:
  // The job ends in 100 s as it seems, and its ranks are to be told 20 s before.
  EndOfJobTest() {
    options_.end = start_ + seconds(100);
    options_.margin = seconds(20);
    options_.seconds_left = [this](const std::string& text) -> std::optional<double> {
      ++answers_;
      if (text == "never\n") return std::numeric_limits<double>::infinity();
      if (text.find_first_not_of("0123456789\n") != std::string::npos) return std::nullopt;
      return std::stod(text);
    };
  }

  void Answers(const std::string& script) { options_.question = {"/bin/sh", "-c", script}; }

  Clock::time_point At(double second) const {
    return start_ +
           std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(second));
  }

  // Looks again and again, at the time `now`, until that is so.
  bool DeadlineBecomes(TimeLimitWatcher& job, std::optional<Clock::time_point> deadline,
                       std::optional<Clock::time_point> now = std::nullopt) const {
    for (int i = 0; i < 1000; ++i) {
      EXPECT_FALSE(job.Look(now.value_or(At(76))));
      if (job.deadline() == deadline) return true;
      usleep(10000);
    }
    return false;
  }

  const Clock::time_point start_ = Clock::now();
  TimeLimitWatcherOptions options_;
  int answers_ = 0;  // that were read
};

TEST_F(EndOfJobTest, WithoutAnEndNobodyIsTold) {
  const TimeLimitWatcherOptions none;
  TimeLimitWatcher job(none);
  EXPECT_EQ(job.deadline(), std::nullopt);
  EXPECT_FALSE(job.Look(At(1e6)));
}

TEST_F(EndOfJobTest, RanksAreToldOnceSoLongBefore) {
  TimeLimitWatcher job(options_);
  EXPECT_EQ(job.deadline(), At(75));
  EXPECT_FALSE(job.Look(At(74.9)));
  EXPECT_FALSE(job.Look(At(75)));
  EXPECT_EQ(job.deadline(), At(80));
  EXPECT_FALSE(job.Look(At(79.9)));
  EXPECT_TRUE(job.Look(At(80)));
  EXPECT_EQ(job.deadline(), std::nullopt);
  EXPECT_FALSE(job.Look(At(81)));
}

TEST_F(EndOfJobTest, AnEndThatIsLaterIsNoticedAndAskedForAgain) {
  Answers("echo 500");
  TimeLimitWatcher job(options_);
  EXPECT_FALSE(job.Look(At(75)));
  EXPECT_EQ(job.deadline(), At(80));
  EXPECT_GT(job.question(), 0);
  ASSERT_TRUE(DeadlineBecomes(job, At(75 + 500 - 20 - 5)));
  EXPECT_EQ(job.end(), At(75 + 500));
  EXPECT_EQ(job.question(), 0);
  EXPECT_FALSE(job.Look(At(100)));
  EXPECT_FALSE(job.Look(At(551)));
  ASSERT_TRUE(DeadlineBecomes(job, At(551 + 500 - 20 - 5), At(551)));
}

// As after a restart of the ranks of a job whose limit was extended.
TEST_F(EndOfJobTest, AnEndThatIsOverIsAskedForBeforeTheRanksAreTold) {
  Answers("echo 500");
  TimeLimitWatcher extended(options_);
  EXPECT_FALSE(extended.Look(At(200)));
  EXPECT_EQ(extended.deadline(), At(205));
  ASSERT_TRUE(DeadlineBecomes(extended, At(200 + 500 - 20 - 5), At(201)));
  EXPECT_EQ(extended.end(), At(700));

  Answers("sleep 1000");
  TimeLimitWatcher silent(options_);
  EXPECT_FALSE(silent.Look(At(200)));
  EXPECT_FALSE(silent.Look(At(204.9)));
  EXPECT_TRUE(silent.Look(At(205)));
  EXPECT_EQ(silent.end(), At(100));
}

TEST_F(EndOfJobTest, AQuestionThatIsLeftAtTheEndIsNotWaitedFor) {
  Answers("sleep 1000");
  TimeLimitWatcher job(options_);
  EXPECT_FALSE(job.Look(At(75)));
  EXPECT_GT(job.question(), 0);
  job.StopAsking();
  EXPECT_EQ(job.question(), 0);
}

TEST_F(EndOfJobTest, ALimitThatWasTakenAwayIsNone) {
  Answers("echo never");
  TimeLimitWatcher job(options_);
  EXPECT_FALSE(job.Look(At(75)));
  ASSERT_TRUE(DeadlineBecomes(job, std::nullopt));
  EXPECT_EQ(job.end(), std::nullopt);
  EXPECT_FALSE(job.Look(At(1000)));
}

TEST_F(EndOfJobTest, TheSameEndChangesNothing) {
  for (const char* script : {"echo 24", "echo 26", "echo what"}) {
    Answers(script);
    answers_ = 0;
    TimeLimitWatcher job(options_);
    EXPECT_FALSE(job.Look(At(75)));
    for (int i = 0; i < 1000 && answers_ == 0; ++i) {
      usleep(10000);
      EXPECT_FALSE(job.Look(At(76))) << script;
    }
    EXPECT_EQ(answers_, 1) << script;
    EXPECT_EQ(job.deadline(), At(80)) << script;
    EXPECT_FALSE(job.Look(At(79))) << script;
    EXPECT_TRUE(job.Look(At(80))) << script;
  }
}

TEST_F(EndOfJobTest, NoAnswerChangesNothing) {
  for (const char* script : {"echo 500; exit 1", "sleep 1000"}) {
    Answers(script);
    TimeLimitWatcher job(options_);
    EXPECT_FALSE(job.Look(At(75)));
    EXPECT_EQ(job.deadline(), At(80)) << script;
    EXPECT_TRUE(job.Look(At(80))) << script;
  }
}

TEST_F(EndOfJobTest, ACommandThatIsNotThereChangesNothing) {
  options_.question = {"/nonexistent/scontrol"};
  TimeLimitWatcher job(options_);
  EXPECT_FALSE(job.Look(At(75)));
  EXPECT_TRUE(job.Look(At(80)));
}

}  // namespace

}  // namespace launcher
