// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/job_children.h"

#include <csignal>
#include <stdexcept>
#include <thread>

#include "tests/launcher/supervise/supervisor_fixture.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

class JobChildrenTest : public SupervisorTest {
 protected:
  ChildCommand Launcher(const std::string& launcher, const std::string& script) const {
    ChildCommand command;
    command.launcher = &TraitsOf(launcher.c_str());
    command.argv = {"/bin/sh", "-c", "cd '" + directory_ + "'; " + script};
    command.environment = {"PATH=/usr/bin:/bin"};
    return command;
  }

  void WaitForFile(const std::string& name) const {
    while (Content(name).empty()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }

  SupervisorOptions options_;
  sigset_t mask_ = {};
};

TEST_F(JobChildrenTest, PassesALineOnThatCouldNotBeRead) {
  testing::internal::CaptureStderr();
  std::vector<std::string> read;
  {
    JobOutput output(std::chrono::seconds(1));
    JobChildren children(options_);
    children.Start(Launcher("srun", "echo one >&2; echo two >&2"), mask_, &output,
                   [&](std::string_view line) -> std::optional<std::string> {
                     read.emplace_back(line);
                     if (line == "one") throw std::out_of_range("one");
                     return "2\n";
                   });
    while (!children.AllEnded()) children.Reap({}, [](const JobChild&, const siginfo_t&) {});
    output.ExpectLast();
    while (output.Relay()) {
    }
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "one\n2\n");
  EXPECT_THAT(read, ElementsAre("one", "two"));
}

// What is put instead of a line ends as the line does.
TEST_F(JobChildrenTest, KeepsTheEndOfALineThatIsReplaced) {
  testing::internal::CaptureStderr();
  {
    JobOutput output(std::chrono::seconds(1));
    JobChildren children(options_);
    children.Start(Launcher("mpirun", "printf 'a\\rb\\nc' >&2"), mask_, &output,
                   [&](std::string_view line) { return "<" + std::string(line) + ">\n"; });
    while (!children.AllEnded()) children.Reap({}, [](const JobChild&, const siginfo_t&) {});
    output.ExpectLast();
    while (output.Relay()) {
    }
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "<a>\r<b>\n<c>");
}

// srun and mpirun leave their ranks alive when they are killed.
TEST_F(JobChildrenTest, GivesSrunAndMpirunTimeToEndTheirRanksAfterAnException) {
  for (const char* const launcher : {"srun", "mpirun"}) {
    std::filesystem::remove(directory_ + "/ready");
    std::filesystem::remove(directory_ + "/ended");
    try {
      JobOutput output(std::chrono::seconds(1));
      JobChildren children(options_);
      children.Start(Launcher(launcher,
                              "trap 'sleep 0.1; echo yes > ended; exit 0' TERM; echo yes > ready; "
                              "while :; do sleep 0.01; done"),
                     mask_, &output, [](std::string_view) { return std::nullopt; });
      WaitForFile("ready");
      throw std::out_of_range("a mistake of ours");
    } catch (const std::out_of_range&) {
    }
    EXPECT_EQ(Content("ended"), "yes\n");
  }
}

}  // namespace
}  // namespace launcher
