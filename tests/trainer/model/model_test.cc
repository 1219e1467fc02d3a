// SPDX-License-Identifier: Apache-2.0

#include "tests/support/refusal.h"
#include "tests/support/test.h"
#include "tests/trainer/model/fake_batch.h"
#include "trainer/backend/registry.h"
#include "trainer/core/error.h"
#include "trainer/model/network.h"
#include "trainer/model/network_definition.h"
#include "trainer/model/parameters.h"

namespace trainer {
namespace {

using ::testing::Field;

ParameterSpec Spec(const Shape& shape, Init init) {
  return {"x", shape, RowMajor(shape, DType::kFloat32), init, false, false};
}

// The expected bits were computed by a separate program (Python) that follows the text of init.h.
TEST(Init, HasTheBitsOfTheDescription) {
  const auto conv1 =
      InitialValues(Spec({64, 3, 7, 7}, Init::kVarianceScaling), 0, 1, WeightInit::kFanOut);
  EXPECT_FLOAT_EQ(conv1[0], 0x1.770ad0p-6F);
  EXPECT_FLOAT_EQ(conv1[1], 0x1.ec40a4p-7F);
  EXPECT_FLOAT_EQ(conv1[2], -0x1.4460eep-6F);
  EXPECT_FLOAT_EQ(conv1[3], 0x1.1a3f72p-7F);

  const auto fc = InitialValues(Spec({1000, 2048}, Init::kVarianceScaling), 265,
                                (std::uint64_t{7} << 32) | 9, WeightInit::kFanIn);
  EXPECT_FLOAT_EQ(fc[0], -0x1.9e200cp-5F);
  EXPECT_FLOAT_EQ(fc[1], 0x1.3b4e8ep-6F);
}

TEST(Init, VarianceIsTwoOverFanAndNothingIsFarOut) {
  const auto values =
      InitialValues(Spec({128, 64, 3, 3}, Init::kVarianceScaling), 17, 3, WeightInit::kFanOut);
  const double fan = 128 * 3 * 3;
  const double stddev = std::sqrt(2 / fan);
  const auto count = static_cast<double>(values.size());
  double sum = 0;
  double squares = 0;
  for (const float value : values) {
    sum += value;
    squares += double{value} * value;
    EXPECT_LE(std::abs(value), 2.2738 * stddev);  // 2 / 0.8796...
  }
  EXPECT_NEAR(sum / count, 0, 5 * stddev / std::sqrt(count));
  EXPECT_NEAR(squares / count / (stddev * stddev), 1, 0.02);
}

TEST(Init, FanInAndFanOutDifferInScaleOnly) {
  const ParameterSpec spec = Spec({32, 8, 3, 3}, Init::kVarianceScaling);
  const auto fan_in = InitialValues(spec, 4, 5, WeightInit::kFanIn);
  const auto fan_out = InitialValues(spec, 4, 5, WeightInit::kFanOut);
  for (std::size_t i = 0; i < fan_in.size(); ++i) EXPECT_FLOAT_EQ(fan_in[i], 2 * fan_out[i]);
}

TEST(Init, ParametersAndSeedsDoNotShareNumbers) {
  const ParameterSpec spec = Spec({4, 4}, Init::kVarianceScaling);
  const auto values = InitialValues(spec, 4, 5, WeightInit::kFanIn);
  EXPECT_NE(values, InitialValues(spec, 5, 5, WeightInit::kFanIn));
  EXPECT_NE(values, InitialValues(spec, 4, 6, WeightInit::kFanIn));
  EXPECT_EQ(values, InitialValues(spec, 4, 5, WeightInit::kFanIn));
}

TEST(Init, OnesAndZerosAreThat) {
  EXPECT_THAT(InitialValues(Spec({5}, Init::kOnes), 0, 1, WeightInit::kFanIn), Each(1.0F));
  EXPECT_THAT(InitialValues(Spec({5}, Init::kZeros), 0, 1, WeightInit::kFanIn), Each(0.0F));
}

constexpr std::int64_t kBatch = 4;
constexpr std::int64_t kSize = 32;
constexpr std::int64_t kClasses = 10;
constexpr auto kValue = Network::Part::kValue;

const Network::GradientsReady kIgnore = [](std::size_t) {};

class NetworkTest : public testing::Test {
 protected:
  NetworkTest() { Initialize(network_, {}, *stream_); }

  double LossSum(Mode mode) {
    LossSums sums{};
    network_.Forward(mode, batch_.input(), &sums, *stream_);
    return sums.loss;
  }

  const Parameter& Find(const std::string& name) const {
    for (const Parameter& parameter : network_.parameters()) {
      if (parameter.name == name) return parameter;
    }
    throw std::out_of_range(name);
  }

  std::unique_ptr<Backend> backend_ = MakeBackend("reference", {});
  std::unique_ptr<Stream> stream_ = backend_->MakeStream();
  FakeBatch batch_{*backend_, kBatch, kSize, kClasses};
  Network network_{*backend_, {"resnet_tiny", kBatch, kSize, kSize, kClasses, 0}};
};

TEST_F(NetworkTest, ZeroInitResidualZeroesTheLastScaleOfEachBottleneckAlone) {
  Initialize(network_, {.zero_init_residual = true}, *stream_);
  const auto norm = [&](const std::string& name) {
    double sum = 0;
    for (const float value : network_.Export(kValue, Find(name), *stream_)) sum += std::abs(value);
    return sum;
  };
  EXPECT_EQ(norm("layer1.0.bn3.weight"), 0);
  EXPECT_EQ(norm("layer4.0.bn3.weight"), 0);
  EXPECT_GT(norm("layer1.0.bn2.weight"), 0);
  EXPECT_GT(norm("layer1.0.conv3.weight"), 0);
}

TEST(Network, Resnet50HasTheNamesShapesAndSizeOfTorchvision) {
  const auto backend = MakeBackend("reference", {});
  const Network network(*backend, {"resnet50", 1, 32, 32, 1000, 0});
  std::int64_t trained = 0;
  std::int64_t statistics = 0;
  std::map<std::string, Shape> shapes;
  for (const Parameter& p : network.parameters()) {
    (p.spec.statistic ? statistics : trained) += p.spec.shape.elements();
    shapes[p.name] = p.spec.shape;
  }
  EXPECT_EQ(trained, 25557032);
  EXPECT_EQ(statistics, 53120);
  EXPECT_EQ(network.parameters().size(), 267);
  EXPECT_EQ(network.parameters()[0].name, "conv1.weight");
  EXPECT_EQ(network.parameters()[4].name, "bn1.running_var");
  EXPECT_EQ(network.parameters()[265].name, "fc.weight");
  EXPECT_EQ(network.parameters()[266].name, "fc.bias");
  EXPECT_EQ(shapes.at("layer1.0.downsample.0.weight"), (Shape{256, 64, 1, 1}));
  EXPECT_EQ(shapes.at("layer2.0.conv2.weight"), (Shape{128, 128, 3, 3}));
  EXPECT_EQ(shapes.at("layer4.2.bn3.running_mean"), (Shape{2048}));
}

TEST_F(NetworkTest, DecayAppliesToEverythingButBatchNorm) {
  for (const Parameter& p : network_.parameters()) {
    const bool batch_norm =
        p.name.find("bn") != std::string::npos || p.name.find("downsample.1") != std::string::npos;
    EXPECT_EQ(p.spec.decay, !batch_norm) << p.name;
  }
}

TEST_F(NetworkTest, ANetworkThatKnowsNothingHasTheLossOfAGuess) {
  const Parameter& fc = Find("fc.weight");
  network_.Import(kValue, fc,
                  std::vector<float>(static_cast<std::size_t>(fc.spec.shape.elements())), *stream_);
  EXPECT_NEAR(LossSum(Mode::kTraining) / kBatch, std::log(kClasses), 1e-5);
}

TEST_F(NetworkTest, ImportThenExportGivesTheSameBits) {
  for (const Parameter& parameter : network_.parameters()) {
    std::vector<float> values(static_cast<std::size_t>(parameter.spec.shape.elements()));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1.0F / static_cast<float>(i + 3);
    network_.Import(kValue, parameter, values, *stream_);
    EXPECT_EQ(network_.Export(kValue, parameter, *stream_), values) << parameter.name;
  }
}

TEST_F(NetworkTest, GradientIsTheSlopeOfTheLoss) {
  LossSum(Mode::kTraining);
  network_.Backward(*stream_, kIgnore);
  // Along the gradient the mean loss rises by |gradient|^2 for each unit.
  std::vector<std::vector<float>> gradients;
  double squares = 0;
  for (const Parameter& p : network_.parameters()) {
    gradients.push_back(p.spec.statistic
                            ? std::vector<float>()
                            : network_.ExportGradient(network_.gradients(), p, *stream_));
    for (const float g : gradients.back()) squares += double{g} * g;
  }
  ASSERT_GT(squares, 0);

  const auto move = [&](double distance) {
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (gradients[i].empty()) continue;
      const Parameter& p = network_.parameters()[i];
      std::vector<float> values = network_.Export(kValue, p, *stream_);
      for (std::size_t k = 0; k < values.size(); ++k) {
        values[k] += static_cast<float>(distance * gradients[i][k]);
      }
      network_.Import(kValue, p, values, *stream_);
    }
  };
  const double step = 2e-3 / squares;
  move(step);
  const double up = LossSum(Mode::kTraining) / kBatch;
  move(-2 * step);
  const double down = LossSum(Mode::kTraining) / kBatch;
  EXPECT_NEAR((up - down) / (2 * step) / squares, 1, 0.02);
}

TEST_F(NetworkTest, GradientsAreCompleteWhenReportedReady) {
  LossSum(Mode::kTraining);
  std::vector<std::size_t> reported;
  std::vector<std::vector<float>> when_reported;
  const float* const gradients = network_.gradients().fp32;
  const float* const end = gradients + network_.elements();
  network_.Backward(*stream_, [&](std::size_t complete_from) {
    reported.push_back(complete_from);
    when_reported.emplace_back(gradients + complete_from, end);
  });
  EXPECT_EQ(reported.size(), 6);  // head, four bottlenecks, stem
  EXPECT_TRUE(std::is_sorted(reported.rbegin(), reported.rend()));
  EXPECT_EQ(reported.back(), 0);
  for (std::size_t i = 0; i < reported.size(); ++i) {
    EXPECT_TRUE(std::equal(gradients + reported[i], end, when_reported[i].begin()));
  }
}

TEST_F(NetworkTest, LossScaleMultipliesGradientsOnly) {
  const double loss = LossSum(Mode::kTraining);
  network_.Backward(*stream_, kIgnore);
  const std::vector<float> plain =
      network_.ExportGradient(network_.gradients(), Find("fc.weight"), *stream_);

  batch_.loss().diff_scale = 256;
  EXPECT_EQ(LossSum(Mode::kTraining), loss);
  network_.Backward(*stream_, kIgnore);
  const std::vector<float> scaled =
      network_.ExportGradient(network_.gradients(), Find("fc.weight"), *stream_);
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_EQ(scaled[i], 256 * plain[i]);
}

TEST_F(NetworkTest, OnlyTrainingMovesTheRunningStatistics) {
  const Parameter& mean = Find("layer2.0.bn2.running_mean");
  const std::vector<float> before = network_.Export(kValue, mean, *stream_);
  LossSum(Mode::kInference);
  LossSum(Mode::kFrozen);
  network_.Backward(*stream_, kIgnore);
  EXPECT_EQ(network_.Export(kValue, mean, *stream_), before);
  LossSum(Mode::kTraining);
  EXPECT_NE(network_.Export(kValue, mean, *stream_), before);
}

TEST_F(NetworkTest, LossSumsAddUpAndCountValidSamples) {
  LossSums sums{};
  network_.Forward(Mode::kInference, batch_.input(), &sums, *stream_);
  batch_.loss().valid = 1;
  network_.Forward(Mode::kInference, batch_.input(), &sums, *stream_);
  EXPECT_EQ(sums.samples, kBatch + 1);
}

TEST(NetworkDefinition, DescribesItsMemory) {
  const auto backend = MakeBackend("reference", {});
  const NetworkDefinition plan = DefineNetwork(*backend, {"resnet_tiny", 2, 32, 32, 4, 0});
  const std::vector<std::string> rows = plan.Describe();
  EXPECT_THAT(rows, Contains(HasSubstr("arena")));
  EXPECT_THAT(rows,
              Contains(AllOf(HasSubstr("layer4.0 diff_dst"), HasSubstr("in use from 6 to 7"))));
}

// Its parts are all that the network then allocates.
TEST(NetworkDefinition, HasTheBytesOfItsMemories) {
  const auto backend = MakeBackend("reference", {});
  const NetworkDefinition plan = DefineNetwork(*backend, {"resnet_tiny", 2, 32, 32, 4, 0});
  const NetworkBytes bytes = plan.bytes();
  const std::size_t values = plan.layout.elements * sizeof(float);
  EXPECT_EQ(bytes.momentum, values);
  EXPECT_EQ(bytes.gradients, values);
  EXPECT_EQ(bytes.weights, values + plan.layout.statistic_elements * sizeof(float));
  EXPECT_EQ(bytes.activations + bytes.workspace, plan.arena.total_bytes());
  EXPECT_GT(bytes.workspace, 0U);
  EXPECT_GT(bytes.activations, bytes.workspace);
  EXPECT_EQ(bytes.total(), bytes.weights + 2 * values + plan.arena.total_bytes());
}

ParameterSpec Trained(const std::string& name, std::int64_t elements, bool decay) {
  const Shape shape{elements};
  return {name, shape, RowMajor(shape, DType::kFloat32), Init::kZeros, decay, false};
}

ParameterSpec Statistic(const std::string& name, std::int64_t elements) {
  ParameterSpec spec = Trained(name, elements, false);
  spec.statistic = true;
  return spec;
}

// Two blocks: a filter of 20 with a batch norm of 4; then a filter of 16 and a bias of 3, both
// decayed.
std::vector<BlockParameters> TwoBlocks() {
  return {{"first.",
           {Trained("filter", 20, true), Trained("scale", 4, false), Statistic("mean", 4),
            Statistic("variance", 4)}},
          {"", {Trained("filter", 16, true), Trained("bias", 3, true)}}};
}

TEST(ParameterLayout, NamesAreInForwardOrderWithThePrefixOfTheBlock) {
  std::vector<std::string> names;
  for (const Parameter& p : LayOutParameters(TwoBlocks()).parameters) names.push_back(p.name);
  EXPECT_THAT(names, ElementsAre("first.filter", "first.scale", "first.mean", "first.variance",
                                 "filter", "bias"));
}

TEST(ParameterLayout, MemoryIsInForwardOrderAndAligned) {
  const ParameterLayout layout = LayOutParameters(TwoBlocks());
  const std::vector<Parameter>& p = layout.parameters;
  EXPECT_EQ(p[0].begin, 0);   // filter: 20 elements, padded to 32
  EXPECT_EQ(p[1].begin, 32);  // scale: 4, padded to 16
  EXPECT_EQ(p[4].begin, 48);  // filter of the last block
  EXPECT_EQ(p[5].begin, 64);  // bias: 3, padded to 16
  EXPECT_EQ(layout.elements, 80);
}

TEST(ParameterLayout, StatisticsHaveAMemoryOfTheirOwn) {
  const ParameterLayout layout = LayOutParameters(TwoBlocks());
  EXPECT_EQ(layout.parameters[2].begin, 0);
  EXPECT_EQ(layout.parameters[3].begin, 16);
  EXPECT_EQ(layout.statistic_elements, 32);
}

TEST(ParameterLayout, GradientsCompleteFromTheEndAsBackwardRuns) {
  EXPECT_THAT(LayOutParameters(TwoBlocks()).complete_from, ElementsAre(0, 48));
}

TEST(ParameterLayout, NeighboursWithTheSameDecayAreOneSegmentAndNothingIsLeftOut) {
  const std::vector<ParameterSegment> segments = LayOutParameters(TwoBlocks()).segments;
  ASSERT_EQ(segments.size(), 3);
  EXPECT_EQ(segments[0].begin, 0);
  EXPECT_EQ(segments[0].count, 32);
  EXPECT_TRUE(segments[0].decay);
  EXPECT_EQ(segments[1].begin, 32);
  EXPECT_EQ(segments[1].count, 16);
  EXPECT_FALSE(segments[1].decay);
  EXPECT_EQ(segments[2].begin, 48);  // filter and bias together
  EXPECT_EQ(segments[2].count, 32);
  EXPECT_TRUE(segments[2].decay);
}

TEST(ParameterLayout, EachTensorIsByItselfAndOnlyWeightsHaveTheirNormsInLars) {
  std::vector<BlockParameters> blocks = TwoBlocks();
  for (BlockParameters& block : blocks) {
    ParameterSpec& filter = block.specs[0];
    filter.shape = filter.desc.shape = Shape{filter.shape.elements() / 2, 2};
  }
  const std::vector<ParameterSegment> tensors = LayOutParameters(blocks).tensors;
  ASSERT_EQ(tensors.size(), 4);  // no statistics
  const std::vector<std::size_t> begins = {0, 32, 48, 64};
  const std::vector<std::size_t> counts = {20, 4, 16, 3};  // without the gaps
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(tensors[i].begin, begins[i]);
    EXPECT_EQ(tensors[i].count, counts[i]);
    EXPECT_EQ(tensors[i].decay, i % 2 == 0) << "the bias has decay in SGD alone";
  }
}

TEST(ParameterLayout, PaddingOfTheBackEndCounts) {
  std::vector<BlockParameters> blocks = {{"", {Trained("filter", 20, true)}}};
  blocks[0].specs[0].desc.bytes = 40 * sizeof(float);
  EXPECT_EQ(LayOutParameters(blocks).elements, 48);
}

// As a back end has them that computes in 16 bits: filters are, batch norm and biases are not.
std::vector<BlockParameters> TwoBlocksOfTwoTypes() {
  std::vector<BlockParameters> blocks = TwoBlocks();
  for (BlockParameters& block : blocks) {
    ParameterSpec& filter = block.specs[0];
    filter.desc = RowMajor(filter.shape, DType::kFloat16);
  }
  return blocks;
}

TEST(ParameterLayout, WhatIsNotFp32LiesBehindTheRestInForwardOrder) {
  const ParameterLayout layout = LayOutParameters(TwoBlocksOfTwoTypes());
  const std::vector<Parameter>& p = layout.parameters;
  EXPECT_EQ(p[1].begin, 0);   // scale of the first block
  EXPECT_EQ(p[5].begin, 16);  // bias of the last
  EXPECT_EQ(layout.compute_from, 32);
  EXPECT_EQ(p[0].begin, 32);
  EXPECT_EQ(p[4].begin, 64);
  EXPECT_EQ(layout.elements, 80);
  EXPECT_EQ(p[2].begin, 0);  // statistics, as ever
}

TEST(ParameterLayout, GradientsOfTwoTypesCompleteFromTheEndAndFp32WithTheFirstBlock) {
  EXPECT_THAT(LayOutParameters(TwoBlocksOfTwoTypes()).complete_from, ElementsAre(0, 64));
}

TEST(ParameterLayout, NothingIsBehindWhereAllIsFp32) {
  const ParameterLayout layout = LayOutParameters(TwoBlocks());
  EXPECT_EQ(layout.compute_from, layout.elements);
}

TEST(ParameterLayout, CountsElementsOfAnyType) {
  std::vector<BlockParameters> blocks = {{"", {Trained("filter", 20, true)}}};
  blocks[0].specs[0].desc = RowMajor(blocks[0].specs[0].desc.shape, DType::kFloat16);
  EXPECT_EQ(LayOutParameters(blocks).elements, 32);
  EXPECT_EQ(LayOutParameters(blocks).parameters[0].count, 20);
}

TEST(Resnet, DepthIsThreeConvolutionsPerBottleneckAndTwoMore) {
  EXPECT_EQ(BottlenecksOf(FindArchitecture("resnet50")).size() * 3 + 2, 50);
  EXPECT_EQ(BottlenecksOf(FindArchitecture("resnet101")).size() * 3 + 2, 101);
  EXPECT_EQ(BottlenecksOf(FindArchitecture("resnet152")).size() * 3 + 2, 152);
}

TEST(Resnet, StrideIsInTheFirstBlockOfAStage) {
  const std::vector<BottleneckPlace> places = BottlenecksOf(FindArchitecture("resnet50"));
  EXPECT_EQ(places[0].name, "layer1.0");
  EXPECT_EQ(places[0].stride, 1);
  EXPECT_EQ(places[0].out_channels, 256);
  EXPECT_EQ(places[3].name, "layer2.0");
  EXPECT_EQ(places[3].stride, 2);
  EXPECT_EQ(places[4].stride, 1);
  EXPECT_EQ(places[15].name, "layer4.2");
  EXPECT_EQ(places[15].out_channels, 2048);
}

TEST(Resnet, RejectsAnUnknownNameWithTheListOfNames) {
  const std::string rejection =
      tests::Rejection<Error>(EX_USAGE, [&] { FindArchitecture("resnet51"); });
  EXPECT_THAT(rejection, HasSubstr("'resnet51'"));
  EXPECT_THAT(rejection, HasSubstr("resnet50, resnet101, resnet152"));
  EXPECT_THAT(rejection, Not(HasSubstr("resnet_tiny")));
}

TEST(Resnet, EveryListedNameIsFound) {
  for (const std::string& name : ArchitectureNames()) EXPECT_EQ(FindArchitecture(name).name, name);
}

std::vector<ConsistencyItem> LayoutOn(const std::string& name, std::int64_t classes = 10) {
  const auto backend = MakeBackend(name, {.threads = 1});
  const auto stream = backend->MakeStream();
  const Network network(*backend, {"resnet_tiny", 2, 32, 32, classes, 0});
  return WeightLayout(network, *backend, *stream);
}

const ConsistencyItem& Find(const std::vector<ConsistencyItem>& items, const std::string& name) {
  return *std::find_if(items.begin(), items.end(),
                       [&](const ConsistencyItem& item) { return item.name == name; });
}

TEST(WeightLayout, IsTheSameEachTimeOnEveryBackEnd) {
  for (const std::string& name : BackendNames()) {
    if (!BackendProblem(name).empty()) continue;
    EXPECT_EQ(LayoutOn(name), LayoutOn(name)) << name;
  }
}

TEST(WeightLayout, HasWhereEachTrainedParameterBeginsAndHowItLies) {
  const std::vector<ConsistencyItem> items = LayoutOn("reference");
  EXPECT_EQ(items.front(),
            (ConsistencyItem{"conv1.weight", "conv1.weight from element 0 on, row by row"}));
  EXPECT_THAT(items, Not(Contains(Field(&ConsistencyItem::name, HasSubstr("running_mean")))));
}

TEST(WeightLayout, OfMoreClassesMovesNothingInFrontOfTheLastLayer) {
  const std::vector<ConsistencyItem> ten = LayoutOn("reference");
  const std::vector<ConsistencyItem> more = LayoutOn("reference", 20);
  EXPECT_EQ(Find(ten, "fc.weight").text, Find(more, "fc.weight").text);
  EXPECT_NE(Find(ten, "fc.bias").text, Find(more, "fc.bias").text);
}

// oneDNN's blocked filters are the same numbers in another order: summed with those of `reference`
// they are nonsense.
TEST(WeightLayout, OrdersThatOnlyTheBackEndKnowsAreToldApart) {
  const std::vector<std::string> names = BackendNames();
  if (std::find(names.begin(), names.end(), "cpu") == names.end()) GTEST_SKIP() << "no oneDNN";
  const std::vector<ConsistencyItem> items = LayoutOn("cpu");
  const std::string filter = Find(items, "layer1.0.conv2.weight").text;
  if (filter.find("in the order") == std::string::npos) {
    GTEST_SKIP() << "oneDNN blocks nothing on this machine: " << filter;
  }
  EXPECT_NE(filter, Find(LayoutOn("reference"), "layer1.0.conv2.weight").text);
}

}  // namespace
}  // namespace trainer
