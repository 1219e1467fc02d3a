// SPDX-License-Identifier: Apache-2.0
//
// How a HangWatch judges another rank, whose part the test plays.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "support/file.h"
#include "tests/trainer/temporary_folder.h"
#include "trainer/train/watch/hang_watch.h"

namespace trainer {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// Rank 0 of two, if it is not rank_, which waits for the other in a step after healthy ones.  What
// the other says the test writes; its stacks never come.
class HangJudge : public testing::Test {
 protected:
  std::filesystem::path file(const std::string& name) const {
    return folder_.path() / ".hang-1" / name;
  }
  void Say(const RankState& state) const {
    std::filesystem::create_directories(folder_.path() / ".hang-1");
    ASSERT_EQ(support::ReplaceFile(file(std::to_string(state.rank)), ToText(state)), 0);
  }
  // `own_stacks`: how those of this rank are written.
  void Start(double floor, const std::function<std::vector<ThreadStack>()>& own_stacks,
             const RankState& other) {
    watch_.emplace(HangWatchOptions{
        .floor_seconds = floor,
        .model_dir = folder_.path(),
        .run_name = "1",
        .rank = rank_,
        .size = 2,
        .host = "",
        .on_wait = [this](const std::string&) { ++waits_; },
        .on_hang =
            [this](const std::string& line) {
              report_.set_value(line);
              is_told_ = true;
            },
        .write_stacks = [own_stacks](const StacksFileOptions&) { return own_stacks(); },
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

  const TemporaryFolder folder_;
  int rank_ = 0;
  std::chrono::milliseconds own_stacks_time_ = 60s;
  std::chrono::milliseconds others_stacks_time_ = 10ms;
  std::atomic<int> waits_ = 0;
  std::atomic<bool> is_told_ = false;
  std::promise<std::string> report_;
  std::optional<HangWatch> watch_;  // last: its thread uses the others
};

TEST_F(HangJudge, LeavesNothingBehindAndReportsNothingWhereTheRunGoesOnBeforeTheReport) {
  others_stacks_time_ = std::chrono::hours(1);
  Start(0.5, OneStack, {.rank = 1, .activity = Activity::kTraining, .waiting = true});
  while (!std::filesystem::exists(file("0.brief"))) std::this_thread::sleep_for(10ms);
  watch_->EndWaiting();
  watch_->Enter(Activity::kCheckpoint, 0);  // has a longer bound
  std::filesystem::remove(file("1"));
  while (std::filesystem::exists(file("0"))) std::this_thread::sleep_for(10ms);
  watch_.reset();
  EXPECT_FALSE(is_told_);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
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
  EXPECT_THAT(report_.get_future().get(),
              HasSubstr("all 2 ranks wait for each other: the network between their nodes fails"));
  end.set_value();
}

TEST_F(HangJudge, ReportsWithoutItsOwnStacksWhereTheseFail) {
  Start(0.1, []() -> std::vector<ThreadStack> { throw std::bad_alloc(); },
        {.rank = 1, .activity = Activity::kTraining, .waiting = true});
  EXPECT_THAT(report_.get_future().get(), HasSubstr("all 2 ranks wait for each other"));
}

// Who removes the states too early takes the stacks from the report.
TEST_F(HangJudge, LeavesTheLowestRankTimeForItsStacks) {
  rank_ = 1;
  Start(0.1, OneStack, {.rank = 0, .activity = Activity::kTraining, .waiting = true});
  while (!std::filesystem::exists(file("1.brief"))) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(report_.get_future().wait_for(500ms), std::future_status::timeout);
}

// With several batches a step a rank makes progress that the others do not share: its time begins
// again.
TEST_F(HangJudge, HearsARankThatReadsOneBatchAfterTheOther) {
  RankState reader = {.rank = 1, .activity = Activity::kTraining, .reading = true};
  Start(0.5, OneStack, reader);
  while (waits_ < 3 && !is_told_) {
    reader.seconds = reader.seconds < 0.1 ? reader.seconds + 0.001 : 0;
    Say(reader);
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_FALSE(is_told_);
}

TEST_F(HangJudge, BlamesAReaderThatSaysTheSameForABound) {
  Start(0.2, OneStack, {.rank = 1, .activity = Activity::kTraining, .reading = true});
  EXPECT_THAT(report_.get_future().get(), HasSubstr("rank 1 does not answer"));
}

}  // namespace
}  // namespace trainer
