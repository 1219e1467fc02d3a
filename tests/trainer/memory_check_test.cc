// SPDX-License-Identifier: Apache-2.0

#include "trainer/memory_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/train/thread_ranks.h"
#include "tests/trainer/train/training_run.h"
#include "trainer/core/error.h"
#include "trainer/setup.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr RunMemory kRun{.host_batches = 3};

MemoryRoom RoomOf(std::size_t bytes) { return {{0, bytes}, "left on this machine (MemAvailable)"}; }

MemoryCheck CheckAlone(const TrainConfig& config, const MemoryRoom& room,
                       bool wants_largest = false) {
  const auto backend = MakeBackend("reference", {.threads = 1});
  ThreadWorld world(1);
  ThreadCommunicator communicator(world, 0);
  return CheckMemory(config, *backend, kRun, room, communicator, wants_largest);
}

std::size_t NeedsOf(std::int64_t batch) {
  TrainConfig config = SmallConfig("unused");
  config.batch_size = batch;
  return Sum(CheckAlone(config, RoomOf(std::size_t{1} << 40)).parts).host;
}

TEST(MemoryCheck, ABatchThatFitsToTheByteIsTaken) {
  const TrainConfig config = SmallConfig("unused");
  const std::size_t needed = NeedsOf(config.batch_size);
  const MemoryCheck check = CheckAlone(config, RoomOf(needed), /*wants_largest=*/true);
  EXPECT_TRUE(check.fits);
  EXPECT_EQ(check.refusal, "");
  EXPECT_EQ(check.largest_batch, config.batch_size);
  ASSERT_TRUE(check.plan.has_value());
  EXPECT_EQ(check.plan->spec.batch_size, config.batch_size);
}

TEST(MemoryCheck, ALargerOneIsRefusedWithTheLargestThatFits) {
  TrainConfig config = SmallConfig("unused");
  config.batch_size = 1000;
  const std::size_t room = NeedsOf(137);
  const MemoryCheck check = CheckAlone(config, RoomOf(room));
  EXPECT_FALSE(check.fits);
  EXPECT_EQ(check.largest_batch, 137);
  EXPECT_THAT(check.refusal, AllOf(StartsWith("--batch_size=1000 needs 0."),
                                   HasSubstr(" GB of host memory for each rank, but only 0."),
                                   HasSubstr(" GB are left on this machine (MemAvailable): "
                                             "the largest that fits is --batch_size=137")));
  EXPECT_EQ(CheckAlone(config, RoomOf(room - 1)).largest_batch, 136);
}

TEST(MemoryCheck, ABatchBeyondAllReasonIsRefusedWithoutAPlan) {
  TrainConfig config = SmallConfig("unused");
  config.batch_size = std::int64_t{1} << 60;
  const MemoryCheck check = CheckAlone(config, RoomOf(NeedsOf(20)));
  EXPECT_FALSE(check.plan.has_value());
  EXPECT_THAT(check.refusal, AllOf(StartsWith("--batch_size=1152921504606846976 needs about "),
                                   HasSubstr("the largest that fits is --batch_size=20")));
}

TEST(MemoryCheck, WhereNotOneImageFitsSomethingElseIsAdvised) {
  const MemoryCheck check = CheckAlone(SmallConfig("unused"), RoomOf(1000));
  EXPECT_EQ(check.largest_batch, 0);
  EXPECT_THAT(check.refusal, HasSubstr("not one image fits: give a smaller --image_size"));
}

TEST(MemoryCheck, RefusesWithTheCodeOfAConfiguration) {
  ThreadWorld world(1);
  ThreadCommunicator communicator(world, 0);
  const MemoryCheck check = CheckAlone(SmallConfig("unused"), RoomOf(1000));
  try {
    RequireMemory(check, communicator);
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), EX_CONFIG);
    EXPECT_EQ(error.what(), check.refusal);
  }
  RequireMemory(CheckAlone(SmallConfig("unused"), RoomOf(std::size_t{1} << 40)), communicator);
}

// Of four ranks the second has room for 30 images and the third for 10.
TEST(MemoryCheck, TheLowestRankThatLacksMemorySpeaksForTheOneThatHasLeast) {
  TrainConfig config = SmallConfig("unused");
  config.batch_size = 100;
  const std::size_t rooms[] = {std::size_t{1} << 40, NeedsOf(30), NeedsOf(10),
                               std::size_t{1} << 40};
  RunRanks(4, [&](Communicator& communicator) {
    const auto backend = MakeBackend("reference", {.threads = 1});
    const MemoryRoom room = RoomOf(rooms[communicator.rank()]);
    const MemoryCheck check = CheckMemory(config, *backend, kRun, room, communicator, false);
    EXPECT_FALSE(check.fits);
    EXPECT_EQ(check.largest_batch, 10);
    EXPECT_EQ(check.refusal.empty(), communicator.rank() != 1) << communicator.rank();
  });
}

TEST(MemoryCheck, ARunTakesOverTheNetworkThatWasPlanned) {
  const TemporaryFolder folder;
  const TemporaryFolder other;
  const auto backend = MakeBackend("reference", {.threads = 1});
  ThreadWorld world(1);
  ThreadCommunicator communicator(world, 0);
  const TrainConfig config = SmallConfig(folder.path());
  NetworkPlan plan = PlanNetwork(*backend, NetworkSpecOf(config));
  GeneratedSource source({});
  std::ostringstream log_text;
  RunTrainer(config, {.backend = *backend,
                      .communicator = communicator,
                      .training = &source,
                      .outputs = {MakeLogger(log_text, 0, "info")},
                      .network = &plan});
  EXPECT_EQ(plan.stem, nullptr);
  RunAlone(SmallConfig(other.path()));
  const auto saved = [](const TemporaryFolder& of) {
    return TensorsOf(CheckpointFolder(of.path(), 6) / "model.safetensors");
  };
  EXPECT_EQ(saved(folder), saved(other));
}

TEST(MemoryCheck, ItsDescriptionIsShortOrFull) {
  const MemoryRoom room = RoomOf(2'000'000'000);
  const MemoryCheck check = CheckAlone(SmallConfig("unused"), room, /*wants_largest=*/true);
  const auto shortly = DescribeMemory(check, room, false);
  EXPECT_EQ(shortly.back(), "host memory         2.00 GB are left on this machine (MemAvailable)");
  EXPECT_LT(shortly.size(), 15U);
  const auto fully = DescribeMemory(check, room, true);
  EXPECT_GT(fully.size(), shortly.size() + 10);
  EXPECT_THAT(fully, testing::Contains(HasSubstr("layer4.0 diff_dst")));
}

// A rank of two sources, with files: each has one batch in use and two made ahead.
TEST(RunMemory, CountsWhatTheSourcesHold) {
  const auto backend = MakeBackend("reference", {.threads = 1});
  Options options;
  EXPECT_EQ(MakeRunMemory(options, *backend, 2, 4).host_batches, 2);
  EXPECT_EQ(MakeRunMemory(options, *backend, 2, 4).device_batches, 4);
  EXPECT_EQ(MakeRunMemory(options, *backend, 2, 4).ranks, 2);
  EXPECT_EQ(MakeRunMemory(options, *backend, 2, 4).host_records, 0U);
  options.data_dir = "data";
  EXPECT_EQ(MakeRunMemory(options, *backend, 2, 4).host_batches, 6);
  EXPECT_EQ(MakeRunMemory(options, *backend, 2, 4).host_records, 2U * 4 * (16U << 20));
  EXPECT_EQ(MakeRunMemory(options, *backend, 2, 4).host_threads, 12);
  EXPECT_EQ(MakeRunMemory(options, *backend, 2, 64).host_records, 2U * (256U << 20));
  EXPECT_FALSE(MakeRunMemory(options, *backend, 2, 4).goes_back);
  options.on_nan = OnNan::kRollback;
  EXPECT_TRUE(MakeRunMemory(options, *backend, 2, 4).goes_back);
  options.mode = RunMode::kTrain;
  options.prefetch = 9;
  options.data_threads = 1;
  EXPECT_EQ(MakeRunMemory(options, *backend, 2, 4).host_batches, 10);
  EXPECT_EQ(MakeRunMemory(options, *backend, 2, 4).host_records, 16U << 20);
  EXPECT_EQ(MakeRunMemory(options, *backend, 2, 4).host_threads, 5);
  options.mode = RunMode::kPredict;
  EXPECT_EQ(MakeRunMemory(options, *backend, 1, 4).host_batches, 0);
  EXPECT_EQ(MakeRunMemory(options, *backend, 1, 4).device_batches, 2);
}

}  // namespace
}  // namespace trainer
