// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/measured_backend.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "trainer/backend/blocks.h"
#include "trainer/backend/op_work.h"
#include "trainer/backend/ops.h"

namespace trainer {
namespace {

// An op around another one, each call of which is timed by a recorder.
template <typename Op>
class Measured : public Op {
 protected:
  Measured(std::unique_ptr<Op> op, OpRecorder& recorder)
      : op_(std::move(op)), recorder_(recorder) {}

  const std::unique_ptr<Op> op_;
  OpRecorder& recorder_;
};

std::string FromTo(const Shape& src, const Shape& dst) {
  return ShapeText(src) + " > " + ShapeText(dst);
}

class MeasuredInputTransform final : public Measured<InputTransform> {
 public:
  MeasuredInputTransform(std::unique_ptr<InputTransform> op, OpRecorder& recorder)
      : Measured(std::move(op), recorder),
        forward_(recorder.Add({"input", "input transform", ShapeText(op_->dst().shape),
                               InputTransformWork(op_->dst())})) {}

  const TensorDesc& dst() const override { return op_->dst(); }
  void Forward(const std::uint8_t* pixels, const std::uint8_t* mirror, const float* lambda,
               const Tensor& dst, Stream& stream) override {
    recorder_.Run(forward_, nullptr, stream,
                  [&] { op_->Forward(pixels, mirror, lambda, dst, stream); });
  }

 private:
  const int forward_;
};

class MeasuredConvolution final : public Measured<Convolution> {
 public:
  MeasuredConvolution(std::unique_ptr<Convolution> op, const ConvolutionSpec& spec,
                      OpRecorder& recorder)
      : Measured(std::move(op), recorder) {
    const std::string shape = ShapeText(spec, op_->dst().shape);
    const TensorDesc& filter = op_->filter();
    const TensorDesc& dst = op_->dst();
    forward_ =
        recorder.Add({"", "convolution forward", shape, ConvolutionForwardWork(spec, filter, dst)});
    backward_data_ = recorder.Add(
        {"", "convolution backward data", shape, ConvolutionBackwardDataWork(spec, filter, dst)});
    backward_filter_ = recorder.Add({"", "convolution backward filter", shape,
                                     ConvolutionBackwardFilterWork(spec, filter, dst)});
  }

  const TensorDesc& filter() const override { return op_->filter(); }
  const TensorDesc& dst() const override { return op_->dst(); }
  std::size_t workspace_bytes() const override { return op_->workspace_bytes(); }

  void Forward(const Tensor& src, const Tensor& filter, const Tensor& dst, void* workspace,
               Stream& stream) override {
    recorder_.Run(forward_, filter.data, stream,
                  [&] { op_->Forward(src, filter, dst, workspace, stream); });
  }
  void BackwardData(const Tensor& diff_dst, const Tensor& filter, const Tensor& diff_src,
                    void* workspace, Stream& stream) override {
    recorder_.Run(backward_data_, filter.data, stream,
                  [&] { op_->BackwardData(diff_dst, filter, diff_src, workspace, stream); });
  }
  void BackwardFilter(const Tensor& src, const Tensor& diff_dst, const Tensor& diff_filter,
                      void* workspace, Stream& stream) override {
    recorder_.Run(backward_filter_, diff_filter.data, stream,
                  [&] { op_->BackwardFilter(src, diff_dst, diff_filter, workspace, stream); });
  }

 private:
  int forward_ = 0;
  int backward_data_ = 0;
  int backward_filter_ = 0;
};

class MeasuredBatchNorm final : public Measured<BatchNorm> {
 public:
  MeasuredBatchNorm(std::unique_ptr<BatchNorm> op, const BatchNormSpec& spec, OpRecorder& recorder)
      : Measured(std::move(op), recorder) {
    const std::string shape = ShapeText(spec);
    for (const Mode mode : {Mode::kTraining, Mode::kFrozen, Mode::kInference}) {
      forward_[static_cast<int>(mode)] =
          recorder.Add({"", "batch norm forward", shape, BatchNormForwardWork(spec, mode)});
      backward_[static_cast<int>(mode)] =
          recorder.Add({"", "batch norm backward", shape, BatchNormBackwardWork(spec, mode)});
    }
  }

  const TensorDesc& dst() const override { return op_->dst(); }
  std::size_t saved_bytes() const override { return op_->saved_bytes(); }
  std::size_t workspace_bytes() const override { return op_->workspace_bytes(); }

  void Forward(Mode mode, const Tensor& src, const Tensor& residual,
               const BatchNormParameters& parameters, const Tensor& dst, void* saved,
               void* workspace, Stream& stream) override {
    recorder_.Run(forward_[static_cast<int>(mode)], parameters.scale.data, stream, [&] {
      op_->Forward(mode, src, residual, parameters, dst, saved, workspace, stream);
    });
  }
  void Backward(Mode mode, const Tensor& src, const Tensor& dst, const Tensor& diff_dst,
                const BatchNormParameters& parameters, const void* saved, const Tensor& diff_src,
                const Tensor& diff_residual, const Tensor& diff_scale, const Tensor& diff_shift,
                void* workspace, Stream& stream) override {
    recorder_.Run(backward_[static_cast<int>(mode)], parameters.scale.data, stream, [&] {
      op_->Backward(mode, src, dst, diff_dst, parameters, saved, diff_src, diff_residual,
                    diff_scale, diff_shift, workspace, stream);
    });
  }

 private:
  int forward_[3] = {};  // by mode
  int backward_[3] = {};
};

class MeasuredMaxPool final : public Measured<MaxPool> {
 public:
  MeasuredMaxPool(std::unique_ptr<MaxPool> op, const MaxPoolSpec& spec, OpRecorder& recorder)
      : Measured(std::move(op), recorder) {
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
  int forward_ = 0;
  int backward_ = 0;
};

class MeasuredGlobalAveragePool final : public Measured<GlobalAveragePool> {
 public:
  MeasuredGlobalAveragePool(std::unique_ptr<GlobalAveragePool> op, const TensorDesc& src,
                            OpRecorder& recorder)
      : Measured(std::move(op), recorder) {
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
  int forward_ = 0;
  int backward_ = 0;
};

class MeasuredLinear final : public Measured<Linear> {
 public:
  MeasuredLinear(std::unique_ptr<Linear> op, const LinearSpec& spec, OpRecorder& recorder)
      : Measured(std::move(op), recorder) {
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
  int forward_ = 0;
  int backward_ = 0;
};

class MeasuredSoftmaxCrossEntropy final : public Measured<SoftmaxCrossEntropy> {
 public:
  MeasuredSoftmaxCrossEntropy(std::unique_ptr<SoftmaxCrossEntropy> op,
                              const SoftmaxCrossEntropySpec& spec, OpRecorder& recorder)
      : Measured(std::move(op), recorder) {
    const std::string shape = ShapeText(spec.logits.shape);
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
  int with_gradient_ = 0;
  int alone_ = 0;
};

// What it has to do depends on where the gradients are, which the first call tells.
class MeasuredOptimizer final : public Measured<Optimizer> {
 public:
  MeasuredOptimizer(std::unique_ptr<Optimizer> op, OptimizerKind kind,
                    std::vector<ParameterSegment> segments, DType compute_type,
                    OpRecorder& recorder)
      : Measured(std::move(op), recorder),
        kind_(kind),
        segments_(std::move(segments)),
        compute_type_(compute_type) {
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
  const OptimizerKind kind_;
  const std::vector<ParameterSegment> segments_;
  const DType compute_type_;
  std::size_t weights_ = 0;
  std::optional<int> step_;
};

class MeasuredStem final : public Measured<Stem> {
 public:
  MeasuredStem(std::unique_ptr<Stem> stem, const StemSpec& spec, OpRecorder& recorder)
      : Measured(std::move(stem), recorder) {
    const std::string shape = FromTo({spec.batch, 3, spec.height, spec.width}, op_->dst().shape);
    forward_ = recorder.Add({"stem", "stem forward", shape, StemForwardWork(spec, op_->dst())});
    backward_ = recorder.Add({"stem", "stem backward", shape, StemBackwardWork(spec, op_->dst())});
  }

  const std::vector<ParameterSpec>& parameters() const override { return op_->parameters(); }
  void Reserve(const BlockTimes& times, const std::string& name, MemoryPlanner& plan) override {
    op_->Reserve(times, name, plan);
  }
  void Bind(const MemoryPlanner& plan, std::byte* arena,
            std::vector<ParameterBinding> bindings) override {
    op_->Bind(plan, arena, std::move(bindings));
  }
  const TensorDesc& dst() const override { return op_->dst(); }
  void Forward(Mode mode, const InputBatch& batch, const Tensor& dst, Stream& stream) override {
    recorder_.Run(forward_, nullptr, stream, [&] { op_->Forward(mode, batch, dst, stream); });
  }
  void Backward(Mode mode, const Tensor& dst, const Tensor& diff_dst, Stream& stream) override {
    recorder_.Run(backward_, nullptr, stream, [&] { op_->Backward(mode, dst, diff_dst, stream); });
  }

 private:
  int forward_ = 0;
  int backward_ = 0;
};

class MeasuredBackend final : public Backend {
 public:
  MeasuredBackend(Backend& backend, OpRecorder& recorder)
      : backend_(backend), recorder_(recorder) {}

  std::string name() const override { return backend_.name(); }
  std::string description() const override { return backend_.description(); }
  std::string arithmetic() const override { return backend_.arithmetic(); }
  int threads() const override { return backend_.threads(); }
  double repeat_error() const override { return backend_.repeat_error(); }
  bool is_host() const override { return backend_.is_host(); }
  std::string device_id() const override { return backend_.device_id(); }

  std::size_t free_bytes() const override { return backend_.free_bytes(); }
  Buffer AllocateDevice(std::size_t bytes) override { return backend_.AllocateDevice(bytes); }
  Buffer AllocateHost(std::size_t bytes) override { return backend_.AllocateHost(bytes); }
  void CopyToDevice(void* dst, const void* src, std::size_t bytes, Stream& stream) override {
    backend_.CopyToDevice(dst, src, bytes, stream);
  }
  void CopyToHost(void* dst, const void* src, std::size_t bytes, Stream& stream) override {
    backend_.CopyToHost(dst, src, bytes, stream);
  }
  void CopyOnDevice(void* dst, const void* src, std::size_t bytes, Stream& stream) override {
    backend_.CopyOnDevice(dst, src, bytes, stream);
  }
  void Zero(void* dst, std::size_t bytes, Stream& stream) override {
    backend_.Zero(dst, bytes, stream);
  }
  void Import(const float* src, const Tensor& dst, Stream& stream) override {
    backend_.Import(src, dst, stream);
  }
  void Export(const Tensor& src, float* dst, Stream& stream) override {
    backend_.Export(src, dst, stream);
  }
  void Widen(const void* src, float* dst, std::size_t count, Stream& stream) override {
    const auto values = static_cast<double>(count);
    const OpWork work = {0, values * static_cast<double>(SizeOf(compute_type()) + sizeof(float))};
    recorder_.Run(PieceOp("gradients to fp32", compute_type(), count, work), nullptr, stream,
                  [&] { backend_.Widen(src, dst, count, stream); });
  }
  void Add(const void* src, DType type, float* dst, std::size_t count, Stream& stream) override {
    const auto values = static_cast<double>(count);
    const OpWork work = {values, values * static_cast<double>(SizeOf(type) + 2 * sizeof(float))};
    recorder_.Run(PieceOp("gradients of batches added up", type, count, work), nullptr, stream,
                  [&] { backend_.Add(src, type, dst, count, stream); });
  }
  void MoveAverage(const float* values, float share, const UpdateSums* sums, float* average,
                   std::size_t count, Stream& stream) override {
    const auto elements = static_cast<double>(count);
    const OpWork work = {3 * elements, 3 * sizeof(float) * elements};
    recorder_.Run(PieceOp("moving average of the weights", DType::kFloat32, count, work), nullptr,
                  stream,
                  [&] { backend_.MoveAverage(values, share, sums, average, count, stream); });
  }

  std::unique_ptr<Stream> MakeStream() override { return backend_.MakeStream(); }
  std::unique_ptr<Stream> MakeHighPriorityStream() override {
    return backend_.MakeHighPriorityStream();
  }
  std::unique_ptr<Event> MakeEvent() override { return backend_.MakeEvent(); }
  DType compute_type() const override { return backend_.compute_type(); }

  std::unique_ptr<InputTransform> MakeInputTransform(const Shape& images) override {
    return std::make_unique<MeasuredInputTransform>(backend_.MakeInputTransform(images), recorder_);
  }
  std::unique_ptr<Convolution> MakeConvolution(const ConvolutionSpec& spec) override {
    return std::make_unique<MeasuredConvolution>(backend_.MakeConvolution(spec), spec, recorder_);
  }
  std::unique_ptr<BatchNorm> MakeBatchNorm(const BatchNormSpec& spec) override {
    return std::make_unique<MeasuredBatchNorm>(backend_.MakeBatchNorm(spec), spec, recorder_);
  }
  std::unique_ptr<MaxPool> MakeMaxPool(const MaxPoolSpec& spec) override {
    return std::make_unique<MeasuredMaxPool>(backend_.MakeMaxPool(spec), spec, recorder_);
  }
  std::unique_ptr<GlobalAveragePool> MakeGlobalAveragePool(const TensorDesc& src) override {
    return std::make_unique<MeasuredGlobalAveragePool>(backend_.MakeGlobalAveragePool(src), src,
                                                       recorder_);
  }
  std::unique_ptr<Linear> MakeLinear(const LinearSpec& spec) override {
    return std::make_unique<MeasuredLinear>(backend_.MakeLinear(spec), spec, recorder_);
  }
  std::unique_ptr<SoftmaxCrossEntropy> MakeSoftmaxCrossEntropy(
      const SoftmaxCrossEntropySpec& spec) override {
    return std::make_unique<MeasuredSoftmaxCrossEntropy>(backend_.MakeSoftmaxCrossEntropy(spec),
                                                         spec, recorder_);
  }
  std::unique_ptr<Optimizer> MakeOptimizer(OptimizerKind kind,
                                           std::vector<ParameterSegment> segments) override {
    std::unique_ptr<Optimizer> op = backend_.MakeOptimizer(kind, segments);
    return std::make_unique<MeasuredOptimizer>(std::move(op), kind, std::move(segments),
                                               compute_type(), recorder_);
  }

  bool has_own_blocks() const override { return backend_.has_own_blocks(); }
  std::unique_ptr<Stem> MakeStem(const StemSpec& spec) override {
    if (!has_own_blocks()) return Backend::MakeStem(spec);
    return std::make_unique<MeasuredStem>(backend_.MakeStem(spec), spec, recorder_);
  }
  std::unique_ptr<Bottleneck> MakeBottleneck(const BottleneckSpec& spec) override {
    if (!has_own_blocks()) return Backend::MakeBottleneck(spec);
    std::unique_ptr<Bottleneck> block = backend_.MakeBottleneck(spec);
    block->set_recorder(&recorder_);
    return block;
  }

 private:
  // The op of the update that works on `count` values, which is the same in every step.
  int PieceOp(const char* name, DType type, std::size_t count, const OpWork& work) {
    auto [op, is_new] = pieces_.try_emplace({name, type, count}, 0);
    if (is_new) op->second = recorder_.Add({"update", name, std::to_string(count), work});
    return op->second;
  }

  Backend& backend_;
  OpRecorder& recorder_;
  std::map<std::tuple<std::string_view, DType, std::size_t>, int> pieces_;
};

}  // namespace

std::unique_ptr<Backend> MakeMeasuredBackend(Backend& backend, OpRecorder& recorder) {
  return std::make_unique<MeasuredBackend>(backend, recorder);
}

}  // namespace trainer
