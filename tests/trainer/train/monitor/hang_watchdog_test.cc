// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/monitor/hang_watchdog.h"

#include <sys/stat.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "support/file.h"
#include "tests/support/emulated.h"
#include "tests/support/temporary_directory.h"
#include "tests/trainer/train/training_run.h"
#include "trainer/control/stack_dump_request.h"
#include "trainer/train/monitor/monitored.h"
#include "trainer/train/monitor/stack_dump_service.h"

namespace trainer {
namespace {

using namespace std::chrono_literals;

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
std::string ReportOf(double floor, const fs::path& directory, Activity activity,
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

// Of rank 0, the only one unless others are told.
HangWatchdogOptions OptionsFor(double floor_seconds, const TemporaryDirectory& directory,
                               std::function<void(const std::string&)> on_hang) {
  return {.floor_seconds = floor_seconds,
          .model_dir = directory.path(),
          .run_name = "1",
          .rank = 0,
          .size = 1,
          .host = "n1",
          .on_hang = std::move(on_hang)};
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
  fs::remove_all(directory.path() / "stacks");
  EXPECT_TRUE(fs::is_empty(directory.path()));
}

TEST_F(HangWatchTest, WritesTheStacksOfEachRank) {
  const TemporaryDirectory directory;
  const auto file_of = [&](int rank) {
    return directory.path() / "stacks" / ("rank-" + std::to_string(rank) + ".txt");
  };
  ReportOf(
      0.3, directory.path(), Activity::kTraining,
      [&](const std::atomic<bool>&) {
        while (!fs::exists(file_of(0)) || !fs::exists(file_of(1))) {
          SleepSeconds(0.02);
        }
      },
      /*other_floor=*/0.3);
  for (const int rank : {0, 1}) {
    const std::string text = tests::TextOf(file_of(rank));
    EXPECT_THAT(text, StartsWith("rank " + std::to_string(rank) + " on n"));
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
  EXPECT_TRUE(fs::is_empty(directory.path()));
}

TEST_F(HangWatchTest, NamesTheRankThatTheOthersNeverMeet) {
  const TemporaryDirectory directory;
  fs::create_directory(directory.path() / ".hang-1");
  std::ofstream(directory.path() / ".hang-1/0") << "of a run that was killed";
  std::promise<std::string> report;
  HangWatchdogOptions options =
      OptionsFor(0.05, directory, [&](const std::string& line) { report.set_value(line); });
  options.size = 2;
  HangWatchdog watch(options);
  watch.BeginWaiting();
  EXPECT_THAT(report.get_future().get(),
              HasSubstr(" before the first step: rank 1 does not answer"));
}

TEST_F(HangWatchTest, HasNoBoundForWhatFollowsTheMeeting) {
  const TemporaryDirectory directory;
  std::promise<void> logged;
  std::future<void> is_reported = logged.get_future();
  HangWatchdog watch(OptionsFor(0.05, directory, [&](const std::string&) { logged.set_value(); }));
  watch.BeginWaiting();
  watch.Pause();
  // Ten times the floor is 0.5.
  EXPECT_EQ(is_reported.wait_for(800ms), std::future_status::timeout);
  OneRank communicator;
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
  HangWatchdogOptions options =
      OptionsFor(0.2, directory, [&](const std::string&) { logged.set_value(); });
  options.size = beginning.size;
  options.batches = beginning.batches;
  HangWatchdog watch(options);
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
  HangWatchdogOptions options =
      OptionsFor(1, directory, [&](const std::string&) { logged = true; });
  options.run_name = "2";
  HangWatchdog watch(options);
  OneRank communicator;
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
  // Before the first step the bound is ten times the floor.
  HangWatchdogOptions options =
      OptionsFor(0.02, directory, [&](const std::string& line) { hang.set_value(line); });
  options.on_wait = [&](const std::string&) { ++waits; };
  HangWatchdog watch(options);
  watch.BeginReading();
  const std::string line = hang.get_future().get();
  EXPECT_THAT(line, testing::ContainsRegex("rank 0 has waited [0-9]+ s for its data"));
  EXPECT_THAT(line, HasSubstr(": the file system hangs there"));
  EXPECT_GE(waits, 3);
  EXPECT_LE(waits, 10);
}

// Ranks 0 and 1 in this process.
class StacksOnRequestTest : public testing::Test {
 protected:
  StacksOnRequestTest() {
    MakeStackDumpRequest(request(), {.directory = directory_.path() / kStackDumpDirectoryName,
                                     .ranks = {{"n1", 1}, {"n2", 2}}});
  }
  fs::path request() const { return directory_.path() / kStackDumpRequestName; }
  std::unique_ptr<StackDumpService> Make(int rank) {
    return std::make_unique<StackDumpService>(
        StackDumpServiceOptions{.request = request(),
                                .model_dir = directory_.path(),
                                .rank = rank,
                                .host = "n" + std::to_string(rank + 1),
                                .seconds_between_looks = 0.01,
                                .doing = doing_,
                                .answer_time = std::chrono::seconds(10)});
  }
  std::optional<RankStackTraces> Read(int rank) const {
    return ParseRankStackTraces(
        tests::TextOf(directory_.path() / kStackDumpDirectoryName / StackDumpFileName(rank)));
  }
  // What the rank writes to that order; it is waited for.
  RankStackTraces AnswerOf(int rank, std::uint64_t command) const {
    for (;;) {
      if (const auto stacks = Read(rank); stacks && stacks->command == command) return *stacks;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  const TemporaryDirectory directory_;
  std::function<std::string()> doing_ = [] { return "in training, step 17"; };
};

TEST_F(StacksOnRequestTest, AllRanksAnswerWhatRankZeroIsAsked) {
  const auto first = Make(0);
  const auto second = Make(1);
  const std::uint64_t command = first->Ask();
  EXPECT_THAT(AnswerOf(0, command).headline,
              MatchesRegex("rank 0 on n1, process [0-9]+: in training, step 17"));
  const RankStackTraces answer = AnswerOf(1, command);
  EXPECT_THAT(answer.headline, HasSubstr("rank 1 on n2, process "));
  EXPECT_THAT(answer.stacks, HasSubstr("AllRanksAnswerWhatRankZeroIsAsked"));
  const std::uint64_t next = first->Ask();
  EXPECT_GT(next, command);
  EXPECT_EQ(AnswerOf(1, next).command, next);
  EXPECT_EQ(AnswerOf(0, next).command, next);
}

TEST_F(StacksOnRequestTest, TheyAnswerTheFileAloneWhereRankZeroIsStopped) {
  const auto second = Make(1);
  ASSERT_EQ(WriteStackDumpCommand(request(), 5), 0);
  EXPECT_EQ(AnswerOf(1, 5).command, 5U);
}

TEST_F(StacksOnRequestTest, AnOrderThatCannotBeWrittenIsWrittenOnceItCan) {
  const auto first = Make(0);
  const auto second = Make(1);
  fs::remove(request());
  const std::uint64_t command = first->Ask();
  EXPECT_EQ(AnswerOf(0, command).command, command);  // it has tried to write it
  MakeStackDumpRequest(request(),
                       {.directory = directory_.path() / kStackDumpDirectoryName, .ranks = {}});
  EXPECT_EQ(AnswerOf(1, command).command, command);
  EXPECT_EQ(ReadStackDumpCommand(request()), command);
}

TEST_F(StacksOnRequestTest, AnExceptionCostsOneAnswer) {
  std::atomic<int> calls = 0;
  doing_ = [&]() -> std::string {
    if (++calls == 1) throw std::runtime_error("no memory");
    return "in training";
  };
  const auto first = Make(0);
  first->Ask();
  while (calls == 0) std::this_thread::yield();
  const std::uint64_t next = first->Ask();
  EXPECT_EQ(AnswerOf(0, next).command, next);
}

TEST_F(StacksOnRequestTest, EndsThoughAPipeIsInThePlaceOfTheFile) {
  fs::remove(request());
  ASSERT_EQ(::mkfifo(request().c_str(), 0600), 0);
  auto second = Make(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // several looks
  second.reset();
}

TEST_F(StacksOnRequestTest, AnswersAnOrderOnce) {
  auto first = Make(0);
  const std::uint64_t command = first->Ask();
  AnswerOf(0, command);
  fs::remove_all(directory_.path() / kStackDumpDirectoryName);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // several looks
  first.reset();
  EXPECT_FALSE(Read(0));
}

TEST_F(StacksOnRequestTest, OfAFileWithoutAnOrderNothingComes) {
  auto second = Make(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // several looks
  second.reset();
  EXPECT_FALSE(Read(1));
}

}  // namespace
}  // namespace trainer
