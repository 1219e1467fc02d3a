// SPDX-License-Identifier: Apache-2.0

#include "launcher/slurm/slurm_job.h"

#include "launcher/base/error.h"
#include "launcher/slurm/complete_allocation.h"
#include "launcher/slurm/slurm_allocation.h"
#include "launcher/slurm/slurm_version.h"
#include "launcher/slurm/srun_lines.h"
#include "rankfile/hostlist.h"
#include "tests/launcher/slurm/slurm_environment_file.h"
#include "tests/support/directories.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_directory.h"

namespace launcher {
namespace {

TEST(SlurmJob, RunsWhileItIsSignalled) {
  for (const char* state : {"RUNNING", "SIGNALING", "RESIZING"}) {
    EXPECT_TRUE(IsStateOfRunningJob(state)) << state;
  }
  for (const char* state : {"COMPLETING", "PENDING", "REQUEUED", "CANCELLED", "PREEMPTED", ""}) {
    EXPECT_FALSE(IsStateOfRunningJob(state)) << state;
  }
}

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

TEST(SlurmJob, RejectsHostsThatItNoLongerHas) {
  const auto rejection = [](const std::string& text, const std::vector<std::string>& hosts) {
    return RejectionOfHosts(*ParseSlurmJob("JobId=14 " + text + "\n", "14"), hosts);
  };
  const std::string running = "JobState=RUNNING NodeList=n[1-2]";
  EXPECT_EQ(rejection(running, {"n1", "n2", "n1"}), "");
  EXPECT_EQ(rejection(running, {"n2"}), "");
  EXPECT_EQ(rejection(running, {"n1", "n1", "n2", "n3", "n3", "n4"}),
            "job 14 has n[1-2] now, and no longer n[3-4], which its variables still name: it was "
            "made smaller, or has lost a node. Where scontrol update was typed, source the script "
            "that it has written, . ./slurm_job_14_resize.sh, or name the nodes that are left: "
            "ddlrun -H n1,n2");
  // None of those that are wanted is left.
  EXPECT_TRUE(rejection(running, {"n3"}).ends_with(" . ./slurm_job_14_resize.sh"));
  // Too many to be named one by one.
  std::vector<std::string> hosts;
  for (int i = 1; i <= 10; ++i) hosts.push_back("n" + std::to_string(i));
  EXPECT_TRUE(rejection("JobState=RUNNING NodeList=n[1-9]", hosts).ends_with("_resize.sh"));
  EXPECT_TRUE(rejection("JobState=RUNNING NodeList=n[1-8]", {hosts.begin(), hosts.begin() + 9})
                  .ends_with(" -H n1,n2,n3,n4,n5,n6,n7,n8"));
  // A job that is ending loses its nodes one by one.
  EXPECT_EQ(rejection("JobState=COMPLETING NodeList=n1", {"n1", "n2"}), "");
}

TEST(SlurmJob, EndsWhenSlurmHasSaid) {
  const std::chrono::system_clock::time_point now(std::chrono::seconds(1795330000));
  const auto left = [&](const std::string& end) {
    return SecondsToTimeLimit({{"SLURM_JOB_END_TIME", end}}, now);
  };
  EXPECT_EQ(left("1795330120"), 120);
  EXPECT_EQ(left("1795329990"), -10);
  // Outside Slurm nobody else is asked.
  for (const char* text : {"", "0", "x", "17953x", "-5"})
    EXPECT_EQ(left(text), std::nullopt) << text;
  EXPECT_TRUE(ShowJobCommand({{"PATH", "/usr/bin"}}).empty());
}

TEST(SlurmJob, AnOlderSlurmIsAskedWhenItEnds) {
  const std::chrono::system_clock::time_point now(std::chrono::milliseconds(1795330000500));
  const TemporaryDirectory directory;
  const auto with = [&](const std::string& times, Environment environment) {
    directory.WriteScript("scontrol", "echo JobId=12 JobState=RUNNING " + times + " NodeList=n1");
    environment["PATH"] = directory.path().string() + ":/usr/bin:/bin";
    return ValueOr(WithTimeLimit(environment, now), "SLURM_JOB_END_TIME", "none");
  };
  const std::string times = "RunTime=00:00:10 TimeLimit=00:01:00";
  EXPECT_EQ(with(times, {{"SLURM_JOB_ID", "12"}}), "1795330050");
  EXPECT_EQ(with(times, {{"SLURM_JOB_ID", "12"}, {"SLURM_JOB_END_TIME", "5"}}), "5");
  EXPECT_EQ(with(times, {}), "none");
  EXPECT_EQ(with("RunTime=00:00:10 TimeLimit=UNLIMITED", {{"SLURM_JOB_ID", "12"}}), "none");
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
  const TemporaryDirectory directory;
  directory.WriteScript("scontrol", commands);
  return RequeueSlurmJob("12_3", {{"PATH", directory.path().string() + ":/usr/bin:/bin"}});
}

TEST(RequeueSlurmJob, IsDoneAlsoWhereSlurmEndsScontrolWithTheJob) {
  EXPECT_EQ(RequeueWith("[ \"$*\" = 'requeue 12_3' ]"), "");
  EXPECT_EQ(RequeueWith("kill -TERM $$"), "");
  EXPECT_EQ(RequeueWith("echo 'Requested operation is disabled'; exit 1"),
            "Requested operation is disabled");
  EXPECT_EQ(RequeueWith("exit 1"), "scontrol did not answer");
}

std::string FixtureText(const std::string& name) {
  return tests::TextOf(tests::SourceDirectory() + "/tests/fixtures/slurm-env/" + name);
}

// Lines of job 7.
std::map<std::string, NodeGrant> Parse(const std::string& lines) {
  return ParseJobDetail("JobId=7 JobName=x\n" + lines, "7");
}

TEST(JobDetail, ReadsUnevenGpus) {
  const auto grants = ParseJobDetail(FixtureText("N2-gpus-6-uneven.txt"), "4");
  ASSERT_EQ(grants.size(), 2U);
  EXPECT_EQ(grants.at("n1").gpus, 4);
  EXPECT_THAT(grants.at("n1").gpu_indices, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(grants.at("n2").gpus, 2);
  EXPECT_THAT(grants.at("n2").gpu_indices, ElementsAre(0, 1));
}

TEST(JobDetail, ReadsTheAddressOfANode) {
  EXPECT_EQ(AddressOfANode("NodeName=n1 Arch=x86_64\n   NodeAddr=10.1.2.3 NodeHostName=x7 "
                           "Version=24.11.5\n"),
            "10.1.2.3");
  EXPECT_EQ(AddressOfANode("Node n1 not found\n"), "");
}

TEST(JobDetail, ReadsALineForSeveralNodes) {
  const auto grants = Parse("     Nodes=n[1-3,7] CPU_IDs=0-3 Mem=400 GRES=gpu:v100:2(IDX:1,3)\n");
  ASSERT_EQ(grants.size(), 4U);
  EXPECT_EQ(grants.at("n7").gpus, 2);
  EXPECT_THAT(grants.at("n7").gpu_indices, ElementsAre(1, 3));
}

TEST(JobDetail, AddsTypesUpAndPassesOverOtherResources) {
  const auto grants = Parse(
      " Nodes=a CPU_IDs=0 Mem=1 GRES=gpu:v100:2(IDX:0-1),tmp:9,gpu:a100:1(IDX:4)\n"
      " Nodes=b CPU_IDs=0 Mem=1 GRES=\n"
      " Nodes=c CPU_IDs=0 Mem=1 GRES=gpu:2\n");
  EXPECT_EQ(grants.at("a").gpus, 3);
  EXPECT_THAT(grants.at("a").gpu_indices, ElementsAre(0, 1, 4));
  EXPECT_EQ(grants.at("b").gpus, 0);
  EXPECT_EQ(grants.at("c").gpus, 2);
  EXPECT_THAT(grants.at("c").gpu_indices, IsEmpty());
}

// The last task of an array has the number of the array, by which scontrol shows all of them.
TEST(JobDetail, IsOfTheJobAndItsComponentsAlone) {
  const std::string text =
      "JobId=12 ArrayJobId=12 ArrayTaskId=2 JobName=x\n"
      "     Nodes=n1 CPU_IDs=0 Mem=1 GRES=gpu:2(IDX:0-1)\n"
      "   Command=/home/me/JobId=13\n"
      "\n"
      "JobId=13 ArrayJobId=12 ArrayTaskId=0 JobName=x\n"
      "     Nodes=n[1-2] CPU_IDs=0 Mem=1 GRES=gpu:1(IDX:3)\n"
      "\n"
      "JobId=14 HetJobId=12 HetJobOffset=1 JobName=x\n"
      "     Nodes=n3 CPU_IDs=0 Mem=1 GRES=gpu:4(IDX:0-3)\n";
  const auto grants = ParseJobDetail(text, "12");
  ASSERT_EQ(grants.size(), 2U);
  EXPECT_EQ(grants.at("n1").gpus, 2);
  EXPECT_EQ(grants.at("n3").gpus, 4);
}

TEST(JobDetail, SaysWhetherTheJobHasEnded) {
  const auto state_of = [](const std::string& state) {
    return StateOfEndedJob(
        "JobId=9 JobName=x\n   JobState=FAILED Reason=None\n\n"
        "JobId=7 JobName=JobState=x\n   JobState=" +
            state + " Reason=None\n\nJobId=8 HetJobId=7\n   JobState=FAILED\n",
        "7");
  };
  for (const char* over : {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL",
                           "OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT"}) {
    EXPECT_EQ(state_of(over), over);
  }
  for (const char* other :
       {"RUNNING", "COMPLETING", "SUSPENDED", "CONFIGURING", "STOPPED", "NEW"}) {
    EXPECT_EQ(state_of(other), "") << other;
  }
  EXPECT_EQ(StateOfEndedJob("JobId=7 JobName=x\n", "7"), "");
}

TEST(JobDetail, PassesOverTheRestOfTheText) {
  EXPECT_THAT(ParseJobDetail("JobId=7 JobName=x\n   NodeList=n1\n   BatchHost=n1\n", "7"),
              IsEmpty());
}

TEST(JobDetail, RejectsALineThatCannotBeRead) {
  for (const char* line : {" Nodes=n[1- CPU_IDs=0 GRES=gpu:1", " Nodes=n1 CPU_IDs=0 GRES=gpu:x"}) {
    EXPECT_THROW(Parse(line), LaunchError) << line;
  }
}

TEST(JobDetail, ReadsAsManyHostsAsAListMayHave) {
  const std::string max = " Nodes=n[1-65536] CPU_IDs=0 GRES=gpu:1\n";
  EXPECT_EQ(Parse(max).size(), rankfile::kMaxHosts);
  EXPECT_THROW(Parse(max + " Nodes=m CPU_IDs=0 GRES=gpu:1\n"), LaunchError);
}

TEST(JobDetail, DoesWithoutTheNumbersOfGpus) {
  const auto grants = Parse(" Nodes=n1 CPU_IDs=0 GRES=gpu:1(IDX:9-1)");
  EXPECT_EQ(grants.at("n1").gpus, 1);
  EXPECT_THAT(grants.at("n1").gpu_indices, IsEmpty());
}

TEST(JobDetail, FillsTheAllocationOfSalloc) {
  Allocation allocation =
      *ReadSlurmAllocation(ReadEnvironmentFile("salloc-N2-gres-gpu-2.txt")[0].variables);
  ApplyJobDetail(Parse(" Nodes=n[1-2] CPU_IDs=0 Mem=100 GRES=gpu:2(IDX:0-1)"), &allocation);
  EXPECT_EQ(allocation.gpus_unclear, "");
  EXPECT_EQ(allocation.nodes[1].gpus, 2);
  EXPECT_THAT(allocation.nodes[1].gpu_indices, ElementsAre(0, 1));
}

TEST(JobDetail, RejectsANodeThatSlurmDoesNotName) {
  Allocation allocation;
  allocation.nodes.emplace_back().host = "n9";
  EXPECT_THAT(tests::Rejection<LaunchError>([&] { ApplyJobDetail({}, &allocation); }),
              HasSubstr("does not name n9"));
}

TEST(NodeDetail, SaysHowManyGpusANodeHas) {
  EXPECT_EQ(MaxGpusOfANode("NodeName=n1 Arch=x86_64\n   Gres=gpu:v100:2(S:0-1),tmp:9\n\n"
                           "NodeName=n2\n   Gres=gpu:v100:4\n   AllocTRES=gres/gpu=1\n"),
            4);
  EXPECT_EQ(MaxGpusOfANode("NodeName=n1\n   Gres=(null)\n"), 0);
  EXPECT_EQ(MaxGpusOfANode("Node n1 not found"), 0);
  EXPECT_EQ(MaxGpusOfANode("   Gres=gpu:x\n   Gres=gpu:2\n"), 2);
}

TEST(CpusOfANode, AreTheTotal) {
  EXPECT_EQ(CpusOfANode("NodeName=n1\n   CPUAlloc=4 CPUEfctv=64 CPUTot=64 CPULoad=0.10\n"), 64);
  EXPECT_EQ(CpusOfANode("Node n1 not found"), 0);
  EXPECT_EQ(CpusOfANode("   CPUTot=many\n   CPUTot=8\n"), 8);
}

TEST(SrunError, NamesTheFirstTask) {
  const std::optional<RankExit> killed = ParseSrunError("srun: error: n2: task 3: Killed");
  ASSERT_TRUE(killed);
  EXPECT_EQ(killed->rank, 3);
  EXPECT_EQ(killed->host, "n2");
  EXPECT_EQ(killed->signal, 9);
  EXPECT_EQ(killed->exit_code, 137);
  const std::optional<RankExit> exited =
      ParseSrunError("srun: error: gpu-01.site: tasks 4,6-7: Exited with exit code 2");
  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->rank, 4);
  EXPECT_EQ(exited->exit_code, 2);
  EXPECT_EQ(exited->signal, 0);
  EXPECT_EQ(ParseSrunError("srun: error: n1: task 0: Segmentation fault (core dumped)")->signal,
            11);
}

std::vector<std::pair<int, int>> TasksOf(const std::string& list) {
  std::vector<std::pair<int, int>> tasks;
  for (const RankRange& range : ParseSrunTasks("srun: error: n[1-2]: task" + list + ": Killed")) {
    tasks.emplace_back(range.first, range.last);
  }
  return tasks;
}

TEST(SrunError, NamesAllTasks) {
  EXPECT_THAT(TasksOf(" 3"), ElementsAre(Pair(3, 3)));
  EXPECT_THAT(TasksOf("s 4,6-9,12"), ElementsAre(Pair(4, 4), Pair(6, 9), Pair(12, 12)));
  EXPECT_THAT(TasksOf("s 0-1048575"), ElementsAre(Pair(0, 1048575)));
  for (const char* list : {"", " ", "s ", "s x", "s 4-", "s -4", "s 4-3", "s 4,x", "s 4 5", "s 4,4",
                           "s 5,4", "s 0-9,9", "s 0-1048576", "s 99999999999", "x 4"}) {
    EXPECT_THAT(TasksOf(list), IsEmpty()) << list;
  }
}

TEST(SrunError, MayBeLongWhereManyTasksEnd) {
  std::string line = "srun: error: n[1-4096]: tasks 0";
  for (int task = 2; task < 8000; task += 2) line += "," + std::to_string(task);
  line += ": Exited with exit code 1";
  ASSERT_TRUE(ParseSrunError(line));
  EXPECT_EQ(ParseSrunError(line)->rank, 0);
  EXPECT_EQ(ParseSrunError(line)->host, "n[1-4096]");
  EXPECT_EQ(ParseSrunTasks(line).size(), 4000U);
}

TEST(SrunError, PassesOverAnyOtherLine) {
  for (const char* text : {"", "srun: error: Node failure on n4", "srun: error: n2: task x: Killed",
                           "srun: error: n2: task 1: Vanished", "srun: n2: task 1: Killed",
                           "srun: error: n2: task 1: Exited with exit code 256"}) {
    EXPECT_FALSE(ParseSrunError(text)) << text;
  }
}

TEST(Cancelled, IsReadWithItsReason) {
  EXPECT_EQ(ParseCancelled("srun: Job step aborted: Waiting up to 32 seconds for job step to "
                           "finish."),
            "");
  EXPECT_EQ(
      ParseCancelled("slurmstepd: error: *** STEP 4.0 ON n1 CANCELLED AT 2026-11-22T12:13:22 ***"),
      "");
  EXPECT_EQ(ParseCancelled("0: slurmstepd: error: *** STEP 4.0 ON n1 CANCELLED AT "
                           "2026-11-22T12:13:22 DUE TO TIME LIMIT ***"),
            " DUE TO TIME LIMIT");
  for (const char* text :
       {"", "*** STEP 4.0 ON n1 CANCELLED AT 2026-11-22T12:13:22 ***",
        "slurmstepd: error: *** STEP 4.0 ON n1 CANCELLED AT 2026-11-22T12:13:22",
        "slurmstepd: error: *** STEP 4.0 STEPD TERMINATED ON n1 AT 2026-11-22T12:13:22 ***"}) {
    EXPECT_FALSE(ParseCancelled(text)) << text;
  }
}

// Whatever a rank prints: pieces that overlap, are missing, or come in another order.
TEST(Cancelled, NeedsAllItsPiecesOneAfterTheOther) {
  EXPECT_EQ(ParseCancelled("slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT  ***"), "");
  EXPECT_EQ(ParseCancelled("slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT t ***"), "");
  for (const char* text : {"slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT ***",
                           "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT***",
                           "slurmstepd: error: *** STEP CANCELLED AT t ***",
                           "slurmstepd: error: *** STEP CANCELLED AT ***",
                           " CANCELLED AT t: error: *** STEP 7.0 ON n1 ***", ": error: *** STEP ",
                           " CANCELLED AT ", " ***", "***"}) {
    EXPECT_FALSE(ParseCancelled(text)) << text;
  }
}

TEST(LostNode, IsNamedBySrun) {
  EXPECT_EQ(ParseLostNode("srun: error: Node failure on n2"), "n2");
  EXPECT_EQ(ParseLostNode("srun: error: Task launch for StepId=4.0 failed on node gpu-a08: "
                          "Communication connection failure"),
            "gpu-a08");
  for (const char* line :
       {"Node failure on n2", "srun: error: Node failure on ", "srun: error: Node failure on n2 n3",
        "srun: error: Task launch for StepId=4.0 failed on node n2: Invalid job "
        "credential",
        // Pieces that overlap, or of which one is missing.
        "srun: error: Task launch for failed on node n2: Communication connection failure",
        "srun: error: Task launch for StepId=4.0 failed on node : Communication connection failure",
        "srun: error: Task launch for : Communication connection failure",
        "srun: error: Task launch for StepId=4.0 failed on node: Communication connection failure",
        "srun: error: Task launch for StepId=4.0 failed on node n 2: Communication connection "
        "failure"}) {
    EXPECT_FALSE(ParseLostNode(line)) << line;
  }
}

TEST(StepCreation, IsWaitedForOrGranted) {
  EXPECT_EQ(ParseStepCreation("srun: Job 7 step creation temporarily disabled, retrying (Requested "
                              "nodes are busy)"),
            StepCreation::kWaiting);
  EXPECT_EQ(ParseStepCreation("srun: Step created for StepId=7.1"), StepCreation::kGranted);
  EXPECT_EQ(ParseStepCreation("srun: Job step created"), std::nullopt);
  EXPECT_EQ(ParseStepCreation("step creation temporarily disabled"), std::nullopt);
}

SlurmVersion Version(int year, int month, int patch = 0) { return {year, month, patch}; }

TEST(SlurmVersion, IsReadWithWhateverDistributionsAndVendorsAdd) {
  EXPECT_EQ(ParseSlurmVersion("slurm 22.05.8\n"), Version(22, 5, 8));
  EXPECT_EQ(ParseSlurmVersion("slurm-wlm 24.11.5\n"), Version(24, 11, 5));
  EXPECT_EQ(ParseSlurmVersion("slurm-wlm 20.11.4"), Version(20, 11, 4));
  EXPECT_EQ(ParseSlurmVersion("slurm 23.02.7-bull.1.2"), Version(23, 2, 7));
  EXPECT_EQ(ParseSlurmVersion("slurm 25.05.0-0rc1"), Version(25, 5));
  EXPECT_EQ(ParseSlurmVersion("slurm 24.11"), Version(24, 11, 99));
  EXPECT_EQ(ParseSlurmVersion("srun: warning: 3.4.5\nslurm 21.08.6\n"), Version(21, 8, 6));
}

TEST(SlurmVersion, OfAnyOtherTextIsTheNewest) {
  for (const char* text : {"", "slurm", "slurm x", "slurm 24", "slurm 24.", "slurm 24.x", "22.05.8",
                           "slurm v22.05", "slurm -3.4", "slurm 3.-4", "slurm 24.11rc",
                           "srun: error: no slurm: 24.11.5", "slurm 99999999999.1"}) {
    EXPECT_EQ(ParseSlurmVersion(text), kNewestSlurm) << text;
  }
}

TEST(SlurmVersion, HasFaultsThatAreMended) {
  const auto has_fault = [](SlurmVersion version, const std::string& pmix, int ranks) {
    return !KnownPmixFault(version, pmix, ranks).empty();
  };
  const struct {
    SlurmVersion slurm;
    const char* pmix;
    int ranks;
    bool has_fault;
  } rows[] = {{{25, 11, 1}, "5.0.8", 1, true},      {{25, 11, 1}, "5.0.9", 1, true},
              {{22, 5, 8}, "5.0.8", 1, true},       {{25, 11, 2}, "5.0.8", 1, false},
              {{26, 5, 0}, "5.0.8", 1, false},      {{25, 11, 1}, "5.0.7", 1023, false},
              {{25, 11, 1}, "5.0.10", 1023, false}, {{25, 11, 6}, "5.0.10", 1024, true},
              {{25, 11, 0}, "5.0.10", 1024, true},  {{25, 11, 7}, "5.0.10", 1024, false},
              {{25, 5, 9}, "5.0.10", 1024, false},  {{26, 5, 1}, "6.1.0", 4096, true},
              {{26, 5, 2}, "6.1.0", 4096, false},   {kNewestSlurm, "5.0.8", 4096, false}};
  for (const auto& row : rows) {
    EXPECT_EQ(has_fault(row.slurm, row.pmix, row.ranks), row.has_fault)
        << row.slurm.year << "." << row.slurm.month << "." << row.slurm.patch << " " << row.pmix
        << " " << row.ranks;
  }
  EXPECT_EQ(KnownPmixFault({22, 5, 8}, "5.0.9", 4),
            "Slurm 22.05.8, PMIx 5.0.9: MPI programs with it may hang in MPI_Init, mended in Slurm "
            "25.11.2");
}

TEST(SlurmVersion, ThePauseIsForThoseThatWereSeenToNeedIt) {
  EXPECT_TRUE(PmixServersNeedPause(Version(20, 11)));
  EXPECT_TRUE(PmixServersNeedPause(Version(22, 5)));
  EXPECT_TRUE(PmixServersNeedPause(Version(24, 5)));  // not tried
  EXPECT_FALSE(PmixServersNeedPause(Version(24, 11)));
  EXPECT_FALSE(PmixServersNeedPause(Version(25, 5)));
  EXPECT_FALSE(PmixServersNeedPause(kNewestSlurm));
}

}  // namespace
}  // namespace launcher
