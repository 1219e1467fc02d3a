// SPDX-License-Identifier: Apache-2.0

#include <atomic>
#include <future>
#include <new>
#include <thread>

#include "support/file.h"
#include "tests/support/temporary_directory.h"
#include "tests/trainer/train/thread_ranks.h"
#include "trainer/core/error.h"
#include "trainer/train/monitor/hang_watchdog.h"
#include "trainer/train/monitor/monitored.h"

namespace trainer {
namespace {

// How a HangWatchdog judges another rank, whose part the test plays.

using namespace std::chrono_literals;

// Rank 0 of two, if it is not rank_, which waits for the other in a step after healthy ones.  What
// the other says the test writes; its stacks never come.
class HangJudge : public testing::Test {
 protected:
  fs::path file(const std::string& name) const { return directory_.path() / ".hang-1" / name; }
  void Say(const RankState& state) const {
    fs::create_directories(directory_.path() / ".hang-1");
    ASSERT_EQ(support::ReplaceFile(file(std::to_string(state.rank)), ToText(state)), 0);
  }
  // `own_stacks`: how those of this rank are written.
  void Start(double floor, const std::function<std::vector<ThreadStack>()>& own_stacks,
             const RankState& other) {
    watch_.emplace(HangWatchdogOptions{
        .floor_seconds = floor,
        .model_dir = directory_.path(),
        .run_name = "1",
        .rank = rank_,
        .size = 2,
        .host = "",
        .on_wait = [this](const std::string&) { ++waits_; },
        .on_hang =
            [this](const std::string& line) {
              log_.set_value(line);
              is_logged_ = true;
            },
        .write_stacks = [own_stacks](const StackDumpOptions&) { return own_stacks(); },
        .own_stacks_time = own_stacks_time_,
        .others_stacks_time = others_stacks_time_});
    Say(other);
    watch_->Enter(Activity::kTraining, 0);
    for (int beat = 0; beat < 5; ++beat) {
      watch_->BeginWaiting();
      watch_->EndWaiting();
    }
    watch_->BeginWaiting();
  }
  static std::vector<ThreadStack> OneStack() { return {{.frames = {{"Wait()", "a.out(+0x1)"}}}}; }

  const TemporaryDirectory directory_;
  int rank_ = 0;
  std::chrono::milliseconds own_stacks_time_ = 60s;
  std::chrono::milliseconds others_stacks_time_ = 10ms;
  std::atomic<int> waits_ = 0;
  std::atomic<bool> is_logged_ = false;
  std::promise<std::string> log_;
  std::optional<HangWatchdog> watch_;  // last: its thread uses the others
};

TEST_F(HangJudge, LeavesNothingBehindAndReportsNothingWhereTheRunGoesOnBeforeTheReport) {
  others_stacks_time_ = std::chrono::hours(1);
  Start(0.5, OneStack, {.rank = 1, .activity = Activity::kTraining, .waiting = true});
  while (!fs::exists(file("0.brief"))) std::this_thread::sleep_for(10ms);
  watch_->EndWaiting();
  watch_->Enter(Activity::kCheckpoint, 0);  // has a longer bound
  fs::remove(file("1"));
  while (fs::exists(file("0"))) std::this_thread::sleep_for(10ms);
  watch_.reset();
  EXPECT_FALSE(is_logged_);
  EXPECT_TRUE(fs::is_empty(directory_.path()));
}

TEST_F(HangJudge, ReportsWithoutItsOwnStacksWhereTheseHangAsWell) {
  std::promise<void> end;
  own_stacks_time_ = 10ms;
  Start(0.1,
        [ended = end.get_future().share()] {
          ended.wait();
          return OneStack();
        },
        {.rank = 1, .activity = Activity::kTraining, .waiting = true});
  EXPECT_THAT(log_.get_future().get(),
              HasSubstr("all 2 ranks wait for each other: the network between their nodes fails"));
  end.set_value();
}

TEST_F(HangJudge, ReportsWithoutItsOwnStacksWhereTheseFail) {
  Start(0.1, []() -> std::vector<ThreadStack> { throw std::bad_alloc(); },
        {.rank = 1, .activity = Activity::kTraining, .waiting = true});
  EXPECT_THAT(log_.get_future().get(), HasSubstr("all 2 ranks wait for each other"));
}

// Who removes the states too early takes the stacks from the report.
TEST_F(HangJudge, LeavesTheLowestRankTimeForItsStacks) {
  rank_ = 1;
  Start(0.1, OneStack, {.rank = 0, .activity = Activity::kTraining, .waiting = true});
  while (!fs::exists(file("1.brief"))) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(log_.get_future().wait_for(500ms), std::future_status::timeout);
}

// With several batches a step a rank makes progress that the others do not share: its time begins
// again.
TEST_F(HangJudge, HearsARankThatReadsOneBatchAfterTheOther) {
  RankState reader = {.rank = 1, .activity = Activity::kTraining, .reading = true};
  Start(0.5, OneStack, reader);
  while (waits_ < 3 && !is_logged_) {
    reader.seconds = reader.seconds < 0.1 ? reader.seconds + 0.001 : 0;
    Say(reader);
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_FALSE(is_logged_);
}

TEST_F(HangJudge, BlamesAReaderThatSaysTheSameForABound) {
  Start(0.2, OneStack, {.rank = 1, .activity = Activity::kTraining, .reading = true});
  EXPECT_THAT(log_.get_future().get(), HasSubstr("rank 1 does not answer"));
}

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
  const std::vector<RankState> received = {At(0, true), Reading(1), At(2, true), At(3, true)};
  EXPECT_TRUE(IsInputWait(received, 4));
  EXPECT_FALSE(IsInputWait(received, 5)) << "rank 4 says nothing";
  const std::vector<RankState> at_work = {At(0, true), Reading(1), At(2, false), At(3, true)};
  EXPECT_FALSE(IsInputWait(at_work, 4));
  const std::vector<RankState> all_wait = {At(0, true), At(1, true)};
  EXPECT_FALSE(IsInputWait(all_wait, 2));
}

TEST(InputWait, IsNoneOfAProcessThatWasStoppedMeanwhile) {
  RankState reader = Reading(1);
  RankState waiter = At(0, true);  // says where it is once
  waiter.unchanged_seconds = 100;
  reader.unchanged_seconds = 59.9;
  EXPECT_EQ(StillResponding(std::vector{waiter, reader}, 60).size(), 2U);
  reader.unchanged_seconds = 60;
  EXPECT_EQ(StillResponding(std::vector{waiter, reader}, 60).size(), 1U);
}

TEST(InputWait, IsSaidInOtherWordsEachTime) {
  EXPECT_NE(ToText(Reading(1, 0.101)), ToText(Reading(1, 0.102)));
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

class BrokenSource : public DataLoader {
 public:
  std::int64_t samples() const override { return 0; }
  void Seek(const Position&) override {}
  bool Next(HostBatch&) override { throw Error(EX_DATAERR, "a bad record"); }
};

class BrokenCommunicator : public ThreadCommunicator {
 public:
  using ThreadCommunicator::ThreadCommunicator;
  void Barrier() override { throw Error(EX_OSERR, "a bad network"); }
};

TEST(Watched, AWaitThatThrowsIsOver) {
  const TemporaryDirectory directory;
  HangWatchdog watch({.model_dir = directory.path(),
                      .run_name = "1",
                      .host = "n1",
                      .on_hang = [](const std::string&) {}});
  BrokenSource source;
  HostBatch batch;
  EXPECT_THROW(MakeMonitoredDataLoader(source, watch)->Next(batch), Error);
  EXPECT_THAT(watch.Describe(), HasSubstr("at work of its own"));
  ThreadWorld world(1);
  BrokenCommunicator communicator(world, 0);
  EXPECT_THROW(MakeWatchedCommunicator(communicator, watch)->Barrier(), Error);
  EXPECT_THAT(watch.Describe(), HasSubstr("at work of its own"));
}

}  // namespace
}  // namespace trainer
