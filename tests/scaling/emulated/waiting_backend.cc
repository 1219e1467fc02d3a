// SPDX-License-Identifier: Apache-2.0

#include "tests/scaling/emulated/waiting_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "trainer/backend/registry.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

// A description of images that nobody looks at.
TensorDesc Unseen(const Shape& shape) {
  TensorDesc desc = RowMajor(shape, DType::kFloat32);
  desc.bytes = sizeof(float);
  return desc;
}

double PixelsOf(const Shape& images) { return static_cast<double>(images[2] * images[3]); }

// What all blocks have in common: parameters, and the values that backward goes through.
class WaitingParts {
 public:
  explicit WaitingParts(WaitingBackend& backend) : backend_(backend) {}

  void AddFilter(const std::string& name, std::int64_t values) {
    const WaitingOptions& options = backend_.options();
    Add(name, static_cast<std::size_t>(values) / (options.divisor * options.filter_divisor), true);
  }
  void AddNorm(const std::string& name, std::int64_t channels) {
    for (const char* part : {".weight", ".bias"}) {
      Add(name + part, static_cast<std::size_t>(channels) / backend_.options().divisor, false);
    }
  }
  void AddValues(double values) {
    values_ += values;
    backend_.AddValues(values);
  }
  const std::vector<ParameterSpec>& parameters() const { return parameters_; }
  void Bind(std::vector<ParameterBinding> bindings) { bindings_ = std::move(bindings); }

  void Backward() {
    backend_.WaitBackward(values_);
    for (const ParameterBinding& binding : bindings_) {
      *binding.gradient.As<float>() = backend_.options().share;
    }
  }
  WaitingBackend& backend() { return backend_; }

 private:
  void Add(const std::string& name, std::size_t count, bool decay) {
    const Shape shape{static_cast<std::int64_t>(std::max<std::size_t>(count, 1))};
    parameters_.push_back(
        {.name = name, .shape = shape, .desc = RowMajor(shape, DType::kFloat32), .decay = decay});
  }

  WaitingBackend& backend_;
  std::vector<ParameterSpec> parameters_;
  std::vector<ParameterBinding> bindings_;
  double values_ = 0;
};

class WaitingStem final : public Stem {
 public:
  WaitingStem(WaitingBackend& backend, const StemSpec& spec)
      : parts_(backend),
        dst_(Unseen({spec.batch, spec.out_channels, spec.height / 4, spec.width / 4})) {
    parts_.AddFilter("conv1.weight", 3 * 7 * 7 * spec.out_channels);
    parts_.AddNorm("bn1", spec.out_channels);
    constexpr double kPixelsBeforePooling = 4;
    parts_.AddValues(kPixelsBeforePooling * PixelsOf(dst_.shape) *
                     static_cast<double>(spec.out_channels));
  }
  const std::vector<ParameterSpec>& parameters() const override { return parts_.parameters(); }
  void Reserve(const BlockTimes&, const std::string&, MemoryPlanner&) override {}
  void Bind(const MemoryPlanner&, std::byte*, std::vector<ParameterBinding> bindings) override {
    parts_.Bind(std::move(bindings));
  }
  const TensorDesc& dst() const override { return dst_; }
  // Of the whole network: nothing is told between its blocks.
  void Forward(Mode, const InputBatch&, const Tensor&, Stream&) override {
    const WaitingOptions& options = parts_.backend().options();
    parts_.backend().Wait(options.forward_seconds);
    if (!options.completes_gradually) parts_.backend().Wait(options.backward_seconds);
  }
  void Backward(Mode, const Tensor&, const Tensor&, Stream&) override { parts_.Backward(); }

 private:
  WaitingParts parts_;
  const TensorDesc dst_;
};

Shape BehindBottleneck(const BottleneckSpec& spec) {
  const Shape& src = spec.src.shape;
  return {src[0], spec.out_channels, src[2] / spec.stride, src[3] / spec.stride};
}

class WaitingBottleneck final : public Bottleneck {
 public:
  WaitingBottleneck(WaitingBackend& backend, const BottleneckSpec& spec)
      : parts_(backend), dst_(Unseen(BehindBottleneck(spec))) {
    const std::int64_t in = spec.src.shape[1];
    const std::int64_t mid = spec.mid_channels;
    const std::int64_t out = spec.out_channels;
    parts_.AddFilter("conv1.weight", in * mid);
    parts_.AddNorm("bn1", mid);
    parts_.AddFilter("conv2.weight", 9 * mid * mid);
    parts_.AddNorm("bn2", mid);
    parts_.AddFilter("conv3.weight", mid * out);
    parts_.AddNorm("bn3", out);
    if (spec.has_downsample()) {
      parts_.AddFilter("downsample.0.weight", in * out);
      parts_.AddNorm("downsample.1", out);
    }
    const std::int64_t behind = mid + (spec.has_downsample() ? 2 : 1) * out;  // channels
    parts_.AddValues(PixelsOf(spec.src.shape) * static_cast<double>(mid) +
                     PixelsOf(dst_.shape) * static_cast<double>(behind));
  }
  const std::vector<ParameterSpec>& parameters() const override { return parts_.parameters(); }
  void Reserve(const BlockTimes&, const std::string&, MemoryPlanner&) override {}
  void Bind(const MemoryPlanner&, std::byte*, std::vector<ParameterBinding> bindings) override {
    parts_.Bind(std::move(bindings));
  }
  const TensorDesc& dst() const override { return dst_; }
  void Forward(Mode, const Tensor&, const Tensor&, Stream&) override {}
  void Backward(Mode, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                Stream&) override {
    parts_.Backward();
  }

 private:
  WaitingParts parts_;
  const TensorDesc dst_;
};

class WaitingHead final : public Head {
 public:
  WaitingHead(WaitingBackend& backend, const HeadSpec& spec) : parts_(backend) {
    parts_.AddFilter("fc.weight", spec.src.shape[1] * spec.classes);
    parts_.AddFilter("fc.bias", spec.classes);
  }
  const std::vector<ParameterSpec>& parameters() const override { return parts_.parameters(); }
  void Reserve(const BlockTimes&, const std::string&, MemoryPlanner&) override {}
  void Bind(const MemoryPlanner&, std::byte*, std::vector<ParameterBinding> bindings) override {
    parts_.Bind(std::move(bindings));
  }
  const Tensor& logits() const override { return logits_; }
  void Forward(Mode, const Tensor&, const InputBatch& batch, LossSums* sums, Stream&) override {
    sums->loss += static_cast<float>(batch.loss->valid);
    sums->samples += static_cast<float>(batch.loss->valid);
  }
  void Backward(const Tensor&, const Tensor&, Stream&) override { parts_.Backward(); }

 private:
  WaitingParts parts_;
  const Tensor logits_;
};

class CheckingUpdate final : public Optimizer {
 public:
  CheckingUpdate(std::vector<ParameterSegment> segments, float sum)
      : segments_(std::move(segments)), sum_(sum) {}
  void Step(const UpdateParameters*, float*, float*, const FlatGradients& gradients, void*,
            UpdateSums* sums, Stream&) override {
    for (const ParameterSegment& segment : segments_) {
      const float found = gradients.fp32[segment.begin];
      if (found == sum_) continue;
      throw Error(EX_SOFTWARE, fmt::format("the gradient at element {} is {}, not {}",
                                           segment.begin, found, sum_));
    }
    *sums = {.sum_of_squares = 1, .nonfinite = 0, .gradient_squares = 1};
  }

 private:
  const std::vector<ParameterSegment> segments_;
  const float sum_;
};

}  // namespace

WaitingBackend::WaitingBackend(const WaitingOptions& options)
    : options_(options), host_(MakeBackend("reference", {})), random_(options.seed) {}

void WaitingBackend::BeginStep(double factor) {
  factor_ = factor;
  if (options_.spread > 0) {
    factor_ *= std::max(0.0, std::normal_distribution<double>(1, options_.spread)(random_));
  }
  due_ = Clock::now();
}

void WaitingBackend::Wait(double seconds) {
  due_ +=
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds * factor_));
  std::this_thread::sleep_until(due_);
}

void WaitingBackend::WaitBackward(double values) {
  if (options_.completes_gradually) Wait(options_.backward_seconds * values / all_values_);
}

void WaitingBackend::Import(const float* src, const Tensor& dst, Stream& stream) {
  host_->Import(src, dst, stream);
}
void WaitingBackend::Export(const Tensor& src, float* dst, Stream& stream) {
  host_->Export(src, dst, stream);
}
std::unique_ptr<InputTransform> WaitingBackend::MakeInputTransform(const Shape& images) {
  return host_->MakeInputTransform(images);
}
std::unique_ptr<Convolution> WaitingBackend::MakeConvolution(const ConvolutionSpec& spec) {
  return host_->MakeConvolution(spec);
}
std::unique_ptr<BatchNorm> WaitingBackend::MakeBatchNorm(const BatchNormSpec& spec) {
  return host_->MakeBatchNorm(spec);
}
std::unique_ptr<MaxPool> WaitingBackend::MakeMaxPool(const MaxPoolSpec& spec) {
  return host_->MakeMaxPool(spec);
}
std::unique_ptr<GlobalAveragePool> WaitingBackend::MakeGlobalAveragePool(const TensorDesc& src) {
  return host_->MakeGlobalAveragePool(src);
}
std::unique_ptr<Linear> WaitingBackend::MakeLinear(const LinearSpec& spec) {
  return host_->MakeLinear(spec);
}
std::unique_ptr<SoftmaxCrossEntropy> WaitingBackend::MakeSoftmaxCrossEntropy(
    const SoftmaxCrossEntropySpec& spec) {
  return host_->MakeSoftmaxCrossEntropy(spec);
}

std::unique_ptr<Stem> WaitingBackend::MakeStem(const StemSpec& spec) {
  return std::make_unique<WaitingStem>(*this, spec);
}
std::unique_ptr<Bottleneck> WaitingBackend::MakeBottleneck(const BottleneckSpec& spec) {
  return std::make_unique<WaitingBottleneck>(*this, spec);
}
std::unique_ptr<Head> WaitingBackend::MakeHead(const HeadSpec& spec) {
  return std::make_unique<WaitingHead>(*this, spec);
}
std::unique_ptr<Optimizer> WaitingBackend::MakeOptimizer(OptimizerKind /*kind*/,
                                                         std::vector<ParameterSegment> segments) {
  return std::make_unique<CheckingUpdate>(std::move(segments), options_.sum);
}

}  // namespace trainer
