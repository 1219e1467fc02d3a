// SPDX-License-Identifier: Apache-2.0

#include "launcher/diagnose/collect.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <thread>

#include "launcher/diagnose/diagnosis.h"
#include "launcher/diagnose/process.h"
#include "tests/support/emulated.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

using namespace std::chrono_literals;

// Programs of sh as ranks of a job in a directory of a name of its own.
class CollectTest : public testing::Test {
 protected:
  ~CollectTest() override {
    for (const pid_t pid : ranks_) kill(-pid, SIGKILL);
    for (const pid_t pid : ranks_) waitpid(pid, nullptr, 0);
  }

  // RANK is the number of those before.
  pid_t Start(const std::string& script, const Environment& more = {}) {
    Environment variables = {{"PATH", "/usr/bin:/bin"},   {"RANK", std::to_string(ranks_.size())},
                             {"WORLD_SIZE", "3"},         {"DDLRUN_RUN_DIR", "/elsewhere/" + name_},
                             {"DDLRUN_HOST", "n7"},       {"SLURM_JOB_ID", job_},
                             {"DDLRUN_LAUNCHER", "srun"}, {"DDLRUN_MASTER_ADDR", "n7"},
                             {"DDLRUN_MASTER_PORT", "29"}};
    for (const auto& [name, value] : more) variables[name] = value;
    std::vector<std::string> entries = ToStrings(variables);
    std::vector<char*> environment;
    for (std::string& entry : entries) environment.push_back(entry.data());
    environment.push_back(nullptr);
    const char* const argv[] = {"sh", "-c", script.c_str(), nullptr};
    const std::string here = directory_.path();
    const pid_t pid = fork();
    if (pid == 0) {
      setpgid(0, 0);
      if (chdir(here.c_str()) == 0)
        execve("/bin/sh", const_cast<char* const*>(argv), environment.data());
      _exit(1);
    }
    setpgid(pid, pid);
    ranks_.push_back(pid);
    return pid;
  }

  // What is seen once `is_ready`, which the ranks may need a moment for.
  NodeFacts Collect(const std::function<bool(const NodeFacts&)>& is_ready,
                    const std::string& directory, const std::string& job = "",
                    const std::string& run = "") {
    NodeFacts facts;
    for (int i = 0; i < 100; ++i) {
      facts = CollectFacts({.directory = directory,
                            .job = job,
                            .run = run,
                            .host = "here",
                            .environment = {{"PATH", path_}},
                            .between_looks = 50ms,
                            .kernel_log = directory_ / "kernel_log"});
      if (is_ready(facts)) break;
      std::this_thread::sleep_for(50ms);
    }
    return facts;
  }
  NodeFacts Collect(const std::function<bool(const NodeFacts&)>& is_ready) {
    return Collect(is_ready, "/tmp/" + name_);
  }

  const TemporaryDirectory directory_;
  const std::string name_ = "ddlrun." + directory_.path().filename().string();
  const std::string job_ = std::to_string(getpid());
  std::string path_ = "/nowhere";
  std::vector<pid_t> ranks_;
};

TEST_F(CollectTest, KnowsWhichRanksGpuHasReportedAnError) {
  Start("exec sleep 100");
  Start("exec sleep 100");
  const std::string mark = ",-;NVRM: Xid (PCI:0000:3b:00): ";
  std::ofstream(directory_ / "kernel_log")
      << "4,1,1000" << mark << "13, pid=" << ranks_[0] << ", name=x\n"  // before the rank
      << "4,2,99999999000000" << mark << "31, pid=" << ranks_[1] << ", name=x\n"
      << "4,3,99999999000000" << mark << "43, pid=" << ranks_[1] << ", name=x\n"
      << "4,4,99999999000000" << mark << "79, pid='<unknown>', name=<unknown>\n";
  const NodeFacts facts = Collect([](const NodeFacts& node) { return node.ranks.size() == 2; });
  ASSERT_EQ(facts.ranks.size(), 2U);
  EXPECT_EQ(facts.ranks[0].gpu_error, "");
  EXPECT_EQ(facts.ranks[1].gpu_error, "GPU 0000:3b:00: Xid 31");
  EXPECT_THAT(facts.notes, Contains("the kernel log has of a process that is not known GPU "
                                    "0000:3b:00: Xid 79"));
}

TEST_F(CollectTest, AsksNvidiaSmiOfTheGpus) {
  path_ = directory_.path();
  const std::string program = directory_ / "nvidia-smi";
  std::ofstream(program)
      << "#!/bin/sh\n[ \"$2\" = --format=csv,noheader ] || exit 1\n"
         "case $1 in --query-gpu=index,pci.bus_id,*) echo '0, 0:3B, 99 %' ;; esac\n";
  chmod(program.c_str(), 0700);
  Start("exec sleep 100");
  const auto is_there = [](const NodeFacts& node) { return node.ranks.size() == 1; };
  EXPECT_THAT(Collect(is_there).gpus, ElementsAre("0, 0:3B, 99 %"));
  std::ofstream(program) << "#!/bin/sh\necho 'No devices were found'; exit 6\n";
  const NodeFacts facts = Collect(is_there);
  EXPECT_THAT(facts.gpus, IsEmpty());
  EXPECT_THAT(facts.notes, Contains("nvidia-smi: No devices were found"));
}

TEST_F(CollectTest, LeavesNoProcessStoppedByAToolThatDoesNotEnd) {
  path_ = directory_.path();
  const std::string program = directory_ / "eu-stack";
  std::ofstream(program) << "#!/bin/sh\nkill -STOP $4\nexec /bin/sleep 100\n";
  chmod(program.c_str(), 0700);
  Start("while :; do :; done");
  std::this_thread::sleep_for(100ms);
  const NodeFacts facts = Collect([](const NodeFacts& node) { return node.ranks.size() == 1; });
  EXPECT_THAT(facts.notes, Contains(HasSubstr("eu-stack of process")));
  std::optional<ProcessStat> stat;
  for (int i = 0; i < 100 && !(stat && stat->state == 'R'); ++i) {
    std::this_thread::sleep_for(10ms);
    stat = ReadProcessStat(ranks_[0]);
  }
  EXPECT_EQ(stat->state, 'R');
}

TEST_F(CollectTest, SeesWhatHoldsUpARank) {
  ASSERT_EQ(mkfifo((directory_ / "fifo").c_str(), 0600), 0);
  Start("exec sleep 100");
  Start("kill -STOP $$");
  Start("read x < fifo");
  const NodeFacts facts = Collect([](const NodeFacts& node) {
    return node.ranks.size() == 3 && node.ranks[0].processes[0].name == "sleep" &&
           node.ranks[1].processes[0].state == 'T' && node.ranks[2].processes[0].is_still &&
           node.ranks[2].processes[0].wait == "wait_for_partner";
  });
  ASSERT_EQ(facts.ranks.size(), 3U);
  EXPECT_EQ(facts.host, "here");
  EXPECT_EQ(facts.directory, "/elsewhere/" + name_);
  for (int i = 0; i < 3; ++i) {
    const RankFacts& rank = facts.ranks[static_cast<std::size_t>(i)];
    EXPECT_EQ(rank.rank, i);
    EXPECT_EQ(rank.world, 3);
    EXPECT_EQ(rank.host, "n7");
    ASSERT_EQ(rank.processes.size(), 1U);
    EXPECT_EQ(rank.processes[0].pid, ranks_[static_cast<std::size_t>(i)]);
    EXPECT_EQ(rank.processes[0].parent, getpid());
    EXPECT_LT(rank.processes[0].cpus, 0.5);
  }
  EXPECT_EQ(facts.ranks[1].processes[0].state, 'T');
  EXPECT_EQ(facts.ranks[2].processes[0].wait, "wait_for_partner");
  if (facts.ranks[0].processes[0].call.empty()) GTEST_SKIP() << "ptrace is not permitted";
  if (tests::IsEmulated()) GTEST_SKIP() << "Linux tells the calls of QEMU";
  EXPECT_EQ(facts.ranks[0].processes[0].call, "clock_nanosleep");
  EXPECT_EQ(facts.ranks[2].processes[0].call, "open");
  EXPECT_EQ(facts.ranks[2].processes[0].object, directory_ / "fifo");
  EXPECT_NE(facts.ranks[2].processes[0].file_system, "");
}

TEST_F(CollectTest, SeesAllThatARankHasStarted) {
  // A busy one, and one that was killed and that nobody waits for.
  Start("sh -c 'kill -KILL $$' & sh -c 'while :; do :; done' & exec sleep 100");
  const NodeFacts facts = Collect([](const NodeFacts& node) {
    return node.ranks.size() == 1 && node.ranks[0].processes.size() == 3 &&
           std::ranges::any_of(node.ranks[0].processes,
                               [](const auto& each) { return each.state == 'Z'; });
  });
  ASSERT_EQ(facts.ranks.size(), 1U);
  ASSERT_EQ(facts.ranks[0].processes.size(), 3U);
  const std::vector<ProcessFacts>& all = facts.ranks[0].processes;
  EXPECT_EQ(all[0].pid, ranks_[0]);
  EXPECT_EQ(all[1].parent, ranks_[0]);
  const ProcessFacts& killed = all[1].state == 'Z' ? all[1] : all[2];
  EXPECT_EQ(killed.state, 'Z');
  EXPECT_EQ(killed.wait_status, SIGKILL);
  const ProcessFacts& busy = all[1].state == 'Z' ? all[2] : all[1];
  EXPECT_GT(busy.cpus, 0.1);  // tests may have to share the CPUs
}

TEST_F(CollectTest, FindsRanksByJobAndTakesTheLargerWorld) {
  // As torchrun does it.
  Start("RANK=1 WORLD_SIZE=8 sleep 100; :");
  const auto is_ready = [](const NodeFacts& node) {
    return node.ranks.size() == 1 && node.ranks[0].world == 8;
  };
  const NodeFacts facts = Collect(is_ready, "", job_);
  ASSERT_EQ(facts.ranks.size(), 1U);
  EXPECT_EQ(facts.ranks[0].rank, 1);
  EXPECT_EQ(facts.ranks[0].world, 8);
  EXPECT_EQ(facts.ranks[0].processes[0].parent, ranks_[0]);
  EXPECT_THAT(Collect([](const auto&) { return true; }, "", job_ + "0").ranks, IsEmpty());
  EXPECT_THAT(Collect([](const auto&) { return true; }, "/tmp/ddlrun.other").ranks, IsEmpty());
}

TEST_F(CollectTest, TellsTheRunsOfAJobApart) {
  Start("exec sleep 100");
  Start("exec sleep 100", {{"DDLRUN_RUN_DIR", ""}, {"DDLRUN_MASTER_PORT", "30"}});
  const auto has_note = [](const NodeFacts& node) { return !node.notes.empty(); };
  NodeFacts facts = Collect(has_note, "", job_);
  EXPECT_THAT(facts.ranks, IsEmpty());
  EXPECT_THAT(facts.notes, ElementsAre(kSeveralRuns));
  const auto has_rank = [](const NodeFacts& node) { return !node.ranks.empty(); };
  facts = Collect(has_rank, "", job_, "n7:30");
  ASSERT_THAT(facts.ranks, SizeIs(1));
  EXPECT_EQ(facts.ranks[0].rank, 1);
  EXPECT_EQ(facts.run, "n7:30");
  EXPECT_EQ(facts.directory, "");
  facts = Collect(has_rank);
  ASSERT_THAT(facts.ranks, SizeIs(1));
  EXPECT_EQ(facts.ranks[0].rank, 0);
  EXPECT_EQ(facts.run, "n7:29");
}

TEST_F(CollectTest, AsksPySpyOfThePathOfARank) {
  // A Python, by its name, and a py-spy that has its answer.
  fs::copy_file("/bin/sh", directory_.path() / "python3.1");
  directory_.WriteScript("py-spy",
                         "[ \"$*\" = \"dump --json --nonblocking --pid $5\" ] || exit 1\n"
                         "echo warning\n"
                         "echo '[{\"os_thread_id\":'$5',\"frames\":[{\"name\":\"step\","
                         "\"filename\":\"/home/me/job/train.py\",\"line\":17}]}]'");
  Start("exec ./python3.1 -c 'kill -STOP $$'", {{"PATH", directory_.path().string()}});
  const NodeFacts facts = Collect([](const NodeFacts& node) {
    return node.ranks.size() == 1 && !node.ranks[0].processes[0].stack.empty();
  });
  ASSERT_EQ(facts.ranks.size(), 1U);
  EXPECT_THAT(facts.ranks[0].processes[0].stack, ElementsAre("step (me/job/train.py:17)"));
  EXPECT_THAT(facts.notes, IsEmpty());
}

TEST_F(CollectTest, SaysWhyThereAreNoPythonFunctions) {
  fs::copy_file("/bin/sh", directory_.path() / "python3.1");
  Start("exec ./python3.1 -c 'kill -STOP $$'",
        {{"PATH", "relative:" + directory_.path().string()}});
  const auto has_note = [](const NodeFacts& node) { return !node.notes.empty(); };
  EXPECT_THAT(Collect(has_note).notes,
              ElementsAre(StartsWith("no py-spy is in PATH: Python functions are not known")));
  directory_.WriteScript("py-spy", "echo 'Error: Permission Denied' >&2; exit 1");
  EXPECT_THAT(
      Collect(has_note).notes,
      ElementsAre("py-spy of process " + std::to_string(ranks_[0]) + ": Error: Permission Denied"));
}

}  // namespace
}  // namespace launcher
