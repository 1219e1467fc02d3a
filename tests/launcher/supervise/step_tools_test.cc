// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/step_tools.h"

#include <poll.h>

#include <csignal>

#include "tests/support/test.h"

namespace launcher {
namespace {

constexpr std::chrono::seconds kLong{60};

// What is sent by which script of sh; a signal that has none has no command.
StepTools ToolsOf(const std::map<int, std::string>& scripts) {
  StepTools tools;
  tools.environment = {{"PATH", "/usr/bin:/bin"}};
  tools.signal = [scripts](const std::string&, int signal) {
    const auto script = scripts.find(signal);
    return script == scripts.end() ? StepTools::Command()
                                   : StepTools::Command{"/bin/sh", "-c", script->second};
  };
  return tools;
}

void WaitUntilAllHaveArrived(StepSignals* signals) {
  for (int i = 0; i < 6000 && !signals->HaveArrived(); ++i) poll(nullptr, 0, 10);
  EXPECT_TRUE(signals->HaveArrived());
}

TEST(StepSignals, TellOnceOfOneWhoseCommandFailed) {
  const StepTools tools = ToolsOf({{SIGTERM, "exit 1"}});
  StepSignals signals(tools, kLong);
  EXPECT_EQ(signals.TakeLost(), std::nullopt);
  EXPECT_TRUE(signals.Send("1.0", SIGTERM));
  WaitUntilAllHaveArrived(&signals);
  EXPECT_EQ(signals.TakeLost(), SIGTERM);
  EXPECT_EQ(signals.TakeLost(), std::nullopt);
  EXPECT_EQ(signals.deadline(), std::nullopt);
}

TEST(StepSignals, SayNothingOfOneThatArrived) {
  const StepTools tools = ToolsOf({{SIGTERM, "exit 0"}});
  StepSignals signals(tools, kLong);
  EXPECT_TRUE(signals.Send("1.0", SIGTERM));
  EXPECT_TRUE(signals.deadline());
  WaitUntilAllHaveArrived(&signals);
  EXPECT_EQ(signals.TakeLost(), std::nullopt);
  EXPECT_EQ(signals.deadline(), std::nullopt);
}

// SIGCONT comes behind SIGTERM where Slurm or systemd ends a job.
TEST(StepSignals, AreNotForgottenWhenAnotherFollows) {
  const StepTools tools = ToolsOf({{SIGTERM, "exit 1"}, {SIGCONT, "exit 0"}});
  StepSignals signals(tools, kLong);
  EXPECT_TRUE(signals.Send("1.0", SIGTERM));
  EXPECT_TRUE(signals.Send("1.0", SIGCONT));
  WaitUntilAllHaveArrived(&signals);
  EXPECT_EQ(signals.TakeLost(), SIGTERM);
  EXPECT_EQ(signals.TakeLost(), std::nullopt);
}

TEST(StepSignals, AreLostWhenTheirTimeIsOverAndMayStillArrive) {
  const StepTools tools = ToolsOf({{SIGTERM, "exec sleep 600"}, {SIGINT, "exec sleep 600"}});
  StepSignals signals(tools, std::chrono::milliseconds(0));
  EXPECT_TRUE(signals.Send("1.0", SIGTERM));
  EXPECT_TRUE(signals.Send("1.0", SIGINT));
  EXPECT_EQ(signals.TakeLost(), SIGTERM);
  EXPECT_EQ(signals.TakeLost(), SIGINT);
  EXPECT_EQ(signals.TakeLost(), std::nullopt);
  EXPECT_EQ(signals.deadline(), std::nullopt);
  EXPECT_FALSE(signals.HaveArrived());
}

TEST(StepSignals, AreNotSentWithoutACommandThatCanBeStarted) {
  StepTools tools = ToolsOf({});
  StepSignals signals(tools, kLong);
  EXPECT_FALSE(signals.Send("1.0", SIGTERM));
  tools.signal = [](const std::string&, int) { return StepTools::Command{"/nonexistent"}; };
  EXPECT_FALSE(signals.Send("1.0", SIGTERM));
  EXPECT_EQ(signals.TakeLost(), std::nullopt);
}

}  // namespace
}  // namespace launcher
