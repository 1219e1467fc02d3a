// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/bottleneck/bottleneck_autotune.h"

#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/backend/cuda/runtime/copy_kernels.h"
#include "trainer/backend/cuda/runtime/runtime.h"
#include "trainer/core/memory_planner.h"

namespace trainer {
namespace {

// Both variants round what is between two products, and their results.
double AllowedDifference(DType dtype) { return dtype == DType::kFloat16 ? 1.0 / 256 : 1.0 / 32; }

void Check(cudaError_t result) { CheckCuda(result, "autotuning a bottleneck"); }

enum class Pass { kForward, kBackward };

// A step of some blocks in training, one on top of the other, the lowest first, on noise.
class Trial {
 public:
  // As they are now, which takes more memory than the other way.
  explicit Trial(std::vector<CudaBottleneck*> blocks)
      : blocks_(std::move(blocks)),
        below_(blocks_.front()->below()),
        below_forward_(blocks_.front()->below_forward()) {
    blocks_.front()->TakeEnd(nullptr);
    tensors_.push_back(Make(blocks_.front()->src()));
    gradients_.push_back(Make(blocks_.front()->src()));
    for (CudaBottleneck* block : blocks_) {
      tensors_.push_back(Make(block->dst()));
      gradients_.push_back(Make(block->dst()));
    }
    seed_of_last_ = seed_;
    results_.push_back(gradients_.front());
    results_.insert(results_.end(), tensors_.begin() + 1, tensors_.end());
    MakeFloor();
    MakeMemory();
    Step(nullptr);
  }
  ~Trial() {
    if (below_ != nullptr) blocks_.front()->GoThrough(below_);
    if (below_forward_ != nullptr) blocks_.front()->TakeEnd(below_forward_);
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  void Run(Pass pass, cudaStream_t stream) {
    BorrowedStream borrowed(stream);
    for (std::size_t i = 0; pass == Pass::kForward && i < blocks_.size(); ++i) {
      blocks_[i]->Forward(Mode::kTraining, tensors_[i], tensors_[i + 1], borrowed);
    }
    for (std::size_t i = blocks_.size(); pass == Pass::kBackward && i-- > 0;) {
      blocks_[i]->Backward(Mode::kTraining, tensors_[i], tensors_[i + 1], gradients_[i + 1],
                           gradients_[i], borrowed);
    }
  }

  void Step(cudaStream_t stream) {
    Run(Pass::kForward, stream);
    Run(Pass::kBackward, stream);
  }

  // Whether both ways give the same: what blocks give, statistics, gradients of parameters and of
  // what the lowest block reads.
  bool Agree(const std::function<void(bool is_fused)>& set) {
    set(false);
    Restart();
    Step(nullptr);
    std::vector<Tensor> expected;
    for (const Tensor& result : results_) {
      expected.push_back(Make(result.desc));
      Check(cudaMemcpyAsync(expected.back().data, result.data, result.desc.bytes,
                            cudaMemcpyDeviceToDevice, nullptr));
    }
    set(true);
    Restart();
    Step(nullptr);
    for (std::size_t i = 0; i < results_.size(); ++i) {
      const TensorDesc& desc = expected[i].desc;
      const double difference =
          RelativeDifference(results_[i].data, expected[i].data, desc.dtype,
                             static_cast<std::int64_t>(desc.bytes / SizeOf(desc.dtype)));
      if (!(difference <= AllowedDifference(blocks_.front()->src().dtype))) return false;
    }
    return true;
  }

 private:
  // What a step moves or may write over is as it was.
  void Restart() {
    Fill(gradients_.back(), seed_of_last_);
    for (const Tensor& statistic : statistics_) FillWithHalves(statistic);
  }

  void* Memory(std::size_t bytes) { return memory_.emplace_back(bytes).data(); }
  Tensor Make(const TensorDesc& desc) {
    const Tensor tensor = {desc, Memory(desc.bytes)};
    Fill(tensor, ++seed_);
    return tensor;
  }
  // Noise around zero, of a size that stays what it is from block to block.
  static void Fill(const Tensor& tensor, std::int64_t seed) {
    const DType dtype = tensor.desc.dtype;
    FillWithUniformNoise(tensor.data, dtype,
                         static_cast<std::int64_t>(tensor.desc.bytes / SizeOf(dtype)), seed,
                         nullptr);
  }

  // Something for the lowest block to go through in place of a block that is not in the trial.
  void MakeFloor() {
    if (below_ == nullptr) return;
    CudaBottleneck& block = *blocks_.front();
    const NormShape shape = NormShapeOf(block.src());
    floor_ = *below_;
    floor_.mask =
        static_cast<const std::uint8_t*>(Memory(static_cast<std::size_t>(NormMaskBytes(shape))));
    const std::size_t sums = FloatBytes(below_->partial_blocks * NormSumsFloats(shape));
    for (Conv1Backward::Norm* norm : {&floor_.first, &floor_.second}) {
      *norm = {Memory(block.src().bytes),
               static_cast<const float*>(Memory(FloatBytes(NormSavedFloats(shape)))),
               static_cast<float*>(Memory(sums))};
    }
    block.GoThrough(&floor_);
  }

  void MakeMemory() {
    MemoryPlanner plan;
    // All at once: backward again and again, each finds what its forward pass has left.
    for (CudaBottleneck* block : blocks_) {
      block->Reserve({.forward = 0, .backward = 2}, "", plan);
    }
    plan.Solve();
    auto* const arena = static_cast<std::byte*>(Memory(plan.total_bytes()));
    for (CudaBottleneck* block : blocks_) {
      std::vector<ParameterBinding> bindings;
      for (const ParameterSpec& parameter : block->parameters()) {
        ParameterBinding& binding = bindings.emplace_back();
        binding.value = Make(parameter.desc);
        if (parameter.desc.dtype == DType::kFloat32) FillWithHalves(binding.value);
        if (parameter.statistic) {
          statistics_.push_back(binding.value);
          results_.push_back(binding.value);
          continue;
        }
        binding.gradient = Make(parameter.desc);
        results_.push_back(binding.gradient);
      }
      block->Bind(plan, arena, std::move(bindings));
    }
  }

  // Scales and variances.
  static void FillWithHalves(const Tensor& tensor) {
    const std::vector<float> halves(tensor.desc.bytes / sizeof(float), 0.5F);
    Check(cudaMemcpyAsync(tensor.data, halves.data(), tensor.desc.bytes, cudaMemcpyHostToDevice,
                          nullptr));
    Check(cudaStreamSynchronize(nullptr));
  }

  std::deque<ScratchMemory> memory_;
  std::int64_t seed_ = 0;
  std::int64_t seed_of_last_ = 0;
  const std::vector<CudaBottleneck*> blocks_;
  BlockEnd* const below_;
  BlockEnd* const below_forward_;
  BlockEnd floor_;
  std::vector<Tensor> tensors_, gradients_;  // in front of each block, and behind the last
  std::vector<Tensor> results_, statistics_;
};

// set(is_fused) lets the blocks run one way or the other.  By number, fused first.
std::size_t Faster(Pass pass, std::vector<CudaBottleneck*> blocks,
                   const std::function<void(bool is_fused)>& set) {
  set(true);  // which takes more memory
  Trial trial(std::move(blocks));
  std::size_t faster = 1;
  if (trial.Agree(set)) {
    faster = FastestOf(2, [&](std::size_t i, cudaStream_t stream) {
      set(i == 0);
      trial.Run(pass, stream);
    });
  }
  // The convolutions' library remembers its last stream, which must be one that is still there.
  set(false);
  trial.Step(nullptr);
  Check(cudaStreamSynchronize(nullptr));
  return faster;
}

// By either variant.
std::size_t Choose(Autotuner& autotuner, const std::string& name, Pass pass,
                   std::vector<CudaBottleneck*> blocks,
                   const std::function<void(bool is_fused)>& set) {
  static const std::string kPlans[] = {"kernel", "separate"};
  return autotuner.Choose(name, kPlans, [&] { return Faster(pass, std::move(blocks), set); });
}

std::string NameOfConv1Backward(const Conv1BackwardShape& shape) {
  return "data gradient of " + std::to_string(shape.pixels) + " pixels from " +
         std::to_string(shape.filters) + " to " + std::to_string(shape.channels) +
         " channels into the block below, " + std::string(NameOf(shape.dtype)) +
         (shape.is_dual ? ", dual" : "") + (shape.stride == 2 ? ", shortcut of stride 2" : "");
}

}  // namespace

Conv3Variant FasterConv3Variant(Autotuner& autotuner, CudaBottleneck& block) {
  const TensorDesc& dst = block.dst();
  const Shape& images = dst.shape;
  // An earlier version knew it without the word at the end, and timed no pair.
  const std::string name = "backward of " + std::to_string(images[0] * images[2] * images[3]) +
                           " pixels from " + std::to_string(kConv3Filters) + " to " +
                           std::to_string(kConv3Channels) + " channels between batch norms, " +
                           std::string(NameOf(dst.dtype)) + (block.is_dual() ? ", dual" : "");
  const auto set = [&](bool is_fused) {
    block.set_conv3_variant(is_fused ? Conv3Variant::kFused : Conv3Variant::kSeparate);
  };
  return static_cast<Conv3Variant>(Choose(autotuner, name, Pass::kBackward, {&block}, set));
}

Conv3Variant FasterConv3ForwardVariant(Autotuner& autotuner, CudaBottleneck& block) {
  const Conv1x1ForwardShape& shape = block.conv3_forward();
  const auto set = [&](bool is_fused) {
    block.set_conv3_forward_variant(is_fused ? Conv3Variant::kFused : Conv3Variant::kSeparate);
  };
  set(true);
  const std::string name = "convolution of " + std::to_string(shape.src.pixels) + " pixels from " +
                           std::to_string(shape.src.padded) + " to " +
                           std::to_string(shape.filters) + " channels with its batch norm, " +
                           std::string(NameOf(shape.src.dtype)) +
                           (block.needs_a2() ? ", written" : "");
  return static_cast<Conv3Variant>(Choose(autotuner, name, Pass::kForward, {&block}, set));
}

Conv3Variant FasterConv3DataGradient(Autotuner& autotuner, CudaBottleneck& block,
                                     CudaBottleneck& above) {
  const Conv3DataGradientShape& shape = *block.conv3_data_gradient();
  const std::string name = "data gradient of " + std::to_string(shape.pixels) + " pixels from " +
                           std::to_string(shape.filters) + " to " + std::to_string(shape.channels) +
                           " channels between batch norms, " + std::string(NameOf(shape.dtype));
  const auto set = [&](bool is_fused) {
    block.set_conv3_variant(is_fused ? Conv3Variant::kFusedDataGradient : Conv3Variant::kSeparate);
  };
  const bool is_fused = Choose(autotuner, name, Pass::kBackward, {&block, &above}, set) == 0;
  return is_fused ? Conv3Variant::kFusedDataGradient : Conv3Variant::kSeparate;
}

Conv1Variant FasterConv1BackwardVariant(Autotuner& autotuner, CudaBottleneck& above,
                                        BlockEnd& below) {
  const std::string name = NameOfConv1Backward(above.conv1_backward(below));
  const auto set = [&](bool is_fused) { above.GoThrough(is_fused ? &below : nullptr); };
  return static_cast<Conv1Variant>(
      Choose(autotuner, name, Pass::kBackward, {below.block, &above}, set));
}

Bn1Variant FasterBn1Variant(Autotuner& autotuner, CudaBottleneck& above) {
  const std::string name =
      "batch norm and " + NameOfConv1Backward(above.conv1_backward(*above.below()));
  const auto set = [&](bool is_fused) {
    above.set_bn1_variant(is_fused ? Bn1Variant::kFused : Bn1Variant::kSeparate);
  };
  return static_cast<Bn1Variant>(Choose(autotuner, name, Pass::kBackward, {&above}, set));
}

Bn1Variant FasterBn1VariantWithFilter(Autotuner& autotuner, CudaBottleneck& above) {
  const std::string name = "filter gradient, batch norm and " +
                           NameOfConv1Backward(above.conv1_backward(*above.below()));
  const Bn1Variant other = above.bn1_variant();
  const auto set = [&](bool is_fused) {
    above.set_bn1_variant(is_fused ? Bn1Variant::kFusedWithFilter : other);
  };
  // With the block below, whose mask says the same as what it gives.
  CudaBottleneck* const below = above.below()->block;
  const bool is_fused = Choose(autotuner, name, Pass::kBackward, {below, &above}, set) == 0;
  return is_fused ? Bn1Variant::kFusedWithFilter : other;
}

Conv1Variant FasterConv1ForwardVariant(Autotuner& autotuner, CudaBottleneck& above,
                                       BlockEnd& below) {
  const Conv1x1ForwardShape shape = above.conv1_forward(below);
  const std::string name = "convolution of " + std::to_string(shape.src.pixels) + " pixels from " +
                           std::to_string(shape.src.padded) + " to " +
                           std::to_string(shape.filters) +
                           " channels with the end of the block below, " +
                           std::string(NameOf(shape.src.dtype)) + (below.is_dual ? ", dual" : "");
  const auto set = [&](bool is_fused) { above.TakeEnd(is_fused ? &below : nullptr); };
  return static_cast<Conv1Variant>(
      Choose(autotuner, name, Pass::kForward, {below.block, &above}, set));
}

}  // namespace trainer
