// SPDX-License-Identifier: Apache-2.0

#include <future>
#include <span>

#include "tests/support/test.h"
#include "tests/trainer/train/deferred_backend.h"
#include "tests/trainer/train/generated_data_loader.h"
#include "tests/trainer/train/thread_ranks.h"
#include "trainer/backend/registry.h"
#include "trainer/model/network.h"
#include "trainer/train/step/batch_feed.h"
#include "trainer/train/step/gradients.h"

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
    EXPECT_LE(communicator_.started.back().size_bytes(), std::size_t{1} << 20);
  }
  EXPECT_EQ(communicator_.finished, 2);
}

TEST_F(GradientOverlapTest, BucketsAreOfTheSizesThatAreAskedFor) {
  GradientOverlap finer(*backend_, network_, communicator_, /*in_compute_type=*/false, {},
                        OptimizerKind::kSgd, {.first = 4000, .rest = 65536, .last = 65536});
  finer.Ready(0, *stream_);
  EXPECT_GE(communicator_.started.size(), 40);  // of 53 filters few are smaller
  EXPECT_EQ(communicator_.started.front().size_bytes(), std::size_t{4032});  // fc.bias, aligned
  EXPECT_LE(communicator_.started.back().size_bytes(), std::size_t{65536});
}

TEST_F(GradientOverlapTest, RejectsToFinishBeforeAllIsStarted) {
  overlap_.Ready(network_.elements() / 2, *stream_);
  EXPECT_THROW(overlap_.Finish(*stream_), Error);
}

// Sums host memory as MPI does: what is queued on the producer has to be done first.
class DoublingCommunicator : public ThreadCommunicator {
 public:
  using ThreadCommunicator::ThreadCommunicator;

  int size() const override { return 2; }
  void StartAllReduce(void* data, std::size_t count, DType, Reduction, Stream& producer) override {
    producer.Synchronize();
    for (float& value : std::span(static_cast<float*>(data), count)) value *= 2;
    ++sums;
  }

  int sums = 0;
};

// The device computes each third of the gradients when the test lets it.
TEST(GradientOverlapOnADevice, QueuesAllOfBackwardWhileTheDeviceComputesAndSumsWhatItMakes) {
  DeferredBackend backend;
  Network& network = Resnet50();
  ThreadWorld world{1};
  DoublingCommunicator communicator{world, 0};
  GradientOverlap overlap(backend, network, communicator, /*in_compute_type=*/false);
  EXPECT_EQ(overlap.staged_bytes(), network.elements() * sizeof(float));
  const std::span<float> gradients(network.gradients().fp32, network.elements());
  const std::size_t third = network.elements() / 3;
  const auto part_of = [=](std::size_t part) {
    return part == 2 ? gradients.subspan(2 * third) : gradients.subspan(part * third, third);
  };
  QueueStream stream;
  for (float step = 1; step <= 2; ++step) {
    std::promise<void> computes;
    const std::shared_future<void> computed = computes.get_future().share();
    std::ranges::fill(gradients, -1.0F);
    std::future<void> queueing = std::async(std::launch::async, [&] {
      for (std::size_t part = 3; part-- > 0;) {
        stream.Post([=] {
          computed.wait();
          std::ranges::fill(part_of(part), step + static_cast<float>(part));
        });
        overlap.Ready(third * part, stream);
      }
    });
    EXPECT_EQ(queueing.wait_for(std::chrono::seconds(20)), std::future_status::ready);
    EXPECT_EQ(communicator.sums, 0);
    computes.set_value();
    queueing.wait();
    overlap.Finish(stream);
    stream.Synchronize();
    EXPECT_GE(communicator.sums, 4);
    communicator.sums = 0;
    for (std::size_t part = 0; part < 3; ++part) {
      const float sum = 2 * (step + static_cast<float>(part));
      EXPECT_TRUE(std::ranges::all_of(part_of(part), [=](float value) { return value == sum; }));
    }
  }
}

// Of the first, second and third batch they are 1, 2 and 4.
TEST_F(GradientOverlapTest, ReducesTheSumOverBatchesOnce) {
  GradientOverlap overlap(*backend_, network_, communicator_, /*in_compute_type=*/false,
                          {.own = 3});
  EXPECT_EQ(overlap.divisor(), 6);
  const std::span<float> gradients(network_.gradients().fp32, network_.elements());
  for (int step = 0; step < 2; ++step) {
    communicator_.started.clear();
    std::ranges::fill(gradients, 1.0F);
    overlap.Keep(/*is_first=*/true, *stream_);
    std::ranges::fill(gradients, 2.0F);
    overlap.Keep(/*is_first=*/false, *stream_);
    EXPECT_TRUE(communicator_.started.empty());
    std::ranges::fill(gradients, 4.0F);
    overlap.Ready(network_.elements() / 2, *stream_);
    EXPECT_FALSE(communicator_.started.empty());
    overlap.Ready(0, *stream_);
    overlap.Finish(*stream_);
    EXPECT_TRUE(std::ranges::all_of(gradients, [](float value) { return value == 7; }));
  }
  EXPECT_EQ(communicator_.finished, 2);
}

TEST_F(GradientOverlapTest, DividesByTheBatchesOfAllRanks) {
  for (const std::int64_t own : {1, 2}) {
    GradientOverlap overlap(*backend_, network_, communicator_, /*in_compute_type=*/false,
                            {.own = own, .all = 3});
    EXPECT_EQ(overlap.divisor(), 3);
  }
}

TEST_F(GradientOverlapTest, AddsUpTheBatchesOfASingleRank) {
  communicator_.ranks = 1;
  GradientOverlap overlap(*backend_, network_, communicator_, /*in_compute_type=*/false,
                          {.own = 2});
  EXPECT_EQ(overlap.divisor(), 2);
  const std::span<float> gradients(network_.gradients().fp32, network_.elements());
  std::ranges::fill(gradients, 1.0F);
  overlap.Keep(/*is_first=*/true, *stream_);
  std::ranges::fill(gradients, 2.0F);
  overlap.Ready(0, *stream_);
  overlap.Finish(*stream_);
  EXPECT_TRUE(std::ranges::all_of(gradients, [](float value) { return value == 3; }));
  EXPECT_TRUE(communicator_.started.empty());
}

// As where a step cannot be recorded as a graph: one batch was kept, the next is queued again.
TEST_F(GradientOverlapTest, AddsUpTheBatchesWhereTheLastIsQueuedAgain) {
  communicator_.ranks = 1;
  const NetworkSpec spec{"resnet_tiny", 4, 32, 32, 4, 0};
  Network network(*backend_, spec);
  Initialize(network, {}, *stream_);
  DeviceBatch device_batch(*backend_, spec);
  GeneratedSource source({});
  HostBatch batch;
  source.Next(batch);
  device_batch.StartUpload(batch);
  const InputBatch input = device_batch.Use(/*loss_scale=*/1, *stream_);
  network.Forward(Mode::kTraining, input, &device_batch.numbers().device()->loss_sums, *stream_);
  GradientOverlap overlap(*backend_, network, communicator_, /*in_compute_type=*/false, {.own = 2});
  std::ranges::fill(std::span(network.gradients().fp32, network.elements()), 1.0F);
  overlap.Keep(/*is_first=*/true, *stream_);
  const auto backward = [&] {
    overlap.Backward({.is_first = false, .is_last = true}, *stream_);
    std::vector<std::vector<float>> sums;
    for (const Parameter& parameter : network.parameters()) {
      if (parameter.spec.statistic) continue;
      sums.push_back(network.ExportGradient(overlap.reduced(), parameter, *stream_));
    }
    return sums;
  };
  const auto sums = backward();  // given up before Finish
  EXPECT_EQ(backward(), sums);
  overlap.Finish(*stream_);
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
