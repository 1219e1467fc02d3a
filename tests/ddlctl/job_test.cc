// SPDX-License-Identifier: Apache-2.0

#include "ddlctl/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/trainer/temporary_folder.h"
#include "trainer/core/error.h"

namespace ddlctl {
namespace {

using launcher::JobStatus;
using State = JobStatus::RankState;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr double kNow = 1795343400;

JobStatus MadeUpJob() {
  JobStatus status;
  status.job = "12";
  status.host = "n1";
  status.pid = 4711;
  status.launcher = "srun";
  status.restarts = 1;
  status.program = "python train.py";
  status.written = kNow - 1;
  status.started = kNow - 725;
  status.ends = kNow + 3600;
  status.ranks = {{"n1", State::kRunning, 0, 0.25},
                  {"n1", State::kRunning, 0, 12.5},
                  {"n2", State::kEnded, 137, 100},
                  {"n2", State::kStarting, 0, 3}};
  return status;
}

TEST(JobText, HasAllThatIsKnown) {
  const std::string text = JobText(MadeUpJob(), kNow);
  EXPECT_THAT(text, HasSubstr("job            12\n"));
  EXPECT_THAT(text, HasSubstr("program        python train.py\n"));
  EXPECT_THAT(text, HasSubstr("ddlrun         process 4711 on n1, srun\n"));
  EXPECT_THAT(text, HasSubstr(", 0:12:05 ago; 1 restart\n"));
  EXPECT_THAT(text, HasSubstr(", 1:00:00 left\n"));
  EXPECT_THAT(text, HasSubstr("ranks          4 on 2 nodes: 1 starting, 2 running, 1 ended; rank 2 "
                              "on n2: exit code 137\n"));
  // The rank that has ended needs none.
  EXPECT_THAT(text, HasSubstr("heartbeat      0.2 s ago; longest ago rank 1 on n1: 12.5 s\n"));
  EXPECT_THAT(text, Not(HasSubstr("old  ")));
}

TEST(JobText, SaysWhatIsNotKnownAndWhatIsOld) {
  JobStatus status = MadeUpJob();
  status.ends.reset();
  for (JobStatus::Rank& rank : status.ranks) rank.silence.reset();
  status.written = kNow - 60;
  const std::string text = JobText(status, kNow);
  EXPECT_THAT(text, HasSubstr("time limit     not known\n"));
  EXPECT_THAT(text, Not(HasSubstr("heartbeat")));
  EXPECT_THAT(text, HasSubstr("old            this was written 0:01:00 ago: ddlrun is gone"));
}

TEST(JobText, ShowsFewOfManyFailures) {
  JobStatus status = MadeUpJob();
  status.ranks.assign(20, {"n1", State::kEnded, 1, std::nullopt});
  const std::string text = JobText(status, kNow);
  EXPECT_THAT(text, HasSubstr("rank 7 on n1: exit code 1; 12 more\n"));
  EXPECT_THAT(text, Not(HasSubstr("rank 8 ")));
}

TEST(JobJson, HasEachRank) {
  const auto json = nlohmann::json::parse(JobJson(MadeUpJob(), kNow));
  EXPECT_EQ(json["job"], "12");
  EXPECT_EQ(json["restarts"], 1);
  EXPECT_EQ(json["is_old"], false);
  ASSERT_EQ(json["ranks"].size(), 4U);
  EXPECT_EQ(json["ranks"][2]["exit_code"], 137);
  EXPECT_TRUE(json["ranks"][0]["exit_code"].is_null());
  EXPECT_EQ(json["ranks"][1]["silence_seconds"], 12.5);
  EXPECT_EQ(json["ranks"][3]["state"], "starting");
}

TEST(RunDirectoryBases, AreThoseOfDdlrun) {
  EXPECT_THAT(RunDirectoryBases({{"TMPDIR", "/scratch"}}),
              ElementsAre("/scratch", "/tmp", "/dev/shm"));
}

TEST(RunDirectoryBases, HaveThatOfTheSite) {
  const trainer::TemporaryFolder folder;
  const std::filesystem::path site = folder.path() / "site.yaml";
  std::ofstream(site) << "run_directory: /local\n";
  EXPECT_THAT(RunDirectoryBases({{"DDLRUN_SITE", site.string()}}),
              ElementsAre("/local", "/tmp", "/dev/shm"));
  std::ofstream(site) << "run_directory: [\n";  // ddlrun says so
  EXPECT_THAT(RunDirectoryBases({{"DDLRUN_SITE", site.string()}}), ElementsAre("/tmp", "/dev/shm"));
}

TEST(IsJobNumber, IsOneThatIsNoFolder) {
  EXPECT_TRUE(IsJobNumber("1234567"));
  EXPECT_TRUE(IsJobNumber("12_3"));
  for (const char* name : {"", "run", "./12", "12a", "-1"}) EXPECT_FALSE(IsJobNumber(name)) << name;
}

class JobFolderTest : public testing::Test {
 protected:
  // The run directory of a job.
  std::filesystem::path Make(const std::string& name, const JobStatus& status, mode_t mode = 0700) {
    const std::filesystem::path folder = base_.path() / name;
    std::filesystem::create_directory(folder);
    std::ofstream(folder / launcher::kStatusFileName) << FormatJobStatus(status);
    EXPECT_EQ(::chmod(folder.c_str(), mode), 0);
    return folder;
  }

  trainer::TemporaryFolder base_;
};

TEST_F(JobFolderTest, TheNewestOfTheJobIsFound) {
  JobStatus status = MadeUpJob();
  Make("ddlrun.aaaaaa", status);
  status.restarts = 5;
  status.written += 10;
  Make("ddlrun.bbbbbb", status);
  status.restarts = 6;
  status.written += 10;
  Make("ddlrun.cccccc", status, 0755);  // anybody may have written there
  Make("other", status);
  status.job = "13";
  Make("ddlrun.dddddd", status);
  std::filesystem::create_directory(base_.path() / "ddlrun.eeeeee");
  const auto found = FindJobStatus("12", {base_.path() / "none", base_.path()});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->restarts, 5);
  EXPECT_FALSE(FindJobStatus("14", {base_.path()}).has_value());
}

TEST_F(JobFolderTest, AFileOfThisNameThatSomebodyElseHasWrittenIsNone) {
  const auto folder = Make("results", MadeUpJob());
  for (const char* text : {"", "all is well\n", "ddlrun", "\nddlrun-status 1\n"}) {
    std::ofstream(folder / launcher::kStatusFileName) << text;
    EXPECT_FALSE(ReadJobStatus(folder).has_value()) << text;
  }
}

TEST_F(JobFolderTest, AFileThatIsNoStatusIsRefused) {
  const auto folder = Make("ddlrun.aaaaaa", MadeUpJob());
  ASSERT_TRUE(ReadJobStatus(folder).has_value());
  EXPECT_FALSE(ReadJobStatus(base_.path()).has_value());
  std::ofstream(folder / launcher::kStatusFileName) << "ddlrun-status 1\nin other words\n";
  try {
    ReadJobStatus(folder);
    FAIL();
  } catch (const trainer::Error& error) {
    EXPECT_EQ(error.exit_code(), EX_DATAERR);
    EXPECT_THAT(error.what(), HasSubstr("status: not written by a ddlrun of this version"));
  }
  EXPECT_FALSE(FindJobStatus("12", {base_.path()}).has_value());
}

// A Slurm whose squeue is a script.
class RunningJobTest : public testing::Test {
 protected:
  // What squeue writes, and its exit code.
  void Squeue(const std::string& text, int exit_code = 0) {
    const std::filesystem::path file = folder_.path() / "squeue";
    std::ofstream(file) << "#!/bin/sh\nprintf '%s' '" << text << "'\nexit " << exit_code << "\n";
    EXPECT_EQ(::chmod(file.c_str(), 0700), 0);
  }

  // "NUMBER on NODE".
  std::string Find(const std::string& number) const {
    const auto job = FindRunningJob(number, {{"PATH", folder_.path().string()}});
    return job ? job->number + " on " + job->node : "nothing";
  }

  std::string Refusal(const std::string& number) const {
    try {
      return Find(number);
    } catch (const trainer::Error& error) {
      EXPECT_EQ(error.exit_code(), EX_UNAVAILABLE);
      return error.what();
    }
  }

  trainer::TemporaryFolder folder_;
};

TEST_F(RunningJobTest, IsOnTheNodeOfItsScript) {
  EXPECT_EQ(Find("12"), "nothing");  // there is no squeue
  Squeue("RUNNING n1 12\n");
  EXPECT_EQ(Find("12"), "12 on n1");
  Squeue("RUNNING n1 12\nRUNNING n2 13\n");  // a heterogeneous job
  EXPECT_EQ(Find("12"), "12 on n1");
}

TEST_F(RunningJobTest, OfAnArrayHasTheNumberOfTheTask) {
  Squeue("RUNNING n1 14\n");
  EXPECT_EQ(Find("12_3"), "14 on n1");
  Squeue("PENDING N/A 12\nCOMPLETED n1 13\nRUNNING n3 14\n");
  EXPECT_EQ(Find("12"), "14 on n3");
}

// Defaults of the user would leave out jobs that are asked for by number.
TEST_F(RunningJobTest, IsAskedForWithoutDefaultsOfTheUser) {
  Squeue("");
  std::ofstream(folder_.path() / "squeue")
      << "#!/bin/sh\n[ -n \"$SQUEUE_PARTITION\" ] || echo RUNNING n1 12\n";
  const auto job =
      FindRunningJob("12", {{"PATH", folder_.path().string()}, {"SQUEUE_PARTITION", "gpu"}});
  ASSERT_TRUE(job);
  EXPECT_EQ(job->number, "12");
}

TEST_F(RunningJobTest, ThatDoesNotRunIsRefusedWithItsState) {
  Squeue("PENDING N/A 12\n");
  EXPECT_EQ(Refusal("12"), "job 12 is not running: its state is PENDING");
  Squeue("");
  EXPECT_EQ(Refusal("12"), "job 12 is not running");
}

TEST_F(RunningJobTest, IsNotFoundForTheReasonThatSqueueSays) {
  Squeue("slurm_load_jobs error: Invalid job id specified\nmore\n", 1);
  EXPECT_EQ(Refusal("12"), "job 12 is not found: slurm_load_jobs error: Invalid job id specified");
  Squeue("", 1);
  EXPECT_EQ(Refusal("12"), "job 12 is not found: squeue does not answer");
}

}  // namespace
}  // namespace ddlctl
