// SPDX-License-Identifier: Apache-2.0
//
// The emulated libraries with a clock that chooses, and convolutions that are not what they should
// be: for tests of autotuning.

#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "tests/support/test.h"
#include "trainer/backend/cuda/libraries/cuda_libraries.h"
#include "trainer/backend/cuda/runtime/runtime.h"

namespace trainer {

// A convolution that is slow, or gives something wrong.
enum class Kind { kRight, kSlow, kWrongForward, kWrongFilter, kWrongData, kNotANumber };
class OddConvolution final : public CudaConvolution {
 public:
  OddConvolution(std::unique_ptr<CudaConvolution> right, Kind kind)
      : right_(std::move(right)), kind_(kind) {}

  const TensorDesc& filter() const override { return right_->filter(); }
  const TensorDesc& dst() const override { return right_->dst(); }
  std::size_t workspace_bytes() const override { return right_->workspace_bytes(); }
  std::size_t bn_stats_bytes() const override { return 0; }
  std::size_t drelu_sums_bytes() const override { return right_->drelu_sums_bytes(); }

  void Forward(const Tensor& src, const Tensor& filter, const Tensor& dst, void* workspace,
               Stream& stream) override {
    right_->Forward(src, filter, dst, workspace, stream);
    cuda_emulator::QueueWork(HandleOf(stream), [=, this] {
      if (kind_ == Kind::kWrongForward) dst.As<__half>()[0] = __float2half_rn(1000);
      if (kind_ != Kind::kRight) cuda_emulator::PassTime(std::chrono::hours(1));
    });
  }
  void ForwardWithBnStats(const Tensor&, const Tensor&, const Tensor&, float*, void*,
                          Stream&) override {
    FAIL() << "there are none";
  }
  void BackwardFilter(const Tensor& src, const Tensor& diff_dst, const Tensor& diff_filter,
                      void* workspace, Stream& stream) override {
    right_->BackwardFilter(src, diff_dst, diff_filter, workspace, stream);
    cuda_emulator::QueueWork(HandleOf(stream), [=, this] {
      auto* values = diff_filter.As<__half>();
      for (std::size_t i = 0; kind_ == Kind::kWrongFilter && i < diff_filter.desc.bytes / 2; ++i) {
        values[i] = __float2half_rn(1.02F * __half2float(values[i]));
      }
      if (kind_ != Kind::kRight) cuda_emulator::PassTime(std::chrono::hours(1));
    });
  }
  void BackwardData(const Tensor& diff_dst, const Tensor& filter, const Tensor& diff_src,
                    void* workspace, Stream& stream) override {
    right_->BackwardData(diff_dst, filter, diff_src, workspace, stream);
    Spoil(diff_src, stream);
  }
  void BackwardDataDreluBnStats(const Tensor& diff_dst, const Tensor& filter, const void* z,
                                const float* saved, const Tensor& diff_src, float* sums,
                                void* workspace, Stream& stream) override {
    right_->BackwardDataDreluBnStats(diff_dst, filter, z, saved, diff_src, sums, workspace, stream);
    Spoil(diff_src, stream);
  }

 private:
  void Spoil(const Tensor& diff_src, Stream& stream) const {
    cuda_emulator::QueueWork(HandleOf(stream), [=, this] {
      // More than one: a ReLU may be behind it.
      for (int i = 0; i < 16; ++i) {
        if (kind_ == Kind::kWrongData) diff_src.As<__half>()[i] = __float2half_rn(1000);
        if (kind_ == Kind::kNotANumber) diff_src.As<__half>()[i] = __half{0x7FFF};
      }
      if (kind_ != Kind::kRight) cuda_emulator::PassTime(std::chrono::hours(1));
    });
  }

  const std::unique_ptr<CudaConvolution> right_;
  const Kind kind_;
};

// Of which those convolutions are odd for which is_odd says so.
class OddLibraries final : public CudaLibraries {
 public:
  using IsOdd = bool (*)(const ConvolutionSpec& spec, const ConvolutionFusions& fusions);
  OddLibraries(DType dtype, IsOdd is_odd, Kind kind, const DevicePlanCache& plans)
      : right_(MakeCudaLibraries({.storage = dtype}, /*deterministic=*/false, nullptr, "")),
        is_odd_(is_odd),
        kind_(kind),
        autotuner_(plans) {}

  std::string versions() const override { return right_->versions(); }
  std::unique_ptr<CudaConvolution> MakeConvolution(const ConvolutionSpec& spec,
                                                   const ConvolutionFusions& fusions) override {
    auto right = right_->MakeConvolution(spec, fusions);
    if (!is_odd_(spec, fusions)) return right;
    return std::make_unique<OddConvolution>(std::move(right), kind_);
  }
  std::unique_ptr<Linear> MakeLinear(const LinearSpec& spec) override {
    return right_->MakeLinear(spec);
  }
  bool deterministic() const override { return false; }
  Autotuner& autotuner() override { return autotuner_; }

 private:
  const std::unique_ptr<CudaLibraries> right_;
  const IsOdd is_odd_;
  const Kind kind_;
  PlanAutotuner autotuner_;
};

}  // namespace trainer
