// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/hang_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <future>

#include "tests/trainer/train/training_run.h"

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
  ASSERT_TRUE(FromText(ToText({3, Activity::kEvaluation, 40, true, 2.5}), read));
  EXPECT_EQ(read.rank, 3);
  EXPECT_EQ(read.activity, Activity::kEvaluation);
  EXPECT_EQ(read.step, 40);
  EXPECT_TRUE(read.waiting);
  EXPECT_EQ(read.seconds, 2.5);
  for (const char* text : {"", "3", "3 9 40 1 2.5", "3 -1 40 1 2.5", "x"}) {
    EXPECT_FALSE(FromText(text, read)) << text;
  }
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
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
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

}  // namespace
}  // namespace trainer
