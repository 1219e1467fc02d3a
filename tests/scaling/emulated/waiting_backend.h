// SPDX-License-Identifier: Apache-2.0
//
// A back end that computes nothing and takes as long as one that does: for tests of what many ranks
// do between them on a machine that could not compute for all.  Its blocks have ResNet's parameters
// in ResNet's order, so that gradients become complete as those of a real training do, and its
// backward pass leaves in the first element of each what the update finds again as a sum.
//
// Used from one thread.

#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "trainer/backend/host_backend.h"

namespace trainer {

struct WaitingOptions {
  double forward_seconds = 0;  // of a batch
  double backward_seconds = 0;
  // Gradients are complete as backward goes on; else all of them when it is over.
  bool completes_gradually = true;
  std::size_t divisor = 1;         // of the number of values in each tensor
  std::size_t filter_divisor = 1;  // once more, of filters: 2 for as many bytes as 16 bits have
  double spread = 0;               // of a step's time, standard deviation as a share of it
  // In the first element of each gradient, and what the sum of all ranks and batches has there.
  float share = 1;
  float sum = 1;
  unsigned seed = 1;
};

class WaitingBackend final : public HostBackend {
 public:
  explicit WaitingBackend(const WaitingOptions& options);

  // A step begins now, whose waits are `factor` times as long as those of the options.  What is
  // done between two waits makes none of them end later: a step takes as long as its waits together
  // do.
  void BeginStep(double factor);

  std::string name() const override { return "waiting"; }
  std::string description() const override { return name(); }
  std::string arithmetic() const override { return name(); }
  DType compute_type() const override { return DType::kFloat32; }

  void Import(const float* src, const Tensor& dst, Stream& stream) override;
  void Export(const Tensor& src, float* dst, Stream& stream) override;
  std::unique_ptr<InputTransform> MakeInputTransform(const Shape& images) override;
  std::unique_ptr<Convolution> MakeConvolution(const ConvolutionSpec& spec) override;
  std::unique_ptr<BatchNorm> MakeBatchNorm(const BatchNormSpec& spec) override;
  std::unique_ptr<MaxPool> MakeMaxPool(const MaxPoolSpec& spec) override;
  std::unique_ptr<GlobalAveragePool> MakeGlobalAveragePool(const TensorDesc& src) override;
  std::unique_ptr<Linear> MakeLinear(const LinearSpec& spec) override;
  std::unique_ptr<SoftmaxCrossEntropy> MakeSoftmaxCrossEntropy(
      const SoftmaxCrossEntropySpec& spec) override;

  std::unique_ptr<Stem> MakeStem(const StemSpec& spec) override;
  std::unique_ptr<Bottleneck> MakeBottleneck(const BottleneckSpec& spec) override;
  std::unique_ptr<Head> MakeHead(const HeadSpec& spec) override;
  // Both change no weight, and throw Error(EX_SOFTWARE) where a sum is not what it has to be.
  std::unique_ptr<Optimizer> MakeOptimizer(OptimizerKind kind,
                                           std::vector<ParameterSegment> segments) override;

  // For its blocks.
  const WaitingOptions& options() const { return options_; }
  void Wait(double seconds);
  // Backward of a block whose convolutions write so many values, of all_values().
  void WaitBackward(double values);
  void AddValues(double values) { all_values_ += values; }

 private:
  using Clock = std::chrono::steady_clock;

  const WaitingOptions options_;
  const std::unique_ptr<Backend> host_;
  double all_values_ = 0;
  double factor_ = 1;
  Clock::time_point due_ = Clock::now();
  std::mt19937 random_;
};

}  // namespace trainer
