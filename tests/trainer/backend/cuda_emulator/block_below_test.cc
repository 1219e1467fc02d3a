// SPDX-License-Identifier: Apache-2.0
//
// Bottlenecks of the cuda back end that know which one is below them: what they give is what blocks
// give that do not, a step has fewer kernels, and a profile sees it.

#include <cuda_runtime.h>

#include <algorithm>

#include "tests/support/test.h"
#include "tests/trainer/backend/block_memory.h"
#include "tests/trainer/backend/probe.h"
#include "trainer/backend/cuda/bottleneck/bottleneck.h"
#include "trainer/backend/cuda/norms/dual_batch_norm_kernels.h"
#include "trainer/backend/cuda/runtime/layout.h"
#include "trainer/backend/cuda/runtime/runtime.h"
#include "trainer/backend/measured_backend.h"
#include "trainer/backend/op_work.h"
#include "trainer/core/memory_planner.h"
#include "trainer/model/network.h"

namespace trainer {
namespace {

Values RunChain(const std::string& backend, Mode mode, const Shape& src,
                const std::vector<BottleneckPlan>& plans, const JoinBlocks& join) {
  Device device(backend);
  const auto probe = MakeBottleneckProbe(device, mode, src, plans, join);
  Values values = probe->Forward(MakeInputs(*probe, 1));
  const auto count = static_cast<std::int64_t>(values.at("dst").size());
  for (auto& [name, gradient] : probe->Backward(RandomFloats(count, 99))) {
    values["gradient of " + name] = std::move(gradient);
  }
  return values;
}

// None knows which one is below it.
void KeepApart(Bottleneck& /*above*/, BlockEnd* /*below*/) {}

struct Chain {
  Shape src;
  std::vector<BottleneckPlan> plans;
};

// Products and sums are added in another order, and backward the shortcut's gradient is added
// behind the product instead of before it: what is rounded to 16 bits differs in its last bit here
// and there, and what is made of that.
TEST(BlockBelow, GivesWhatBlocksApartGive) {
  const Chain chains[] = {
      {{2, 32, 6, 5}, {{8, 32, 1}, {8, 32, 1}}},              // the residual twice
      {{2, 32, 6, 5}, {{8, 32, 1}, {8, 32, 1}, {8, 32, 1}}},  // and not copied in between
      {{1, 12, 5, 5}, {{5, 20, 1}, {5, 20, 1}, {6, 24, 2}}},  // a pair below, a pair above; padding
      {{3, 16, 7, 7}, {{16, 64, 2}, {16, 64, 2}}},            // pairs only
      {{1, 64, 3, 5}, {{64, 256, 1}, {64, 256, 1}}},          // with conv3's kernel, a pair below
      {{1, 256, 3, 5}, {{64, 256, 1}, {64, 256, 1}}},         // the same without a pair
      {{1, 256, 3, 5}, {{64, 256, 1}, {64, 256, 1}, {128, 512, 2}}},  // read by conv1 from diff_dst
      {{1, 96, 3, 3}, {{24, 96, 1}, {200, 96, 1}}},                   // products in shares
      {{1, 96, 3, 3}, {{24, 96, 1}, {520, 96, 1}}},                  // for which there is no kernel
      {{1, 512, 3, 5}, {{8, 512, 1}, {128, 512, 1}, {8, 512, 1}}},   // with conv3's data gradient
      {{1, 40, 3, 5}, {{16, 40, 1}, {130, 40, 1}, {16, 40, 1}}},     // with a filter in chunks
      {{1, 600, 3, 3}, {{8, 600, 1}, {136, 600, 1}, {16, 600, 2}}},  // the same, backward too
      {{1, 64, 3, 5}, {{8, 520, 1}, {136, 520, 1}, {264, 64, 2}}},   // and conv1 above that
      {{1, 64, 3, 5}, {{8, 264, 1}, {264, 264, 1}, {272, 64, 1}}},   // conv1's on a pair
      {{1, 256, 3, 3}, {{8, 512, 1}, {120, 512, 1}, {8, 512, 2}}},   // with much shared memory
  };
  for (const std::string backend : {"cuda_fp16", "cuda_bf16"}) {
    // The most of all so far is half of it: of 15 pixels a last bit changes a batch norm's
    // gradient.
    const double allowed = backend == "cuda_fp16" ? 0.008 : 0.03;
    for (const Chain& chain : chains) {
      for (const Mode mode : {Mode::kTraining, Mode::kFrozen, Mode::kInference}) {
        // What a mode changes is the same in both types.
        if (backend == "cuda_bf16" && mode != Mode::kTraining) continue;
        const Values together = RunChain(backend, mode, chain.src, chain.plans, SetBelow);
        const Values apart = RunChain(backend, mode, chain.src, chain.plans, KeepApart);
        ASSERT_EQ(together.size(), apart.size());
        for (const auto& [name, values] : together) {
          const double error = RelativeError(values, apart.at(name));
          const bool is_forward = !name.starts_with("gradient");
          EXPECT_LE(error, is_forward ? allowed / 64 : allowed)
              << backend << " " << Dimensions(chain.src) << " " << chain.plans.back().mid << ", "
              << chain.plans.size() << " blocks, " << name;
        }
      }
    }
  }
}

// The same bits each time; where results must repeat, blocks know of none and have those of before.
TEST(BlockBelow, Repeats) {
  const std::vector<BottleneckPlan> plans = {{8, 32, 1}, {8, 32, 1}, {16, 64, 2}};
  const auto run = [&](const std::string& backend, const JoinBlocks& join) {
    return RunChain(backend, Mode::kTraining, {2, 16, 6, 6}, plans, join);
  };
  EXPECT_EQ(run("cuda_fp16", SetBelow), run("cuda_fp16", SetBelow));
  EXPECT_EQ(run("cuda_fp16_repeating", SetBelow), run("cuda_fp16_repeating", KeepApart));
  EXPECT_EQ(run("cuda", SetBelow), run("cuda", KeepApart));
}

TEST(BlockBelow, GivesTheSameBitsWithBn1InFrontOfConv1) {
  int fused = 0;
  const JoinBlocks join_without_bn1 = [&](Bottleneck& above, BlockEnd* below) {
    above.set_below(below);
    auto& block = dynamic_cast<CudaBottleneck&>(above);
    fused += block.bn1_variant() == Bn1Variant::kFused ? 1 : 0;
    block.set_bn1_variant(Bn1Variant::kSeparate);
  };
  for (const Chain& chain : {Chain{{2, 32, 6, 5}, {{8, 32, 1}, {8, 32, 1}}},
                             {{1, 12, 5, 5}, {{5, 20, 1}, {5, 20, 1}, {6, 24, 2}}},
                             {{1, 16, 5, 5}, {{16, 512, 1}, {120, 512, 1}}}}) {
    for (const Mode mode : {Mode::kTraining, Mode::kFrozen}) {
      EXPECT_EQ(RunChain("cuda_fp16", mode, chain.src, chain.plans, SetBelow),
                RunChain("cuda_fp16", mode, chain.src, chain.plans, join_without_bn1));
    }
  }
  EXPECT_EQ(fused, 8);
}

// Several tiles of pixels, above one batch norm, two, and with a compact gradient of the shortcut.
// But for the order of sums it is what the two kernels give.
TEST(BlockBelow, GivesWhatCudnnGivesWithTheFilterGradientOfConv1) {
  int fused = 0;
  const JoinBlocks join_without_filter = [&](Bottleneck& above, BlockEnd* below) {
    above.set_below(below);
    auto& block = dynamic_cast<CudaBottleneck&>(above);
    if (block.bn1_variant() != Bn1Variant::kFusedWithFilter) return;
    ++fused;
    block.set_bn1_variant(Bn1Variant::kFused);
  };
  for (const Chain& chain : {Chain{{2, 254, 5, 7}, {{64, 254, 1}, {64, 254, 1}, {128, 508, 2}}},
                             {{2, 64, 5, 7}, {{64, 256, 1}, {60, 256, 1}}}}) {
    for (const Mode mode : {Mode::kTraining, Mode::kFrozen}) {
      const Values with = RunChain("cuda_fp16", mode, chain.src, chain.plans, SetBelow);
      const Values without =
          RunChain("cuda_fp16", mode, chain.src, chain.plans, join_without_filter);
      const std::string top = std::to_string(chain.plans.size() - 1);
      for (const auto& [name, values] : with) {
        const bool is_filter = name == "gradient of " + top + ".conv1.weight";
        EXPECT_LE(RelativeError(values, without.at(name)), is_filter ? 0.001 : 0.008) << name;
      }
      for (const std::string parameter : {"bn1.weight", "bn1.bias", "conv2.weight"}) {
        const std::string name = "gradient of " + top + "." + parameter;
        EXPECT_EQ(with.at(name), without.at(name)) << name;
      }
    }
  }
  EXPECT_EQ(fused, 6);
}

// What a step has left of the filter's gradient is not added to.
TEST(BlockBelow, GivesTheFilterGradientOfThisStepAlone) {
  Device device("cuda_fp16");
  const auto probe = MakeBottleneckProbe(device, Mode::kTraining, {2, 256, 3, 5},
                                         {{64, 256, 1}, {64, 256, 1}}, SetBelow);
  const Values first = probe->Forward(MakeInputs(*probe, 1));
  const auto count = static_cast<std::int64_t>(first.at("dst").size());
  const auto once = probe->Backward(RandomFloats(count, 99));
  probe->Forward(MakeInputs(*probe, 1));
  const auto twice = probe->Backward(RandomFloats(count, 99));
  EXPECT_EQ(once.at("1.conv1.weight"), twice.at("1.conv1.weight"));
}

// What the lower one has left is there when the upper one runs, which has room for the passes of
// sums of both batch norms below.
TEST(BlockBelow, HasMemoryForTheEndThatItTakes) {
  const auto libraries = MakeCudaLibraries({.storage = DType::kFloat16}, false, nullptr, "");
  CudaBottleneck below(*libraries, {CudaImages({1, 16, 3, 5}, DType::kFloat16), 8, 32, 1});
  CudaBottleneck above(*libraries, {below.dst(), 8, 32, 1});
  above.set_below(below.end());
  MemoryPlanner plan;
  below.Reserve({.forward = 0, .backward = 3}, "below", plan);
  above.Reserve({.forward = 1, .backward = 2}, "above", plan);
  // The first one of that name: forward.
  const auto request = [&](const std::string& name) {
    return *std::ranges::find(plan.requests(), name, &MemoryPlanner::Request::name);
  };
  EXPECT_EQ(request("below.1.sums").last_use, 0);
  EXPECT_EQ(request("below.3.sums").last_use, 1);
  EXPECT_EQ(request("below.downsample.sums").last_use, 1);
  EXPECT_GE(request("above.scratch").bytes,
            FloatBytes(DualNormScratchFloats(NormShapeOf(below.dst()))));
  EXPECT_EQ(request("above.3.sums").last_use, 1);  // nothing is above it
}

// Several tiles of pixels.  What is in front of the product is the same to the bit.
TEST(BlockBelow, GivesWhatCudnnGivesWithBn3InFrontOfConv3) {
  int fused = 0;
  const JoinBlocks join_without_bn3 = [&](Bottleneck& above, BlockEnd* below) {
    above.set_below(below);
    fused += below->block->conv3_variant() == Conv3Variant::kFusedDataGradient ? 1 : 0;
    below->block->set_conv3_variant(Conv3Variant::kSeparate);
  };
  for (const std::string backend : {"cuda_fp16", "cuda_bf16"}) {
    for (const Mode mode : {Mode::kTraining, Mode::kFrozen}) {
      const std::vector<BottleneckPlan> plans(3, {120, 508, 1});
      const auto run = [&](const JoinBlocks& join) {
        return RunChain(backend, mode, {2, 508, 5, 7}, plans, join);
      };
      const Values with = run(SetBelow);
      const Values without = run(join_without_bn3);
      for (const auto& [name, values] : with) {
        EXPECT_LE(RelativeError(values, without.at(name)), backend == "cuda_fp16" ? 0.008 : 0.03)
            << backend << " " << name;
      }
      EXPECT_EQ(with.at("gradient of 2.conv3.weight"), without.at("gradient of 2.conv3.weight"));
      EXPECT_EQ(with.at("gradient of 1.bn3.weight"), without.at("gradient of 1.bn3.weight"));
      EXPECT_EQ(with.at("gradient of 1.conv3.weight"), without.at("gradient of 1.conv3.weight"));
    }
  }
  EXPECT_EQ(fused, 4);
}

TEST(BlockBelow, HasMemoryForTheSumsOfBn3InFrontOfConv3) {
  const auto libraries = MakeCudaLibraries({.storage = DType::kFloat16}, false, nullptr, "");
  CudaBottleneck bottom(*libraries, {CudaImages({2, 512, 5, 7}, DType::kFloat16), 8, 512, 1});
  CudaBottleneck block(*libraries, {bottom.dst(), 128, 512, 1});
  CudaBottleneck above(*libraries, {block.dst(), 8, 512, 1});
  block.set_below(bottom.end());
  above.set_below(block.end());
  MemoryPlanner plan;
  block.Reserve({.forward = 0, .backward = 1}, "", plan);
  const int blocks = Conv3DataGradientBlocks(*block.conv3_data_gradient());
  EXPECT_GT(blocks, 1);
  const auto sums =
      std::ranges::find(plan.requests(), ".3.gradient_sums", &MemoryPlanner::Request::name);
  EXPECT_EQ(sums->bytes, static_cast<std::size_t>(blocks) * 2 * 128 * sizeof(float));
}

// What the block above does not leave after all.
TEST(BlockBelow, DoesWithoutTheBlockAbove) {
  const std::vector<BottleneckPlan> plans(3, {8, 512, 1});
  int joined = 0;
  const JoinBlocks change_mind = [&](Bottleneck& above, BlockEnd* below) {
    above.set_below(below);
    if (++joined % 2 == 0) {
      EXPECT_EQ(below->block->conv3_variant(), Conv3Variant::kFusedDataGradient);
      above.set_below(nullptr);
    }
  };
  const JoinBlocks join_two = [&](Bottleneck& above, BlockEnd* below) {
    if (++joined % 2 == 1) above.set_below(below);
  };
  const auto run = [&](const JoinBlocks& join) {
    return RunChain("cuda_fp16", Mode::kTraining, {1, 512, 3, 5}, plans, join);
  };
  EXPECT_EQ(run(change_mind), run(join_two));
}

// d z1 of its own is there when what conv3 and conv2 took is free.
TEST(BlockBelow, TakesNoMoreMemoryWithBn1InFrontOfConv1) {
  const auto libraries = MakeCudaLibraries({.storage = DType::kFloat16}, false, nullptr, "");
  const auto take = [&](std::int64_t filters, const std::vector<Bn1Variant>& variants) {
    CudaBottleneck below(*libraries,
                         {CudaImages({1, 32, 40, 40}, DType::kFloat16), filters, 4 * filters, 1});
    CudaBottleneck above(*libraries, {below.dst(), filters, 4 * filters, 1});
    above.set_below(below.end());
    EXPECT_EQ(above.bn1_variant(), variants[0]);
    std::vector<std::size_t> totals;
    for (const Bn1Variant variant : variants) {
      above.set_bn1_variant(variant);
      MemoryPlanner plan;
      above.Reserve({.forward = 0, .backward = 1}, "above", plan);
      plan.Solve();
      totals.push_back(plan.total_bytes());
    }
    return totals;
  };
  const auto small = take(8, {Bn1Variant::kFused, Bn1Variant::kSeparate});
  EXPECT_EQ(small[0], small[1]);
  const auto wide =
      take(64, {Bn1Variant::kFusedWithFilter, Bn1Variant::kFused, Bn1Variant::kSeparate});
  EXPECT_EQ(wide[0], wide[1]);
  EXPECT_EQ(wide[0], wide[2]);
}

// Pieces of work in a forward and a backward pass of ResNet-50, a call of the libraries for one.
std::size_t WorkOfResNet50(Device& device, bool apart) {
  NetworkDefinition definition = DefineNetwork(
      device.backend(), {.arch = "resnet50", .batch_size = 1, .height = 32, .width = 32});
  for (const NetworkDefinition::Body& body : definition.bodies) {
    if (apart) body.block->set_below(nullptr);
  }
  Network network(device.backend(), std::move(definition));
  const auto* bytes = static_cast<const std::uint8_t*>(device.Scratch(3 * 32 * 32));
  InputBatch batch;
  batch.pixels = bytes;
  batch.mirror = bytes;
  batch.labels = static_cast<const std::int32_t*>(device.Scratch(4));
  batch.loss = static_cast<const LossParameters*>(device.Scratch(sizeof(LossParameters)));
  auto* sums = static_cast<LossSums*>(device.Scratch(sizeof(LossSums)));
  cudaStream_t stream = HandleOf(device.stream());
  EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  network.Forward(Mode::kTraining, batch, sums, device.stream());
  network.Backward(device.stream(), [](std::size_t /*complete_from*/) {});
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  std::size_t count = 0;
  EXPECT_EQ(cudaGraphGetNodes(graph, nullptr, &count), cudaSuccess);
  cudaGraphDestroy(graph);
  return count;
}

// One pass of sums for each of the 15 ends that are not the last; in six places bn1's pass,
// backward.  conv3's data gradient has another kernel for bn2's sums instead of bn3's pass.
TEST(BlockBelow, SavesAKernelOfEachBlock) {
  Device device("cuda_fp16");
  const std::size_t together = WorkOfResNet50(device, /*apart=*/false);
  const std::size_t apart = WorkOfResNet50(device, /*apart=*/true);
  RecordProperty("work", static_cast<int>(together));
  RecordProperty("work_apart", static_cast<int>(apart));
  EXPECT_EQ(apart - together, 21) << apart;
  EXPECT_LE(together, 280) << "a step has got more kernels";
}

// Forward as many pieces of work as before: sums come in parts, which one of them adds up.
TEST(BlockBelow, IsKnownInFifteenPlacesOfResNet50) {
  Device device("cuda_fp16");
  const NetworkDefinition definition = DefineNetwork(
      device.backend(), {.arch = "resnet50", .batch_size = 1, .height = 32, .width = 32});
  std::vector<std::string> forward, with_bn1, with_filter, with_bn3;
  std::size_t backward = 0;
  for (const NetworkDefinition::Body& body : definition.bodies) {
    const auto& block = dynamic_cast<const CudaBottleneck&>(*body.block);
    if (block.conv1_forward_variant() == Conv1Variant::kFused) forward.push_back(body.name);
    if (block.conv1_variant() == Conv1Variant::kFused) ++backward;
    if (block.bn1_variant() == Bn1Variant::kFused) with_bn1.push_back(body.name);
    if (block.bn1_variant() == Bn1Variant::kFusedWithFilter) with_filter.push_back(body.name);
    if (block.conv3_variant() == Conv3Variant::kFusedDataGradient) with_bn3.push_back(body.name);
  }
  EXPECT_EQ(forward, (std::vector<std::string>{"layer1.1", "layer1.2", "layer2.0", "layer2.1",
                                               "layer2.2", "layer2.3", "layer3.0", "layer3.1",
                                               "layer3.2", "layer3.3", "layer3.4", "layer3.5"}));
  EXPECT_EQ(with_bn1, (std::vector<std::string>{"layer2.1", "layer2.2", "layer2.3"}));
  EXPECT_EQ(with_filter, (std::vector<std::string>{"layer1.1", "layer1.2", "layer2.0"}));
  EXPECT_EQ(with_bn3, (std::vector<std::string>{"layer2.1", "layer2.2", "layer2.3", "layer3.1",
                                                "layer3.2", "layer3.3", "layer3.4", "layer3.5"}));
  EXPECT_EQ(backward, 15);
}

// What --profile shows of blocks, by layer, and its work.
std::map<std::string, OpWork> ProfileChain(const std::vector<BottleneckPlan>& plans,
                                           std::int64_t channels, Mode mode,
                                           const std::string& backend = "cuda_fp16") {
  Device device(backend);
  OpRecorder recorder([&] { return device.backend().MakeEvent(); });
  const auto measured = MakeMeasuredBackend(device.backend(), recorder);
  std::vector<Tensor> values = {
      device.Make(device.Images({1, channels, 3, 3}), RandomFloats(9 * channels, 1))};
  std::vector<std::unique_ptr<Bottleneck>> blocks;
  for (const BottleneckPlan& plan : plans) {
    blocks.push_back(
        measured->MakeBottleneck({values.back().desc, plan.mid, plan.out, plan.stride}));
    if (blocks.size() > 1) blocks.back()->set_below(blocks[blocks.size() - 2]->end());
    values.push_back(device.Make(blocks.back()->dst()));
  }
  std::vector<Block*> all;
  for (const auto& block : blocks) all.push_back(block.get());
  BlockMemory memory(device, all);
  memory.NameLayers(recorder);
  std::vector<Tensor> gradients;
  for (const Tensor& value : values) {
    gradients.push_back(device.Make(value.desc, RandomFloats(value.desc.shape.elements(), 2)));
  }
  recorder.Start();
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    blocks[i]->Forward(mode, values[i], values[i + 1], device.stream());
  }
  for (std::size_t i = blocks.size(); i-- > 0;) {
    blocks[i]->Backward(mode, values[i], values[i + 1], gradients[i + 1], gradients[i],
                        device.stream());
  }
  recorder.Collect();
  std::map<std::string, OpWork> work;
  for (const ProfiledOp& op : recorder.Ops()) work[op.layer + " " + op.op] = op.work;
  return work;
}

// `v` values and `t` bytes of what is between the blocks.
TEST(ProfileOfTwoBottlenecks, ShowsWhatIsBetweenThem) {
  const double v = 32 * 9;
  const double t = 2 * v;
  const double flop = 2 * 8 * v;                    // of the product
  const double bytes = 2 * 8 * 9 + 2 * 8 * 32 + t;  // its operands; what it adds to
  constexpr const char* kSingle =
      "1.conv1.weight batch norm and convolution backward data, with ReLU and statistics below";
  constexpr const char* kDual =
      "1.conv1.weight batch norm and convolution backward data, with ReLU and statistics of a pair "
      "below";
  const double values = 8 * 9;  // of what conv1 gives
  const auto identity = ProfileChain({{8, 32, 1}, {8, 32, 1}}, 32, Mode::kTraining);
  EXPECT_EQ(identity.at(kSingle),
            (OpWork{flop + 5 * v + 4 * values, bytes + t + t + 2 * 2 * values}));
  EXPECT_FALSE(identity.contains("1.bn1.weight batch norm backward"));
  EXPECT_EQ(identity.at("0.bn3.weight batch norm backward, but for its statistics"),
            (OpWork{4 * v, 3 * t}));
  EXPECT_EQ(identity.at("1.conv1.weight convolution forward, with batch norm, addition and ReLU "
                        "below"),
            (OpWork{flop + 7 * v, bytes - t + 3 * t}));
  EXPECT_FALSE(identity.contains("1.conv1.weight convolution forward"));
  EXPECT_FALSE(identity.contains("0.bn3.weight batch norm forward"));
  EXPECT_TRUE(identity.contains("1.bn3.weight batch norm forward"));  // nothing is above it
  EXPECT_FALSE(identity.contains("1.conv1.weight convolution backward data"));
  EXPECT_FALSE(identity.contains("0.bn3.weight batch norm backward"));
  EXPECT_TRUE(identity.contains("1.bn3.weight batch norm backward"));  // nothing is above it
  const auto frozen = ProfileChain({{8, 32, 1}, {8, 32, 1}}, 32, Mode::kFrozen);
  EXPECT_EQ(frozen.at("0.bn3.weight batch norm backward, but for its statistics"),
            (OpWork{v, 3 * t}));
  EXPECT_EQ(frozen.at(kSingle), (OpWork{flop + 5 * v + values, bytes + t + t + 2 * 2 * values}));
  EXPECT_EQ(
      frozen.at("1.conv1.weight convolution forward, with batch norm, addition and ReLU below"),
      (OpWork{flop + 4 * v, bytes - t + 3 * t}));
  const auto dual = ProfileChain({{8, 32, 1}, {8, 32, 1}}, 16, Mode::kTraining);
  EXPECT_EQ(dual.at("1.conv1.weight convolution forward, with batch norm pair and ReLU below"),
            (OpWork{flop + 12 * v, bytes - t + 3 * t}));
  EXPECT_FALSE(dual.contains("0.bn3.weight batch norm pair forward"));
  EXPECT_EQ(dual.at(kDual),
            (OpWork{flop + 9 * v + 4 * values, bytes + t + 2 * t + 2 * 2 * values}));
  EXPECT_EQ(dual.at("0.bn3.weight batch norm pair backward, but for its statistics"),
            (OpWork{8 * v, 5 * t}));
}

// Of 3 x 3 pixels 2 x 2 are read.
TEST(ProfileOfTwoBottlenecks, ShowsTheCompactGradientOfAShortcut) {
  const double v = 32 * 9;
  const double t = 2 * v;
  const double read = 2 * 32 * 4;
  const auto work = ProfileChain({{8, 32, 1}, {8, 64, 2}}, 32, Mode::kTraining);
  const double values = 8 * 9;
  EXPECT_EQ(work.at("1.conv1.weight batch norm and convolution backward data, with ReLU and "
                    "statistics below"),
            (OpWork{2 * 8 * v + 5 * v + 4 * values,
                    2 * 8 * 9 + 2 * 8 * 32 + 2 * t + read + 2 * 2 * values}));
  EXPECT_EQ(work.at("1.downsample.0.weight convolution backward data, of pixels that were read"),
            (OpWork{2 * 4 * 32 * 64, 2 * 64 * 4 + 2 * 64 * 32 + read}));
  EXPECT_FALSE(work.contains("1.downsample.0.weight convolution backward data"));
  const auto dual = ProfileChain({{8, 32, 1}, {8, 64, 2}}, 16, Mode::kTraining);
  EXPECT_TRUE(dual.contains("1.downsample.0.weight convolution backward data"));
}

// Where bn1 does not go in front of it: here without sums by conv2, as the emulator has none in
// bf16.
TEST(ProfileOfTwoBottlenecks, ShowsBn1OnItsOwn) {
  const auto work = ProfileChain({{8, 32, 1}, {8, 32, 1}}, 16, Mode::kTraining, "cuda_bf16");
  const double v = 32 * 9;
  EXPECT_EQ(work.at("1.conv1.weight convolution backward data, with ReLU and statistics of a pair "
                    "below"),
            (OpWork{2 * 8 * v + 9 * v, 2 * 8 * 9 + 2 * 8 * 32 + 4 * 2 * v}));
  EXPECT_TRUE(work.contains("1.bn1.weight batch norm backward"));
  const auto stride_2 = ProfileChain({{8, 32, 1}, {8, 64, 2}}, 32, Mode::kTraining, "cuda_bf16");
  EXPECT_EQ(stride_2.at("1.conv1.weight convolution backward data, with ReLU and statistics below"),
            (OpWork{2 * 8 * v + 5 * v, 2 * 8 * 9 + 2 * 8 * 32 + 2 * 2 * v + 2 * 32 * 4}));
}

TEST(ProfileOfTwoBottlenecks, ShowsConv1WithItsFilter) {
  const double v = 256 * 9;
  const double t = 2 * v;
  const double values = 64 * 9;  // of what conv1 gives
  // Of both products; of their operands and results, but for the gradient in between.
  const double flop = 2 * 2 * 64 * v;
  const double bytes = 2 * 2 * values + 2 * 2 * 64 * 256 + 2 * t;
  const std::string name = "1.conv1.weight convolution backward, with batch norm, and ReLU and ";
  const auto identity = ProfileChain({{64, 256, 1}, {64, 256, 1}}, 256, Mode::kTraining);
  EXPECT_EQ(identity.at(name + "statistics below"),
            (OpWork{flop + 5 * v + 4 * values, bytes + 2 * t}));
  EXPECT_FALSE(identity.contains("1.conv1.weight convolution backward filter"));
  EXPECT_FALSE(identity.contains("1.bn1.weight batch norm backward"));
  const auto frozen = ProfileChain({{64, 256, 1}, {64, 256, 1}}, 256, Mode::kFrozen);
  EXPECT_EQ(frozen.at(name + "statistics below"), (OpWork{flop + 5 * v + values, bytes + 2 * t}));
  const auto dual = ProfileChain({{64, 256, 1}, {64, 256, 1}}, 64, Mode::kTraining);
  EXPECT_EQ(dual.at(name + "statistics of a pair below"),
            (OpWork{flop + 9 * v + 4 * values, bytes + 3 * t}));
  // Of 3 x 3 pixels 2 x 2 are read.
  const auto stride_2 = ProfileChain({{64, 256, 1}, {128, 512, 2}}, 256, Mode::kTraining);
  EXPECT_EQ(stride_2.at(name + "statistics below"),
            (OpWork{2 * flop + 5 * v + 8 * values, 2 * bytes - 2 * t + t + 2 * 256 * 4}));
}

TEST(ProfileOfTwoBottlenecks, ShowsItInFrontOfTheKernelOfConv3) {
  const double t = 2 * 256 * 9;
  const auto identity = ProfileChain({{64, 256, 1}, {64, 256, 1}}, 256, Mode::kTraining);
  EXPECT_EQ(identity.at("0.bn3.weight batch norm backward coefficients"), OpWork());
  EXPECT_FALSE(identity.contains("0.bn3.weight batch norm backward statistics"));
  const auto dual = ProfileChain({{64, 256, 1}, {64, 256, 1}}, 64, Mode::kTraining);
  EXPECT_EQ(
      dual.at("0.bn3.weight batch norm pair backward, but for its statistics and one gradient"),
      (OpWork{4.0 * 256 * 9, 3 * t}));
}

TEST(ProfileOfTwoBottlenecks, ShowsTheDataGradientOfConv3) {
  const double v = 512 * 9;
  const double t = 2 * v;
  const double src = 8 * 9;  // values of what conv3 reads
  const auto profile = [](Mode mode) {
    return ProfileChain({{8, 512, 1}, {8, 512, 1}, {8, 512, 1}}, 512, mode);
  };
  constexpr const char* kFused = "1.conv3.weight convolution backward data, between batch norms";
  const double bytes = t + 2 * 8 * 512 + 2 * src;  // of the product alone
  const auto work = profile(Mode::kTraining);
  EXPECT_EQ(work.at(kFused), (OpWork{2 * 8 * v + 4 * v + 5 * src, bytes + 2 * t + 2 * src}));
  EXPECT_EQ(work.at("1.bn3.weight batch norm backward coefficients"), OpWork());
  EXPECT_EQ(work.at("1.bn2.weight batch norm backward, but for its statistics"),
            (OpWork{4 * src, 3 * 2 * src}));
  EXPECT_TRUE(work.contains("1.conv3.weight convolution backward filter"));
  EXPECT_FALSE(work.contains("1.conv3.weight convolution backward data"));
  EXPECT_EQ(profile(Mode::kFrozen).at(kFused),
            (OpWork{2 * 8 * v + v + 5 * src, bytes + 2 * t + 2 * src}));
  // Nothing is below it: diff_dst has to be copied; nothing is above it: it comes without sums.
  EXPECT_TRUE(work.contains("0.conv3.weight convolution backward data"));
  EXPECT_TRUE(work.contains("2.conv3.weight convolution backward data"));
}

}  // namespace
}  // namespace trainer
