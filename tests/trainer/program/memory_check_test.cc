// SPDX-License-Identifier: Apache-2.0

#include "trainer/program/memory_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/train/deferred_backend.h"
#include "tests/trainer/train/thread_ranks.h"
#include "tests/trainer/train/training_run.h"
#include "trainer/core/error.h"
#include "trainer/program/setup.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr RunMemory kRun{.host_batches = 3};

MemoryRoom RoomOf(std::size_t bytes) {
  MemoryRoom room;
  room.bytes = {0, bytes};
  room.host_origin = "left on this machine (MemAvailable)";
  return room;
}

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

TEST(MemoryCheck, APredictionIsNotAdvisedByOptionsThatItDoesNotHave) {
  TrainConfig config = SmallConfig("unused");
  config.mode = RunMode::kPredict;
  config.batch_size = 1;
  const MemoryCheck check = CheckAlone(config, RoomOf(1000));
  EXPECT_THAT(check.refusal,
              AllOf(StartsWith("one image needs 0."), HasSubstr("): give a smaller --image_size"),
                    Not(HasSubstr("--batch_size")), Not(HasSubstr("--prefetch"))));
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

// A device on which some bytes are free.
class SmallGpu : public DeferredBackend {
 public:
  explicit SmallGpu(std::size_t free_bytes) : free_bytes_(free_bytes) {}
  std::string device_id() const override { return "0000:1B:00.0"; }
  std::size_t free_bytes() const override { return free_bytes_; }

 private:
  const std::size_t free_bytes_;
};

// The check of each rank on one GPU, of which the ranks have found `free_bytes`.
std::vector<MemoryCheck> CheckOnOneGpu(std::int64_t batch,
                                       const std::vector<std::size_t>& free_bytes,
                                       std::vector<std::string>* rows = nullptr) {
  TrainConfig config = SmallConfig("unused");
  config.batch_size = batch;
  std::vector<MemoryCheck> checks(free_bytes.size());
  RunRanks(static_cast<int>(checks.size()), [&](Communicator& communicator) {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    SmallGpu gpu(free_bytes[rank]);
    const HostMemory host = {std::size_t{1} << 40, "left"};
    const MemoryRoom room = ShareGpus(FindMemoryRoom(gpu, host), gpu.device_id(), communicator);
    checks[rank] = CheckMemory(config, gpu, {.is_host = false}, room, communicator,
                               /*wants_largest=*/true);
    if (rank == 0 && rows != nullptr) *rows = DescribeMemory(checks[rank], room, false);
  });
  return checks;
}

// What all of them take fits beside each other, of the least that one has found.
TEST(MemoryCheck, RanksThatShareAGpuPlanWithTheirParts) {
  constexpr std::size_t kFree = 2'200'000'000;
  const std::int64_t alone = CheckOnOneGpu(1, {kFree}).front().largest_batch;
  const auto pair = CheckOnOneGpu(1, {kFree, kFree + 500'000'000});
  EXPECT_GT(pair[0].largest_batch, 0);
  EXPECT_EQ(pair[0].largest_batch, pair[1].largest_batch);
  EXPECT_LT(pair[0].largest_batch, alone / 2);
  const auto largest = CheckOnOneGpu(pair[0].largest_batch, {kFree, kFree});
  EXPECT_TRUE(largest[0].fits);
  EXPECT_LE(2 * Sum(largest[0].parts).device, kFree);

  const auto refused = CheckOnOneGpu(pair[0].largest_batch + 1, {kFree, kFree});
  EXPECT_FALSE(refused[0].fits);
  EXPECT_THAT(refused[0].refusal,
              AllOf(HasSubstr("of the GPU's memory, but only 1.10 GB are its part of what is free "
                              "(2 ranks share the GPU): the largest that fits is --batch_size="),
                    testing::EndsWith(std::to_string(pair[0].largest_batch))));
  EXPECT_EQ(refused[1].refusal, "");
}

TEST(MemoryCheck, ItsDescriptionSaysWhoseThePartOfAGpuIs) {
  std::vector<std::string> rows;
  CheckOnOneGpu(1, {8'000'000'000, 8'000'000'000}, &rows);
  EXPECT_THAT(rows, testing::Contains("  available               4.00   1099.51"));
  EXPECT_THAT(rows, testing::Contains(
                        "GPU's memory        4.00 GB are its part of what is free (2 ranks share "
                        "the GPU)"));
  CheckOnOneGpu(1, {8'000'000'000}, &rows);
  EXPECT_THAT(rows, testing::Each(testing::Not(HasSubstr("GPU's memory"))));
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
