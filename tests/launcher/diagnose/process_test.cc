// SPDX-License-Identifier: Apache-2.0

#include "launcher/diagnose/process.h"

#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "launcher/diagnose/diagnosis.h"
#include "tests/support/emulated.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

TEST(ParseProcessStat, ReadsNamesOfAnyKind) {
  const std::string rest =
      " S 41 1 1 0 -1 4194304 1 2 3 4 100 20 5 6 20 0 7 0 9876 0 0 18446744073709551615 0 0 0 0 0 "
      "0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 9\n";
  for (const char* name : {"python3", "a b", "a) S (b", ")"}) {
    const auto stat = ParseProcessStat("42 (" + std::string(name) + ")" + rest);
    ASSERT_TRUE(stat.has_value()) << name;
    EXPECT_EQ(stat->name, name);
    EXPECT_EQ(stat->state, 'S');
    EXPECT_EQ(stat->parent, 41);
    EXPECT_EQ(stat->ticks, 120);
    EXPECT_EQ(stat->start, 9876);
    EXPECT_EQ(stat->wait_status, 9);
  }
}

TEST(ParseProcessStat, RejectsOtherTexts) {
  for (const char* text : {"", "42", "42 (a", "42 )a(", "42 (a)", "42 (a) S 1 2",
                           "42 (a) SS 1 1 1 0 -1 4 1 2 3 4 1 2 5 6 20 0 7 0 9"}) {
    EXPECT_EQ(ParseProcessStat(text), std::nullopt) << text;
  }
}

TEST(FileSystemOf, IsTheDeepestMountOrTheOneMeant) {
  const std::string mounts =
      "20 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n"
      "21 20 0:30 / /home rw shared:2 master:3 - nfs4 server:/home rw,vers=4.2\n"
      "22 21 0:31 / /home/me/data rw - lustre mds:/data rw\n"
      "24 20 0:33 / /x rw - tmpfs a rw\n"
      "25 24 0:34 / /x rw - fuse b rw\n"
      "a line of another form\n";
  const std::pair<const char*, const char*> cases[] = {
      {"/etc/hosts", "ext4 at /"},
      {"/home/me/x", "nfs4 at /home"},
      {"/home", "nfs4 at /home"},
      {"/homes/x", "ext4 at /"},
      {"/home/me/data/x", "lustre at /home/me/data"},
      {"/x/y", "fuse at /x"},
      {"a pipe", ""},
  };
  for (const auto& [path, expected] : cases) EXPECT_EQ(FileSystemOf(mounts, path), expected);
  EXPECT_EQ(FileSystemOf(mounts, "/etc/hosts", 22), "lustre at /home/me/data");
  EXPECT_EQ(FileSystemOf(mounts, "/etc/hosts", 99), "ext4 at /");
  EXPECT_EQ(FileSystemOf("", "/etc/hosts"), "");
}

TEST(FactsOf, CountsTheTimeBetweenTwoLooks) {
  ProcessLook before, now;
  before.stat.state = now.stat.state = 'S';
  before.stat.ticks = 100;
  now.stat.ticks = 250;
  before.switches = now.switches = "1 2";
  const auto still = [&] { return FactsOf(1, before, now, 1.0).is_still; };
  EXPECT_NEAR(FactsOf(1, before, now, 1.0).cpus, 1.5, 0.01);
  EXPECT_NEAR(FactsOf(1, before, now, 0.5).cpus, 3, 0.01);
  EXPECT_EQ(FactsOf(1, now, before, 0.5).cpus, 0);
  EXPECT_TRUE(still());
  now.switches = "1 3";
  EXPECT_FALSE(still());
  now.switches = before.switches;
  now.call = "0 0x3";
  EXPECT_FALSE(still());
  now.call = before.call;
  now.stat.state = 'D';
  EXPECT_FALSE(still());
  now.stat.state = 'S';
  now.thread = 7;
  EXPECT_FALSE(still());
  EXPECT_EQ(FactsOf(1, before, now, 1.0).state, 'D');
}

constexpr char kCallsOfQemu[] = "Linux tells the calls of QEMU";

TEST(LookAt, SeesWhatCannotBeInterrupted) {
  if (tests::IsEmulated()) GTEST_SKIP() << kCallsOfQemu;
  // As a parent is until the child that vfork has made begins a program.
  const pid_t pid = fork();
  if (pid == 0) {
    setpgid(0, 0);
    if (syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0) == 0) pause();
    _exit(0);
  }
  setpgid(pid, pid);
  std::optional<ProcessLook> before, now;
  for (int i = 0; i < 500 && !(before && now && before->stat.state == 'D'); ++i) {
    before = LookAt(pid);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    now = LookAt(pid);
  }
  ASSERT_TRUE(before && now);
  const ProcessFacts facts = FactsOf(pid, *before, *now, 0.01);
  kill(-pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  EXPECT_EQ(facts.state, 'D');
  EXPECT_EQ(facts.thread, 0);
  EXPECT_TRUE(facts.is_still);
  HangingJob job;
  job.nodes = {{.host = "n1", .ranks = {{.host = "n1", .processes = {facts}}}}};
  EXPECT_EQ(Diagnose(job).cause, HangCause::kUninterruptible);
  if (facts.call.empty()) GTEST_SKIP() << "ptrace is not permitted";
  EXPECT_EQ(facts.call, "clone");
  EXPECT_FALSE(LookAt(pid).has_value());
}

// After SIGSTOP and SIGCONT, as after a debugger, Linux calls it by another number.
TEST(LookAt, SeesThatSomethingSleepsThatWasStopped) {
  if (tests::IsEmulated()) GTEST_SKIP() << kCallsOfQemu;
  const pid_t pid = fork();
  if (pid == 0) {
    for (;;) sleep(1000);
  }
  const auto has_state = [pid](char state) {
    for (int i = 0; i < 500; ++i) {
      const auto look = LookAt(pid);
      if (look && look->stat.state == state && !look->call.starts_with("running")) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  };
  EXPECT_TRUE(has_state('S'));
  kill(pid, SIGSTOP);
  EXPECT_TRUE(has_state('T'));
  kill(pid, SIGCONT);
  EXPECT_TRUE(has_state('S'));
  const auto look = LookAt(pid);
  ASSERT_TRUE(look);
  const ProcessFacts facts = FactsOf(pid, *look, *look, 0.01);
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  HangingJob job;
  job.nodes = {{.host = "n1", .ranks = {{.host = "n1", .processes = {facts}}}}};
  EXPECT_EQ(Diagnose(job).cause, HangCause::kAsleep) << facts.call << " " << facts.wait;
  EXPECT_FALSE(NeedsFunctions(facts));
}

}  // namespace
}  // namespace launcher
