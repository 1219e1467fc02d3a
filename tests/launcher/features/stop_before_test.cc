// SPDX-License-Identifier: Apache-2.0

#include "launcher/features/stop_before.h"

#include <unistd.h>

#include <limits>

#include "launcher/base/error.h"
#include "launcher/features/features.h"
#include "tests/launcher/features/fake_watched_job.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_directory.h"

namespace launcher {
namespace {

using std::chrono::seconds;
using ::testing::ContainsRegex;
using ::testing::ElementsAreArray;
using Clock = StopBefore::Clock;

class StopBeforeTest : public testing::Test {
 protected:
  // The job ends in 100 s as it seems, and its ranks are to be told 20 s before.
  StopBeforeTest() {
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

  // Whether the ranks get the signal at `second`.
  bool IsTold(StopBefore& stop, double second) {
    job_.now = At(second);
    job_.signals.clear();
    stop.Poll(job_);
    return !job_.signals.empty();
  }

  // Looks again and again, at the time `now`, until that is so.
  bool DeadlineBecomes(StopBefore& job, std::optional<Clock::time_point> deadline,
                       double now = 76) {
    for (int i = 0; i < 1000; ++i) {
      EXPECT_FALSE(IsTold(job, now));
      if (job.deadline() == deadline) return true;
      usleep(10000);
    }
    return false;
  }

  const Clock::time_point start_ = Clock::now();
  StopBeforeOptions options_;
  FakeWatchedJob job_;
  int answers_ = 0;  // that were read
};

TEST_F(StopBeforeTest, RanksAreToldOnceSoLongBefore) {
  StopBefore job(options_);
  EXPECT_EQ(job.deadline(), At(75));
  EXPECT_FALSE(IsTold(job, 74.9));
  EXPECT_FALSE(IsTold(job, 75));
  EXPECT_EQ(job.deadline(), At(80));
  EXPECT_FALSE(IsTold(job, 79.9));
  EXPECT_TRUE(IsTold(job, 80));
  EXPECT_EQ(job.deadline(), std::nullopt);
  EXPECT_FALSE(IsTold(job, 81));
}

TEST_F(StopBeforeTest, SaysSoAndKeepsQuietWhereTheJobEnds) {
  options_.signal = SIGUSR2;
  for (const bool is_ending : {false, true}) {
    FakeWatchedJob job;
    job.is_running = !is_ending;
    StopBefore stop(options_);
    job.now = At(75);
    stop.Poll(job);
    job.now = At(80);
    stop.Poll(job);
    JobResult result;
    stop.OnEnd(job, &result);
    EXPECT_EQ(result.notified_of_end, !is_ending);
    EXPECT_EQ(job.signals.size(), is_ending ? 0U : 1U);
    EXPECT_THAT(job.notes, ElementsAreArray(std::vector<std::string>(
                               is_ending ? 0 : 1,
                               "ranks got SIGUSR2 20 s before the end of the "
                               "job's time (--stop-before)")));
  }
  StopBefore stop(options_);
  job_.is_stop_requested = true;
  EXPECT_FALSE(IsTold(stop, 75));
  EXPECT_FALSE(IsTold(stop, 80));
}

TEST_F(StopBeforeTest, TheStatusHasTheEndThatIsKnown) {
  StopBefore stop(options_);
  JobStatus status;
  stop.AddTo(&status);
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  EXPECT_NEAR(status.ends.value() - now.count(), 100, 10);
}

TEST_F(StopBeforeTest, AnEndThatIsLaterIsNoticedAndAskedForAgain) {
  Answers("echo 500");
  StopBefore job(options_);
  EXPECT_FALSE(IsTold(job, 75));
  EXPECT_EQ(job.deadline(), At(80));
  EXPECT_GT(job.child(), 0);
  ASSERT_TRUE(DeadlineBecomes(job, At(75 + 500 - 20 - 5)));
  EXPECT_EQ(job.end(), At(75 + 500));
  EXPECT_EQ(job.child(), 0);
  EXPECT_FALSE(IsTold(job, 100));
  EXPECT_FALSE(IsTold(job, 551));
  ASSERT_TRUE(DeadlineBecomes(job, At(551 + 500 - 20 - 5), 551));
}

// As after a restart of the ranks of a job whose limit was extended.
TEST_F(StopBeforeTest, AnEndThatIsOverIsAskedForBeforeTheRanksAreTold) {
  Answers("echo 500");
  StopBefore extended(options_);
  EXPECT_FALSE(IsTold(extended, 200));
  EXPECT_EQ(extended.deadline(), At(205));
  ASSERT_TRUE(DeadlineBecomes(extended, At(200 + 500 - 20 - 5), 201));
  EXPECT_EQ(extended.end(), At(700));

  Answers("sleep 1000");
  StopBefore silent(options_);
  EXPECT_FALSE(IsTold(silent, 200));
  EXPECT_FALSE(IsTold(silent, 204.9));
  EXPECT_TRUE(IsTold(silent, 205));
  EXPECT_EQ(silent.end(), At(100));
}

TEST_F(StopBeforeTest, AQuestionThatIsLeftAtTheEndIsNotWaitedFor) {
  Answers("sleep 1000");
  StopBefore job(options_);
  EXPECT_FALSE(IsTold(job, 75));
  EXPECT_GT(job.child(), 0);
  job.EndChild();
  EXPECT_EQ(job.child(), 0);
}

TEST_F(StopBeforeTest, ALimitThatWasTakenAwayIsNone) {
  Answers("echo never");
  StopBefore job(options_);
  EXPECT_FALSE(IsTold(job, 75));
  ASSERT_TRUE(DeadlineBecomes(job, std::nullopt));
  EXPECT_EQ(job.end(), std::nullopt);
  EXPECT_FALSE(IsTold(job, 1000));
}

TEST_F(StopBeforeTest, TheSameEndChangesNothing) {
  for (const char* script : {"echo 24", "echo 26", "echo what"}) {
    Answers(script);
    answers_ = 0;
    StopBefore job(options_);
    EXPECT_FALSE(IsTold(job, 75));
    for (int i = 0; i < 1000 && answers_ == 0; ++i) {
      usleep(10000);
      EXPECT_FALSE(IsTold(job, 76)) << script;
    }
    EXPECT_EQ(answers_, 1) << script;
    EXPECT_EQ(job.deadline(), At(80)) << script;
    EXPECT_FALSE(IsTold(job, 79)) << script;
    EXPECT_TRUE(IsTold(job, 80)) << script;
  }
}

TEST_F(StopBeforeTest, NoAnswerChangesNothing) {
  for (const char* script : {"echo 500; exit 1", "sleep 1000"}) {
    Answers(script);
    StopBefore job(options_);
    EXPECT_FALSE(IsTold(job, 75));
    EXPECT_EQ(job.deadline(), At(80)) << script;
    EXPECT_TRUE(IsTold(job, 80)) << script;
  }
}

TEST_F(StopBeforeTest, ACommandThatIsNotThereChangesNothing) {
  options_.question = {"/nonexistent/scontrol"};
  StopBefore job(options_);
  EXPECT_FALSE(IsTold(job, 75));
  EXPECT_TRUE(IsTold(job, 80));
}

TEST(StopBeforeOption, IsForOtherProgramsThanTheTrainer) {
  const auto shown = [](const std::vector<std::string>& arguments) {
    return SettingsText(MergeSettings(ParseOptions(arguments), SiteConfig(), {}));
  };
  EXPECT_THAT(shown({"./train"}), Not(HasSubstr("stop_before")));
  EXPECT_THAT(shown({"--stop-before=120", "./train"}),
              ContainsRegex("stop_before: 120 +# command line"));
  EXPECT_THAT(shown({"--stop-before=120:USR2", "./train"}), HasSubstr("stop_before: 120:USR2 "));
  EXPECT_THROW(shown({"--stop-before=120", "ddltraind"}), LaunchError);
}

// With --stop-before 60, in the job 12 of a Slurm whose scontrol is a script.
class StopBeforeTimeLimitTest : public tests::DirectoryTest {
 protected:
  StopBeforeTimeLimitTest() {
    run_options_.stop_before = 60;
    environment_ = {{"PATH", directory_.string() + ":/usr/bin:/bin"}, {"SLURM_JOB_ID", "12"}};
  }

  void ScontrolSays(const std::string& times) {
    temporary_.WriteScript("scontrol",
                           "echo 'JobId=12 JobState=RUNNING " + times + " NodeList=n1'");
  }

  // In the environment of the job.
  void SetEnd(std::chrono::seconds from_now) {
    const auto end = std::chrono::system_clock::now() + from_now;
    environment_["SLURM_JOB_END_TIME"] = std::to_string(
        std::chrono::duration_cast<std::chrono::seconds>(end.time_since_epoch()).count());
  }

  // Seconds until the end that is found.
  double Left() const {
    const auto options = StopBeforeTimeLimit(run_options_, environment_, is_restart_);
    return std::chrono::duration<double>(options.value().end - Clock::now()).count();
  }

  std::string Rejection() const {
    return tests::Rejection<LaunchError>(
        EX_CONFIG, [&] { Left(); }, "not refused");
  }

  Options run_options_;
  bool is_restart_ = false;
  Environment environment_;
};

TEST_F(StopBeforeTimeLimitTest, TheEndIsThatOfTheEnvironment) {
  ScontrolSays("RunTime=00:10:00 TimeLimit=01:00:00");
  SetEnd(std::chrono::seconds(1000));
  EXPECT_NEAR(Left(), 1000, 60);
}

TEST_F(StopBeforeTimeLimitTest, ALimitThatWasExtendedBeforeTheStartIsAskedFor) {
  ScontrolSays("RunTime=00:10:00 TimeLimit=01:00:00");
  for (const int seconds : {-100, 30}) {
    SetEnd(std::chrono::seconds(seconds));
    EXPECT_NEAR(Left(), 3000, 60) << seconds;
  }
}

TEST_F(StopBeforeTimeLimitTest, AnEndThatIsNearIsRejected) {
  SetEnd(std::chrono::seconds(-100));  // and there is no scontrol
  EXPECT_THAT(Rejection(),
              HasSubstr("--stop-before 60: the job's time ends in 0 s already: give "));
  ScontrolSays("RunTime=00:59:30 TimeLimit=01:00:00");
  EXPECT_THAT(Rejection(),
              HasSubstr("--stop-before 60: the job's time ends in 30 s already: give "));
  ScontrolSays("RunTime=00:59:30 TimeLimit=UNLIMITED");
  EXPECT_THAT(Rejection(), HasSubstr("the end of this job is not known: "));
  // A restart is not refused: the limit may become later yet.
  ScontrolSays("RunTime=00:59:30 TimeLimit=01:00:00");
  is_restart_ = true;
  EXPECT_NEAR(Left(), 30, 5);
  ScontrolSays("RunTime=00:59:30 TimeLimit=UNLIMITED");
  EXPECT_FALSE(StopBeforeTimeLimit(run_options_, environment_, is_restart_));
}

}  // namespace
}  // namespace launcher
