// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/hang_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <future>
#include <iterator>
#include <mutex>

#include "tests/trainer/train/training_run.h"
#include "trainer/train/watched.h"

namespace trainer {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<std::string> kHosts = {"n1", "n1", "n2", "n2"};

RankState At(int rank, bool waiting) { return {rank, Activity::kTraining, 17, waiting, 61}; }

TEST(HangReport, NamesTheRankThatDoesNotAnswer) {
  const std::vector<RankState> said = {At(0, true), At(1, true), At(3, true)};
  EXPECT_EQ(HangReport(said[0], said, kHosts),
            "no progress for 61 s in training, step 17: rank 2 on n2 does not answer: stopped, or "
            "the node is out of reach");
}

TEST(HangReport, NamesTheRankThatIsStillAtWork) {
  const std::vector<RankState> said = {At(0, true), At(1, false), At(2, true), At(3, true)};
  EXPECT_THAT(HangReport(said[0], said, kHosts), HasSubstr("rank 1 on n1 is still at work: "));
}

TEST(HangReport, SuspectsTheNetworkWhenAllWait) {
  const std::vector<RankState> said = {At(0, true), At(1, true), At(2, true), At(3, true)};
  EXPECT_THAT(HangReport(said[0], said, kHosts), HasSubstr("all 4 ranks wait for each other: "));
}

TEST(HangReport, AccusesNobodyWhereNothingWasFound) {
  EXPECT_THAT(HangReport(At(1, true), {}, kHosts), HasSubstr(": another rank has said why, or "));
}

TEST(HangReport, CutsLongLists) {
  const std::vector<RankState> said = {At(0, true)};
  EXPECT_THAT(HangReport(said[0], said, std::vector<std::string>(20, "n1")),
              HasSubstr("rank 8 on n1 and 11 more do not answer"));
}

TEST(HangReport, StatesSurviveTheFile) {
  RankState read;
  ASSERT_TRUE(FromText(ToText({3, Activity::kEvaluation, 40, true, 2.5, true, "/a file"}), read));
  EXPECT_TRUE(read.reading);
  EXPECT_EQ(read.file, "/a file");
  ASSERT_TRUE(FromText(ToText({3, Activity::kEvaluation, 40, true, 2.5}), read));
  EXPECT_FALSE(read.reading);
  EXPECT_EQ(read.file, "");
  EXPECT_EQ(read.rank, 3);
  EXPECT_EQ(read.activity, Activity::kEvaluation);
  EXPECT_EQ(read.step, 40);
  EXPECT_TRUE(read.waiting);
  EXPECT_EQ(read.seconds, 2.5);
  for (const char* text : {"", "3", "3 9 40 1 2.5 0 ", "3 -1 40 1 2.5 0 ", "3 1 40 1 2.5", "x"}) {
    EXPECT_FALSE(FromText(text, read)) << text;
  }
}

RankState Reading(int rank, double seconds = 61) {
  return {rank, Activity::kTraining, 17, false, seconds, true, "/data/train-00003"};
}

TEST(InputWait, IsNoneWhereARankIsSilentOrAtOtherWork) {
  const std::vector<RankState> said = {At(0, true), Reading(1), At(2, true), At(3, true)};
  EXPECT_TRUE(IsInputWait(said[0], said, 4, 60));
  EXPECT_FALSE(IsInputWait(said[0], said, 5, 60)) << "rank 4 says nothing";
  const std::vector<RankState> at_work = {At(0, true), Reading(1), At(2, false), At(3, true)};
  EXPECT_FALSE(IsInputWait(at_work[0], at_work, 4, 60));
  const std::vector<RankState> all_wait = {At(0, true), At(1, true)};
  EXPECT_FALSE(IsInputWait(all_wait[0], all_wait, 2, 60));
}

TEST(InputWait, IsNoneOfAProcessThatWasStoppedMeanwhile) {
  RankState own = At(0, true);
  own.seconds = 130;
  const std::vector<RankState> fresh = {own, Reading(1, 70)};
  EXPECT_TRUE(IsInputWait(own, fresh, 2, 60));
  EXPECT_EQ(StillHeard(own, fresh, 60).size(), 2U);
  const std::vector<RankState> stale = {own, Reading(1, 69.9)};
  EXPECT_FALSE(IsInputWait(own, stale, 2, 60));
  EXPECT_EQ(StillHeard(own, stale, 60).size(), 1U);
}

TEST(InputWait, NamesRankHostTimeAndFile) {
  std::vector<RankState> said = {At(0, true), At(1, true), At(2, true), Reading(3)};
  EXPECT_EQ(InputWaitReport(said[0], said, kHosts),
            "rank 3 on n2 has waited 61 s for its data (reading /data/train-00003); the others "
            "wait for it");
  said[1] = Reading(1);
  said[1].file = "";
  EXPECT_EQ(InputWaitReport(said[0], said, kHosts),
            "rank 1 on n1, rank 3 on n2 have waited 61 s for their data (reading "
            "/data/train-00003); the others wait for them");
  const std::vector<RankState> alone = {Reading(0)};
  EXPECT_EQ(InputWaitReport(alone[0], alone, {"n1"}),
            "rank 0 on n1 has waited 61 s for its data (reading /data/train-00003)");
}

TEST(HangReport, NamesTheFileSystemAfterAllWhenDataNeverCome) {
  const std::vector<RankState> said = {At(0, true), At(1, true), At(2, true), Reading(3)};
  EXPECT_EQ(HangReport(said[0], said, kHosts),
            "no progress for 61 s in training, step 17: rank 3 on n2 has waited 61 s for its data "
            "(reading /data/train-00003): the file system hangs there");
}

TEST(StateInWords, SaysWhereItIsAndForHowLongNothingMoves) {
  EXPECT_EQ(DescribeState(At(0, true)),
            "in training, step 17, waiting for other ranks, no progress for 61 s");
  EXPECT_EQ(DescribeState(Reading(0, 1.9)), "in training, step 17, waiting for its data");
  EXPECT_EQ(DescribeState(Reading(0, 2)),
            "in training, step 17, waiting for its data, no progress for 2 s");
  EXPECT_EQ(DescribeState({}), "before the first step, at work of its own");
}

TEST(OddOne, IsWhoIsNotWhereMostAre) {
  const std::vector<RankState> said = {At(0, true), At(1, true), At(2, true), At(3, true)};
  EXPECT_EQ(DescribeOddOne(said, {"a < b", "a < b", "c", "a < b"}, kHosts),
            "; rank 2 on n2 is in c, most others in a < b");
  EXPECT_EQ(DescribeOddOne(said, {"a", "a", "a", "a"}, kHosts), "");
  EXPECT_EQ(DescribeOddOne(said, {"a", "a", "c", "c"}, kHosts), "") << "no majority";
  EXPECT_EQ(DescribeOddOne(said, {"", "", "", ""}, kHosts), "");
}

TEST(OddOne, IsFirstOfAllWhoIsAtWork) {
  const std::vector<RankState> said = {At(0, true), At(1, false)};
  EXPECT_EQ(DescribeOddOne(said, {"a", "b"}, {"n1", "n1"}), "; rank 1 on n1 is in b");
}

// Two ranks that begin `activity` after three healthy steps, in which rank 1 does `last` before it
// comes; what rank 0 reports.
std::string ReportOf(double floor, const std::filesystem::path& folder, Activity activity,
                     const std::function<void(const std::atomic<bool>& told)>& last) {
  std::string report;
  std::atomic<bool> told = false;
  RunRanks(2, [&](Communicator& communicator) {
    const bool is_first = communicator.rank() == 0;
    HangWatch watch({.floor_seconds = floor,
                     .model_dir = folder,
                     .run_name = "1",
                     .rank = communicator.rank(),
                     .size = 2,
                     .host = is_first ? "n1" : "n2",
                     .on_hang = [&, is_first](const std::string& line) {
                       if (!is_first) return;
                       report = line;
                       told = true;
                     }});
    watch.ExchangeHosts(communicator);
    const auto watched = MakeWatchedCommunicator(communicator, watch);
    for (int step = 0; step < 3; ++step) {
      watch.Enter(Activity::kTraining, step);
      watched->Barrier();
      watched->Barrier();
    }
    watch.Enter(activity, 3);
    if (!is_first) last(told);
    watched->Barrier();
  });
  return report;
}

void SleepSeconds(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

TEST(HangWatch, NamesTheRankThatDoesNotComeAndRemovesItsFiles) {
  const TemporaryFolder folder;
  const std::string report =
      ReportOf(0.3, folder.path(), Activity::kTraining, [](const std::atomic<bool>& told) {
        while (!told) SleepSeconds(0.02);
      });
  EXPECT_THAT(report, HasSubstr("in training, step 3: rank 1 on n2 "));
  EXPECT_THAT(report, HasSubstr("; stacks of "));
  EXPECT_THAT(report, HasSubstr(" in " + (folder.path() / "stacks").string()));
  std::filesystem::remove_all(folder.path() / "stacks");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(HangWatch, WritesTheStacksOfEachRank) {
  const TemporaryFolder folder;
  const auto last = folder.path() / "stacks" / "rank-1.txt";
  ReportOf(0.3, folder.path(), Activity::kTraining, [&](const std::atomic<bool>& told) {
    while (!told || !std::filesystem::exists(last)) SleepSeconds(0.02);
  });
  for (const int rank : {0, 1}) {
    std::ifstream file(folder.path() / "stacks" / ("rank-" + std::to_string(rank) + ".txt"));
    const std::string text(std::istreambuf_iterator<char>(file), {});
    EXPECT_THAT(text, testing::StartsWith("rank " + std::to_string(rank) + " on n"));
    EXPECT_THAT(text,
                HasSubstr(rank == 0 ? ", waiting for other ranks\n" : ", at work of its own\n"));
    EXPECT_THAT(text, HasSubstr("WritesTheStacksOfEachRank"));
  }
}

TEST(HangWatch, SaysNothingOfARankThatIsLateButComes) {
  const TemporaryFolder folder;
  EXPECT_THAT(ReportOf(2, folder.path(), Activity::kTraining,
                       [](const std::atomic<bool>&) { SleepSeconds(0.3); }),
              IsEmpty());
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(HangWatch, NamesTheRankThatTheOthersNeverMeet) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / ".hang-1");
  std::ofstream(folder.path() / ".hang-1/0") << "of a run that was killed";
  std::promise<std::string> report;
  HangWatch watch({.floor_seconds = 0.05,
                   .model_dir = folder.path(),
                   .run_name = "1",
                   .rank = 0,
                   .size = 2,
                   .host = "n1",
                   .on_hang = [&](const std::string& line) { report.set_value(line); }});
  watch.BeginWaiting();
  EXPECT_THAT(report.get_future().get(),
              HasSubstr(" before the first step: rank 1 does not answer"));
}

TEST(HangWatch, HasNoBoundForWhatFollowsTheMeeting) {
  const TemporaryFolder folder;
  std::atomic<bool> told = false;
  HangWatch watch({.floor_seconds = 0.05,
                   .model_dir = folder.path(),
                   .run_name = "1",
                   .rank = 0,
                   .size = 1,
                   .host = "n1",
                   .on_hang = [&](const std::string&) { told = true; }});
  watch.BeginWaiting();
  watch.Pause();
  SleepSeconds(0.8);  // ten times the floor is 0.5
  EXPECT_FALSE(told);
  ThreadWorld world(1);
  ThreadCommunicator communicator(world, 0);
  watch.ExchangeHosts(communicator);
  SleepSeconds(0.8);
  EXPECT_TRUE(told);
}

// Ten times the floor, however many batches went before: a rank may be late for its first sum.
TEST(HangWatch, GivesAllBatchesOfTheFirstStepMoreTime) {
  const auto is_told = [](std::int64_t batches) {
    const TemporaryFolder folder;
    std::atomic<bool> told = false;
    HangWatch watch({.floor_seconds = 0.2,
                     .model_dir = folder.path(),
                     .run_name = "1",
                     .rank = 0,
                     .size = 1,
                     .host = "n1",
                     .batches = batches,
                     .on_hang = [&](const std::string&) { told = true; }});
    watch.Enter(Activity::kTraining, 0);
    for (int batch = 0; batch < 5; ++batch) {
      watch.BeginWaiting();
      watch.EndWaiting();
    }
    watch.BeginWaiting();
    SleepSeconds(0.7);
    return told.load();
  };
  EXPECT_FALSE(is_told(/*batches=*/6));
  EXPECT_TRUE(is_told(/*batches=*/1));
}

TEST(HangWatch, GivesCheckpointsMoreTime) {
  const TemporaryFolder folder;
  EXPECT_THAT(ReportOf(0.2, folder.path(), Activity::kCheckpoint,
                       [](const std::atomic<bool>&) { SleepSeconds(0.6); }),
              IsEmpty());
}

TEST(HangWatch, TakesAPauseInWhichTheRanksMeetForProgress) {
  const TemporaryFolder folder;
  EXPECT_THAT(ReportOf(0.1, folder.path(), Activity::kPause, [](const std::atomic<bool>&) {}),
              IsEmpty());
  std::atomic<bool> told = false;
  HangWatch watch({.floor_seconds = 1,
                   .model_dir = folder.path(),
                   .run_name = "2",
                   .rank = 0,
                   .size = 1,
                   .host = "n1",
                   .on_hang = [&](const std::string&) { told = true; }});
  ThreadWorld world(1);
  ThreadCommunicator communicator(world, 0);
  watch.ExchangeHosts(communicator);
  const auto watched = MakeWatchedCommunicator(communicator, watch);
  for (int round = 0; round < 15; ++round) {
    watch.Enter(Activity::kPause, 3);
    SleepSeconds(0.1);
    watched->Barrier();
  }
  EXPECT_FALSE(told);
}

TEST(HangWatch, NamesTheRankThatDoesNotComeInAPause) {
  const TemporaryFolder folder;
  EXPECT_THAT(ReportOf(0.1, folder.path(), Activity::kPause,
                       [](const std::atomic<bool>& told) {
                         while (!told) SleepSeconds(0.02);
                       }),
              HasSubstr("in a pause, after step 3: rank 1 on n2 "));
}

// Two ranks after three healthy steps, of which rank 1 waits for data until `got`; what rank 0 says
// of it meanwhile, and at last.
struct Said {
  std::vector<std::string> waits;
  std::string hang;
};
Said WaitForData(double floor, const std::filesystem::path& folder,
                 const std::function<bool(const Said&)>& got) {
  Said said;
  std::mutex mutex;
  std::condition_variable changed;
  RunRanks(2, [&](Communicator& communicator) {
    const bool is_first = communicator.rank() == 0;
    const auto add = [&, is_first](const auto& change) {
      if (!is_first) return;
      const std::lock_guard lock(mutex);
      change();
      changed.notify_all();
    };
    HangWatch watch(
        {.floor_seconds = floor,
         .model_dir = folder,
         .run_name = "1",
         .rank = communicator.rank(),
         .size = 2,
         .host = is_first ? "n1" : "n2",
         .on_wait = [&](const std::string& line) { add([&] { said.waits.push_back(line); }); },
         .on_hang = [&](const std::string& line) { add([&] { said.hang = line; }); }});
    watch.ExchangeHosts(communicator);
    const auto watched = MakeWatchedCommunicator(communicator, watch);
    for (int step = 0; step < 4; ++step) {
      watch.Enter(Activity::kTraining, step);
      watch.BeginReading();
      if (!is_first && step == 3) {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return got(said); });
      }
      watch.EndReading();
      watched->Barrier();
      watched->Barrier();
    }
  });
  return said;
}

TEST(HangWatch, SaysThatARankWaitsForItsDataAndGoesOn) {
  const TemporaryFolder folder;
  const Said said =
      WaitForData(0.2, folder.path(), [](const Said& now) { return now.waits.size() == 3; });
  EXPECT_THAT(said.waits[0], HasSubstr("rank 1 on n2 has waited 0 s for its data"));
  EXPECT_THAT(said.waits[0], HasSubstr("; the others wait for it"));
  EXPECT_EQ(said.hang, "");
}

TEST(HangWatch, EndsTheRunAfterTenBoundsWithoutData) {
  const TemporaryFolder folder;
  const Said said =
      WaitForData(0.1, folder.path(), [](const Said& now) { return !now.hang.empty(); });
  EXPECT_THAT(said.hang, HasSubstr(": rank 1 on n2 has waited 1 s for its data"));
  EXPECT_THAT(said.hang, HasSubstr(": the file system hangs there"));
  EXPECT_GE(said.waits.size(), 3U);
  EXPECT_LE(said.waits.size(), 10U);
}

}  // namespace
}  // namespace trainer
