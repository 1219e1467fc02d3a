// SPDX-License-Identifier: Apache-2.0
//
// --replay_check where gradients are of 16 bits, and steps are graphs.

#include "tests/support/refusal.h"
#include "tests/support/test.h"
#include "tests/trainer/backend/cuda_emulator/emulated_libraries.h"
#include "tests/trainer/train/training_run.h"
#include "trainer/core/error.h"
#include "trainer/train/step/replay_check.h"

namespace trainer {
namespace {

std::unique_ptr<Backend> MakeCuda(DType type, bool deterministic) {
  return MakeBackend("cuda", {.threads = 1, .compute_type = type, .deterministic = deterministic});
}

TEST(CudaReplay, ToleratesAsMuchAsTheTypeLoses) {
  for (const DType type : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    EXPECT_EQ(MakeCuda(type, true)->repeat_error(), 0);
  }
  EXPECT_EQ(MakeCuda(DType::kFloat32, false)->repeat_error(), 1e-3);
  EXPECT_EQ(MakeCuda(DType::kFloat16, false)->repeat_error(), 1.0 / 32);
  EXPECT_EQ(MakeCuda(DType::kBFloat16, false)->repeat_error(), 0.25);
}

TEST(CudaReplay, FindsABitOfEachGradient) {
  for (const DType type : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    const auto backend = MakeCuda(type, true);
    const auto stream = backend->MakeStream();
    Network network(*backend, {"resnet_tiny", 2, 32, 32, 4, 0});
    ReplayCheck check(*backend, network);
    check.Begin(*stream);
    check.Keep(*stream);
    ASSERT_FALSE(check.Compare(*stream));
    int short_gradients = 0;
    for (const Parameter& parameter : network.parameters()) {
      if (parameter.spec.statistic) continue;
      const Tensor gradient = network.BindingOf(parameter).gradient;
      short_gradients += gradient.desc.dtype == DType::kFloat32 ? 0 : 1;
      auto* last = static_cast<std::uint8_t*>(gradient.data) +
                   (parameter.count - 1) * SizeOf(gradient.desc.dtype);
      *last ^= 1;
      const auto found = check.Compare(*stream);
      ASSERT_TRUE(found) << parameter.name;
      EXPECT_EQ(found->name, parameter.name);
      EXPECT_EQ(found->found.values, 1);
      EXPECT_EQ(found->others, 0);
      *last ^= 1;
    }
    EXPECT_EQ(short_gradients > 0, type != DType::kFloat32);
  }
}

TEST(CudaReplay, SaysAtItsStartWhatItDoesNotFind) {
  TrainConfig config = SmallConfig("");
  config.mode = RunMode::kTrainingBenchmark;
  config.warmup_steps = 0;
  config.schedule.num_iter = 1;
  for (const std::int64_t replay_check : {0, 5}) {
    for (const bool deterministic : {true, false}) {
      config.replay_check = replay_check;
      const auto backend = MakeCuda(DType::kFloat16, deterministic);
      OneRank communicator;
      std::ostringstream log;
      RunRankOn(*backend, config, communicator, log);
      EXPECT_EQ(log.str().find("differences above 0.031 of a gradient's norm") != std::string::npos,
                replay_check > 0 && !deterministic);
    }
  }
}

// How a training ends in whose second step one value of one convolution is NaN once.
std::string ErrorOfTraining(bool deterministic) {
  TrainConfig config = SmallConfig("");
  config.mode = RunMode::kTrainingBenchmark;
  config.warmup_steps = 0;
  config.batch_size = 2;
  config.schedule.num_iter = 4;
  config.schedule.lr_init = 0.1;
  config.loss_scale = 8;
  config.replay_check = 2;
  const auto backend = MakeCuda(DType::kFloat16, deterministic);
  OneRank communicator;
  std::ostringstream log;
  const std::string error = tests::Rejection<RankFault>(EX_OSERR, [&] {
    RunRankOn(*backend, config, communicator, log, 0, nullptr, [](std::int64_t step) {
      if (step == 1) cuda_emulator::SpoilForward(3);
    });
  });
  cuda_emulator::SpoilForward(0);
  return error;
}

TEST(CudaReplay, FindsAConvolutionThatComputesNaNOnce) {
  EXPECT_THAT(ErrorOfTraining(true),
              AllOf(StartsWith("step 1: rank 0 on node0 has computed two results"),
                    HasSubstr(".running_mean differs in "), HasSubstr("by inf at most")));
}

// It is an overflow there: the pass that was sound is the one that counts.
TEST(CudaReplay, LeavesOverflowsToTheLossScaleWhereBitsMayDiffer) {
  EXPECT_EQ(ErrorOfTraining(false), "");
}

}  // namespace
}  // namespace trainer
