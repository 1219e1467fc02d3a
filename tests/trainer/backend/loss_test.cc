// SPDX-License-Identifier: Apache-2.0

#include <cmath>
#include <limits>

#include "tests/trainer/backend/each_backend.h"

namespace trainer {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct LossCase {
  std::int64_t classes;
  std::vector<std::int32_t> labels;
  float label_smoothing = 0;
  LossParameters call;
  Floats lambda = {};  // of each sample; none: 1
};

struct LossResult {
  LossSums sums;
  Floats diff_logits;
};

// The formula of ops.h, word for word.
LossResult Expected(const LossCase& c, const Floats& logits) {
  const std::size_t samples = c.labels.size();
  const auto classes = static_cast<std::size_t>(c.classes);
  LossResult result{{}, Floats(logits.size(), 0)};
  double loss = 0;
  for (std::size_t n = 0; n < static_cast<std::size_t>(c.call.valid); ++n) {
    const float* row = &logits[n * classes];
    const double lambda = c.lambda.empty() ? 1.0F : c.lambda[n];
    double sum = 0;
    for (std::size_t k = 0; k < classes; ++k) sum += std::exp(double{row[k]} - row[0]);
    for (std::size_t k = 0; k < classes; ++k) {
      const double log_softmax = double{row[k]} - row[0] - std::log(sum);
      const double own = k == static_cast<std::size_t>(c.labels[n]) ? lambda : 0;
      const double partner =
          k == static_cast<std::size_t>(c.labels[samples - 1 - n]) ? 1.0 - lambda : 0;
      const double target = (1.0 - c.label_smoothing) * (own + partner) +
                            c.label_smoothing / static_cast<double>(classes);
      loss -= target * log_softmax;
      result.diff_logits[n * classes + k] = static_cast<float>(
          c.call.diff_scale / static_cast<double>(samples) * (std::exp(log_softmax) - target));
    }
  }
  result.sums.loss = static_cast<float>(loss);
  result.sums.samples = static_cast<float>(c.call.valid);
  return result;
}

class LossOn : public EachBackend {
 protected:
  enum class Gradient { kOwnMemory, kInPlace, kNone };

  LossResult Run(const LossCase& c, const Floats& values, Gradient gradient = Gradient::kOwnMemory,
                 LossSums before = {}) {
    const Shape shape{static_cast<std::int64_t>(c.labels.size()), c.classes};
    const Tensor logits = device_.Make(shape, values);
    const auto op = device_.backend().MakeSoftmaxCrossEntropy({logits.desc, c.label_smoothing});
    Tensor diff_logits = logits;
    if (gradient == Gradient::kOwnMemory) diff_logits = device_.Make(logits.desc);
    auto* sums = device_.Upload(std::vector<LossSums>{before});
    op->Run(device_.Upload(std::vector<LossParameters>{c.call}), logits, device_.Upload(c.labels),
            c.lambda.empty() ? nullptr : device_.Upload(c.lambda),
            gradient == Gradient::kNone ? Tensor{} : diff_logits, sums, device_.stream());
    device_.stream().Synchronize();
    return {device_.Download<LossSums>(sums, 1).front(), device_.Export(diff_logits)};
  }

  void ExpectFormula(const LossCase& c) {
    const Floats logits = RandomFloats(c.classes * static_cast<std::int64_t>(c.labels.size()), 3);
    const LossResult expected = Expected(c, logits);
    for (const Gradient gradient : {Gradient::kOwnMemory, Gradient::kInPlace}) {
      const LossResult result = Run(c, logits, gradient);
      EXPECT_NEAR(result.sums.loss, expected.sums.loss, 1e-5 * expected.sums.loss);
      EXPECT_EQ(result.sums.samples, expected.sums.samples);
      EXPECT_LE(RelativeError(result.diff_logits, expected.diff_logits), 1e-5);
    }
    EXPECT_NEAR(Run(c, logits, Gradient::kNone).sums.loss, expected.sums.loss,
                1e-5 * expected.sums.loss);
  }
};

TEST_P(LossOn, IsCrossEntropy) {
  ExpectFormula({.classes = 7, .labels = {0, 6, 3, 3}, .call = {.valid = 4}});
  ExpectFormula({.classes = 1000, .labels = {999, 17, 500}, .call = {.valid = 3}});
}

TEST_P(LossOn, SmoothsLabels) {
  ExpectFormula(
      {.classes = 11, .labels = {0, 6, 3}, .label_smoothing = 0.1F, .call = {.valid = 3}});
}

TEST_P(LossOn, MixesLabelsAndScalesGradients) {
  ExpectFormula({.classes = 5,
                 .labels = {0, 4, 3, 3, 2},
                 .label_smoothing = 0.2F,
                 .call = {.valid = 5, .diff_scale = 128},
                 .lambda = {0.7F, 0.2F, 0.5F, 1, 0}});
  ExpectFormula(
      {.classes = 5, .labels = {2, 4, 2, 0}, .call = {.valid = 4}, .lambda = {0, 1, 0.1F, 0.9F}});
}

TEST_P(LossOn, CountsTheFirstValidSamplesOnly) {
  ExpectFormula({.classes = 6,
                 .labels = {1, 2, 3, 4, 5},
                 .call = {.valid = 3},
                 .lambda = {0.6F, 0.3F, 0.8F, kNaN, kNaN}});
  ExpectFormula({.classes = 6, .labels = {1}, .call = {.valid = 1}});
}

TEST_P(LossOn, IgnoresWhateverInvalidSamplesHold) {
  const LossCase c{.classes = 2, .labels = {1, 0}, .call = {.valid = 1}};
  const LossResult result = Run(c, {0, 0, kNaN, kNaN});
  EXPECT_NEAR(result.sums.loss, std::log(2.0), 1e-6);
  EXPECT_EQ(result.diff_logits[2], 0);
  EXPECT_EQ(result.diff_logits[3], 0);
}

TEST_P(LossOn, OfNoValidSampleIsNothing) {
  const LossCase c{.classes = 2, .labels = {1, 0}, .call = {.valid = 0}};
  const LossResult result = Run(c, {1, 2, 3, 4});
  EXPECT_EQ(result.sums.loss, 0);
  EXPECT_EQ(result.sums.samples, 0);
  EXPECT_EQ(result.diff_logits, Floats(4, 0));
}

TEST_P(LossOn, AddsToTheSums) {
  const LossCase c{.classes = 2, .labels = {0, 1}, .call = {.valid = 2}};
  const LossSums sums = Run(c, {3, 3, 3, 3}, Gradient::kNone, {10, 20, 30, 40}).sums;
  EXPECT_NEAR(sums.loss, 10 + 2 * std::log(2.0), 1e-5);
  EXPECT_EQ(sums.top1, 21);
  EXPECT_EQ(sums.top5, 32);
  EXPECT_EQ(sums.samples, 42);
}

TEST_P(LossOn, StaysFiniteForHugeLogits) {
  const LossCase c{.classes = 3, .labels = {0, 1}, .call = {.valid = 2}};
  const LossResult result = Run(c, {1e4F, -1e4F, 0, 1e4F, -1e4F, 0});
  EXPECT_NEAR(result.sums.loss, 2e4, 1);
  EXPECT_LE(RelativeError(result.diff_logits, {0, 0, 0, 0.5F, -0.5F, 0}), 1e-5);
}

TEST_P(LossOn, CountsTop1AndTop5) {
  const Floats row{7, 6, 5, 4, 3, 2, 1};
  Floats logits;
  for (int n = 0; n < 7; ++n) logits.insert(logits.end(), row.begin(), row.end());
  const LossCase c{.classes = 7, .labels = {0, 1, 2, 3, 4, 5, 6}, .call = {.valid = 7}};
  const LossSums sums = Run(c, logits).sums;
  EXPECT_EQ(sums.top1, 1);  // label 0
  EXPECT_EQ(sums.top5, 5);  // labels 0 to 4
}

// As argmax does: a network whose logits are all equal is right about class 0 alone.
TEST_P(LossOn, RanksEqualLogitsByTheNumberOfTheClass) {
  struct Tie {
    Floats logits;
    std::int32_t label;
    float top1, top5;
  };
  for (const auto& [logits, label, top1, top5] :
       std::vector<Tie>{{Floats(7, 1), 0, 1, 1},
                        {Floats(7, 1), 1, 0, 1},
                        {Floats(7, 1), 4, 0, 1},
                        {Floats(7, 1), 5, 0, 0},
                        {{1, 1, 3, 3, 1, 1, 1}, 2, 1, 1},  // the other one is behind
                        {{1, 1, 3, 3, 1, 1, 1}, 3, 0, 1},  // and before
                        {{2, 2, 2, 2, 2, 1, 1}, 6, 0, 0},
                        {{2, 2, 2, 2, 1, 1, 1}, 4, 0, 1},
                        {{2, 2, 2, 2, 1, 1, 1}, 5, 0, 0},
                        {{2, 2, 2, 1, 1, 1, 2}, 6, 0, 1}}) {
    const LossCase c{.classes = 7, .labels = {label}, .call = {.valid = 1}};
    const LossSums sums = Run(c, logits).sums;
    EXPECT_EQ(sums.top1, top1) << "label " << label;
    EXPECT_EQ(sums.top5, top5) << "label " << label;
  }
}

TEST_P(LossOn, NeverCountsALabelThatIsNotANumber) {
  const LossCase c{.classes = 3, .labels = {1}, .call = {.valid = 1}};
  const LossSums sums = Run(c, {0, kNaN, 0}).sums;
  EXPECT_EQ(sums.top1, 0);
  EXPECT_EQ(sums.top5, 0);
  EXPECT_EQ(sums.samples, 1);
}

INSTANTIATE_ON_EACH_BACKEND(LossOn);

}  // namespace
}  // namespace trainer
