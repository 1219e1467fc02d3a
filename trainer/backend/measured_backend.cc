// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/measured_backend.h"

#include <map>
#include <utility>

#include "trainer/backend/measured_ops.h"

namespace trainer {
namespace {

class MeasuredBackend final : public Backend {
 public:
  MeasuredBackend(Backend& backend, OpRecorder& recorder)
      : backend_(backend), recorder_(recorder) {}

  std::string name() const override { return backend_.name(); }
  std::string description() const override { return backend_.description(); }
  std::string arithmetic() const override { return backend_.arithmetic(); }
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
  // Of pieces that are each as long in every step.
  void Widen(const void* src, float* dst, std::size_t count, Stream& stream) override {
    auto [op, is_new] = widen_.try_emplace(count, 0);
    if (is_new) {
      const std::size_t bytes = count * (SizeOf(compute_type()) + sizeof(float));
      op->second = recorder_.Add(
          {"update", "gradients to fp32", std::to_string(count), {0, static_cast<double>(bytes)}});
    }
    recorder_.Run(op->second, nullptr, stream, [&] { backend_.Widen(src, dst, count, stream); });
  }

  // As Widen.
  void Add(const void* src, DType type, float* dst, std::size_t count, Stream& stream) override {
    auto [op, is_new] = add_.try_emplace({type, count}, 0);
    if (is_new) {
      const std::size_t bytes = count * (SizeOf(type) + 2 * sizeof(float));
      op->second = recorder_.Add({"update",
                                  "gradients of batches added up",
                                  std::to_string(count),
                                  {static_cast<double>(count), static_cast<double>(bytes)}});
    }
    recorder_.Run(op->second, nullptr, stream,
                  [&] { backend_.Add(src, type, dst, count, stream); });
  }

  // As Widen.
  void MoveAverage(const float* values, float share, const UpdateSums* sums, float* average,
                   std::size_t count, Stream& stream) override {
    auto [op, is_new] = average_.try_emplace(count, 0);
    if (is_new) {
      const auto elements = static_cast<double>(count);
      op->second = recorder_.Add({"update",
                                  "moving average of the weights",
                                  std::to_string(count),
                                  {3 * elements, 3 * sizeof(float) * elements}});
    }
    recorder_.Run(op->second, nullptr, stream,
                  [&] { backend_.MoveAverage(values, share, sums, average, count, stream); });
  }

  std::unique_ptr<Stream> MakeStream() override { return backend_.MakeStream(); }
  std::unique_ptr<Stream> MakeHighPriorityStream() override {
    return backend_.MakeHighPriorityStream();
  }
  std::unique_ptr<Event> MakeEvent() override { return backend_.MakeEvent(); }
  DType compute_type() const override { return backend_.compute_type(); }

  std::unique_ptr<InputTransform> MakeInputTransform(const Shape& images) override {
    return MakeMeasured(backend_.MakeInputTransform(images), recorder_);
  }
  std::unique_ptr<Convolution> MakeConvolution(const ConvolutionSpec& spec) override {
    return MakeMeasured(backend_.MakeConvolution(spec), spec, recorder_);
  }
  std::unique_ptr<BatchNorm> MakeBatchNorm(const BatchNormSpec& spec) override {
    return MakeMeasured(backend_.MakeBatchNorm(spec), spec, recorder_);
  }
  std::unique_ptr<MaxPool> MakeMaxPool(const MaxPoolSpec& spec) override {
    return MakeMeasured(backend_.MakeMaxPool(spec), spec, recorder_);
  }
  std::unique_ptr<GlobalAveragePool> MakeGlobalAveragePool(const TensorDesc& src) override {
    return MakeMeasured(backend_.MakeGlobalAveragePool(src), src, recorder_);
  }
  std::unique_ptr<Linear> MakeLinear(const LinearSpec& spec) override {
    return MakeMeasured(backend_.MakeLinear(spec), spec, recorder_);
  }
  std::unique_ptr<SoftmaxCrossEntropy> MakeSoftmaxCrossEntropy(
      const SoftmaxCrossEntropySpec& spec) override {
    return MakeMeasured(backend_.MakeSoftmaxCrossEntropy(spec), spec, recorder_);
  }
  std::unique_ptr<Optimizer> MakeOptimizer(OptimizerKind kind,
                                           std::vector<ParameterSegment> segments) override {
    std::unique_ptr<Optimizer> op = backend_.MakeOptimizer(kind, segments);
    return MakeMeasured(std::move(op), kind, std::move(segments), compute_type(), recorder_);
  }

  bool fuses_dual_batch_norm() const override { return backend_.fuses_dual_batch_norm(); }
  std::unique_ptr<DualBatchNorm> MakeDualBatchNorm(const DualBatchNormSpec& spec) override {
    if (!fuses_dual_batch_norm()) return Backend::MakeDualBatchNorm(spec);
    return MakeMeasured(backend_.MakeDualBatchNorm(spec), spec, recorder_);
  }
  bool fuses_stem() const override { return backend_.fuses_stem(); }
  std::unique_ptr<Stem> MakeStem(const StemSpec& spec) override {
    if (!fuses_stem()) return Backend::MakeStem(spec);
    return MakeMeasured(backend_.MakeStem(spec), spec, recorder_);
  }

 private:
  Backend& backend_;
  OpRecorder& recorder_;
  std::map<std::size_t, int> widen_;  // by the number of elements
  std::map<std::pair<DType, std::size_t>, int> add_;
  std::map<std::size_t, int> average_;
};

}  // namespace

std::unique_ptr<Backend> MakeMeasuredBackend(Backend& backend, OpRecorder& recorder) {
  return std::make_unique<MeasuredBackend>(backend, recorder);
}

}  // namespace trainer
