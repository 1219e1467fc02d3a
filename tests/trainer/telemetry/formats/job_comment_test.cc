// SPDX-License-Identifier: Apache-2.0

#include <sys/wait.h>

#include <cstdlib>
#include <thread>

#include "tests/support/emulated.h"
#include "tests/support/test.h"
#include "trainer/telemetry/formats/progress.h"

namespace trainer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class JobCommentTest : public ::testing::Test {
 protected:
  // So many `seconds` later `steps` are done.
  void Step(std::int64_t steps, int seconds) {
    now_ += std::chrono::seconds(seconds);
    StepMetrics metrics = metrics_;
    metrics.step = steps - 1;
    comment_.Step(metrics);
  }

  TimePoint now_ = TimePoint(std::chrono::hours(24));
  StepMetrics metrics_ = {.total_steps = 25000,
                          .epoch = 2,
                          .epochs = 50,
                          .images_per_second = 365.12,
                          .total_loss = 2.41414,
                          .learning_rate = 0.1};
  std::vector<std::string> comments_;
  JobComment comment_{[this](const std::string& text) { comments_.push_back(text); },
                      [this] { return now_; }};
};

TEST_F(JobCommentTest, SaysHowFarTheTrainingIs) {
  Step(1200, 0);
  Step(1260, 60);
  metrics_.epochs = 0;
  Step(25000, 60);
  EXPECT_THAT(comments_,
              ElementsAre("ddltraind step 1200/25000 epoch 3/50 loss 2.4141 365.1 images/s eta ?",
                          // 23,740 steps are left, of a second each.
                          "ddltraind step 1260/25000 epoch 3/50 loss 2.4141 365.1 images/s eta "
                          "6:35:40",
                          "ddltraind step 25000/25000 loss 2.4141 365.1 images/s eta 0:00:00"));
}

TEST_F(JobCommentTest, IsUpdatedOnceAMinute) {
  Step(1, 0);
  Step(2, 59);
  EXPECT_THAT(comments_, SizeIs(1));
  Step(3, 1);
  EXPECT_THAT(comments_, SizeIs(2));
  Step(4, 59);
  EXPECT_THAT(comments_, SizeIs(2));
  Step(5, 3600);
  EXPECT_THAT(comments_, SizeIs(3));
  Step(6, -7200);  // the clock was set back
  EXPECT_THAT(comments_, SizeIs(4));
}

TEST(CommentOrder, IsThatOfScontrol) {
  EXPECT_THAT(CommentOrder("4711", "step 1, 50 %"),
              ElementsAre("scontrol", "update", "JobId=4711", "Comment=step 1, 50 %"));
}

class BackgroundCommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::path(::testing::TempDir()) /
            ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove(path_);
  }
  void TearDown() override {
    order_.reset();
    std::filesystem::remove(path_);
  }

  void Shell(const std::string& text) { order_->Give({"sh", "-c", text, path_.string()}); }
  void WaitForFile() const {
    while (!std::filesystem::exists(path_)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  std::filesystem::path path_;
  std::vector<std::string> failures_;
  std::optional<BackgroundCommand> order_{
      std::in_place, [this](const std::string& why) { failures_.push_back(why); }};
};

TEST_F(BackgroundCommandTest, IsNotWaitedForAndKilledWhenTheNextComes) {
  Shell("echo > $0; exec sleep 1000");
  WaitForFile();
  Shell("exec sleep 1000");
  EXPECT_THAT(failures_, ElementsAre("sh has not ended"));
  order_.reset();
  EXPECT_THAT(failures_, SizeIs(1));               // what the end cuts short is no failure
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);  // no child is left
}

// It reads nothing, and what it prints is lost.
TEST_F(BackgroundCommandTest, OneThatSucceedsIsNotMentionedAndHasTimeAtTheEnd) {
  Shell("cat; echo printed; sleep 0.2; echo > $0");
  order_.reset();
  EXPECT_TRUE(std::filesystem::exists(path_));
  EXPECT_THAT(failures_, IsEmpty());
}

TEST_F(BackgroundCommandTest, OneThatFailsIsToldWhenTheNextComes) {
  Shell("exit 3");
  siginfo_t info = {};
  ASSERT_EQ(::waitid(P_ALL, 0, &info, WEXITED | WNOWAIT), 0);
  Shell("kill -9 $$");
  EXPECT_THAT(failures_, ElementsAre("sh ended with exit code 3"));
  ASSERT_EQ(::waitid(P_ALL, 0, &info, WEXITED | WNOWAIT), 0);
  order_.reset();
  EXPECT_THAT(failures_, ElementsAre("sh ended with exit code 3", "sh was ended by signal 9"));
}

TEST_F(BackgroundCommandTest, SaysWhatCannotBeStarted) {
  // posix_spawn tells why by memory that its child shares, which that of QEMU does not.
  if (tests::IsEmulated()) GTEST_SKIP() << "emulated";
  order_->Give({"/no/such/scontrol"});
  EXPECT_THAT(failures_, ElementsAre(HasSubstr("/no/such/scontrol: No such file")));
}

}  // namespace
}  // namespace trainer
