// SPDX-License-Identifier: Apache-2.0
//
// A device that now and then computes a wrong gradient of the last layer, as one does whose
// arithmetic or memory fails, and says nothing of it.

#pragma once

#include <bit>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "tests/trainer/train/deferred_backend.h"

namespace trainer {

struct WrongResults {
  std::set<int> calls = {};  // of the last layer's backward, from 0: one value of these is wrong
  bool is_host = true;       // the memory of the device is that of the host
  double repeat_error = 0;   // what the back end promises
};

class WrongBackend final : public PromptBackend {
 public:
  WrongBackend(const std::string& host, WrongResults wrong)
      : PromptBackend(host), wrong_(std::move(wrong)) {}

  bool is_host() const override { return wrong_.is_host; }
  double repeat_error() const override { return wrong_.repeat_error; }
  std::unique_ptr<Linear> MakeLinear(const LinearSpec& spec) override {
    return std::make_unique<WrongLinear>(PromptBackend::MakeLinear(spec), [this](float* gradient) {
      if (!wrong_.calls.contains(calls_++)) return;
      gradient[1] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(gradient[1]) ^ 1U << 20);
    });
  }
  int calls() const { return calls_; }

 private:
  using Fault = std::function<void(float*)>;

  class WrongLinear final : public Linear {
   public:
    WrongLinear(std::unique_ptr<Linear> op, Fault fault)
        : op_(std::move(op)), fault_(std::move(fault)) {}

    const TensorDesc& weight() const override { return op_->weight(); }
    const TensorDesc& dst() const override { return op_->dst(); }
    std::size_t workspace_bytes() const override { return op_->workspace_bytes(); }
    void Forward(const Tensor& src, const Tensor& weight, const Tensor& bias, const Tensor& dst,
                 void* workspace, Stream& stream) override {
      op_->Forward(src, weight, bias, dst, workspace, stream);
    }
    void Backward(const Tensor& src, const Tensor& weight, const Tensor& diff_dst,
                  const Tensor& diff_src, const Tensor& diff_weight, const Tensor& diff_bias,
                  void* workspace, Stream& stream) override {
      op_->Backward(src, weight, diff_dst, diff_src, diff_weight, diff_bias, workspace, stream);
      fault_(static_cast<float*>(diff_weight.data));
    }

   private:
    const std::unique_ptr<Linear> op_;
    const Fault fault_;
  };

  const WrongResults wrong_;
  int calls_ = 0;
};

}  // namespace trainer
