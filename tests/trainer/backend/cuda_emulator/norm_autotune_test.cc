// SPDX-License-Identifier: Apache-2.0
//
// Paces of batch norm: that they change nothing but the speed, and which one is taken.

#include "trainer/backend/cuda/norms/norm_autotune.h"

#include <cuda_runtime.h>

#include <random>

#include "tests/support/test.h"
#include "tests/trainer/backend/cuda_emulator/device_vector.h"

namespace trainer {
namespace {

using cuda_emulator::DeviceVector;

// Fewer channels than a row has room for.  Pixels that are shared by neither threads, blocks nor
// waves without a rest.
NormSize SomeSize(std::int64_t pixels) {
  return {
      .shape = {.pixels = pixels, .channels = 13, .padded = 16}, .adds = true, .has_mask = true};
}

DeviceVector<float> Numbers(std::size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  DeviceVector<float> numbers(count);
  for (float& number : numbers) number = normal(generator);
  return numbers;
}

// All that a forward and a backward pass write.
struct Results {
  DeviceVector<float> dst, saved, running_mean, running_variance;
  DeviceVector<float> diff_src, diff_residual, diff_scale, diff_shift;
  DeviceVector<std::uint8_t> mask;

  bool operator==(const Results&) const = default;
};

Results RunBoth(const NormSize& size, const NormLaunchConfig& config) {
  const NormShape& shape = size.shape;
  const auto values = static_cast<std::size_t>(shape.pixels * shape.padded);
  const auto channels = static_cast<std::size_t>(shape.channels);
  DeviceVector<float> src = Numbers(values, 1);
  DeviceVector<float> residual = Numbers(values, 2);
  DeviceVector<float> diff_dst = Numbers(values, 3);
  const DeviceVector<float> scale = Numbers(channels, 4);
  const DeviceVector<float> shift = Numbers(channels, 5);
  DeviceVector<float> scratch(static_cast<std::size_t>(NormScratchFloats(shape)));
  Results to = {.dst = DeviceVector<float>(values),
                .saved = DeviceVector<float>(static_cast<std::size_t>(NormSavedFloats(shape))),
                .running_mean = Numbers(channels, 6),
                .running_variance = Numbers(channels, 7),
                .diff_src = DeviceVector<float>(values),
                .diff_residual = DeviceVector<float>(values),
                .diff_scale = DeviceVector<float>(channels),
                .diff_shift = DeviceVector<float>(channels),
                .mask = DeviceVector<std::uint8_t>(static_cast<std::size_t>(NormMaskBytes(shape)))};
  NormForward forward{.config = config};
  forward.src.values = src.data();
  forward.residual = size.adds ? residual.data() : nullptr;
  forward.dst = to.dst.data();
  forward.relu = size.has_mask;
  forward.of_batch = true;
  forward.saved = to.saved.data();
  forward.mask = size.has_mask ? to.mask.data() : nullptr;
  forward.scratch = scratch.data();
  RunNormForward(shape,
                 {.scale = scale.data(),
                  .shift = shift.data(),
                  .running_mean = to.running_mean.data(),
                  .running_variance = to.running_variance.data(),
                  .epsilon = 1e-5F,
                  .kept = 0.75F},
                 forward, nullptr);
  NormBackward backward;
  backward.config = config;
  backward.src = src.data();
  backward.mask = forward.mask;
  backward.diff_dst = diff_dst.data();
  backward.diff_src = to.diff_src.data();
  backward.diff_residual = size.adds ? to.diff_residual.data() : nullptr;
  backward.diff_scale = to.diff_scale.data();
  backward.diff_shift = to.diff_shift.data();
  backward.of_batch = true;
  backward.saved = to.saved.data();
  backward.scratch = scratch.data();
  RunNormBackward(shape, scale.data(), backward, nullptr);
  return to;
}

// One multiprocessor: each thread has several turns, and each wave blocks of its own.
TEST(NormLaunchConfig, ChangesNoBit) {
  for (const std::int64_t pixels : {1, 3, 130, 6151}) {
    for (const bool alone : {false, true}) {
      NormSize size = SomeSize(pixels);
      if (alone) size.adds = size.has_mask = false;
      const Results usual = RunBoth(size, {});
      for (const NormLaunchConfig& config : kNormLaunchConfigs) {
        EXPECT_TRUE(RunBoth(size, config) == usual) << pixels << " pixels, " << PlanOf(config);
      }
    }
  }
}

std::vector<std::string> Plans() {
  std::vector<std::string> plans;
  for (const NormLaunchConfig& config : kNormLaunchConfigs) plans.push_back(PlanOf(config));
  return plans;
}

TEST(NormAutotuning, OfWhatIsSmallIsTheFirstUntimed) {
  const auto cache = std::make_shared<PlanCache>();
  const NormSize size = SomeSize(64);  // 4096 bytes
  PlanAutotuner autotuner({cache, "a GPU"});
  EXPECT_EQ(PlanOf(ForwardLaunchConfig(autotuner, size, 4097)), Plans().front());
  EXPECT_EQ(PlanOf(BackwardLaunchConfig(autotuner, size, 4097)), Plans().front());
  EXPECT_EQ(cache->TakeNewEntries(), std::nullopt);
}

TEST(NormAutotuning, RaceForEachDirectionAndAreKept) {
  const auto cache = std::make_shared<PlanCache>();
  const DevicePlanCache plans(cache, "a GPU");
  const NormSize size = SomeSize(64);
  PlanAutotuner autotuner(plans);
  const std::string forward = PlanOf(ForwardLaunchConfig(autotuner, size, 4096));
  EXPECT_THAT(Plans(), Contains(forward));
  constexpr const char* kSize = "batch norm of 64x16, F32, added, with a mask";
  EXPECT_EQ(plans.Find(std::string("forward of a ") + kSize), forward);
  EXPECT_EQ(plans.Find(std::string("backward of a ") + kSize), std::nullopt);
  const std::string backward = PlanOf(BackwardLaunchConfig(autotuner, size, 4096));
  EXPECT_THAT(Plans(), Contains(backward));
  EXPECT_EQ(plans.Find(std::string("backward of a ") + kSize), backward);
}

TEST(NormAutotuning, AreThoseThatAreKnown) {
  const DevicePlanCache plans(std::make_shared<PlanCache>(), "a GPU");
  plans.Add("forward of a batch norm of 64x16, F16", "depth 2, waves 4");
  plans.Add("backward of a batch norm of 64x16, F16", "depth 1, waves 4");
  NormSize size = SomeSize(64);
  size.shape.dtype = DType::kFloat16;
  size.adds = size.has_mask = false;
  PlanAutotuner autotuner(plans);
  EXPECT_EQ(PlanOf(ForwardLaunchConfig(autotuner, size, 2048)), "depth 2, waves 4");
  EXPECT_EQ(PlanOf(BackwardLaunchConfig(autotuner, size, 2048)), "depth 1, waves 4");
}

TEST(NormAutotuning, RaceAgainForATextOfAnotherVersion) {
  const DevicePlanCache plans(std::make_shared<PlanCache>(), "a GPU");
  constexpr const char* kName = "forward of a batch norm of 64x16, F32, added, with a mask";
  plans.Add(kName, "depth 9, waves 9");
  PlanAutotuner autotuner(plans);
  const std::string config = PlanOf(ForwardLaunchConfig(autotuner, SomeSize(64), 4096));
  EXPECT_THAT(Plans(), Contains(config));
  EXPECT_EQ(plans.Find(kName), config);
}

// Without a cache that knows, too: the GPU is not asked again.
TEST(NormAutotuning, AreFoundOnceForEachSize) {
  PlanAutotuner autotuner({nullptr, "a GPU"});
  const NormSize size = SomeSize(64);
  const std::string first = PlanOf(ForwardLaunchConfig(autotuner, size, 4096));
  cuda_emulator::FailAfter(0, cudaErrorECCUncorrectable);
  EXPECT_EQ(PlanOf(ForwardLaunchConfig(autotuner, size, 4096)), first);
  EXPECT_ANY_THROW(ForwardLaunchConfig(autotuner, SomeSize(65), 4096));
  EXPECT_ANY_THROW(BackwardLaunchConfig(autotuner, size, 4096));
  cuda_emulator::Mend();
}

}  // namespace
}  // namespace trainer
