// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/monitor/hang_watchdog.h"

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>

#include "tests/support/emulated.h"
#include "tests/support/test.h"
#include "tests/trainer/train/training_run.h"
#include "trainer/train/monitor/monitored.h"

namespace trainer {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;

class HangWatchTest : public testing::Test {
 protected:
  // It does not mark a handler's frame as the C library's backtrace() knows it (thread_stacks.cc).
  void SetUp() override {
    if (tests::IsEmulated()) GTEST_SKIP() << "QEMU 7 has no stacks of threads in handlers";
  }
};

constexpr auto kLong = 60s;  // for what comes at some time, however busy the machine is

// As WriteStackDumpFile, with all the time that a busy machine takes.
std::vector<ThreadStack> WriteStacksInTime(const StackDumpOptions& options) {
  StackDumpOptions patient = options;
  patient.answer_time = 10s;
  return WriteStackDumpFile(patient);
}

// Two ranks that begin `activity` after healthy steps, in which rank 1 does `last` before it comes;
// what rank 0 reports.  The floor of rank 1 is so long that it says nothing before rank 0 does, if
// it is not `other_floor`.
std::string ReportOf(double floor, const std::filesystem::path& directory, Activity activity,
                     const std::function<void(const std::atomic<bool>& logged)>& last,
                     double other_floor = 1000) {
  std::string report;
  std::atomic<bool> logged = false;
  RunRanks(2, [&](Communicator& communicator) {
    const bool is_first = communicator.rank() == 0;
    HangWatchdog watch({.floor_seconds = is_first ? floor : other_floor,
                        .model_dir = directory,
                        .run_name = "1",
                        .rank = communicator.rank(),
                        .size = 2,
                        .host = is_first ? "n1" : "n2",
                        .on_hang =
                            [&, is_first](const std::string& line) {
                              if (!is_first) return;
                              report = line;
                              logged = true;
                            },
                        .write_stacks = WriteStacksInTime,
                        .own_stacks_time = kLong,
                        .others_stacks_time = kLong});
    watch.ExchangeHosts(communicator);
    const auto watched = MakeWatchedCommunicator(communicator, watch);
    for (int step = 1; step < 3; ++step) {
      watch.Enter(Activity::kTraining, step);
      watched->Barrier();
      watched->Barrier();
    }
    watch.Enter(activity, 3);
    if (!is_first) last(logged);
    watched->Barrier();
  });
  return report;
}

void SleepSeconds(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

TEST_F(HangWatchTest, NamesTheRankThatDoesNotComeAndRemovesItsFiles) {
  const TemporaryDirectory directory;
  const std::string report =
      ReportOf(0.3, directory.path(), Activity::kTraining, [](const std::atomic<bool>& logged) {
        while (!logged) SleepSeconds(0.02);
      });
  EXPECT_THAT(report, HasSubstr("in training, step 3: rank 1 on n2 "));
  EXPECT_THAT(report, HasSubstr("; stacks of "));
  EXPECT_THAT(report, HasSubstr(" in " + (directory.path() / "stacks").string()));
  std::filesystem::remove_all(directory.path() / "stacks");
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST_F(HangWatchTest, WritesTheStacksOfEachRank) {
  const TemporaryDirectory directory;
  const auto file_of = [&](int rank) {
    return directory.path() / "stacks" / ("rank-" + std::to_string(rank) + ".txt");
  };
  ReportOf(
      0.3, directory.path(), Activity::kTraining,
      [&](const std::atomic<bool>&) {
        while (!std::filesystem::exists(file_of(0)) || !std::filesystem::exists(file_of(1))) {
          SleepSeconds(0.02);
        }
      },
      /*other_floor=*/0.3);
  for (const int rank : {0, 1}) {
    std::ifstream file(file_of(rank));
    const std::string text(std::istreambuf_iterator<char>(file), {});
    EXPECT_THAT(text, testing::StartsWith("rank " + std::to_string(rank) + " on n"));
    EXPECT_THAT(text,
                HasSubstr(rank == 0 ? ", waiting for other ranks\n" : ", at work of its own\n"));
    EXPECT_THAT(text, HasSubstr("WritesTheStacksOfEachRank"));
  }
}

TEST_F(HangWatchTest, SaysNothingOfARankThatIsLateButComes) {
  const TemporaryDirectory directory;
  EXPECT_THAT(ReportOf(2, directory.path(), Activity::kTraining,
                       [](const std::atomic<bool>&) { SleepSeconds(0.3); }),
              IsEmpty());
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST_F(HangWatchTest, NamesTheRankThatTheOthersNeverMeet) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory.path() / ".hang-1");
  std::ofstream(directory.path() / ".hang-1/0") << "of a run that was killed";
  std::promise<std::string> report;
  HangWatchdog watch({.floor_seconds = 0.05,
                      .model_dir = directory.path(),
                      .run_name = "1",
                      .rank = 0,
                      .size = 2,
                      .host = "n1",
                      .on_hang = [&](const std::string& line) { report.set_value(line); }});
  watch.BeginWaiting();
  EXPECT_THAT(report.get_future().get(),
              HasSubstr(" before the first step: rank 1 does not answer"));
}

TEST_F(HangWatchTest, HasNoBoundForWhatFollowsTheMeeting) {
  const TemporaryDirectory directory;
  std::promise<void> logged;
  std::future<void> is_reported = logged.get_future();
  HangWatchdog watch({.floor_seconds = 0.05,
                      .model_dir = directory.path(),
                      .run_name = "1",
                      .rank = 0,
                      .size = 1,
                      .host = "n1",
                      .on_hang = [&](const std::string&) { logged.set_value(); }});
  watch.BeginWaiting();
  watch.Pause();
  // Ten times the floor is 0.5.
  EXPECT_EQ(is_reported.wait_for(800ms), std::future_status::timeout);
  ThreadWorld world(1);
  ThreadCommunicator communicator(world, 0);
  watch.ExchangeHosts(communicator);
  EXPECT_EQ(is_reported.wait_for(kLong), std::future_status::ready);
}

// Whether a rank that has met the others `heartbeats` times in `activity`, and not any more, is
// told within `time`.  Its floor is 0.2 s.
struct Beginning {
  Activity activity;
  int heartbeats;
  int size = 1;
  std::int64_t batches = 1;
};
bool IsTold(const Beginning& beginning, std::chrono::milliseconds time) {
  const TemporaryDirectory directory;
  std::promise<void> logged;
  HangWatchdog watch({.floor_seconds = 0.2,
                      .model_dir = directory.path(),
                      .run_name = "1",
                      .rank = 0,
                      .size = beginning.size,
                      .host = "n1",
                      .batches = beginning.batches,
                      .on_hang = [&](const std::string&) { logged.set_value(); }});
  watch.Enter(beginning.activity, 0);
  for (int beat = 0; beat < beginning.heartbeats; ++beat) {
    watch.BeginWaiting();
    watch.EndWaiting();
  }
  watch.BeginWaiting();
  return logged.get_future().wait_for(time) == std::future_status::ready;
}

// Ten times the floor, however many batches went before: a rank may be late for its first sum.
TEST_F(HangWatchTest, GivesAllBatchesOfTheFirstStepMoreTime) {
  EXPECT_FALSE(IsTold({.activity = Activity::kTraining, .heartbeats = 5, .batches = 6}, 700ms));
  EXPECT_TRUE(IsTold({.activity = Activity::kTraining, .heartbeats = 5}, kLong));
}

// Before it there is a call for each rank, and the batch itself.
TEST_F(HangWatchTest, GivesTheFirstEvaluationBatchMoreTimeHoweverManyRanksThereAre) {
  EXPECT_FALSE(IsTold({.activity = Activity::kEvaluation, .heartbeats = 9, .size = 8}, 700ms));
  EXPECT_TRUE(IsTold({.activity = Activity::kEvaluation, .heartbeats = 13, .size = 8}, kLong));
}

TEST_F(HangWatchTest, GivesCheckpointsMoreTime) {
  const TemporaryDirectory directory;
  EXPECT_THAT(ReportOf(0.2, directory.path(), Activity::kCheckpoint,
                       [](const std::atomic<bool>&) { SleepSeconds(0.6); }),
              IsEmpty());
}

TEST_F(HangWatchTest, TakesAPauseInWhichTheRanksMeetForProgress) {
  const TemporaryDirectory directory;
  EXPECT_THAT(ReportOf(0.1, directory.path(), Activity::kPause, [](const std::atomic<bool>&) {}),
              IsEmpty());
  std::atomic<bool> logged = false;
  HangWatchdog watch({.floor_seconds = 1,
                      .model_dir = directory.path(),
                      .run_name = "2",
                      .rank = 0,
                      .size = 1,
                      .host = "n1",
                      .on_hang = [&](const std::string&) { logged = true; }});
  ThreadWorld world(1);
  ThreadCommunicator communicator(world, 0);
  watch.ExchangeHosts(communicator);
  const auto watched = MakeWatchedCommunicator(communicator, watch);
  for (int round = 0; round < 15; ++round) {
    watch.Enter(Activity::kPause, 3);
    SleepSeconds(0.1);
    watched->Barrier();
  }
  EXPECT_FALSE(logged);
}

TEST_F(HangWatchTest, NamesTheRankThatDoesNotComeInAPause) {
  const TemporaryDirectory directory;
  EXPECT_THAT(ReportOf(0.1, directory.path(), Activity::kPause,
                       [](const std::atomic<bool>& logged) {
                         while (!logged) SleepSeconds(0.02);
                       }),
              HasSubstr("in a pause, after step 3: rank 1 on n2 "));
}

TEST_F(HangWatchTest, SaysThatARankWaitsForItsDataAndGoesOn) {
  const TemporaryDirectory directory;
  std::vector<std::string> waits;  // as rank 0 says
  std::string hang;                // as any rank says
  std::mutex mutex;
  std::condition_variable changed;
  RunRanks(2, [&](Communicator& communicator) {
    const bool is_first = communicator.rank() == 0;
    // A machine that is busy may let a rank come half a second later than the other.
    HangWatchdog watch({.floor_seconds = 1,
                        .model_dir = directory.path(),
                        .run_name = "1",
                        .rank = communicator.rank(),
                        .size = 2,
                        .host = is_first ? "n1" : "n2",
                        .on_wait =
                            [&](const std::string& line) {
                              const std::lock_guard lock(mutex);
                              if (is_first) waits.push_back(line);
                              changed.notify_all();
                            },
                        .on_hang =
                            [&](const std::string& line) {
                              const std::lock_guard lock(mutex);
                              hang = line;
                              changed.notify_all();
                            }});
    watch.ExchangeHosts(communicator);
    const auto watched = MakeWatchedCommunicator(communicator, watch);
    for (int step = 1; step < 4; ++step) {
      watch.Enter(Activity::kTraining, step);
      watch.BeginReading();
      if (!is_first && step == 3) {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return waits.size() == 2 || !hang.empty(); });
      }
      watch.EndReading();
      watched->Barrier();
      watched->Barrier();
    }
  });
  EXPECT_EQ(hang, "");
  ASSERT_EQ(waits.size(), 2U);
  EXPECT_THAT(waits[0], testing::ContainsRegex("rank 1 on n2 has waited [0-9]+ s for its data"));
  EXPECT_THAT(waits[0], HasSubstr("; the others wait for it"));
}

TEST_F(HangWatchTest, EndsTheRunAfterTenBoundsWithoutData) {
  const TemporaryDirectory directory;
  std::atomic<int> waits = 0;
  std::promise<std::string> hang;
  HangWatchdog watch({.floor_seconds = 0.02,  // before the first step the bound is ten times that
                      .model_dir = directory.path(),
                      .run_name = "1",
                      .rank = 0,
                      .size = 1,
                      .host = "n1",
                      .on_wait = [&](const std::string&) { ++waits; },
                      .on_hang = [&](const std::string& line) { hang.set_value(line); }});
  watch.BeginReading();
  const std::string line = hang.get_future().get();
  EXPECT_THAT(line, testing::ContainsRegex("rank 0 has waited [0-9]+ s for its data"));
  EXPECT_THAT(line, HasSubstr(": the file system hangs there"));
  EXPECT_GE(waits, 3);
  EXPECT_LE(waits, 10);
}

}  // namespace
}  // namespace trainer
