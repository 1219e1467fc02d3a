// SPDX-License-Identifier: Apache-2.0

#include "launcher/features/status_file.h"

#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include <system_error>

#include "launcher/supervise/supervisor.h"
#include "tests/launcher/supervise/supervisor_fixture.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

using State = JobStatus::RankState;

// A directory of its own; what the file says, once it says what is waited for.
class StatusFileTest : public SupervisorTest {
 protected:
  std::optional<JobStatus> WaitFor(bool (*is_wanted)(const JobStatus&)) const {
    for (int i = 0; i < 1000; ++i) {
      const auto status = ParseJobStatus(Content("status"));
      if (status && is_wanted(*status)) return status;
      usleep(10000);
    }
    return std::nullopt;
  }
};

TEST_F(StatusFileTest, IsReplacedByWhatIsSaidLast) {
  StatusFileOptions options{directory_ + "/status", {}};
  options.head.ranks.resize(2);
  StatusFile file(options);
  ASSERT_TRUE(file.deadline().has_value());
  EXPECT_LE(*file.deadline(), StatusFile::Clock::now());
  JobStatus status = options.head;
  status.ranks[1].state = State::kRunning;
  file.Write(status);
  EXPECT_GT(*file.deadline(), StatusFile::Clock::now());
  const auto first =
      WaitFor([](const JobStatus& now) { return now.ranks[1].state == State::kRunning; });
  ASSERT_TRUE(first.has_value());
  EXPECT_GT(first->written, 0);
  struct stat info = {};
  ASSERT_EQ(stat((directory_ + "/status").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  status.ranks[1].state = State::kEnded;
  file.Write(status);
  EXPECT_TRUE(WaitFor([](const JobStatus& now) {
                return now.ranks[1].state == State::kEnded;
              }).has_value());
}

TEST_F(StatusFileTest, IsReplacedInTimeWhateverTheNumberOfRanks) {
  struct Row {
    std::size_t ranks;
    double at_least, at_most;  // seconds to the next file
  };
  for (const Row& row : {Row{1, 2, 2}, {2048, 2, 2.1}, {32768, 2.5, 5}, {131072, 2.5, 5}}) {
    StatusFileOptions options{directory_ + "/status", {}};
    options.head.ranks.resize(row.ranks);
    StatusFile file(options);
    const auto before = StatusFile::Clock::now();
    file.Write(options.head);
    const auto after = StatusFile::Clock::now();
    using Seconds = std::chrono::duration<double>;
    EXPECT_GE(Seconds(*file.deadline() - before).count(), row.at_least) << row.ranks;
    EXPECT_LE(Seconds(*file.deadline() - after).count(), row.at_most) << row.ranks;
  }
}

TEST_F(StatusFileTest, AfterItsEndNothingIsWritten) {
  for (int i = 0; i < 200; ++i) {
    const std::string directory = directory_ + "/run";
    std::filesystem::create_directory(directory);
    StatusFileOptions options{directory + "/status", {}};
    options.head.ranks.resize(1000);
    {
      StatusFile file(options);
      file.Write(options.head);
      usleep(50 * (i % 20));
    }
    std::error_code error;
    std::filesystem::remove_all(directory, error);
    EXPECT_FALSE(error) << error.message();
    ASSERT_FALSE(std::filesystem::exists(directory));
  }
}

TEST_F(StatusFileTest, ADirectoryThatIsGoneHurtsNobody) {
  StatusFile file({directory_ + "/none/status", {}});
  file.Write(JobStatus());
  EXPECT_TRUE(file.deadline().has_value());
}

TEST_F(StatusFileTest, SaysWhoRunsAndHowOthersEnded) {
  StatusFileOptions options{directory_ + "/status", {}};
  options.head.ranks.resize(2);
  std::vector<ChildCommand> commands(2);
  for (int rank = 0; rank < 2; ++rank) {
    commands[static_cast<std::size_t>(rank)].rank = rank;
    commands[static_cast<std::size_t>(rank)].environment = {"PATH=/usr/bin:/bin"};
  }
  // The first rank ends when the file says that the other one has.
  commands[0].argv = {
      "/bin/sh", "-c",
      "cd '" + directory_ + "'; until grep -q 'ended 75' status; do sleep 0.02; done"};
  commands[1].argv = {"/bin/sh", "-c", "exit 75"};
  SupervisorOptions supervisor;
  supervisor.hosts = {"n1", "n2"};
  supervisor.watchers.push_back(std::make_unique<StatusFile>(options));
  SignalRelay signals;
  EXPECT_EQ(Supervise(commands, supervisor, signals).exit_code, EX_TEMPFAIL);
  const auto status = ParseJobStatus(Content("status"));
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->ranks[0].state, State::kRunning);
  EXPECT_EQ(status->ranks[1].state, State::kEnded);
  EXPECT_GT(status->started, 0);
}

TEST(SetRankStates, TellsThemByWhoHasStartedAndEnded) {
  JobStatus status;
  status.ranks.resize(4);
  SetRankStates({0, 1, 2}, {1, 2}, {{2, 3}}, &status);
  EXPECT_EQ(status.ranks[0].state, State::kRunning);
  EXPECT_EQ(status.ranks[1].state, State::kEnded);
  EXPECT_EQ(status.ranks[1].exit_code, 0);
  EXPECT_EQ(status.ranks[2].exit_code, 3);
  EXPECT_EQ(status.ranks[3].state, State::kStarting);
}

}  // namespace
}  // namespace launcher
