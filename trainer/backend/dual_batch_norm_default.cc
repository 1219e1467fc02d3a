// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstddef>

#include "trainer/backend/block_defaults.h"
#include "trainer/core/memory_planner.h"

namespace trainer {
namespace {

// The second one's result is the first one's residual.
class DefaultDualBatchNorm final : public DualBatchNorm {
 public:
  DefaultDualBatchNorm(Backend& backend, const DualBatchNormSpec& spec)
      : first_(backend.MakeBatchNorm(
            {spec.src, /*add=*/true, /*relu=*/true, spec.epsilon, spec.kept})),
        second_(backend.MakeBatchNorm(
            {spec.src, /*add=*/false, /*relu=*/false, spec.epsilon, spec.kept})),
        saved_of_first_(RoundUp(first_->saved_bytes())) {}

  const TensorDesc& dst() const override { return first_->dst(); }
  std::size_t saved_bytes() const override { return saved_of_first_ + second_->saved_bytes(); }
  std::size_t workspace_bytes() const override {
    return std::max(first_->workspace_bytes(), second_->workspace_bytes());
  }

  void Forward(Mode mode, const Operand& first, const Operand& second, const Tensor& dst,
               void* saved, void* workspace, Stream& stream) override {
    void* saved_of_second =
        saved == nullptr ? nullptr : static_cast<std::byte*>(saved) + saved_of_first_;
    second_->Forward(mode, second.src, {}, second.parameters, dst, saved_of_second, workspace,
                     stream);
    first_->Forward(mode, first.src, dst, first.parameters, dst, saved, workspace, stream);
  }

  void Backward(Mode mode, const Operand& first, const Operand& second, const Tensor& dst,
                const Tensor& diff_dst, const void* saved, const Gradients& diff_first,
                const Gradients& diff_second, void* workspace, Stream& stream) override {
    first_->Backward(mode, first.src.values, dst, diff_dst, first.parameters, saved, diff_first.src,
                     /*diff_residual=*/diff_dst, diff_first.scale, diff_first.shift, workspace,
                     stream);
    second_->Backward(mode, second.src.values, {}, diff_dst, second.parameters,
                      static_cast<const std::byte*>(saved) + saved_of_first_, diff_second.src, {},
                      diff_second.scale, diff_second.shift, workspace, stream);
  }

 private:
  static std::size_t RoundUp(std::size_t bytes) {
    constexpr std::size_t kAlignment = MemoryPlanner::kAlignment;
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  const std::unique_ptr<BatchNorm> first_;
  const std::unique_ptr<BatchNorm> second_;
  const std::size_t saved_of_first_;
};

}  // namespace

std::unique_ptr<DualBatchNorm> MakeDefaultDualBatchNorm(Backend& backend,
                                                        const DualBatchNormSpec& spec) {
  return std::make_unique<DefaultDualBatchNorm>(backend, spec);
}

}  // namespace trainer
