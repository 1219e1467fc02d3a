// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/runs/command_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "trainer/core/error.h"

namespace bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CommandRunnerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    output_ = std::filesystem::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove(output_);
  }
  void TearDown() override { std::filesystem::remove(output_); }

  int Shell(const std::string& text) { return runner_.Run({"sh", "-c", text}, output_); }
  std::string Output() const {
    std::ostringstream text;
    text << std::ifstream(output_).rdbuf();
    return text.str();
  }

  CommandRunner runner_;
  std::filesystem::path output_;
};

TEST_F(CommandRunnerTest, HasBothOutputsAndTheExitCode) {
  EXPECT_EQ(Shell("echo one; echo two >&2; exit 7"), 7);
  EXPECT_EQ(Output(), "one\ntwo\n");
  EXPECT_EQ(Shell("true"), 0);
  EXPECT_EQ(Output(), "");
  EXPECT_EQ(runner_.StopSignal(), 0);
}

TEST_F(CommandRunnerTest, ThereIsNothingToRead) {
  EXPECT_EQ(Shell("cat"), 0);
  EXPECT_EQ(Output(), "");
}

TEST_F(CommandRunnerTest, ASignalThatEndsItIs128AndItsNumber) {
  EXPECT_EQ(Shell("kill -9 $$"), 137);
}

TEST_F(CommandRunnerTest, HandsASignalOnAndRemembersTheFirst) {
  EXPECT_EQ(Shell("trap 'echo told; exit 3' TERM; kill -TERM $PPID; while :; do sleep 0.05; done"),
            3);
  EXPECT_EQ(Output(), "told\n");
  EXPECT_EQ(runner_.StopSignal(), SIGTERM);
  EXPECT_EQ(Shell("trap 'exit 4' INT; kill -INT $PPID; while :; do sleep 0.05; done"), 4);
  EXPECT_EQ(runner_.StopSignal(), SIGTERM);
}

TEST_F(CommandRunnerTest, ASignalBetweenCommandsIsSeen) {
  ::kill(::getpid(), SIGUSR1);
  EXPECT_EQ(runner_.StopSignal(), SIGUSR1);
}

// The command ends only because of what is done meanwhile.
TEST_F(CommandRunnerTest, SomethingIsDoneMeanwhileAndOnceMoreAtTheEnd) {
  const std::filesystem::path made = output_.string() + ".made";
  std::filesystem::remove(made);
  std::string seen;
  const auto meanwhile = [&] {
    std::ofstream(made) << "";
    seen = Output();
  };
  EXPECT_EQ(
      runner_.Run({"sh", "-c", "until [ -e \"$0\" ]; do sleep 0.05; done; echo end; exit 5", made},
                  output_, meanwhile),
      5);
  EXPECT_EQ(seen, "end\n");
  std::filesystem::remove(made);
}

TEST_F(CommandRunnerTest, HandsASignalOnWhileSomethingIsDoneMeanwhile) {
  EXPECT_EQ(runner_.Run(
                {"sh", "-c", "trap 'exit 3' TERM; kill -TERM $PPID; while :; do sleep 0.05; done"},
                output_, [] {}),
            3);
  EXPECT_EQ(runner_.StopSignal(), SIGTERM);
}

TEST_F(CommandRunnerTest, CommandsHaveTheSignalsThatWeHad) {
  EXPECT_EQ(Shell("grep SigBlk /proc/self/status"), 0);
  EXPECT_THAT(Output(), HasSubstr("0000000000000000"));
}

Command ShellCommand(const std::string& text, const std::filesystem::path& output = "") {
  return {.argv = {"sh", "-c", text}, .output = output, .variables = {}, .cpus = {}};
}

// The first waits for what the second makes.
TEST_F(CommandRunnerTest, SeveralRunAtOnceAndEachHasItsExitCode) {
  const std::filesystem::path made = output_.string() + ".made";
  std::filesystem::remove(made);
  const std::string name = made.string();
  EXPECT_THAT(
      runner_.RunAll({ShellCommand("until [ -e " + name + " ]; do sleep 0.02; done; exit 3"),
                      ShellCommand("echo > " + name + "; exit 4"), ShellCommand("true")}),
      ElementsAre(3, 4, 0));
  std::filesystem::remove(made);
}

TEST_F(CommandRunnerTest, ASignalGoesToAllThatRun) {
  const std::string on_signal = "trap 'exit 3' TERM; ";
  const std::string wait = "while :; do sleep 0.05; done";
  // The second gives the first time for its trap.
  EXPECT_THAT(runner_.RunAll({ShellCommand(on_signal + wait),
                              ShellCommand(on_signal + "sleep 0.3; kill -TERM $PPID; " + wait)}),
              ElementsAre(3, 3));
}

TEST_F(CommandRunnerTest, VariablesAreAddedOrReplaced) {
  ::setenv("DDLBENCH_TEST", "ours", 1);
  Command command =
      ShellCommand("echo $DDLBENCH_TEST $DDLBENCH_OTHER; env | grep -c DDLBENCH_TEST", output_);
  EXPECT_THAT(runner_.RunAll({command}), ElementsAre(0));
  EXPECT_EQ(Output(), "ours\n1\n");
  command.variables = {{"DDLBENCH_TEST", "its"}, {"DDLBENCH_OTHER", "own"}};
  EXPECT_THAT(runner_.RunAll({command}), ElementsAre(0));
  EXPECT_EQ(Output(), "its own\n1\n");
  ::unsetenv("DDLBENCH_TEST");
}

TEST_F(CommandRunnerTest, CpusAreThoseThatItIsGiven) {
  cpu_set_t ours;
  CPU_ZERO(&ours);
  ASSERT_EQ(::sched_getaffinity(0, sizeof ours, &ours), 0);
  int last = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &ours)) last = cpu;
  }
  Command command = ShellCommand("sed -n 's/^Cpus_allowed_list:\t//p' /proc/self/status", output_);
  command.cpus = {last};
  EXPECT_THAT(runner_.RunAll({command}), ElementsAre(0));
  EXPECT_EQ(Output(), std::to_string(last) + "\n");
}

TEST_F(CommandRunnerTest, TheOthersEndWhereOneCannotBeStarted) {
  Command missing = ShellCommand("");
  missing.argv = {"/no/such/program"};
  EXPECT_THROW(runner_.RunAll({ShellCommand("trap 'echo told; exit 1' TERM; echo begun; "
                                            "while :; do sleep 0.05; done",
                                            output_),
                               missing}),
               trainer::Error);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);  // none is left
}

TEST_F(CommandRunnerTest, SaysWhatCannotBeStarted) {
  try {
    runner_.Run({"/no/such/program"}, output_);
    FAIL();
  } catch (const trainer::Error& error) {
    EXPECT_EQ(error.exit_code(), EX_UNAVAILABLE);
    EXPECT_THAT(error.what(), HasSubstr("cannot start /no/such/program: No such file"));
  }
}

TEST_F(CommandRunnerTest, SaysWhatCannotBeWritten) {
  try {
    runner_.Run({"true"}, "/no/such/folder/log");
    FAIL();
  } catch (const trainer::Error& error) {
    EXPECT_EQ(error.exit_code(), EX_OSERR);
    EXPECT_THAT(error.what(), HasSubstr("cannot write /no/such/folder/log"));
  }
}

}  // namespace
}  // namespace bench
