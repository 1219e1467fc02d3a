// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/runs/repeat_progress.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace bench {
namespace {

using ::testing::EndsWith;
using ::testing::StartsWith;

class RepeatProgressTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::path(::testing::TempDir()) /
            ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove(path_);
  }
  void TearDown() override { std::filesystem::remove(path_); }

  void Append(const std::string& text) { std::ofstream(path_, std::ios::app) << text; }

  // Of a step that takes so long at 64 images.
  static std::string StepLines(int iteration, double seconds, double loss) {
    const auto line = [](const std::string& key, double value) {
      return fmt::format(":::NVLOGv0.2.3 resnet 1.5 (training_hooks.py:100) {}: {}\n", key, value);
    };
    return line("iteration", iteration) + line("imgs_per_sec", 64 / seconds) +
           line("cross_entropy", loss);
  }

  // What is printed now.
  std::string Shown() {
    out_.str("");
    progress_->Show();
    return out_.str();
  }

  void Start(int repeat, int number) { progress_.emplace(path_, 64, repeat, number, out_); }

  std::filesystem::path path_;
  std::ostringstream out_;
  std::optional<RepeatProgress> progress_;
};

TEST_F(RepeatProgressTest, HasAPrefixWhereItIsGivenOne) {
  Append(StepLines(0, 40, 7.5));
  progress_.emplace(path_, 64, 13, 1, out_, "D3 ");
  EXPECT_THAT(Shown(), StartsWith("D3 [  0/ 13] | ETA: "));
}

TEST_F(RepeatProgressTest, HasALineForEachObservationOnce) {
  Append("");
  Start(13, 2);
  EXPECT_EQ(Shown(), "");
  Append(StepLines(0, 40, 7.5));
  EXPECT_EQ(Shown(), "");
  const std::string second = StepLines(1, 20, 7.25);
  Append(second.substr(0, second.size() - 1));
  EXPECT_EQ(Shown(), "");
  Append("\n");
  EXPECT_EQ(Shown(), "[  0/ 13] | ETA:  12.00 min | Batch Loss   7.2500\n");  // 12 x 60 s
  EXPECT_EQ(Shown(), "");
  Append(StepLines(2, 1, 7) + StepLines(3, 2, 6.5) + StepLines(4, 1, 6) + StepLines(5, 5, 5.5));
  EXPECT_EQ(Shown(),
            "[  1/ 13] | ETA:   0.55 min | Batch Loss   6.5000\n"    // 11 x 3 s
            "[  2/ 13] | ETA:   1.00 min | Batch Loss   5.5000\n");  // 10 x 6 s
}

// The first ten observations take 3 s, the others 60, 120 and 180 s.
TEST_F(RepeatProgressTest, FromTheEleventhObservationOnTheMeanCounts) {
  for (int i = 0; i < 10; ++i) Append(StepLines(i, 3, 1));
  Append(StepLines(10, 60, 1) + StepLines(11, 120, 1) + StepLines(12, 180, 1));
  Start(15, 1);
  EXPECT_THAT(Shown(), EndsWith("[  9/ 15] | ETA:   0.25 min | Batch Loss   1.0000\n"
                                "[ 10/ 15] | ETA:   4.00 min | Batch Loss   1.0000\n"
                                "[ 11/ 15] | ETA:   4.50 min | Batch Loss   1.0000\n"
                                "[ 12/ 15] | ETA:   4.00 min | Batch Loss   1.0000\n"));
}

TEST_F(RepeatProgressTest, StepsBeyondTheLastObservationHaveNoLine) {
  for (int i = 0; i < 13; ++i) Append(StepLines(i, 3, 1));
  Start(12, 1);
  EXPECT_THAT(Shown(), EndsWith("[ 11/ 12] | ETA:   0.00 min | Batch Loss   1.0000\n"));
}

TEST_F(RepeatProgressTest, IsSilentFromAWrongLineOn) {
  Append(StepLines(0, 3, 1) + StepLines(7, 3, 1));
  Start(12, 1);
  EXPECT_THAT(Shown(), StartsWith("[  0/ 12]"));
  Append(StepLines(1, 3, 1));
  EXPECT_EQ(Shown(), "");
}

TEST_F(RepeatProgressTest, IsSilentWithoutALog) {
  Start(12, 1);
  EXPECT_EQ(Shown(), "");
}

}  // namespace
}  // namespace bench
