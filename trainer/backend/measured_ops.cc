// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/measured_ops.h"

#include <optional>
#include <string>
#include <utility>

#include "trainer/backend/op_work.h"

namespace trainer {
namespace {

std::string FromTo(const Shape& src, const Shape& dst) { return Times(src) + " > " + Times(dst); }

class MeasuredInputTransform final : public InputTransform {
 public:
  MeasuredInputTransform(std::unique_ptr<InputTransform> op, OpRecorder& recorder)
      : op_(std::move(op)),
        recorder_(recorder),
        forward_(recorder.Add({"input", "input transform", Times(op_->dst().shape),
                               InputTransformWork(op_->dst())})) {}

  const TensorDesc& dst() const override { return op_->dst(); }
  void Forward(const std::uint8_t* pixels, const std::uint8_t* mirror, const float* lambda,
               const Tensor& dst, Stream& stream) override {
    recorder_.Run(forward_, nullptr, stream,
                  [&] { op_->Forward(pixels, mirror, lambda, dst, stream); });
  }

 private:
  const std::unique_ptr<InputTransform> op_;
  OpRecorder& recorder_;
  const int forward_;
};

std::string ShapeOf(const ConvolutionSpec& spec, const Shape& dst) {
  const std::string kernel = std::to_string(spec.kernel);
  return FromTo(spec.src.shape, dst) + ", " + kernel + "x" + kernel +
         (spec.stride > 1 ? " stride " + std::to_string(spec.stride) : "");
}

class MeasuredConvolution final : public Convolution {
 public:
  MeasuredConvolution(std::unique_ptr<Convolution> op, const ConvolutionSpec& spec,
                      OpRecorder& recorder)
      : op_(std::move(op)), recorder_(recorder) {
    const std::string shape = ShapeOf(spec, op_->dst().shape);
    const TensorDesc& filter = op_->filter();
    const TensorDesc& dst = op_->dst();
    forward_ =
        recorder.Add({"", "convolution forward", shape, ConvolutionForwardWork(spec, filter, dst)});
    backward_data_ = recorder.Add(
        {"", "convolution backward data", shape, ConvolutionBackwardDataWork(spec, filter, dst)});
    backward_filter_ = recorder.Add({"", "convolution backward filter", shape,
                                     ConvolutionBackwardFilterWork(spec, filter, dst)});
    backward_bn_apply_ = recorder.Add({"", "convolution backward, with batch norms", shape,
                                       ConvolutionBackwardBnApplyWork(spec, filter, dst)});
  }

  const TensorDesc& filter() const override { return op_->filter(); }
  const TensorDesc& dst() const override { return op_->dst(); }
  std::size_t workspace_bytes() const override { return op_->workspace_bytes(); }

  void Forward(const Tensor& src, const Tensor& filter, const Tensor& dst, void* workspace,
               Stream& stream) override {
    recorder_.Run(forward_, filter.data, stream,
                  [&] { op_->Forward(src, filter, dst, workspace, stream); });
  }
  std::size_t bn_stats_bytes() const override { return op_->bn_stats_bytes(); }
  void ForwardWithBnStats(const Tensor& src, const Tensor& filter, const Tensor& dst, void* sums,
                          void* workspace, Stream& stream) override {
    recorder_.Run(forward_, filter.data, stream,
                  [&] { op_->ForwardWithBnStats(src, filter, dst, sums, workspace, stream); });
  }
  void BackwardData(const Tensor& diff_dst, const Tensor& filter, const Tensor& diff_src,
                    void* workspace, Stream& stream) override {
    recorder_.Run(backward_data_, filter.data, stream,
                  [&] { op_->BackwardData(diff_dst, filter, diff_src, workspace, stream); });
  }
  std::size_t bn_backward_stats_bytes() const override { return op_->bn_backward_stats_bytes(); }
  void BackwardDataDreluBnStats(const Tensor& diff_dst, const Tensor& filter,
                                const NormInput& before, const Tensor& diff_src, void* sums,
                                void* workspace, Stream& stream) override {
    recorder_.Run(backward_data_, filter.data, stream, [&] {
      op_->BackwardDataDreluBnStats(diff_dst, filter, before, diff_src, sums, workspace, stream);
    });
  }
  void BackwardFilter(const Tensor& src, const Tensor& diff_dst, const Tensor& diff_filter,
                      void* workspace, Stream& stream) override {
    recorder_.Run(backward_filter_, diff_filter.data, stream,
                  [&] { op_->BackwardFilter(src, diff_dst, diff_filter, workspace, stream); });
  }
  bool applies_norm_backward() const override { return op_->applies_norm_backward(); }
  void BackwardWithBnApply(const GradientBeforeBnBackward& diff_dst, const Tensor& filter,
                           const NormInput& before, const Tensor& diff_filter,
                           const Tensor& diff_src, void* sums, void* workspace,
                           Stream& stream) override {
    recorder_.Run(backward_bn_apply_, filter.data, stream, [&] {
      op_->BackwardWithBnApply(diff_dst, filter, before, diff_filter, diff_src, sums, workspace,
                               stream);
    });
  }

 private:
  const std::unique_ptr<Convolution> op_;
  OpRecorder& recorder_;
  int forward_ = 0;
  int backward_data_ = 0;
  int backward_filter_ = 0;
  int backward_bn_apply_ = 0;
};

class MeasuredMaxPool final : public MaxPool {
 public:
  MeasuredMaxPool(std::unique_ptr<MaxPool> op, const MaxPoolSpec& spec, OpRecorder& recorder)
      : op_(std::move(op)), recorder_(recorder) {
    const std::string shape = FromTo(spec.src.shape, op_->dst().shape);
    forward_ =
        recorder.Add({"maxpool", "max pool forward", shape, MaxPoolForwardWork(spec, op_->dst())});
    backward_ = recorder.Add(
        {"maxpool", "max pool backward", shape, MaxPoolBackwardWork(spec, op_->dst())});
  }

  const TensorDesc& dst() const override { return op_->dst(); }
  std::size_t saved_bytes() const override { return op_->saved_bytes(); }
  void Forward(const Tensor& src, const Tensor& dst, void* saved, Stream& stream) override {
    recorder_.Run(forward_, nullptr, stream, [&] { op_->Forward(src, dst, saved, stream); });
  }
  void Backward(const Tensor& diff_dst, const void* saved, const Tensor& diff_src,
                Stream& stream) override {
    recorder_.Run(backward_, nullptr, stream,
                  [&] { op_->Backward(diff_dst, saved, diff_src, stream); });
  }

 private:
  const std::unique_ptr<MaxPool> op_;
  OpRecorder& recorder_;
  int forward_ = 0;
  int backward_ = 0;
};

class MeasuredGlobalAveragePool final : public GlobalAveragePool {
 public:
  MeasuredGlobalAveragePool(std::unique_ptr<GlobalAveragePool> op, const TensorDesc& src,
                            OpRecorder& recorder)
      : op_(std::move(op)), recorder_(recorder) {
    const std::string shape = FromTo(src.shape, op_->dst().shape);
    const OpWork work = GlobalAveragePoolWork(src, op_->dst());
    forward_ = recorder.Add({"avgpool", "average pool forward", shape, work});
    backward_ = recorder.Add({"avgpool", "average pool backward", shape, work});
  }

  const TensorDesc& dst() const override { return op_->dst(); }
  void Forward(const Tensor& src, const Tensor& dst, Stream& stream) override {
    recorder_.Run(forward_, nullptr, stream, [&] { op_->Forward(src, dst, stream); });
  }
  void Backward(const Tensor& diff_dst, const Tensor& diff_src, Stream& stream) override {
    recorder_.Run(backward_, nullptr, stream, [&] { op_->Backward(diff_dst, diff_src, stream); });
  }

 private:
  const std::unique_ptr<GlobalAveragePool> op_;
  OpRecorder& recorder_;
  int forward_ = 0;
  int backward_ = 0;
};

class MeasuredLinear final : public Linear {
 public:
  MeasuredLinear(std::unique_ptr<Linear> op, const LinearSpec& spec, OpRecorder& recorder)
      : op_(std::move(op)), recorder_(recorder) {
    const std::string shape = FromTo(spec.src.shape, op_->dst().shape);
    forward_ = recorder.Add(
        {"", "linear forward", shape, LinearForwardWork(spec, op_->weight(), op_->dst())});
    backward_ = recorder.Add(
        {"", "linear backward", shape, LinearBackwardWork(spec, op_->weight(), op_->dst())});
  }

  const TensorDesc& weight() const override { return op_->weight(); }
  const TensorDesc& dst() const override { return op_->dst(); }
  std::size_t workspace_bytes() const override { return op_->workspace_bytes(); }
  void Forward(const Tensor& src, const Tensor& weight, const Tensor& bias, const Tensor& dst,
               void* workspace, Stream& stream) override {
    recorder_.Run(forward_, weight.data, stream,
                  [&] { op_->Forward(src, weight, bias, dst, workspace, stream); });
  }
  void Backward(const Tensor& src, const Tensor& weight, const Tensor& diff_dst,
                const Tensor& diff_src, const Tensor& diff_weight, const Tensor& diff_bias,
                void* workspace, Stream& stream) override {
    recorder_.Run(backward_, weight.data, stream, [&] {
      op_->Backward(src, weight, diff_dst, diff_src, diff_weight, diff_bias, workspace, stream);
    });
  }

 private:
  const std::unique_ptr<Linear> op_;
  OpRecorder& recorder_;
  int forward_ = 0;
  int backward_ = 0;
};

class MeasuredSoftmaxCrossEntropy final : public SoftmaxCrossEntropy {
 public:
  MeasuredSoftmaxCrossEntropy(std::unique_ptr<SoftmaxCrossEntropy> op,
                              const SoftmaxCrossEntropySpec& spec, OpRecorder& recorder)
      : op_(std::move(op)), recorder_(recorder) {
    const std::string shape = Times(spec.logits.shape);
    with_gradient_ = recorder.Add({"loss", "softmax cross-entropy with gradient", shape,
                                   SoftmaxCrossEntropyWork(spec.logits, true)});
    alone_ = recorder.Add(
        {"loss", "softmax cross-entropy", shape, SoftmaxCrossEntropyWork(spec.logits, false)});
  }

  void Run(const LossParameters* call, const Tensor& logits, const std::int32_t* labels,
           const float* lambda, const Tensor& diff_logits, LossSums* sums,
           Stream& stream) override {
    recorder_.Run(diff_logits ? with_gradient_ : alone_, nullptr, stream,
                  [&] { op_->Run(call, logits, labels, lambda, diff_logits, sums, stream); });
  }

 private:
  const std::unique_ptr<SoftmaxCrossEntropy> op_;
  OpRecorder& recorder_;
  int with_gradient_ = 0;
  int alone_ = 0;
};

// What it has to do depends on where the gradients are, which the first call tells.
class MeasuredOptimizer final : public Optimizer {
 public:
  MeasuredOptimizer(std::unique_ptr<Optimizer> op, OptimizerKind kind,
                    std::vector<ParameterSegment> segments, DType compute_type,
                    OpRecorder& recorder)
      : op_(std::move(op)),
        kind_(kind),
        segments_(std::move(segments)),
        compute_type_(compute_type),
        recorder_(recorder) {
    for (const ParameterSegment& segment : segments_) weights_ += segment.count;
  }

  void Step(const UpdateParameters* call, float* weight, float* momentum,
            const FlatGradients& gradients, void* compute_copy, UpdateSums* sums,
            Stream& stream) override {
    if (!step_) {
      step_ = recorder_.Add(
          {"update", TraitsOf(kind_).description, std::to_string(weights_),
           UpdateWork(kind_, segments_, gradients, compute_type_, compute_copy != nullptr)});
    }
    recorder_.Run(*step_, nullptr, stream, [&] {
      op_->Step(call, weight, momentum, gradients, compute_copy, sums, stream);
    });
  }

 private:
  const std::unique_ptr<Optimizer> op_;
  const OptimizerKind kind_;
  const std::vector<ParameterSegment> segments_;
  const DType compute_type_;
  OpRecorder& recorder_;
  std::size_t weights_ = 0;
  std::optional<int> step_;
};

class MeasuredStem final : public Stem {
 public:
  MeasuredStem(std::unique_ptr<Stem> stem, const StemSpec& spec, OpRecorder& recorder)
      : stem_(std::move(stem)), recorder_(recorder) {
    const std::string shape = FromTo({spec.batch, 3, spec.height, spec.width}, stem_->dst().shape);
    forward_ = recorder.Add({"stem", "stem forward", shape, StemForwardWork(spec, stem_->dst())});
    backward_ =
        recorder.Add({"stem", "stem backward", shape, StemBackwardWork(spec, stem_->dst())});
  }

  const std::vector<ParameterSpec>& parameters() const override { return stem_->parameters(); }
  void Reserve(const BlockTimes& times, const std::string& name, MemoryPlanner& plan) override {
    stem_->Reserve(times, name, plan);
  }
  void Bind(const MemoryPlanner& plan, std::byte* arena,
            std::vector<ParameterBinding> bindings) override {
    stem_->Bind(plan, arena, std::move(bindings));
  }
  const TensorDesc& dst() const override { return stem_->dst(); }
  void Forward(Mode mode, const InputBatch& batch, const Tensor& dst, Stream& stream) override {
    recorder_.Run(forward_, nullptr, stream, [&] { stem_->Forward(mode, batch, dst, stream); });
  }
  void Backward(Mode mode, const Tensor& dst, const Tensor& diff_dst, Stream& stream) override {
    recorder_.Run(backward_, nullptr, stream,
                  [&] { stem_->Backward(mode, dst, diff_dst, stream); });
  }

 private:
  const std::unique_ptr<Stem> stem_;
  OpRecorder& recorder_;
  int forward_ = 0;
  int backward_ = 0;
};

}  // namespace

std::string Times(const Shape& shape) {
  std::string text;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    text += (axis > 0 ? "x" : "") + std::to_string(shape[axis]);
  }
  return text;
}

std::unique_ptr<InputTransform> MakeMeasured(std::unique_ptr<InputTransform> op,
                                             OpRecorder& recorder) {
  return std::make_unique<MeasuredInputTransform>(std::move(op), recorder);
}

std::unique_ptr<Convolution> MakeMeasured(std::unique_ptr<Convolution> op,
                                          const ConvolutionSpec& spec, OpRecorder& recorder) {
  return std::make_unique<MeasuredConvolution>(std::move(op), spec, recorder);
}

std::unique_ptr<MaxPool> MakeMeasured(std::unique_ptr<MaxPool> op, const MaxPoolSpec& spec,
                                      OpRecorder& recorder) {
  return std::make_unique<MeasuredMaxPool>(std::move(op), spec, recorder);
}

std::unique_ptr<GlobalAveragePool> MakeMeasured(std::unique_ptr<GlobalAveragePool> op,
                                                const TensorDesc& src, OpRecorder& recorder) {
  return std::make_unique<MeasuredGlobalAveragePool>(std::move(op), src, recorder);
}

std::unique_ptr<Linear> MakeMeasured(std::unique_ptr<Linear> op, const LinearSpec& spec,
                                     OpRecorder& recorder) {
  return std::make_unique<MeasuredLinear>(std::move(op), spec, recorder);
}

std::unique_ptr<SoftmaxCrossEntropy> MakeMeasured(std::unique_ptr<SoftmaxCrossEntropy> op,
                                                  const SoftmaxCrossEntropySpec& spec,
                                                  OpRecorder& recorder) {
  return std::make_unique<MeasuredSoftmaxCrossEntropy>(std::move(op), spec, recorder);
}

std::unique_ptr<Optimizer> MakeMeasured(std::unique_ptr<Optimizer> op, OptimizerKind kind,
                                        std::vector<ParameterSegment> segments, DType compute_type,
                                        OpRecorder& recorder) {
  return std::make_unique<MeasuredOptimizer>(std::move(op), kind, std::move(segments), compute_type,
                                             recorder);
}

std::unique_ptr<Stem> MakeMeasured(std::unique_ptr<Stem> stem, const StemSpec& spec,
                                   OpRecorder& recorder) {
  return std::make_unique<MeasuredStem>(std::move(stem), spec, recorder);
}

}  // namespace trainer
