// SPDX-License-Identifier: Apache-2.0
//
// cuDNN has an engine for every convolution that is asked of it, on the GPUs that are supported.
// No GPU is needed: the devices are described (cuDNN 9.8 and later).

#include "tests/support/refusal.h"
#include "tests/support/test.h"
#include "tests/trainer/backend/cuda/described_gpus.h"
#include "tests/trainer/backend/cuda/resnet50_layers.h"
#include "trainer/backend/cuda/libraries/cudnn_graph.h"
#include "trainer/backend/cuda/runtime/layout.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

// What the contract tests of back ends compute (tests/trainer/backend/convolution_probe.cc).
std::vector<Layer> AwkwardLayers() {
  return {{2, 5, 7, 6, 9, 1, 1},    {1, 16, 1, 1, 8, 1, 1},   {3, 8, 5, 5, 16, 1, 2},
          {2, 17, 8, 7, 13, 1, 2},  {2, 64, 4, 4, 64, 1, 1},  {2, 6, 7, 5, 10, 3, 1},
          {1, 16, 1, 1, 16, 3, 1},  {1, 8, 5, 9, 8, 3, 2},    {2, 33, 6, 6, 17, 3, 2},
          {3, 32, 8, 8, 32, 3, 2},  {1, 16, 2, 3, 24, 3, 2},  {2, 16, 1, 1, 16, 3, 2},
          {2, 3, 13, 15, 64, 7, 2}, {1, 3, 8, 9, 10, 7, 2},   {3, 3, 16, 16, 16, 7, 2},
          {1, 3, 1, 1, 4, 7, 2},    {16, 16, 7, 5, 16, 3, 1}, {4, 32, 13, 14, 16, 3, 1}};
}

struct Case {
  Gpu gpu;
  DType dtype;
  EngineRules rules;
  std::string name;
};

class DescribedGpus : public testing::Test {
 protected:
  void SetUp() override {
    if (!kDevicesCanBeDescribed) GTEST_SKIP() << "cuDNN before 9.8 cannot be asked without a GPU";
  }
};

class Engines : public DescribedGpus, public testing::WithParamInterface<Case> {
 protected:
  void SetUp() override {
    DescribedGpus::SetUp();
    if (IsSkipped()) return;
    if (GetParam().gpu.version < 750 && cudnnGetVersion() >= 91100) {
      GTEST_SKIP() << "from 9.11 on cuDNN has no code for Volta, but answers as if it had";
    }
    target_ = Described(GetParam().gpu);
  }

  // All three passes of each layer have a plan, the first with tensor cores if `tensor_cores`; a
  // failure names the pass.
  void ExpectPlans(const std::vector<Layer>& layers, bool tensor_cores) {
    for (const Layer& layer : layers) {
      for (const auto pass : {ConvolutionPass::kForward, ConvolutionPass::kBackwardData,
                              ConvolutionPass::kBackwardFilter}) {
        ConvolutionGraph graph = GraphOf(layer, GetParam().dtype);
        graph.pass = pass;
        ExpectPlan(graph, tensor_cores);
        graph.adds = pass == ConvolutionPass::kBackwardData;
        if (graph.adds) ExpectPlan(graph, tensor_cores);
      }
    }
  }

 private:
  void ExpectPlan(const ConvolutionGraph& graph, bool tensor_cores) {
    EXPECT_NO_THROW({
      const auto plans = FindPlans(target_, graph, GetParam().rules, 1);
      EXPECT_LE(plans.at(0).workspace_bytes(), GetParam().rules.workspace_limit);
      EXPECT_TRUE(plans[0].tensor_cores() || !tensor_cores);
    }) << ToString(graph);
  }

  CudnnTarget target_;
};

TEST_P(Engines, ExistForResNet50AtBatch256) {
  ExpectPlans(ResNet50(256), GetParam().dtype != DType::kFloat32);
}

TEST_P(Engines, ExistForAwkwardSizes) { ExpectPlans(AwkwardLayers(), false); }

// Precompiled ones in fp16, for all but the stem.
TEST_F(DescribedGpus, HaveEnginesWithSums) {
  for (const Gpu& gpu : {kA100, kH100}) {
    const CudnnTarget target = Described(gpu);
    for (const Layer& layer : ResNet50(256)) {
      if (layer.channels == 3) continue;
      ConvolutionGraph graph = GraphOf(layer, DType::kFloat16);
      graph.sums = true;
      EXPECT_NO_THROW({
        const auto plans = FindPlans(target, graph, {}, 2);
        const auto again = FindPlanAgain(target, graph, {}, plans.back().id());
        EXPECT_TRUE(again.has_value());
      }) << gpu.name
         << ": " << ToString(graph);
    }
  }
}

// So are those of data gradients that go on through the ReLU before the convolution.
TEST_F(DescribedGpus, HaveEnginesThatGoBackThroughARelu) {
  const CudnnTarget target = Described(kH100);
  for (const Layer& layer : ResNet50(256)) {
    if (layer.channels == 3) continue;
    ConvolutionGraph graph = GraphOf(layer, DType::kFloat16);
    graph.pass = ConvolutionPass::kBackwardData;
    graph.masked = true;
    EXPECT_NO_THROW({
      const auto plans = FindPlans(target, graph, {}, 2);
      const auto again = FindPlanAgain(target, graph, {}, plans.back().id());
      EXPECT_TRUE(again.has_value());
    }) << ToString(graph);
  }
}

// Those of an A100 and of Blackwell need more memory than cuDNN's engines for single convolutions.
TEST_F(DescribedGpus, HaveMoreOfThemWithTheWorkspaceOfTheirMemory) {
  const auto layers_with_plans = [](const CudnnTarget& target, std::size_t workspace_limit) {
    int layers = 0;
    for (const Layer& layer : ResNet50(256)) {
      ConvolutionGraph graph = GraphOf(layer, DType::kFloat16);
      graph.pass = ConvolutionPass::kBackwardData;
      graph.masked = true;
      try {
        FindPlans(target, graph, {.workspace_limit = workspace_limit}, 1);
        ++layers;
      } catch (const Error&) {  // none
      }
    }
    return layers;
  };
  for (const Gpu& gpu : {kA100, Gpu{"B200", 1000, 148, 232448, 1024, 126, 180}}) {
    const CudnnTarget target = Described(gpu);
    const std::size_t limit =
        WorkspaceLimitOf(static_cast<std::size_t>(gpu.memory_gibibytes) << 30);
    const int few = layers_with_plans(target, kMinWorkspaceLimit);
    const int more = layers_with_plans(target, limit);
    EXPECT_LT(few, more) << gpu.name;
  }
}

TEST(WorkspaceLimit, IsAShareOfTheMemory) {
  constexpr std::size_t kMebibyte = std::size_t{1} << 20;
  EXPECT_EQ(WorkspaceLimitOf(0), 256 * kMebibyte);
  EXPECT_EQ(WorkspaceLimitOf(16'384 * kMebibyte), 256 * kMebibyte);
  EXPECT_EQ(WorkspaceLimitOf(40'960 * kMebibyte), 640 * kMebibyte);
}

std::vector<Case> AllCases() {
  std::vector<Case> cases;
  for (const Gpu& gpu : {kV100, kA100, kH100}) {
    for (const bool deterministic : {false, true}) {
      const std::string suffix = std::string(deterministic ? "_deterministic_" : "_") + gpu.name;
      const EngineRules rules{.deterministic = deterministic};
      const EngineRules with_tf32{.tf32 = true, .deterministic = deterministic};
      cases.push_back({gpu, DType::kFloat32, rules, "fp32" + suffix});
      cases.push_back({gpu, DType::kFloat16, rules, "fp16" + suffix});
      if (gpu.version < 800) continue;
      cases.push_back({gpu, DType::kFloat32, with_tf32, "tf32" + suffix});
      cases.push_back({gpu, DType::kBFloat16, rules, "bf16" + suffix});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Gpus, Engines, testing::ValuesIn(AllCases()),
                         [](const auto& test) { return test.param.name; });

constexpr ConvolutionGraph kLayer{.images = 256,
                                  .channels = 64,
                                  .height = 56,
                                  .width = 56,
                                  .filters = 64,
                                  .kernel = 3,
                                  .stride = 1,
                                  .padding = 1};

using RulesOfEngines = DescribedGpus;

std::vector<std::int64_t> EngineNumbers(const ConvolutionGraph& graph, const EngineRules& rules) {
  std::vector<std::int64_t> numbers;
  for (const CudnnExecutionPlan& plan : FindPlans(Described(kH100), graph, rules, 100)) {
    numbers.push_back(plan.id().engine);
  }
  return numbers;
}

TEST_F(RulesOfEngines, TensorCoresComputeFp32OnlyWhenAllowed) {
  const auto exact = EngineNumbers(kLayer, {});
  const auto tf32 = EngineNumbers(kLayer, {.tf32 = true});
  EXPECT_GT(tf32.size(), exact.size());
  // The first choice with tensor cores is one that is not there without.
  EXPECT_EQ(std::count(exact.begin(), exact.end(), tf32.at(0)), 0);
}

TEST_F(RulesOfEngines, DeterministicLeavesEnginesOut) {
  ConvolutionGraph graph = kLayer;
  graph.pass =
      ConvolutionPass::kBackwardFilter;  // sums over all images, some with atomic additions
  const auto all = EngineNumbers(graph, {});
  const auto deterministic = EngineNumbers(graph, {.deterministic = true});
  EXPECT_FALSE(deterministic.empty());
  EXPECT_LT(deterministic.size(), all.size());
}

TEST_F(RulesOfEngines, FirstPlansAreOfSeveralEngines) {
  ConvolutionGraph graph = kLayer;
  graph.dtype = DType::kFloat16;
  graph.pass = ConvolutionPass::kBackwardData;
  std::map<std::int64_t, int> plans_of;
  for (const CudnnExecutionPlan& plan : FindPlans(Described(kH100), graph, {}, 8)) {
    ++plans_of[plan.id().engine];
  }
  EXPECT_GE(plans_of.size(), 3U);
}

TEST_F(RulesOfEngines, AtMostAsManyPlansAsAskedFor) {
  EXPECT_EQ(FindPlans(Described(kH100), kLayer, {.tf32 = true}, 3).size(), 3U);
}

// For a back end that comes later, also in another process, which asks anew.
TEST_F(RulesOfEngines, EachPlanIsFoundAgainByItsId) {
  ConvolutionGraph graph = kLayer;
  graph.dtype = DType::kFloat16;
  for (const EngineRules& rules : {EngineRules{}, EngineRules{.workspace_limit = 0}}) {
    const auto plans = FindPlans(Described(kH100), graph, rules, 24);
    EXPECT_GT(plans.size(), 1U);
    for (const CudnnExecutionPlan& plan : plans) {
      const auto id = EngineConfigIdOf(PlanOf(plan.id()));
      ASSERT_TRUE(id);
      const auto again = FindPlanAgain(Described(kH100), graph, rules, *id);
      ASSERT_TRUE(again);
      EXPECT_EQ(again->id(), plan.id());
      EXPECT_EQ(again->workspace_bytes(), plan.workspace_bytes());
    }
  }
}

TEST_F(RulesOfEngines, AnotherPlanIsNotTakenForIt) {
  const EngineConfigId id = FindPlans(Described(kH100), kLayer, {}, 1).at(0).id();
  EngineConfigId of_another_engine = id;
  of_another_engine.engine += 100000;
  EXPECT_FALSE(FindPlanAgain(Described(kH100), kLayer, {}, of_another_engine));
  EngineConfigId behind_the_last = id;
  behind_the_last.number += 100000;
  EXPECT_FALSE(FindPlanAgain(Described(kH100), kLayer, {}, behind_the_last));
}

TEST_F(RulesOfEngines, WorkspaceLimitKept) {
  const EngineRules rules{.tf32 = true, .workspace_limit = 0};
  for (const CudnnExecutionPlan& plan : FindPlans(Described(kH100), kLayer, rules, 100)) {
    EXPECT_EQ(plan.workspace_bytes(), 0U);
  }
}

TEST_F(RulesOfEngines, NoEngineIsAnErrorThatNamesTheConvolution) {
  ConvolutionGraph graph = kLayer;
  graph.dtype = DType::kBFloat16;
  const Gpu turing{"T4", 750, 40, 65536};  // has no bf16
  EXPECT_THAT(
      tests::Rejection<Error>(EX_UNAVAILABLE, [&] { FindPlans(Described(turing), graph, {}, 1); }),
      HasSubstr("forward of a convolution 256x64x56x56 to 64 channels, kernel 3, stride 1, "
                "padding 1, BF16"));
}

}  // namespace
}  // namespace trainer
