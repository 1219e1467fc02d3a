// SPDX-License-Identifier: Apache-2.0
//
// Small sums done by hand: they anchor the definitions that the contract tests compare.

#include <gmock/gmock.h>

#include "tests/trainer/backend/each_backend.h"

namespace trainer {
namespace {

using testing::ElementsAre;

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

}  // namespace
}  // namespace trainer
