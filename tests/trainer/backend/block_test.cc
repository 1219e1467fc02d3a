// SPDX-License-Identifier: Apache-2.0
//
// What blocks say about themselves, and what the head counts.  Their arithmetic: contract_test.

#include "tests/support/test.h"
#include "tests/trainer/backend/block_memory.h"
#include "tests/trainer/backend/each_backend.h"

namespace trainer {
namespace {

using testing::ElementsAre;

class BlocksOn : public EachBackend {
 protected:
  static std::vector<std::string> Names(const Block& block) {
    std::vector<std::string> names;
    for (const ParameterSpec& parameter : block.parameters()) names.push_back(parameter.name);
    return names;
  }
};

TEST_P(BlocksOn, NameTheirParametersAsTorchvisionDoes) {
  const auto stem = device_.backend().MakeStem({1, 16, 16, 8});
  EXPECT_THAT(Names(*stem), ElementsAre("conv1.weight", "bn1.weight", "bn1.bias",
                                        "bn1.running_mean", "bn1.running_var"));
  EXPECT_EQ(stem->parameters()[0].shape, Shape({8, 3, 7, 7}));

  const auto plain = device_.backend().MakeBottleneck({device_.Images({1, 32, 4, 4}), 8, 32, 1});
  EXPECT_EQ(plain->parameters().size(), 15U);
  const auto wide = device_.backend().MakeBottleneck({device_.Images({1, 16, 4, 4}), 8, 32, 1});
  EXPECT_THAT(
      Names(*wide),
      ElementsAre("conv1.weight", "bn1.weight", "bn1.bias", "bn1.running_mean", "bn1.running_var",
                  "conv2.weight", "bn2.weight", "bn2.bias", "bn2.running_mean", "bn2.running_var",
                  "conv3.weight", "bn3.weight", "bn3.bias", "bn3.running_mean", "bn3.running_var",
                  "downsample.0.weight", "downsample.1.weight", "downsample.1.bias",
                  "downsample.1.running_mean", "downsample.1.running_var"));
  EXPECT_EQ(wide->parameters()[5].shape, Shape({8, 8, 3, 3}));
  EXPECT_EQ(wide->parameters()[15].shape, Shape({32, 16, 1, 1}));

  const auto head = device_.backend().MakeHead({device_.Images({1, 32, 4, 4}), 10});
  EXPECT_THAT(Names(*head), ElementsAre("fc.weight", "fc.bias"));
  EXPECT_EQ(head->parameters()[0].shape, Shape({10, 32}));
}

TEST_P(BlocksOn, SayWhatDecaysAndHowItStarts) {
  const auto block = device_.backend().MakeBottleneck({device_.Images({1, 16, 4, 4}), 8, 32, 2});
  const auto head = device_.backend().MakeHead({block->dst(), 10});
  std::vector<ParameterSpec> all = block->parameters();
  all.insert(all.end(), head->parameters().begin(), head->parameters().end());
  for (const ParameterSpec& parameter : all) {
    const bool norm = parameter.shape.rank() == 1 && parameter.name != "fc.bias";
    EXPECT_EQ(parameter.decay, !norm) << parameter.name;
    EXPECT_EQ(parameter.statistic, parameter.name.find("running") != std::string::npos);
    const bool ones =
        norm && (parameter.name.ends_with("weight") || parameter.name.ends_with("running_var"));
    EXPECT_EQ(parameter.init == Init::kOnes, ones) << parameter.name;
    EXPECT_EQ(parameter.init == Init::kVarianceScaling, parameter.shape.rank() > 1);
    EXPECT_EQ(parameter.desc.shape, parameter.shape) << parameter.name;
  }
}

TEST_P(BlocksOn, DownsampleExactlyWhereTheShapeChanges) {
  const TensorDesc src = device_.Images({1, 32, 5, 7});
  const auto same = device_.backend().MakeBottleneck({src, 8, 32, 1});
  EXPECT_EQ(same->dst().shape, src.shape);
  const auto halved = device_.backend().MakeBottleneck({src, 8, 32, 2});
  EXPECT_EQ(halved->dst().shape, Shape({1, 32, 3, 4}));
  EXPECT_EQ(halved->parameters().size(), same->parameters().size() + 5);
}

TEST_P(BlocksOn, HeadSmoothsLabelsInTrainingOnly) {
  const Tensor src = device_.Make(device_.Images({2, 8, 2, 2}), RandomFloats(64, 1));
  const auto head = device_.backend().MakeHead({src.desc, 3, 0.3F});
  BlockMemory memory(device_, *head);
  memory.Import({{"fc.weight", RandomFloats(24, 2)}, {"fc.bias", {0, 1, 2}}});
  InputBatch batch;
  batch.labels = device_.Upload(std::vector<std::int32_t>{2, 0});
  batch.loss = device_.Upload(std::vector<LossParameters>{{.valid = 1, .diff_scale = 1024}});
  for (const Mode mode : {Mode::kTraining, Mode::kFrozen, Mode::kInference}) {
    auto* sums = device_.Upload(std::vector<LossSums>(1));
    head->Forward(mode, src, batch, sums, device_.stream());
    const Floats logits = device_.Export(head->logits());
    double total = 0;
    for (int k = 0; k < 3; ++k) total += std::exp(double{logits[static_cast<std::size_t>(k)]});
    const auto loss_of = [&](std::size_t k) { return std::log(total) - logits[k]; };
    const double smoothed = 0.7 * loss_of(2) + 0.1 * (loss_of(0) + loss_of(1) + loss_of(2));
    EXPECT_NEAR(device_.Download<LossSums>(sums, 1).front().loss,
                mode == Mode::kInference ? loss_of(2) : smoothed, 1e-5);
  }
}

INSTANTIATE_ON_EACH_BACKEND(BlocksOn);

}  // namespace
}  // namespace trainer
