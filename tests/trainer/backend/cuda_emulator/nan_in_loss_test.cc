// SPDX-License-Identifier: Apache-2.0
//
// The loss shows not-a-number of any convolution: a ReLU keeps it.

#include "tests/support/refusal.h"
#include "tests/support/test.h"
#include "tests/trainer/backend/cuda_emulator/emulated_libraries.h"
#include "tests/trainer/train/training_run.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

// How a training in half precision ends of which one value of one convolution is NaN.
std::string ErrorOfTraining(int spoilt_convolution) {
  TrainConfig config = SmallConfig("");
  config.mode = RunMode::kTrainingBenchmark;
  config.warmup_steps = 0;
  config.batch_size = 2;
  config.schedule.num_iter = 2;
  config.schedule.lr_init = 0.1;
  config.loss_scale = 8;
  const auto backend = MakeBackend("cuda", {.threads = 1, .compute_type = DType::kFloat16});
  OneRank communicator;
  std::ostringstream log;
  cuda_emulator::SpoilForward(spoilt_convolution);
  const std::string error =
      tests::Rejection<Error>(EX_SOFTWARE, [&] { RunRankOn(*backend, config, communicator, log); });
  cuda_emulator::SpoilForward(0);
  return error;
}

constexpr int kConvolutions = 9;  // that resnet_tiny has at least, one after the other

TEST(CudaNanInLoss, EndsTheTraining) {
  for (int convolution = 1; convolution <= kConvolutions; ++convolution) {
    EXPECT_THAT(ErrorOfTraining(convolution), MatchesRegex("step 0: the loss is nan .*diverged.*"))
        << convolution;
  }
}

}  // namespace
}  // namespace trainer
