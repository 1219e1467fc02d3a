// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/gradient_overlap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/train/thread_ranks.h"
#include "trainer/backend/registry.h"

namespace trainer {
namespace {

// Notes which stretch of the gradients is reduced, and when.
class NotingCommunicator : public ThreadCommunicator {
 public:
  using ThreadCommunicator::ThreadCommunicator;

  int size() const override { return ranks; }
  void StartAllReduce(void* data, std::size_t count, DType, Reduction, Stream&) override {
    started.emplace_back(static_cast<float*>(data), count);
  }
  void Finish(Stream&) override { ++finished; }

  std::vector<std::span<float>> started;
  int finished = 0;
  int ranks = 2;
};

// 25.6 million gradients: several buckets.
Network& Resnet50() {
  static const auto backend = MakeBackend("reference", {});
  static Network network(*backend, {"resnet50", 1, 32, 32, 1000, 0});
  return network;
}

class GradientOverlapTest : public testing::Test {
 protected:
  std::unique_ptr<Backend> backend_ = MakeBackend("reference", {});
  std::unique_ptr<Stream> stream_ = backend_->MakeStream();
  Network& network_ = Resnet50();
  ThreadWorld world_{1};
  NotingCommunicator communicator_{world_, 0};
  GradientOverlap overlap_{*backend_, network_, communicator_, /*in_compute_type=*/false};
};

TEST_F(GradientOverlapTest, StartsOnlyWhatIsComplete) {
  const std::size_t half = network_.elements() / 2;
  overlap_.Ready(half, *stream_);
  ASSERT_FALSE(communicator_.started.empty());
  for (const std::span<float> bucket : communicator_.started) {
    EXPECT_GE(bucket.data(), network_.gradients().fp32 + half);
  }
}

TEST_F(GradientOverlapTest, ReducesEachGradientOnceFromTheEndToTheFront) {
  for (std::size_t step = 0; step < 2; ++step) {
    communicator_.started.clear();
    for (std::size_t tenth = 10; tenth-- > 0;) {
      overlap_.Ready(network_.elements() / 10 * tenth, *stream_);
    }
    overlap_.Finish(*stream_);
    EXPECT_GE(communicator_.started.size(), 4);  // 102 MB in 1 MiB and then 25 MiB
    const float* end = network_.gradients().fp32 + network_.elements();
    for (const std::span<float> bucket : communicator_.started) {
      EXPECT_EQ(bucket.data() + bucket.size(), end);
      end = bucket.data();
    }
    EXPECT_EQ(end, network_.gradients().fp32);
  }
  EXPECT_EQ(communicator_.finished, 2);
}

TEST_F(GradientOverlapTest, RefusesToFinishBeforeAllIsStarted) {
  overlap_.Ready(network_.elements() / 2, *stream_);
  EXPECT_THROW(overlap_.Finish(*stream_), Error);
}

// Nor are they touched: they may be memory of a device.
TEST_F(GradientOverlapTest, HasNothingToReduceForASingleRank) {
  communicator_.ranks = 1;
  GradientOverlap overlap(*backend_, network_, communicator_, /*in_compute_type=*/false);
  overlap.Ready(0, *stream_);
  overlap.Finish(*stream_);
  EXPECT_TRUE(communicator_.started.empty());
}

}  // namespace
}  // namespace trainer
