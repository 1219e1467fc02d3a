// SPDX-License-Identifier: Apache-2.0

#include "launcher/slurm/slurm_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

namespace launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(SlurmJob, ReadsWhatScontrolSays) {
  const auto job = ParseSlurmJob(
      "JobId=1 JobName=job UserId=hpc(5000) JobState=RUNNING Reason=None Requeue=1 Restarts=0 "
      "BatchFlag=1 ReqNodeList=n9 ExcNodeList=(null) NodeList=n[1,3] BatchHost=n1\n",
      "1");
  ASSERT_TRUE(job);
  EXPECT_EQ(job->state, "RUNNING");
  EXPECT_TRUE(job->may_requeue);
  EXPECT_TRUE(job->is_batch);
  EXPECT_EQ(job->id, "1");
  EXPECT_THAT(job->nodes, ElementsAre("n1", "n3"));
}

TEST(SlurmJob, KnowsAJobThatMayNotBeRequeuedAndHasNoNodes) {
  const auto job =
      ParseSlurmJob("JobId=1 JobState=PENDING Requeue=0 BatchFlag=0 NodeList=(null)\n", "1");
  ASSERT_TRUE(job);
  EXPECT_FALSE(job->may_requeue);
  EXPECT_FALSE(job->is_batch);
  EXPECT_THAT(job->nodes, IsEmpty());
}

TEST(SlurmJob, AddsUpTheComponentsOfAHeterogeneousJob) {
  const auto job = ParseSlurmJob(
      "JobId=1 HetJobId=1 JobState=RUNNING Requeue=1 BatchFlag=1 NodeList=n1\n"
      "JobId=2 HetJobId=1 JobState=RUNNING Requeue=0 BatchFlag=0 NodeList=n[2-3]\n",
      "1");
  ASSERT_TRUE(job);
  EXPECT_TRUE(job->may_requeue);
  EXPECT_THAT(job->nodes, ElementsAre("n1", "n2", "n3"));
}

TEST(SlurmJob, KnowsWhetherItIsPreempted) {
  const auto is_preempted = [](const std::string& times) {
    return ParseSlurmJob("JobId=1 JobState=RUNNING " + times + "\n", "1")->is_preempted;
  };
  const std::string start = "StartTime=2026-11-28T08:53:34 EndTime=2026-11-28T08:53:58 ";
  EXPECT_TRUE(is_preempted(start + "PreemptEligibleTime=x PreemptTime=2026-11-28T08:53:38"));
  EXPECT_FALSE(is_preempted(start + "PreemptEligibleTime=x PreemptTime=None"));
  // Before it was requeued.
  EXPECT_FALSE(is_preempted(start + "PreemptTime=2026-11-28T08:50:01"));
  EXPECT_FALSE(is_preempted("PreemptTime=2026-11-28T08:53:38"));
  EXPECT_FALSE(is_preempted(start));
}

TEST(SlurmJob, KnowsAnExpeditedRequeue) {
  const auto is_expedited = [](const std::string& words) {
    return ParseSlurmJob("JobId=1 JobState=RUNNING Requeue=1 " + words + "\n", "1")->is_expedited;
  };
  EXPECT_TRUE(is_expedited("Restarts=0 ExpeditedRequeue=Yes"));
  EXPECT_FALSE(is_expedited("Restarts=0 ExpeditedRequeue=No"));
  EXPECT_FALSE(is_expedited("Restarts=0"));
}

TEST(SlurmJob, KnowsHowMuchOfItsTimeIsLeft) {
  const auto left = [](const std::string& times) {
    return ParseSlurmJob("JobId=1 JobState=RUNNING " + times + " NodeList=n1\n", "1")->seconds_left;
  };
  EXPECT_EQ(left("RunTime=00:00:10 TimeLimit=00:01:00"), 50);
  EXPECT_EQ(left("RunTime=00:00:10 TimeLimit=1-02:00:00"), 93590);
  EXPECT_EQ(left("RunTime=1-02:03:04 TimeLimit=2-02:03:05"), 86401);
  EXPECT_EQ(left("RunTime=00:00:10 TimeLimit=UNLIMITED"), std::nullopt);
  EXPECT_EQ(left("TimeLimit=00:01:00"), std::nullopt);
  EXPECT_EQ(left("RunTime=00:00:10"), std::nullopt);
}

TEST(SlurmJob, RefusesHostsThatItNoLongerHas) {
  const auto refusal = [](const std::string& text, const std::vector<std::string>& hosts) {
    return RefusalOfHosts(*ParseSlurmJob("JobId=14 " + text + "\n", "14"), hosts);
  };
  const std::string running = "JobState=RUNNING NodeList=n[1-2]";
  EXPECT_EQ(refusal(running, {"n1", "n2", "n1"}), "");
  EXPECT_EQ(refusal(running, {"n2"}), "");
  EXPECT_EQ(refusal(running, {"n1", "n1", "n2", "n3", "n3", "n4"}),
            "job 14 has n[1-2] now, and no longer n[3-4], which its variables still name: it was "
            "made smaller, or has lost a node. Where scontrol update was typed, source the script "
            "that it has written, . ./slurm_job_14_resize.sh, or name the nodes that are left: "
            "ddlrun -H n1,n2");
  // None of those that are wanted is left.
  EXPECT_TRUE(refusal(running, {"n3"}).ends_with(" . ./slurm_job_14_resize.sh"));
  // Too many to be named one by one.
  std::vector<std::string> hosts;
  for (int i = 1; i <= 10; ++i) hosts.push_back("n" + std::to_string(i));
  EXPECT_TRUE(refusal("JobState=RUNNING NodeList=n[1-9]", hosts).ends_with("_resize.sh"));
  EXPECT_TRUE(refusal("JobState=RUNNING NodeList=n[1-8]", {hosts.begin(), hosts.begin() + 9})
                  .ends_with(" -H n1,n2,n3,n4,n5,n6,n7,n8"));
  // A job that is ending loses its nodes one by one.
  EXPECT_EQ(refusal("JobState=COMPLETING NodeList=n1", {"n1", "n2"}), "");
}

TEST(SlurmJob, EndsWhenSlurmHasSaid) {
  const std::chrono::system_clock::time_point now(std::chrono::seconds(1795330000));
  const auto left = [&](const std::string& end) {
    return SecondsUntilEndOfJob({{"SLURM_JOB_END_TIME", end}}, now);
  };
  EXPECT_EQ(left("1795330120"), 120);
  EXPECT_EQ(left("1795329990"), -10);
  // Outside Slurm nobody else is asked.
  for (const char* text : {"", "0", "x", "17953x", "-5"})
    EXPECT_EQ(left(text), std::nullopt) << text;
  EXPECT_TRUE(ShowJobCommand({{"PATH", "/usr/bin"}}).empty());
}

TEST(SlurmJob, AnOlderSlurmIsAskedWhenItEnds) {
  namespace fs = std::filesystem;
  const std::chrono::system_clock::time_point now(std::chrono::milliseconds(1795330000500));
  const fs::path folder = testing::TempDir() + "end." + std::to_string(getpid());
  fs::create_directory(folder);
  const auto with = [&](const std::string& times, Environment environment) {
    std::ofstream(folder / "scontrol")
        << "#!/bin/sh\necho JobId=12 JobState=RUNNING " << times << " NodeList=n1\n";
    fs::permissions(folder / "scontrol", fs::perms::owner_all);
    environment["PATH"] = folder.string() + ":/usr/bin:/bin";
    return ValueOr(WithEndOfJob(environment, now), "SLURM_JOB_END_TIME", "none");
  };
  const std::string times = "RunTime=00:00:10 TimeLimit=00:01:00";
  EXPECT_EQ(with(times, {{"SLURM_JOB_ID", "12"}}), "1795330050");
  EXPECT_EQ(with(times, {{"SLURM_JOB_ID", "12"}, {"SLURM_JOB_END_TIME", "5"}}), "5");
  EXPECT_EQ(with(times, {}), "none");
  EXPECT_EQ(with("RunTime=00:00:10 TimeLimit=UNLIMITED", {{"SLURM_JOB_ID", "12"}}), "none");
  fs::remove_all(folder);
}

TEST(SlurmJob, TakesNothingElseForAJob) {
  EXPECT_FALSE(ParseSlurmJob("", "1"));
  EXPECT_FALSE(ParseSlurmJob("slurm_load_jobs error: Invalid job id specified\n", "1"));
  EXPECT_FALSE(ParseSlurmJob("JobId=1 JobState=RUNNING NodeList=n[1-\n", "1"));
  EXPECT_FALSE(ParseSlurmJob("HetJobId=1 JobState=RUNNING NodeList=n1\n", "1"));
}

// The last task of an array has the number of the array, by which scontrol shows all of them.
TEST(SlurmJob, KnowsATaskFromTheOthersOfItsArray) {
  const std::string text =
      "JobId=14 ArrayJobId=12 ArrayTaskId=1 JobState=COMPLETING Requeue=0 NodeList=n9\n"
      "JobId=12 ArrayJobId=12 ArrayTaskId=2 JobState=RUNNING Requeue=1 NodeList=n1\n"
      "JobId=13 ArrayJobId=12 ArrayTaskId=0 JobState=RUNNING Requeue=0 NodeList=n2\n";
  const auto last = ParseSlurmJob(text, "12");
  ASSERT_TRUE(last);
  EXPECT_EQ(last->id, "12_2");
  EXPECT_EQ(last->state, "RUNNING");
  EXPECT_TRUE(last->may_requeue);
  EXPECT_THAT(last->nodes, ElementsAre("n1"));
  EXPECT_FALSE(ParseSlurmJob(text, "15"));
}

// A job that is submitted from within a task of an array has that one's variables.
TEST(SlurmJob, IsNotTheArrayTaskThatSubmittedIt) {
  EXPECT_EQ(
      SlurmJobNumber(
          {{"SLURM_JOB_ID", "14"}, {"SLURM_ARRAY_JOB_ID", "12"}, {"SLURM_ARRAY_TASK_ID", "3"}}),
      "14");
  EXPECT_EQ(SlurmJobNumber({}), "");
}

TEST(SlurmJob, EachComponentOfAHeterogeneousJobHasAStep) {
  const Environment environment = {{"SLURM_JOB_ID_HET_GROUP_0", "12"},
                                   {"SLURM_JOB_ID_HET_GROUP_1", "13"},
                                   {"SLURM_JOB_ID_HET_GROUP_2", "14"}};
  EXPECT_THAT(StepsOfComponents("12.3", {0, 2}, environment), ElementsAre("12.3", "14.3"));
  EXPECT_THAT(StepsOfComponents("12.3", {0}, {{"SLURM_JOB_ID", "12"}}), ElementsAre("12.3"));
}

// What `scontrol requeue` does when it goes as no test on a cluster can make it go each time.
std::string RequeueWith(const std::string& commands) {
  namespace fs = std::filesystem;
  const fs::path folder = testing::TempDir() + "requeue." + std::to_string(getpid());
  fs::create_directory(folder);
  std::ofstream(folder / "scontrol") << "#!/bin/sh\n" << commands << "\n";
  fs::permissions(folder / "scontrol", fs::perms::owner_all);
  const std::string refusal =
      RequeueSlurmJob("12_3", {{"PATH", folder.string() + ":/usr/bin:/bin"}});
  fs::remove_all(folder);
  return refusal;
}

TEST(RequeueSlurmJob, IsDoneAlsoWhereSlurmEndsScontrolWithTheJob) {
  EXPECT_EQ(RequeueWith("[ \"$*\" = 'requeue 12_3' ]"), "");
  EXPECT_EQ(RequeueWith("kill -TERM $$"), "");
  EXPECT_EQ(RequeueWith("echo 'Requested operation is disabled'; exit 1"),
            "Requested operation is disabled");
  EXPECT_EQ(RequeueWith("exit 1"), "scontrol did not answer");
}

}  // namespace
}  // namespace launcher
