// SPDX-License-Identifier: Apache-2.0
//
// Training steps on emulated GPUs that sum their gradients by the emulated NCCL, in device memory.

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "tests/trainer/backend/cuda_emulator/runtime_api.h"
#include "tests/trainer/backend/device.h"
#include "tests/trainer/comm/nccl_emulator/emulated_nccl.h"
#include "tests/trainer/train/training_run.h"
#include "trainer/comm/nccl_communicator.h"
#include "trainer/model/init.h"
#include "trainer/train/gradient_overlap.h"
#include "trainer/train/training_step.h"

namespace trainer {
namespace {

constexpr int kRanks = 2;
constexpr int kSteps = 5;  // one call by call, then two graphs twice

using MakeSums = std::function<std::unique_ptr<Communicator>(Communicator& host, Backend&)>;

// Of rank 0, one in a step.
std::vector<double> Losses(StepGraph graph, const MakeSums& make_sums) {
  std::vector<double> losses;
  RunRanks(kRanks, [&](Communicator& host) {
    const auto backend = MakeTestedBackend("cuda_fp16", /*threads=*/1);
    const std::unique_ptr<Communicator> sums = make_sums(host, *backend);
    TrainConfig config = SmallConfig("");
    config.graph = graph;
    const NetworkSpec spec{config.architecture, config.batch,   config.height,
                           config.width,        config.classes, 0.1F};
    const auto stream = backend->MakeStream();
    Network network(*backend, spec);
    Initialize(network, {}, *stream);
    DeviceBatch device_batch(*backend, spec);
    GeneratedSourceOptions options;
    options.batch = config.batch;
    options.classes = static_cast<int>(config.classes);
    options.rank = host.rank();
    options.ranks = kRanks;
    GeneratedSource source(options);
    LossScale loss_scale = LossScale::Static(64);
    TrainingStep step({config, *backend, network, device_batch, sums ? *sums : host, *stream,
                       loss_scale, source, kSteps});
    for (int i = 0; i < kSteps; ++i) {
      const StepRecord record = step.Run(i, 0.0002, false).record;
      if (host.rank() == 0) losses.push_back(record.total_loss());
    }
  });
  return losses;
}

std::vector<double> LossesByNccl(StepGraph graph) {
  nccl_emulator::QueueBy(cuda_emulator::QueueWork);
  nccl_emulator::TakeEnds();
  const std::vector<double> losses = Losses(graph, [](Communicator& host, Backend& backend) {
    return MakeNcclCommunicator(
        host, {backend.MakeStream(), backend.MakeEvent(), backend.MakeEvent()}, {});
  });
  EXPECT_EQ(nccl_emulator::TakeEnds(), (nccl_emulator::Ends{.destroyed = kRanks, .aborted = 0}));
  return losses;
}

// Both take sums in the order of the ranks.
TEST(NcclTraining, HasTheLossesOfSumsInHostMemoryBitForBit) {
  EXPECT_EQ(LossesByNccl(StepGraph::kOff),
            Losses(StepGraph::kOff, [](Communicator&, Backend&) { return nullptr; }));
}

TEST(NcclTraining, AsOneGraphIsEqualToCallByCall) {
  EXPECT_EQ(LossesByNccl(StepGraph::kOn), LossesByNccl(StepGraph::kOff));
}

// Notes the memory of each sum.
class NotingCommunicator final : public ThreadCommunicator {
 public:
  NotingCommunicator(ThreadWorld& world, bool sums_device_memory)
      : ThreadCommunicator(world, 0), sums_device_memory_(sums_device_memory) {}
  int size() const override { return kRanks; }
  bool sums_device_memory() const override { return sums_device_memory_; }
  void StartAllReduce(void* data, std::size_t /*count*/, DType, Stream&) override {
    summed.push_back(data);
  }
  std::vector<void*> summed;

 private:
  bool sums_device_memory_;
};

TEST(NcclTraining, SumsGradientsWhereTheyAreUnlessThatMustBeHostMemory) {
  const auto backend = MakeTestedBackend("cuda", /*threads=*/1);
  const auto stream = backend->MakeStream();
  const Network network(*backend, {"resnet_tiny", 1, 32, 32, 4, 0});
  for (const bool on_device : {true, false}) {
    ThreadWorld world(1);
    NotingCommunicator communicator(world, on_device);
    GradientOverlap overlap(*backend, network, communicator);
    overlap.Ready(0, *stream);
    ASSERT_FALSE(communicator.summed.empty());
    EXPECT_EQ(communicator.summed.back() == network.gradients(), on_device);
  }
}

}  // namespace
}  // namespace trainer
