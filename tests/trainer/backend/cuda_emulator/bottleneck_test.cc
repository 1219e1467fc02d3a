// SPDX-License-Identifier: Apache-2.0
//
// What is fused in a bottleneck of the cuda back end gives what its steps give one by one, as where
// results must repeat; a profile sees its steps; and the kernels for conv3 are taken only where
// they are faster, and only where they give what the steps give.

#include "trainer/backend/cuda/bottleneck/bottleneck.h"

#include <algorithm>

#include "tests/support/test.h"
#include "tests/trainer/backend/block_memory.h"
#include "tests/trainer/backend/cuda_emulator/odd_libraries.h"
#include "tests/trainer/backend/cuda_emulator/tensor_cores.h"
#include "tests/trainer/backend/probe.h"
#include "trainer/backend/cuda/runtime/layout.h"
#include "trainer/backend/measured_backend.h"
#include "trainer/backend/op_work.h"
#include "trainer/core/memory_planner.h"

namespace trainer {
namespace {

using ::testing::UnorderedElementsAre;

constexpr const char* kReduced[] = {"cuda_fp16", "cuda_bf16"};

// Bottlenecks of every shape with statistics of the batch, with frozen ones, and in evaluation.
std::vector<ProbeCase> Bottlenecks() {
  std::vector<ProbeCase> cases = BlockCases();
  std::erase_if(cases, [](const ProbeCase& probe_case) {
    return !probe_case.name.starts_with("bottleneck_");
  });
  return cases;
}

Values RunBoth(const std::string& backend, const ProbeCase& probe_case) {
  Device device(backend);
  const auto probe = probe_case.make(device);
  Values values = probe->Forward(MakeInputs(*probe, 1));
  if (probe_case.name.ends_with("_inference")) return values;
  const auto count = static_cast<std::int64_t>(values.at("dst").size());
  for (auto& [name, gradient] : probe->Backward(RandomFloats(count, 99))) {
    values["gradient of " + name] = std::move(gradient);
  }
  return values;
}

// With given statistics all rounds alike but for the order of sums.  Else the statistics that a
// convolution gives differ in their last bits, and with them what is rounded to the type.
TEST(FusedBottleneck, GivesWhatItsStepsGive) {
  for (const std::string backend : kReduced) {
    for (const ProbeCase& probe_case : Bottlenecks()) {
      const bool is_frozen =
          probe_case.name.ends_with("_frozen") || probe_case.name.ends_with("_inference");
      const double allowed = is_frozen ? 1e-5 : backend == "cuda_fp16" ? 0.01 : 0.04;
      const Values fused = RunBoth(backend, probe_case);
      const Values expected = RunBoth(backend + std::string(kRepeating), probe_case);
      ASSERT_EQ(fused.size(), expected.size());
      for (const auto& [name, values] : fused) {
        EXPECT_LE(RelativeError(values, expected.at(name)), allowed)
            << backend << " " << probe_case.name << ": " << name;
      }
    }
  }
}

// The ops of one forward and one backward pass by layer, and their work.
using Work = std::map<std::string, OpWork>;
Work Profile(const std::string& backend, const Shape& src, std::int64_t mid, std::int64_t out,
             Mode mode = Mode::kTraining) {
  Device device(backend);
  OpRecorder recorder([&] { return device.backend().MakeEvent(); });
  const auto measured = MakeMeasuredBackend(device.backend(), recorder);
  const TensorDesc desc = device.Images(src);
  const auto block = measured->MakeBottleneck({desc, mid, out, /*stride=*/1});
  BlockMemory memory(device, *block);
  memory.NameLayers(recorder);
  const auto tensor = [&](const TensorDesc& of) {
    return device.Make(of, RandomFloats(of.shape.elements(), 1));
  };
  const Tensor dst = device.Make(block->dst());
  recorder.Start();
  block->Forward(mode, tensor(desc), dst, device.stream());
  block->Backward(mode, tensor(desc), dst, tensor(block->dst()), device.Make(desc),
                  device.stream());
  recorder.Collect();
  Work work;
  for (const ProfiledOp& op : recorder.Ops()) {
    EXPECT_EQ(op.calls, 1) << op.layer << " " << op.op;
    work[op.layer + " " + op.op] = op.work;
  }
  return work;
}

std::vector<std::string> Names(const Work& work) {
  std::vector<std::string> names;
  for (const auto& [name, of] : work) names.push_back(name);
  return names;
}

std::vector<std::string> ConvolutionSteps(const std::vector<std::string>& layers) {
  std::vector<std::string> names;
  for (const std::string& layer : layers) {
    for (const char* pass : {"forward", "backward data", "backward filter"}) {
      names.push_back(layer + ".weight convolution " + pass);
    }
  }
  return names;
}

void Append(std::vector<std::string>& names, const std::vector<std::string>& more) {
  names.insert(names.end(), more.begin(), more.end());
}

TEST(ProfileOfABottleneck, ShowsItsSteps) {
  for (const auto& [backend, mid] :
       {std::pair("cuda", 8), {"cuda_fp16", 136}, {"cuda_fp16_repeating", 8}}) {
    std::vector<std::string> expected = ConvolutionSteps({"conv1", "conv2", "conv3"});
    Append(expected, {"bn1.weight batch norm forward", "bn1.weight batch norm backward",
                      "bn2.weight batch norm forward", "bn2.weight batch norm backward",
                      "bn3.weight batch norm forward", "bn3.weight batch norm backward"});
    EXPECT_THAT(Names(Profile(backend, {1, 16, 3, 3}, mid, 16)),
                testing::UnorderedElementsAreArray(expected));
  }
}

// What is between them is written where a step of backward reads it.
TEST(ProfileOfABottleneck, ShowsBatchNormInFrontOfConv3) {
  constexpr const char* kWritten =
      "conv3.weight convolution forward, with batch norm and ReLU in front";
  constexpr const char* kUnwritten =
      "conv3.weight convolution forward, with batch norm and ReLU in front, unwritten";
  const double v = 24 * 9;  // of what conv3 reads
  const double flop = 2 * v * 40;
  const double bytes = 2 * v + 2 * 24 * 40 + 2 * 40 * 9;
  const auto profile = [](std::int64_t mid, std::int64_t out, Mode mode) {
    return Profile("cuda_fp16", {1, out, 3, 3}, mid, out, mode);
  };
  const Work training = profile(24, 40, Mode::kTraining);
  EXPECT_EQ(training.at(kWritten), (OpWork{flop + 6 * v, bytes + 2 * v}));
  EXPECT_THAT(Names(training), Not(Contains("bn2.weight batch norm forward")));
  EXPECT_THAT(Names(training), Not(Contains("conv3.weight convolution forward")));
  const Work frozen = profile(24, 40, Mode::kFrozen);
  EXPECT_EQ(frozen.at(kWritten), (OpWork{flop + 3 * v, bytes + 2 * v}));
  const Work alone = profile(64, 256, Mode::kTraining);
  EXPECT_EQ(alone.at(kUnwritten),
            (OpWork{(2 * 256 + 6) * 64.0 * 9, 2 * 64.0 * 9 + 2 * 64 * 256 + 2 * 256.0 * 9}));
  EXPECT_THAT(Names(alone), Not(Contains("bn2.weight batch norm forward")));
}

// `v` values and `t` bytes of each of what conv3 gives.
TEST(ProfileOfABottleneck, ShowsBothBatchNormsOfASumAsOneStep) {
  const Work work = Profile("cuda_fp16", {1, 8, 3, 3}, 136, 16);
  std::vector<std::string> expected = ConvolutionSteps({"conv1", "conv2", "conv3", "downsample.0"});
  Append(expected, {"bn1.weight batch norm forward", "bn1.weight batch norm backward",
                    "bn2.weight batch norm forward", "bn2.weight batch norm backward",
                    "bn3.weight batch norm pair forward", "bn3.weight batch norm pair backward"});
  EXPECT_THAT(Names(work), testing::UnorderedElementsAreArray(expected));
  const double v = 16 * 9;
  const double t = 2 * v;
  EXPECT_EQ(work.at("bn3.weight batch norm pair forward"), (OpWork{12 * v, 3 * t}));
  EXPECT_EQ(work.at("bn3.weight batch norm pair backward"), (OpWork{17 * v, 6 * t}));
  const Work frozen = Profile("cuda_fp16", {1, 8, 3, 3}, 8, 16, Mode::kFrozen);
  EXPECT_EQ(frozen.at("bn3.weight batch norm pair forward"), (OpWork{6 * v, 3 * t}));
  EXPECT_EQ(frozen.at("bn3.weight batch norm pair backward"), (OpWork{11 * v, 6 * t}));
}

TEST(ProfileOfABottleneck, ShowsTheFusedBackwardPassOfConv3) {
  constexpr const char* kFused = "conv3.weight convolution backward, with batch norms";
  constexpr const char* kStats = "bn3.weight batch norm backward statistics";
  constexpr const char* kButFirst = "bn3.weight batch norm pair backward, but for one gradient";
  const double v = 256 * 9;
  const double t = 2 * v;
  const double flop = 2 * 64 * v;
  const double bytes = 2 * 64 * 9 + 2 * 64 * 256 + t;
  for (const std::string backend : kReduced) {
    const Work alone = Profile(backend, {1, 256, 3, 3}, 64, 256);
    EXPECT_EQ(alone.at(kFused), (OpWork{2 * flop + 5 * v + 6 * 64 * 9, 2 * bytes}));
    EXPECT_EQ(alone.at(kStats), (OpWork{5 * v, 2 * t}));
    EXPECT_THAT(Names(alone), Not(Contains("conv3.weight convolution backward data")));
    EXPECT_THAT(Names(alone), Not(Contains("bn3.weight batch norm backward")));
    const Work dual = Profile(backend, {1, 64, 3, 3}, 64, 256);
    EXPECT_EQ(dual.at(kButFirst), (OpWork{13 * v, 5 * t}));
    EXPECT_THAT(Names(dual), Contains(kFused));
  }
  // Sizes and types for which there is no kernel, and where it would round otherwise.
  for (const auto& [backend, src, mid, out] :
       {std::tuple("cuda_fp16", Shape{1, 128, 3, 3}, 64, 128),
        {"cuda_fp16", {1, 256, 3, 3}, 32, 256},
        {"cuda", {1, 256, 3, 3}, 64, 256},
        {"cuda_fp16_repeating", {1, 256, 3, 3}, 64, 256}}) {
    EXPECT_THAT(Names(Profile(backend, src, mid, out)), Not(Contains(kFused))) << backend;
  }
}

bool IsConv3(const ConvolutionSpec& spec, const ConvolutionFusions& fusions) {
  return fusions.drelu && spec.kernel == 1;
}

// What bn2 gives has memory unless neither forward nor backward writes or reads it, and so has the
// mask of a ReLU unless the data gradient comes through it, as cuDNN has that in fp16.
TEST(FusedBottleneck, HasMemoryForWhatIsRead) {
  struct Case {
    std::int64_t mid;
    DType dtype;
    bool is_deterministic;
    bool has_a2;
    bool has_mask1, has_mask2;
  };
  for (const Case& of : {Case{64, DType::kFloat16, false, false, false, false},
                         {64, DType::kBFloat16, false, false, true, false},
                         {64, DType::kFloat16, true, true, true, true},
                         {64, DType::kFloat32, false, true, true, true},
                         {72, DType::kFloat16, false, true, false, false},
                         {72, DType::kBFloat16, false, true, true, true},
                         {136, DType::kFloat16, false, true, false, false}}) {
    const auto libraries =
        MakeCudaLibraries({.storage = of.dtype}, of.is_deterministic, nullptr, "");
    CudaBottleneck block(*libraries, {CudaImages({1, 64, 3, 5}, of.dtype), of.mid, 256, 1});
    MemoryPlanner plan;
    block.Reserve({.forward = 0, .backward = 1}, "block", plan);
    const auto has = [&](const std::string& name) {
      return std::ranges::find(plan.requests(), name, &MemoryPlanner::Request::name)->bytes > 0;
    };
    EXPECT_EQ(block.needs_a2(), of.has_a2) << of.mid;
    EXPECT_EQ(has("block.a2"), of.has_a2) << of.mid;
    EXPECT_EQ(has("block.1.mask"), of.has_mask1) << of.mid;
    EXPECT_EQ(has("block.2.mask"), of.has_mask2) << of.mid;
    EXPECT_TRUE(has("block.3.mask")) << of.mid;
  }
}

class Conv3VariantTest : public testing::Test {
 protected:
  struct Variants {
    Conv3Variant forward, backward;
    bool operator==(const Variants&) const = default;
  };
  // `channels`: of src; the shortcut has a convolution unless they are 256.
  Variants Choose(Kind kind, std::int64_t channels = 256, DType dtype = DType::kFloat16,
                  std::int64_t mid = 64) {
    OddLibraries libraries(dtype, IsConv3, kind, plans_);
    const CudaBottleneck block(libraries, {CudaImages({1, channels, 3, 5}, dtype), mid, 256, 1});
    return {block.conv3_forward_variant(), block.conv3_variant()};
  }

  static constexpr Variants kFused = {Conv3Variant::kFused, Conv3Variant::kFused};
  static constexpr Variants kSeparate = {Conv3Variant::kSeparate, Conv3Variant::kSeparate};
  static constexpr const char* kForward =
      "convolution of 15 pixels from 64 to 256 channels with its batch norm, F16";
  static constexpr const char* kName =
      "backward of 15 pixels from 256 to 64 channels between batch norms, F16";
  DevicePlanCache plans_{std::make_shared<PlanCache>(), "a GPU"};
};

TEST_F(Conv3VariantTest, IsTheKernelWhereThatIsFaster) {
  EXPECT_EQ(Choose(Kind::kSlow), kFused);
  EXPECT_EQ(plans_.Find(kName), "kernel");
  EXPECT_EQ(plans_.Find(kForward), "kernel");
  EXPECT_EQ(Choose(Kind::kSlow, 64), kFused);
  EXPECT_EQ(plans_.Find(kName + std::string(", dual")), "kernel");
  EXPECT_EQ(Choose(Kind::kSlow, 256, DType::kBFloat16), kFused);
  EXPECT_EQ(Choose(Kind::kSlow, 256, DType::kFloat16, 32).forward, Conv3Variant::kFused);
  EXPECT_EQ(
      plans_.Find("convolution of 15 pixels from 32 to 256 channels with its batch norm, F16, "
                  "written"),
      "kernel");
}

TEST_F(Conv3VariantTest, AreTheStepsWhereTheKernelIsSlower) {
  cuda_emulator::PretendProductsTake(std::chrono::seconds(1));
  EXPECT_EQ(Choose(Kind::kRight), kSeparate);
  EXPECT_EQ(plans_.Find(kName), "separate");
  EXPECT_EQ(plans_.Find(kForward + std::string(", written")), "separate");
  plans_.Add(kName, "kernel");
  EXPECT_EQ(Choose(Kind::kRight), (Variants{Conv3Variant::kSeparate, Conv3Variant::kFused}));
  EXPECT_EQ(plans_.Find(kForward), "separate");
  cuda_emulator::PretendProductsTake({});
}

// However slow they are.
TEST_F(Conv3VariantTest, AreTheStepsWhereTheKernelGivesSomethingElse) {
  for (const std::int64_t channels : {64, 256}) {
    for (const Kind kind : {Kind::kWrongFilter, Kind::kWrongData, Kind::kNotANumber}) {
      plans_ = {std::make_shared<PlanCache>(), "a GPU"};
      EXPECT_EQ(Choose(kind, channels).backward, Conv3Variant::kSeparate);
    }
    plans_ = {std::make_shared<PlanCache>(), "a GPU"};
    plans_.Add(kName, "kernel");
    EXPECT_EQ(Choose(Kind::kWrongForward, channels).forward, Conv3Variant::kSeparate);
  }
}

// A plan of another version is none.
TEST_F(Conv3VariantTest, IsAsThePlansHaveIt) {
  plans_.Add(kName, "kernel");
  plans_.Add(kForward, "separate");
  EXPECT_EQ(Choose(Kind::kWrongFilter), (Variants{Conv3Variant::kSeparate, Conv3Variant::kFused}));
  plans_.Add(kForward, "kernel");
  EXPECT_EQ(Choose(Kind::kWrongForward), kFused);
  plans_.Add(kName, "separate");
  EXPECT_EQ(Choose(Kind::kSlow), (Variants{Conv3Variant::kFused, Conv3Variant::kSeparate}));
  plans_.Add(kName, "kernel 2");
  EXPECT_EQ(Choose(Kind::kSlow), kFused);
  EXPECT_EQ(plans_.Find(kName), "kernel");
}

}  // namespace
}  // namespace trainer
