// SPDX-License-Identifier: Apache-2.0
//
// Training steps on emulated GPUs that sum their gradients by the emulated NCCL, in device memory.

#include "tests/support/test.h"
#include "tests/trainer/backend/cuda_emulator/runtime_api.h"
#include "tests/trainer/backend/device.h"
#include "tests/trainer/comm/emulated_gpus.h"
#include "tests/trainer/comm/nccl_emulator/emulated_nccl.h"
#include "tests/trainer/train/training_run.h"
#include "trainer/comm/nccl_communicator.h"
#include "trainer/model/network.h"
#include "trainer/train/step/gradients.h"
#include "trainer/train/step/training_step.h"

namespace trainer {
namespace {

constexpr int kRanks = 2;
constexpr int kSteps = 5;  // one call by call, then two graphs twice

using MakeSums = std::function<std::unique_ptr<Communicator>(Communicator& host, Backend&)>;

// What rank 0 has seen.
struct Training {
  std::vector<double> losses;    // one in a step
  std::vector<float> gradients;  // of the first step, the mean over the global batch
  bool operator==(const Training&) const = default;
};

std::vector<float> GradientsOf(const TrainingStep& step, const Network& network, Stream& stream) {
  std::vector<float> all;
  for (const Parameter& parameter : network.parameters()) {
    if (parameter.spec.statistic) continue;
    for (const float g : network.ExportGradient(step.gradients(), parameter, stream)) {
      all.push_back(static_cast<float>(g * step.gradient_scale()));
    }
  }
  return all;
}

Training Train(StepGraph graph, ReducePrecision reduce_precision, const MakeSums& make_sums) {
  Training training;
  RunRanks(kRanks, [&](Communicator& host) {
    const auto backend = MakeTestedBackend("cuda_fp16", /*threads=*/1);
    const std::unique_ptr<Communicator> sums = make_sums(host, *backend);
    TrainConfig config = SmallConfig("");
    config.graph = graph;
    config.reduce_precision = reduce_precision;
    const NetworkSpec spec{config.arch,       config.batch_size, config.image_size,
                           config.image_size, config.classes,    0.1F};
    const auto stream = backend->MakeStream();
    Network network(*backend, DefineNetwork(*backend, spec),
                    GradientMemory(*backend, sums ? *sums : host));
    Initialize(network, {}, *stream);
    DeviceBatch device_batch(*backend, spec);
    GeneratedSourceOptions options;
    options.batch = config.batch_size;
    options.classes = static_cast<int>(config.classes);
    options.rank = host.rank();
    options.ranks = kRanks;
    GeneratedSource source(options);
    LossScale loss_scale = LossScale::Static(64);
    TrainingStep step({config, *backend, network, device_batch, sums ? *sums : host, *stream,
                       loss_scale, source, kSteps});
    for (int i = 0; i < kSteps; ++i) {
      const StepResult record = step.Run(i, 0.0002, {}).record;
      if (host.rank() != 0) continue;
      training.losses.push_back(record.total_loss());
      if (i == 0) training.gradients = GradientsOf(step, network, *stream);
    }
  });
  return training;
}

Training TrainByNccl(StepGraph graph, ReducePrecision reduce_precision) {
  UseEmulatedStreams();
  const auto make_nccl = [](Communicator& host, Backend& backend) {
    return MakeNcclCommunicator(host, MakeNcclDeps(backend), {});
  };
  nccl_emulator::TakeSummed();
  const int pieces = nccl_emulator::AllocatedPieces();
  Training training = Train(graph, reduce_precision, make_nccl);
  const nccl_emulator::Summed summed = nccl_emulator::TakeSummed();
  EXPECT_GT(summed.registered, 0);
  EXPECT_EQ(summed.other, 0);
  EXPECT_EQ(nccl_emulator::AllocatedPieces(), pieces);
  EXPECT_EQ(nccl_emulator::TakeEnds(), (nccl_emulator::Ends{.destroyed = kRanks, .aborted = 0}));
  return training;
}

// Both take sums in the order of the ranks.
TEST(NcclTraining, IsThatOfSumsInHostMemoryBitForBit) {
  EXPECT_EQ(TrainByNccl(StepGraph::kOff, ReducePrecision::kFp32),
            Train(StepGraph::kOff, ReducePrecision::kFp32,
                  [](Communicator&, Backend&) { return nullptr; }));
}

class NcclReduces : public testing::TestWithParam<ReducePrecision> {};
INSTANTIATE_TEST_SUITE_P(Fp32And16Bit, NcclReduces,
                         testing::Values(ReducePrecision::kFp32, ReducePrecision::k16Bit));

TEST_P(NcclReduces, AsOneGraphAsCallByCall) {
  EXPECT_EQ(TrainByNccl(StepGraph::kOn, GetParam()), TrainByNccl(StepGraph::kOff, GetParam()));
}

// Nothing else is, in a graph or not.
TEST_P(NcclReduces, AheadOfOtherWork) {
  int greatest = 0;
  ASSERT_EQ(cudaDeviceGetStreamPriorityRange(nullptr, &greatest), cudaSuccess);
  for (const StepGraph graph : {StepGraph::kOff, StepGraph::kOn}) {
    cuda_emulator::TakeWorkByPriority();
    TrainByNccl(graph, GetParam());
    std::map<int, int> work = cuda_emulator::TakeWorkByPriority();
    const int buckets = GetParam() == ReducePrecision::kFp32 ? 1 : 2;  // of so small a network
    EXPECT_EQ(work[greatest], kRanks * kSteps * buckets);
    EXPECT_GT(work[0], work[greatest]);
    EXPECT_EQ(work.size(), 2);
  }
}

TEST(NcclTraining, With16BitSumsHasTheSameGradientsButForTheirRounding) {
  const std::vector<float> exact = TrainByNccl(StepGraph::kOff, ReducePrecision::kFp32).gradients;
  const std::vector<float> rounded =
      TrainByNccl(StepGraph::kOff, ReducePrecision::k16Bit).gradients;
  ASSERT_EQ(rounded.size(), exact.size());
  EXPECT_NE(rounded, exact);
  double squares = 0;
  double differences = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    squares += double{exact[i]} * exact[i];
    differences += (double{rounded[i]} - exact[i]) * (double{rounded[i]} - exact[i]);
  }
  EXPECT_LT(std::sqrt(differences / squares), 1e-3);  // fp16 has 11 bits
}

// Notes each reduction.
class NotingCommunicator final : public ThreadCommunicator {
 public:
  struct Call {
    void* data;
    std::size_t count;
    DType dtype;
    Reduction reduction;
  };

  NotingCommunicator(ThreadWorld& world, bool reduces_device_memory)
      : ThreadCommunicator(world, 0), sums_device_memory_(reduces_device_memory) {}
  int size() const override { return kRanks; }
  bool reduces_device_memory() const override { return sums_device_memory_; }
  void StartAllReduce(void* data, std::size_t count, DType dtype, Reduction reduction,
                      Stream&) override {
    calls.push_back({data, count, dtype, reduction});
  }
  std::vector<Call> calls;

 private:
  bool sums_device_memory_;
};

TEST(NcclTraining, SumsGradientsWhereTheyAreUnlessThatMustBeHostMemory) {
  const auto backend = MakeTestedBackend("cuda", /*threads=*/1);
  const auto stream = backend->MakeStream();
  Network network(*backend, {"resnet_tiny", 1, 32, 32, 4, 0});
  for (const bool on_device : {true, false}) {
    ThreadWorld world(1);
    NotingCommunicator communicator(world, on_device);
    GradientOverlap overlap(*backend, network, communicator, /*in_compute_type=*/false);
    overlap.Ready(0, *stream);
    EXPECT_EQ(communicator.calls.empty(), !on_device);
    if (!on_device) overlap.Finish(*stream);
    ASSERT_FALSE(communicator.calls.empty());
    EXPECT_EQ(communicator.calls.back().data == network.gradients().fp32, on_device);
    EXPECT_EQ(overlap.staged_bytes(), on_device ? 0 : network.elements() * sizeof(float));
  }
}

// A run of two GPUs; what its rank 0 logs.
std::string LogOf(const MakeSums& make_sums) {
  std::string logged;
  RunRanks(kRanks, [&](Communicator& host) {
    const auto backend = MakeTestedBackend("cuda", /*threads=*/1);
    const std::unique_ptr<Communicator> sums = make_sums(host, *backend);
    TrainConfig config = SmallConfig("");
    config.mode = RunMode::kTrainingBenchmark;
    config.schedule.num_iter = 2;
    config.warmup_steps = 1;
    GeneratedSource source({.rank = host.rank(), .ranks = kRanks});
    std::ostringstream log;
    RunTrainer(config, {.backend = *backend,
                        .communicator = sums ? *sums : host,
                        .training = &source,
                        .outputs = {.log = MakeLogger(log, host.rank(), "info")}});
    if (host.rank() == 0) logged = log.str();
  });
  return logged;
}

TEST(NcclTraining, WithoutItTheLogSaysWhatGoesThroughHostMemory) {
  const std::string logged = LogOf([](Communicator&, Backend&) { return nullptr; });
  EXPECT_THAT(logged, testing::ContainsRegex("warning: in each step [0-9.]+ MB of gradients go to "
                                             "host memory"));
  UseEmulatedStreams();
  const auto make_nccl = [](Communicator& host, Backend& backend) {
    return MakeNcclCommunicator(host, MakeNcclDeps(backend), {});
  };
  EXPECT_THAT(LogOf(make_nccl), Not(HasSubstr("host memory")));
  nccl_emulator::TakeEnds();
}

TEST(NcclTraining, ReducesEachGradientOnceInTheTypeItHas) {
  const auto backend = MakeTestedBackend("cuda_fp16", /*threads=*/1);
  const auto stream = backend->MakeStream();
  Network network(*backend, {"resnet_tiny", 1, 32, 32, 4, 0});
  ThreadWorld world(1);
  NotingCommunicator communicator(world, true);
  GradientOverlap overlap(*backend, network, communicator, /*in_compute_type=*/true);
  const std::size_t compute_from = network.gradients().compute_from;
  ASSERT_GT(compute_from, 0);
  ASSERT_LT(compute_from, network.elements());

  overlap.Ready(compute_from, *stream);
  std::size_t end = network.elements();
  for (const auto& call : communicator.calls) {
    EXPECT_EQ(call.dtype, DType::kFloat16);
    EXPECT_EQ(call.reduction, Reduction::kMean);
    EXPECT_EQ(static_cast<std::uint16_t*>(call.data) + call.count,
              static_cast<std::uint16_t*>(network.gradients().compute) + end);
    end -= call.count;
  }
  EXPECT_EQ(end, compute_from);

  communicator.calls.clear();
  overlap.Ready(0, *stream);
  ASSERT_EQ(communicator.calls.size(), 1);  // batch norm and the bias: small
  EXPECT_EQ(communicator.calls[0].data, network.gradients().fp32);
  EXPECT_EQ(communicator.calls[0].count, compute_from);
  EXPECT_EQ(communicator.calls[0].dtype, DType::kFloat32);
  EXPECT_EQ(communicator.calls[0].reduction, Reduction::kMean);
  EXPECT_EQ(overlap.divisor(), 1);
}

}  // namespace
}  // namespace trainer
