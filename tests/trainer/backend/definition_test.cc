// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>

#include <algorithm>

#include "tests/support/test.h"
#include "tests/trainer/backend/block_memory.h"
#include "tests/trainer/backend/each_backend.h"

namespace trainer {
namespace {

// Small sums done by hand: they anchor the definitions that the contract tests compare.

const Floats kOneToNine{1, 2, 3, 4, 5, 6, 7, 8, 9};

class Definition : public EachBackend {
 protected:
  Floats Convolve(const Floats& filter, std::int64_t kernel, std::int64_t stride,
                  std::int64_t padding) {
    const Tensor src = device_.Make(device_.Images({1, 1, 3, 3}), kOneToNine);
    const auto op = device_.backend().MakeConvolution({src.desc, 1, kernel, stride, padding});
    const Tensor dst = device_.Make(op->dst());
    op->Forward(src, device_.Make(op->filter(), filter), dst,
                device_.Scratch(op->workspace_bytes()), device_.stream());
    return device_.Export(dst);
  }

  struct Pooled {
    Floats dst;
    Floats diff_src;
  };
  // diff_dst is 1, 2, 3, 4.
  Pooled MaxPool(const Floats& values) {
    const Tensor src = device_.Make(device_.Images({1, 1, 3, 3}), values);
    const auto op = device_.backend().MakeMaxPool({src.desc});
    const Tensor dst = device_.Make(op->dst());
    const Tensor diff_src = device_.Make(src.desc);
    void* saved = device_.Scratch(op->saved_bytes());
    op->Forward(src, dst, saved, device_.stream());
    op->Backward(device_.Make(op->dst(), {1, 2, 3, 4}), saved, diff_src, device_.stream());
    return {device_.Export(dst), device_.Export(diff_src)};
  }
};

TEST_P(Definition, ConvolutionSumsProductsWithoutFlippingTheFilter) {
  EXPECT_THAT(Convolve({1, 2, 3, 4}, 2, 1, 0), ElementsAre(37, 47, 67, 77));
}

TEST_P(Definition, ConvolutionPadsWithZerosAndStrides) {
  EXPECT_THAT(Convolve(kOneToNine, 3, 2, 1), ElementsAre(94, 106, 106, 94));
}

TEST_P(Definition, MaxPoolTakesTheLargestOfEachWindow) {
  const Pooled pooled = MaxPool(kOneToNine);
  EXPECT_THAT(pooled.dst, ElementsAre(5, 6, 8, 9));
  EXPECT_THAT(pooled.diff_src, ElementsAre(0, 0, 0, 0, 1, 2, 0, 3, 4));
}

TEST_P(Definition, MaxPoolPaddingNeverWins) {
  EXPECT_THAT(MaxPool({-1, -2, -3, -4, -5, -6, -7, -8, -9}).dst, ElementsAre(-1, -2, -4, -5));
}

TEST_P(Definition, MaxPoolSendsTheGradientToTheFirstOfEquals) {
  EXPECT_THAT(MaxPool(Floats(9, 7)).diff_src, ElementsAre(1, 2, 0, 3, 4, 0, 0, 0, 0));
}

TEST_P(Definition, MaxPoolAddsGradientsOfOverlappingWindows) {
  EXPECT_THAT(MaxPool({0, 0, 0, 0, 9, 0, 0, 0, 0}).diff_src,
              ElementsAre(0, 0, 0, 0, 10, 0, 0, 0, 0));
}

TEST_P(Definition, GlobalAveragePoolIsTheMeanAndSpreadsItsGradient) {
  const Tensor src = device_.Make(device_.Images({1, 2, 1, 2}), {1, 3, 5, 9});
  const auto op = device_.backend().MakeGlobalAveragePool(src.desc);
  const Tensor dst = device_.Make(op->dst());
  op->Forward(src, dst, device_.stream());
  EXPECT_THAT(device_.Export(dst), ElementsAre(2, 7));
  const Tensor diff_src = device_.Make(src.desc);
  op->Backward(device_.Make(op->dst(), {4, 6}), diff_src, device_.stream());
  EXPECT_THAT(device_.Export(diff_src), ElementsAre(2, 2, 3, 3));
}

TEST_P(Definition, LinearIsRowsOfTheWeightTimesSrcPlusBias) {
  const auto pool = device_.backend().MakeGlobalAveragePool(device_.Images({1, 2, 1, 1}));
  const Tensor src = device_.Make(pool->dst(), {2, 3});
  const auto op = device_.backend().MakeLinear({pool->dst(), 3});
  const Tensor dst = device_.Make(op->dst());
  op->Forward(src, device_.Make(op->weight(), {1, 0, 0, 1, 4, 5}), device_.Make({3}, {0.5F, 0, -1}),
              dst, device_.Scratch(op->workspace_bytes()), device_.stream());
  EXPECT_THAT(device_.Export(dst), ElementsAre(2.5F, 3, 22));
}

TEST_P(Definition, ConvolutionAddsToDiffSrcWhereAskedTo) {
  const TensorDesc src = device_.Images({1, 2, 1, 1});
  const auto op =
      device_.backend().MakeConvolution({.src = src, .out_channels = 2, .adds_diff_src = true});
  const Tensor diff_src = device_.Make(src, {10, 20});
  op->BackwardData(device_.Make(op->dst(), {1, 2}), device_.Make(op->filter(), {1, 0, 2, 3}),
                   diff_src, device_.Scratch(op->workspace_bytes()), device_.stream());
  EXPECT_THAT(device_.Export(diff_src), ElementsAre(15, 26));
}

INSTANTIATE_ON_EACH_BACKEND(Definition);

constexpr std::int64_t kHeight = 5;
constexpr std::int64_t kWidth = 7;

class InputTransformOn : public EachBackend {
 protected:
  void SetUp() override {
    Random random(1, RandomPurpose::kSynthetic, 0);
    pixels_.resize(static_cast<std::size_t>(3 * kHeight * kWidth * 3));
    for (std::uint8_t& pixel : pixels_) pixel = static_cast<std::uint8_t>(random.Below(256));
  }

  Tensor Transform(const std::vector<std::uint8_t>& mirror, const Floats& lambda = {}) {
    const auto samples = static_cast<std::int64_t>(mirror.size());
    const auto op = device_.backend().MakeInputTransform({samples, 3, kHeight, kWidth});
    const Tensor dst = device_.Make(op->dst());
    op->Forward(device_.Upload(pixels_), device_.Upload(mirror),
                lambda.empty() ? nullptr : device_.Upload(lambda), dst, device_.stream());
    device_.stream().Synchronize();
    return dst;
  }

  // x of ops.h for a sample that is not mirrored.
  double Normalized(std::size_t n, std::size_t c, std::size_t h, std::size_t w) const {
    const double mean[] = {123.68, 116.28, 103.53};
    const double deviation[] = {58.395, 57.120, 57.385};
    return (pixels_[((n * kHeight + h) * kWidth + w) * 3 + c] - mean[c]) / deviation[c];
  }

  template <typename Expected>
  void ExpectPixels(const Floats& values, std::size_t samples, const Expected& expected) {
    ASSERT_EQ(values.size(), samples * 3 * kHeight * kWidth);
    std::size_t i = 0;
    for (std::size_t n = 0; n < samples; ++n) {
      for (std::size_t c = 0; c < 3; ++c) {
        for (std::size_t h = 0; h < kHeight; ++h) {
          for (std::size_t w = 0; w < kWidth; ++w) {
            EXPECT_NEAR(values[i++], expected(n, c, h, w), 3 * Tolerance());
          }
        }
      }
    }
  }

  std::vector<std::uint8_t> pixels_;
};

TEST_P(InputTransformOn, NormalizesAndMirrors) {
  const Floats values = device_.Export(Transform({0, 1, 0}));
  ExpectPixels(values, 3, [&](std::size_t n, std::size_t c, std::size_t h, std::size_t w) {
    return Normalized(n, c, h, n == 1 ? kWidth - 1 - w : w);
  });
}

TEST_P(InputTransformOn, OfWeightsOfOneIsThatOfNone) {
  EXPECT_EQ(device_.Export(Transform({0, 1, 0}, {1, 1, 1})), device_.Export(Transform({0, 1, 0})));
}

TEST_P(InputTransformOn, MixesEachSampleByItsOwnWeightWithItsPartnerFromTheOtherEnd) {
  for (const Floats& lambda :
       {Floats{0.25F, 0.5F, 0.75F}, Floats{1, 0.1F, 0}, Floats{0, 1, 0.9F}}) {
    const Floats values = device_.Export(Transform({0, 0, 1}, lambda));
    const auto x = [&](std::size_t n, std::size_t c, std::size_t h, std::size_t w) {
      return Normalized(n, c, h, n == 2 ? kWidth - 1 - w : w);
    };
    ExpectPixels(values, 3, [&](std::size_t n, std::size_t c, std::size_t h, std::size_t w) {
      return lambda[n] * x(n, c, h, w) + (1 - lambda[n]) * x(2 - n, c, h, w);
    });
  }
}

TEST_P(InputTransformOn, FillsPaddedChannelsWithZeros) {
  const Tensor dst = Transform({1, 0});
  const auto bytes = device_.Download<std::uint8_t>(dst.data, dst.desc.bytes);
  const std::size_t size = SizeOf(dst.desc.dtype);
  std::int64_t set = 0;  // no pixel is exactly the mean
  for (std::size_t i = 0; i < bytes.size(); i += size) {
    set += std::any_of(&bytes[i], &bytes[i] + size, [](std::uint8_t byte) { return byte != 0; });
  }
  EXPECT_EQ(set, dst.desc.shape.elements());
}

INSTANTIATE_ON_EACH_BACKEND(InputTransformOn);

// What blocks say about themselves, and what the head counts.  Their arithmetic: contract_test.

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
