// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/bottleneck/conv3_autotune.h"

#include <deque>
#include <string>
#include <vector>

#include "trainer/backend/cuda/runtime/copy_kernels.h"
#include "trainer/backend/cuda/runtime/runtime.h"
#include "trainer/core/memory_planner.h"

namespace trainer {
namespace {

// Both variants round what is between the two products of conv3, and their results.
double AllowedDifference(DType dtype) { return dtype == DType::kFloat16 ? 1.0 / 256 : 1.0 / 32; }

void Check(cudaError_t result) { CheckCuda(result, "autotuning a bottleneck"); }

// A step of one block in training, on noise.
class Trial {
 public:
  explicit Trial(CudaBottleneck& block)
      : block_(block),
        src_(Make(block.src())),
        dst_(Make(block.dst())),
        diff_dst_(Make(block.dst())) {
    results_.push_back(Make(block.src()));
    block_.set_conv3_variant(Conv3Variant::kFused);  // which takes more memory
    MemoryPlanner plan;
    block_.Reserve({.forward = 0, .backward = 1}, "", plan);
    plan.Solve();
    std::vector<ParameterBinding> bindings;
    for (const ParameterSpec& parameter : block.parameters()) {
      ParameterBinding& binding = bindings.emplace_back();
      binding.value = Make(parameter.desc);
      if (parameter.desc.dtype == DType::kFloat32) FillWithHalves(binding.value);
      if (parameter.statistic) continue;
      binding.gradient = Make(parameter.desc);
      results_.push_back(binding.gradient);
    }
    block_.Bind(plan, static_cast<std::byte*>(memory_.emplace_back(plan.total_bytes()).data()),
                std::move(bindings));
    BorrowedStream stream;
    block_.Forward(Mode::kTraining, src_, dst_, stream);
    stream.Synchronize();
  }

  void Backward(Conv3Variant variant, cudaStream_t stream) {
    block_.set_conv3_variant(variant);
    BorrowedStream borrowed(stream);
    block_.Backward(Mode::kTraining, src_, dst_, diff_dst_, results_.front(), borrowed);
  }

  // Whether both variants give the same gradients.
  bool Agree() {
    Backward(Conv3Variant::kSeparate, nullptr);
    std::vector<Tensor> expected;
    for (const Tensor& result : results_) {
      expected.push_back(Make(result.desc));
      Check(cudaMemcpyAsync(expected.back().data, result.data, result.desc.bytes,
                            cudaMemcpyDeviceToDevice, nullptr));
    }
    // A block may write over it.
    FillWithNoise(diff_dst_.data, static_cast<std::int64_t>(diff_dst_.desc.bytes / 4), nullptr);
    Backward(Conv3Variant::kFused, nullptr);
    for (std::size_t i = 0; i < results_.size(); ++i) {
      const TensorDesc& desc = expected[i].desc;
      const double difference =
          RelativeDifference(results_[i].data, expected[i].data, desc.dtype,
                             static_cast<std::int64_t>(desc.bytes / SizeOf(desc.dtype)));
      if (!(difference <= AllowedDifference(block_.src().dtype))) return false;
    }
    return true;
  }

 private:
  Tensor Make(const TensorDesc& desc) { return {desc, memory_.emplace_back(desc.bytes).data()}; }

  // Noise in fp32 is nearly nothing.
  static void FillWithHalves(const Tensor& tensor) {
    const std::vector<float> halves(tensor.desc.bytes / sizeof(float), 0.5F);
    Check(cudaMemcpyAsync(tensor.data, halves.data(), tensor.desc.bytes, cudaMemcpyHostToDevice,
                          nullptr));
    Check(cudaStreamSynchronize(nullptr));
  }

  std::deque<ScratchMemory> memory_;
  CudaBottleneck& block_;
  const Tensor src_, dst_, diff_dst_;
  std::vector<Tensor> results_;  // the gradient of src, then those of the parameters
};

std::size_t Faster(CudaBottleneck& block) {
  constexpr Conv3Variant kVariants[] = {Conv3Variant::kFused, Conv3Variant::kSeparate};
  Trial trial(block);
  Conv3Variant faster = Conv3Variant::kSeparate;
  if (trial.Agree()) {
    faster = kVariants[FastestOf(std::size(kVariants), [&](std::size_t i, cudaStream_t stream) {
      trial.Backward(kVariants[i], stream);
    })];
  }
  // The convolutions' library remembers its last stream, which must be one that is still there.
  trial.Backward(Conv3Variant::kSeparate, nullptr);
  Check(cudaStreamSynchronize(nullptr));
  return static_cast<std::size_t>(faster);
}

}  // namespace

Conv3Variant FasterConv3Variant(Autotuner& autotuner, CudaBottleneck& block) {
  static const std::string kPlans[] = {"kernel", "separate"};  // by Conv3Variant
  const TensorDesc& dst = block.dst();
  const Shape& images = dst.shape;
  // An earlier version knew it without the word at the end, and timed no pair.
  const std::string name = "backward of " + std::to_string(images[0] * images[2] * images[3]) +
                           " pixels from " + std::to_string(kConv3Filters) + " to " +
                           std::to_string(kConv3Channels) + " channels between batch norms, " +
                           std::string(NameOf(dst.dtype)) + (block.is_dual() ? ", dual" : "");
  return static_cast<Conv3Variant>(autotuner.Choose(name, kPlans, [&] { return Faster(block); }));
}

}  // namespace trainer
