// SPDX-License-Identifier: Apache-2.0

#include "launcher/system/command_output.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include "launcher/base/error.h"

namespace launcher {
namespace {

constexpr std::chrono::seconds kLong{60};
constexpr std::chrono::milliseconds kShort{100};

CommandOutput Shell(const std::string& script) {
  return CommandOutput({"/bin/sh", "-c", script}, {{"PATH", "/usr/bin:/bin"}});
}

TEST(CommandOutput, IsWhatACommandWritesOnBothStreams) {
  CommandOutput command = Shell("echo out; echo error >&2");
  EXPECT_TRUE(command.Wait(kLong));
  EXPECT_TRUE(command.text() == "out\nerror\n" || command.text() == "error\nout\n");
}

TEST(CommandOutput, KnowsACommandThatFailed) {
  EXPECT_FALSE(Shell("exit 3").Wait(kLong));
  EXPECT_FALSE(Shell("kill -KILL $$").Wait(kLong));
  EXPECT_THROW(CommandOutput({"/nonexistent"}, {}), LaunchError);
}

TEST(CommandOutput, TakesOneThatSomebodyElseHasReapedForAFailure) {
  CommandOutput command = Shell("echo out");
  ASSERT_GT(command.pid(), 0);
  ASSERT_EQ(waitpid(command.pid(), nullptr, 0), command.pid());
  EXPECT_TRUE(command.HasEnded());
  EXPECT_EQ(command.pid(), 0);
  EXPECT_FALSE(command.Wait(kLong));
  EXPECT_EQ(command.text(), "out\n");
}

TEST(CommandOutput, EndsACommandThatTakesTooLong) {
  EXPECT_FALSE(Shell("exec sleep 600").Wait(kShort));
  // Also where it, or what it has started, still has or has closed its output.
  EXPECT_FALSE(Shell("sleep 600 & exec sleep 600").Wait(kShort));
  EXPECT_FALSE(Shell("exec sleep 600 > /dev/null 2>&1").Wait(kShort));
}

}  // namespace
}  // namespace launcher
