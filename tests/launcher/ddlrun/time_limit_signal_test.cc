// SPDX-License-Identifier: Apache-2.0

#include <unistd.h>

#include "launcher/base/error.h"
#include "launcher/ddlrun/one_run.h"
#include "tests/support/refusal.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// With --stop-before 60, in the job 12 of a Slurm whose scontrol is a script.
class StopInTimeTest : public testing::Test {
 protected:
  StopInTimeTest() : directory_(testing::TempDir() + "stop_in_time." + std::to_string(getpid())) {
    fs::create_directory(directory_);
    settings_.stop_before = std::chrono::seconds(60);
    environment_ = {{"PATH", directory_.string() + ":/usr/bin:/bin"}, {"SLURM_JOB_ID", "12"}};
  }
  ~StopInTimeTest() override { fs::remove_all(directory_); }

  void ScontrolSays(const std::string& times) {
    std::ofstream(directory_ / "scontrol")
        << "#!/bin/sh\necho 'JobId=12 JobState=RUNNING " << times << " NodeList=n1'\n";
    fs::permissions(directory_ / "scontrol", fs::perms::owner_all);
  }

  // In the environment of the job.
  void SetEnd(std::chrono::seconds from_now) {
    const auto end = std::chrono::system_clock::now() + from_now;
    environment_["SLURM_JOB_END_TIME"] = std::to_string(
        std::chrono::duration_cast<std::chrono::seconds>(end.time_since_epoch()).count());
  }

  // Seconds until the end that is found.
  double Left() const {
    const TimeLimitWatcherOptions options = StopInTime(settings_, environment_);
    return std::chrono::duration<double>(options.end.value() - TimeLimitWatcher::Clock::now())
        .count();
  }

  std::string Rejection() const {
    return tests::Rejection<LaunchError>(
        EX_CONFIG, [&] { Left(); }, "not refused");
  }

  const fs::path directory_;
  Settings settings_;
  Environment environment_;
};

TEST_F(StopInTimeTest, TheEndIsThatOfTheEnvironment) {
  ScontrolSays("RunTime=00:10:00 TimeLimit=01:00:00");
  SetEnd(std::chrono::seconds(1000));
  EXPECT_NEAR(Left(), 1000, 60);
}

TEST_F(StopInTimeTest, ALimitThatWasExtendedBeforeTheStartIsAskedFor) {
  ScontrolSays("RunTime=00:10:00 TimeLimit=01:00:00");
  for (const int seconds : {-100, 30}) {
    SetEnd(std::chrono::seconds(seconds));
    EXPECT_NEAR(Left(), 3000, 60) << seconds;
  }
}

TEST_F(StopInTimeTest, AnEndThatIsNearIsRejected) {
  SetEnd(std::chrono::seconds(-100));  // and there is no scontrol
  EXPECT_THAT(Rejection(),
              HasSubstr("--stop-before 60: the job's time ends in 0 s already: give "));
  ScontrolSays("RunTime=00:59:30 TimeLimit=01:00:00");
  EXPECT_THAT(Rejection(),
              HasSubstr("--stop-before 60: the job's time ends in 30 s already: give "));
  ScontrolSays("RunTime=00:59:30 TimeLimit=UNLIMITED");
  EXPECT_THAT(Rejection(), HasSubstr("the end of this job is not known: "));
}

}  // namespace
}  // namespace launcher
