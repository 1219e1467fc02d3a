// SPDX-License-Identifier: Apache-2.0

#include "tests/support/refusal.h"
#include "tests/support/test.h"
#include "tests/trainer/train/deferred_backend.h"
#include "tests/trainer/train/thread_ranks.h"
#include "tests/trainer/train/training_run.h"
#include "trainer/backend/registry.h"
#include "trainer/core/error.h"
#include "trainer/program/run_memory.h"
#include "trainer/program/setup.h"
#include "trainer/train/step/replay_check.h"

namespace trainer {
namespace {

constexpr RunMemory kRun{.host_batches = 3};

MemoryBudget RoomOf(std::size_t bytes) {
  MemoryBudget room{.bytes = {0, bytes}, .host_origin = "left on this machine (MemAvailable)"};
  return room;
}

MemoryCheck CheckAlone(const TrainConfig& config, const MemoryBudget& room,
                       bool wants_largest = false) {
  const auto backend = MakeBackend("reference", {.threads = 1});
  OneRank communicator;
  return CheckMemory(config, *backend, kRun, room, communicator, wants_largest);
}

std::size_t NeedsOf(std::int64_t batch) {
  TrainConfig config = SmallConfig("unused");
  config.batch_size = batch;
  return Sum(CheckAlone(config, RoomOf(std::size_t{1} << 40)).deps).host;
}

TEST(MemoryCheck, ABatchThatFitsToTheByteIsTaken) {
  const TrainConfig config = SmallConfig("unused");
  const std::size_t needed = NeedsOf(config.batch_size);
  const MemoryCheck check = CheckAlone(config, RoomOf(needed), /*wants_largest=*/true);
  EXPECT_TRUE(check.fits);
  EXPECT_EQ(check.rejection, "");
  EXPECT_EQ(check.largest_batch, config.batch_size);
  ASSERT_TRUE(check.plan.has_value());
  EXPECT_EQ(check.plan->spec.batch_size, config.batch_size);
}

TEST(MemoryCheck, ALargerOneIsRejectedWithTheLargestThatFits) {
  TrainConfig config = SmallConfig("unused");
  config.batch_size = 1000;
  const std::size_t room = NeedsOf(137);
  const MemoryCheck check = CheckAlone(config, RoomOf(room));
  EXPECT_FALSE(check.fits);
  EXPECT_EQ(check.largest_batch, 137);
  EXPECT_THAT(check.rejection, AllOf(StartsWith("--batch_size=1000 needs 0."),
                                     HasSubstr(" GB of host memory for each rank, but only 0."),
                                     HasSubstr(" GB are left on this machine (MemAvailable): "
                                               "the largest that fits is --batch_size=137")));
  EXPECT_EQ(CheckAlone(config, RoomOf(room - 1)).largest_batch, 136);
}

TEST(MemoryCheck, ABatchBeyondAllReasonIsRejectedWithoutAPlan) {
  TrainConfig config = SmallConfig("unused");
  config.batch_size = std::int64_t{1} << 60;
  const MemoryCheck check = CheckAlone(config, RoomOf(NeedsOf(20)));
  EXPECT_FALSE(check.plan.has_value());
  EXPECT_THAT(check.rejection, AllOf(StartsWith("--batch_size=1152921504606846976 needs about "),
                                     HasSubstr("the largest that fits is --batch_size=20")));
}

TEST(MemoryCheck, WhereNotOneImageFitsSomethingElseIsAdvised) {
  const MemoryCheck check = CheckAlone(SmallConfig("unused"), RoomOf(1000));
  EXPECT_EQ(check.largest_batch, 0);
  EXPECT_THAT(check.rejection, HasSubstr("not one image fits: give a smaller --image_size"));
}

TEST(MemoryCheck, APredictionIsNotAdvisedByOptionsThatItDoesNotHave) {
  TrainConfig config = SmallConfig("unused");
  config.mode = RunMode::kPredict;
  config.batch_size = 1;
  const MemoryCheck check = CheckAlone(config, RoomOf(1000));
  EXPECT_THAT(check.rejection,
              AllOf(StartsWith("one image needs 0."), HasSubstr("): give a smaller --image_size"),
                    Not(HasSubstr("--batch_size")), Not(HasSubstr("--prefetch"))));
}

TEST(MemoryCheck, RejectsWithTheCodeOfAConfiguration) {
  OneRank communicator;
  const MemoryCheck check = CheckAlone(SmallConfig("unused"), RoomOf(1000));
  EXPECT_EQ(tests::Rejection<Error>(EX_CONFIG, [&] { RequireMemory(check, communicator); }),
            check.rejection);
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
    const MemoryBudget room = RoomOf(rooms[communicator.rank()]);
    const MemoryCheck check = CheckMemory(config, *backend, kRun, room, communicator, false);
    EXPECT_FALSE(check.fits);
    EXPECT_EQ(check.largest_batch, 10);
    EXPECT_EQ(check.rejection.empty(), communicator.rank() != 1) << communicator.rank();
  });
}

TEST(MemoryCheck, ARunTakesOverTheNetworkThatWasPlanned) {
  const TemporaryDirectory directory;
  const TemporaryDirectory other;
  const auto backend = MakeBackend("reference", {.threads = 1});
  OneRank communicator;
  const TrainConfig config = SmallConfig(directory.path());
  NetworkDefinition plan = DefineNetwork(*backend, NetworkSpecOf(config));
  GeneratedSource source({});
  std::ostringstream log_text;
  RunTrainer(config, {.backend = *backend,
                      .communicator = communicator,
                      .training = &source,
                      .outputs = {MakeLogger(log_text, 0, "info")},
                      .network = &plan});
  EXPECT_EQ(plan.stem, nullptr);
  RunAlone(SmallConfig(other.path()));
  const auto saved = [](const TemporaryDirectory& of) { return TensorsAt(of.path(), 6); };
  EXPECT_EQ(saved(directory), saved(other));
}

TEST(MemoryCheck, ItsDescriptionIsShortOrFull) {
  const MemoryBudget room = RoomOf(2'000'000'000);
  const MemoryCheck check = CheckAlone(SmallConfig("unused"), room, /*wants_largest=*/true);
  const auto shortly = DescribeMemory(check, room, false);
  EXPECT_EQ(shortly.back(), "host memory         2.00 GB are left on this machine (MemAvailable)");
  EXPECT_LT(shortly.size(), 15U);
  const auto fully = DescribeMemory(check, room, true);
  EXPECT_GT(fully.size(), shortly.size() + 10);
  EXPECT_THAT(fully, Contains(HasSubstr("layer4.0 diff_dst")));
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
    const MemoryBudget room =
        ShareGpus(QueryMemoryBudget(gpu, host), gpu.device_id(), communicator);
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
  EXPECT_LE(2 * Sum(largest[0].deps).device, kFree);

  const auto rejected = CheckOnOneGpu(pair[0].largest_batch + 1, {kFree, kFree});
  EXPECT_FALSE(rejected[0].fits);
  EXPECT_THAT(rejected[0].rejection,
              AllOf(HasSubstr("of the GPU's memory, but only 1.10 GB are its part of what is free "
                              "(2 ranks share the GPU): the largest that fits is --batch_size="),
                    EndsWith(std::to_string(pair[0].largest_batch))));
  EXPECT_EQ(rejected[1].rejection, "");
}

TEST(MemoryCheck, ItsDescriptionSaysWhoseThePartOfAGpuIs) {
  std::vector<std::string> rows;
  CheckOnOneGpu(1, {8'000'000'000, 8'000'000'000}, &rows);
  EXPECT_THAT(rows, Contains("  available               4.00   1099.51"));
  EXPECT_THAT(rows,
              Contains("GPU's memory        4.00 GB are its part of what is free (2 ranks share "
                       "the GPU)"));
  CheckOnOneGpu(1, {8'000'000'000}, &rows);
  EXPECT_THAT(rows, Each(Not(HasSubstr("GPU's memory"))));
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
  EXPECT_FALSE(MakeRunMemory(options, *backend, 2, 4).rolls_back);
  options.on_nan = OnNan::kRollback;
  EXPECT_TRUE(MakeRunMemory(options, *backend, 2, 4).rolls_back);
  EXPECT_FALSE(MakeRunMemory(options, *backend, 2, 4).replays);
  options.replay_check = 10;
  EXPECT_TRUE(MakeRunMemory(options, *backend, 2, 4).replays);
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

constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();

// The largest that fits, found the long way.
std::int64_t LargestByCounting(const std::function<MemoryBytes(std::int64_t)>& bytes_of,
                               const MemoryBytes& room) {
  std::int64_t batch = 0;
  while (bytes_of(batch + 1).FitInto(room)) ++batch;
  return batch;
}

struct Found {
  std::int64_t batch = 0;
  int plans = 0;
};

Found Find(const std::function<std::optional<MemoryBytes>(std::int64_t)>& bytes_of,
           const MemoryBytes& room, std::int64_t first_guess) {
  Found found;
  found.batch = LargestBatch(
      [&](std::int64_t batch) {
        ++found.plans;
        return bytes_of(batch);
      },
      room, first_guess);
  return found;
}

TEST(LargestBatch, IsExactWhateverIsGuessedFirstAndTakesFewPlans) {
  const auto bytes_of = [](std::int64_t batch) {
    const auto images = static_cast<std::size_t>(batch);
    return MemoryBytes{1000 + 70 * images, 300 + 11 * images};
  };
  for (const MemoryBytes& room :
       {MemoryBytes{10000, kUnlimited}, MemoryBytes{kUnlimited, 10000}, MemoryBytes{10000, 1000},
        MemoryBytes{1070, 311}, MemoryBytes{1069, 5000}, MemoryBytes{999, 5000}}) {
    const std::int64_t expected = LargestByCounting(bytes_of, room);
    for (const std::int64_t guess : {1, 2, 63, 64, 65, 1000, 1000000000}) {
      const Found found = Find(bytes_of, room, guess);
      EXPECT_EQ(found.batch, expected) << room.device << " " << room.host << " " << guess;
      EXPECT_LE(found.plans, 6);
    }
  }
}

// As an arena whose pieces are multiples of 256 bytes, with a piece that comes in with batch 40.
TEST(LargestBatch, IsExactWhereTheNeedsAreNearlyLinear) {
  const auto bytes_of = [](std::int64_t batch) {
    const auto images = static_cast<std::size_t>(batch);
    const std::size_t piece = batch > 40 ? 5000 : 0;
    return MemoryBytes{(images * 333 + 255) / 256 * 256 + piece, 0};
  };
  for (std::size_t room = 1000; room < 60000; room += 777) {
    const std::int64_t expected = LargestByCounting(bytes_of, {room, 0});
    for (const std::int64_t guess : {1, 39, 300}) {
      EXPECT_EQ(Find(bytes_of, {room, 0}, guess).batch, expected) << room << " " << guess;
    }
  }
}

TEST(LargestBatch, FitsWhateverTheNeedsAre) {
  const auto bytes_of = [](std::int64_t batch) {
    return MemoryBytes{static_cast<std::size_t>(batch * batch), 0};
  };
  const Found found = Find(bytes_of, {1000000, 0}, 7);
  EXPECT_LE(found.batch, 1000);
  EXPECT_GE(found.batch, 900);
}

TEST(LargestBatch, PassesOverBatchesThatCannotBePlanned) {
  const auto bytes_of = [](std::int64_t batch) -> std::optional<MemoryBytes> {
    if (batch > 500) return std::nullopt;
    return MemoryBytes{static_cast<std::size_t>(batch) * 10, 0};
  };
  EXPECT_EQ(Find(bytes_of, {1000, 0}, 5000).batch, 100);
  EXPECT_EQ(Find(bytes_of, {1000, 0}, 1).batch, 100);
}

TEST(LargestBatch, IsNoneWhereNotOneImageFits) {
  EXPECT_EQ(Find([](std::int64_t) { return MemoryBytes{2, 0}; }, {1, 0}, 100).batch, 0);
  EXPECT_EQ(Find([](std::int64_t) { return std::nullopt; }, {1, 0}, 100).batch, 0);
}

NetworkDefinition PlanOf(std::int64_t batch) {
  const auto backend = MakeBackend("reference", {.threads = 1});
  return DefineNetwork(*backend, {"resnet_tiny", batch, 32, 32, 10, 0});
}

std::size_t HostBytesOf(const std::string& name, const std::vector<MemoryItem>& deps) {
  const auto part = std::ranges::find(deps, name, &MemoryItem::name);
  return part == deps.end() ? kUnlimited : part->bytes.host;
}

TEST(MemoryNeeds, OnTheHostEverythingIsHostMemory) {
  const auto backend = MakeBackend("reference", {.threads = 1});
  const NetworkDefinition plan = PlanOf(4);
  const std::vector<MemoryItem> deps = MemoryItems(
      plan,
      {.is_host = true, .ranks = 2, .host_batches = 3, .host_records = 700, .host_threads = 5});
  const NetworkBytes network = plan.bytes();
  EXPECT_EQ(Sum(deps).device, 0U);
  EXPECT_EQ(HostBytesOf("weights", deps), network.weights);
  EXPECT_EQ(HostBytesOf("gradients", deps), network.gradients);  // nothing is staged
  EXPECT_EQ(HostBytesOf("activations", deps), network.activations);
  EXPECT_EQ(HostBytesOf("input batches", deps), 3U * 4 * (32 * 32 * 3 + 9) + 700);
  const std::size_t statistics = plan.layout.statistic_elements * 4;
  EXPECT_EQ(HostBytesOf("checkpoint", deps), plan.layout.elements * 8 + 4 * statistics);
}

TEST(MemoryNeeds, AGpuHasTheNetworkAndTwoBatches) {
  const NetworkDefinition plan = PlanOf(4);
  const NetworkBytes network = plan.bytes();
  const auto deps = MemoryItems(plan, {.is_host = false, .ranks = 1, .host_batches = 3});
  const MemoryBytes sum = Sum(deps);
  EXPECT_GT(sum.device, network.total() + 2 * InputBytes(plan.spec) + 900'000'000);
  EXPECT_EQ(HostBytesOf("gradients", deps), 0U);
  const auto of_two = MemoryItems(plan, {.is_host = false, .ranks = 2, .host_batches = 3});
  EXPECT_EQ(HostBytesOf("gradients", of_two), plan.layout.elements * 4);  // staged
}

// The reference computes in fp32: all gradients are written over, so all sums lie elsewhere.
TEST(MemoryNeeds, SumsOfSeveralBatchesAreAmongTheGradients) {
  const NetworkDefinition plan = PlanOf(4);
  const auto one = MemoryItems(plan, {});
  const auto several = MemoryItems(plan, {.accumulate = 2});
  EXPECT_EQ(HostBytesOf("gradients", several) - HostBytesOf("gradients", one),
            plan.layout.elements * 4);
  EXPECT_EQ(Sum(several).host - Sum(one).host, plan.layout.elements * 4);
}

TEST(MemoryNeeds, ACheckpointThatIsGoneBackToIsReadBesideTheCopyOfOne) {
  const NetworkDefinition plan = PlanOf(4);
  const std::size_t values = plan.layout.elements * sizeof(float);
  const auto host = [&](const RunMemory& run) { return Sum(MemoryItems(plan, run)).host; };
  EXPECT_EQ(host({.rolls_back = true}), host({}) + 2 * values);
}

TEST(MemoryNeeds, AStepThatIsReplayedKeepsItsGradientsOnTheHost) {
  const NetworkDefinition plan = PlanOf(4);
  for (const bool is_host : {true, false}) {
    const MemoryBytes with = Sum(MemoryItems(plan, {.is_host = is_host, .replays = true}));
    const MemoryBytes without = Sum(MemoryItems(plan, {.is_host = is_host}));
    EXPECT_EQ(with.device, without.device);
    EXPECT_EQ(with.host - without.host, ReplayCheck::BytesFor(plan.layout, is_host));
  }
}

TEST(MemoryNeeds, AveragesAreCountedOnTheDeviceInCheckpointsAndInPlaceOfTheWeights) {
  const auto backend = MakeBackend("reference", {.threads = 1});
  NetworkSpec spec = PlanOf(4).spec;
  const auto without = MemoryItems(DefineNetwork(*backend, spec), {.is_host = false});
  spec.ema = 0.5;
  const NetworkDefinition plan = DefineNetwork(*backend, spec);
  const auto with = MemoryItems(plan, {.is_host = false});
  const std::size_t values = plan.layout.elements * 4;
  const std::size_t statistics = plan.layout.statistic_elements * 4;
  EXPECT_EQ(Sum(with).device - Sum(without).device, values + statistics);
  EXPECT_EQ(Sum(with).host - Sum(without).host, 2 * values + 4 * statistics);
  EXPECT_EQ(with.size(), without.size() + 1);
}

TEST(MemoryNeeds, AreATableOfGigabytes) {
  const std::vector<MemoryItem> deps = {{"weights", {100'000'000, 0}},
                                        {"activations", {12'345'000'000, 50'000'000}}};
  EXPECT_THAT(
      MemoryTable(deps, {16'000'000'000, kUnlimited}, 300, false),
      ElementsAre(
          "GB for each rank           GPU      host", "  weights                 0.10      0.00",
          "  activations            12.35      0.05", "  total                  12.45      0.05",
          "  available              16.00 not known", "largest batch       300 images in a rank"));
  EXPECT_THAT(MemoryTable({{"weights", {0, 100'000'000}}}, {0, 1'000'000'000}, 3, true),
              ElementsAre("GB for each rank          host",  //
                          "  weights                 0.10",  //
                          "  total                   0.10",  //
                          "  available               1.00",  //
                          "largest batch       3 images in a rank"));
}

constexpr std::size_t kUnknown = std::numeric_limits<std::size_t>::max();

// What one rank finds.
struct FreeMemory {
  std::string gpu;
  std::size_t free_bytes = 0;
};

// What ShareGpus makes of it on each rank.
std::vector<MemoryBudget> Share(const std::vector<FreeMemory>& found) {
  std::vector<MemoryBudget> rooms(found.size());
  RunRanks(static_cast<int>(found.size()), [&](Communicator& communicator) {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    const auto& [gpu, free_bytes] = found[rank];
    MemoryBudget own{.bytes = {free_bytes, 1000 + rank}, .is_host = gpu.empty()};
    rooms[rank] = ShareGpus(own, gpu, communicator);
  });
  for (std::size_t rank = 0; rank < rooms.size(); ++rank) {
    EXPECT_EQ(rooms[rank].bytes.host, 1000 + rank);
    EXPECT_EQ(rooms[rank].is_host, found[rank].gpu.empty());
    EXPECT_EQ(rooms[rank].sharing, rooms[0].sharing);
  }
  return rooms;
}

TEST(ShareGpus, ARankWithAGpuOfItsOwnHasAllOfIt) {
  const auto rooms = Share({{"1B", 80'000'000'001}, {"1C", kUnknown}, {"", 0}, {"", 0}});
  EXPECT_EQ(rooms[0].bytes.device, 80'000'000'001U);
  EXPECT_EQ(rooms[1].bytes.device, kUnknown);
  EXPECT_EQ(rooms[2].bytes.device, 0U);
  for (const MemoryBudget& room : rooms) EXPECT_EQ(room.ranks_of_gpu, 1);
  EXPECT_EQ(rooms[0].sharing, "");
}

// The second rank has measured when the first had already taken memory for CUDA itself, the first
// before the second had.
TEST(ShareGpus, TwoRanksHaveHalfOfTheLeastThatOneFound) {
  const auto rooms = Share({{"1B", 77'900'000'000}, {"1B", 77'800'000'000}});
  for (const MemoryBudget& room : rooms) {
    EXPECT_EQ(room.bytes.device, 38'900'000'000U);
    EXPECT_EQ(room.ranks_of_gpu, 2);
  }
  EXPECT_EQ(rooms[0].sharing,
            "2 ranks share each GPU: each plans with 1/2 of what is free, 38.90 GB");
}

TEST(ShareGpus, CountsTheRanksOfEachGpu) {
  const auto even = Share({{"1B", 40'000'000'000},
                           {"1C", 30'000'000'000},
                           {"1B", 40'000'000'000},
                           {"1C", 30'000'000'000}});
  EXPECT_EQ(even[2].bytes.device, 20'000'000'000U);
  EXPECT_EQ(even[3].bytes.device, 15'000'000'000U);
  EXPECT_EQ(even[0].sharing,
            "2 ranks share each GPU: each plans with 1/2 of what is free, 15.00 GB or more");
  const auto uneven = Share({{"1B", 40'000'000'000},
                             {"1C", 16'000'000'000},
                             {"1B", 40'000'000'000},
                             {"1B", 40'000'000'000}});
  EXPECT_EQ(uneven[0].bytes.device, 13'333'333'333U);
  EXPECT_EQ(uneven[0].ranks_of_gpu, 3);
  EXPECT_EQ(uneven[1].bytes.device, 16'000'000'000U);
  EXPECT_EQ(uneven[1].ranks_of_gpu, 1);
  EXPECT_EQ(uneven[0].sharing,
            "up to 3 ranks share a GPU: each plans with its part of what is free, 13.33 GB or "
            "more");
}

TEST(QueryMemoryBudget, HasNoMemoryOfADeviceThatIsTheHost) {
  const auto backend = MakeBackend("reference", {});
  const MemoryBudget room = QueryMemoryBudget(*backend, {4096, "left on this machine"});
  EXPECT_EQ(room.bytes, (MemoryBytes{0, 4096}));
  EXPECT_EQ(room.host_origin, "left on this machine");
  EXPECT_TRUE(room.is_host);
  EXPECT_EQ(room.ranks_of_gpu, 1);
}

}  // namespace
}  // namespace trainer
