// SPDX-License-Identifier: Apache-2.0
//
// A device that does not exist, for what only queues work: its memory is the host's, and copies are
// done later, by the thread of the stream that they were queued on.

#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/comm/queue_stream.h"
#include "trainer/backend/registry.h"

namespace trainer {

class DeferredBackend : public Backend {
 public:
  // Computes with the back end `host`.
  explicit DeferredBackend(const std::string& host = "reference")
      : host_(MakeBackend(host, {.threads = 1})), host_stream_(host_->MakeStream()) {}

  std::string name() const override { return "deferred"; }
  std::string description() const override { return name(); }
  std::string arithmetic() const override { return name(); }
  bool is_host() const override { return false; }
  std::size_t free_bytes() const override { return host_->free_bytes(); }
  Buffer AllocateDevice(std::size_t bytes) override { return host_->AllocateDevice(bytes); }
  Buffer AllocateHost(std::size_t bytes) override { return host_->AllocateHost(bytes); }
  void CopyToDevice(void* dst, const void* src, std::size_t bytes, Stream& stream) override {
    Queue(stream).Post([=] { std::memcpy(dst, src, bytes); });
  }
  void CopyToHost(void* dst, const void* src, std::size_t bytes, Stream& stream) override {
    CopyToDevice(dst, src, bytes, stream);
  }
  void CopyOnDevice(void* dst, const void* src, std::size_t bytes, Stream& stream) override {
    CopyToDevice(dst, src, bytes, stream);
  }
  void Zero(void* dst, std::size_t bytes, Stream& stream) override {
    Queue(stream).Post([=] { std::memset(dst, 0, bytes); });
  }
  void Import(const float* src, const Tensor& dst, Stream& stream) override {
    host_->Import(src, dst, stream);
  }
  void Export(const Tensor& src, float* dst, Stream& stream) override {
    host_->Export(src, dst, stream);
  }
  void Widen(const void* src, float* dst, std::size_t count, Stream& stream) override {
    CopyToDevice(dst, src, count * sizeof(float), stream);
  }
  void Add(const void* src, DType type, float* dst, std::size_t count, Stream& stream) override {
    Queue(stream).Post([=, this] { host_->Add(src, type, dst, count, *host_stream_); });
  }
  void MoveAverage(const float* values, float share, const UpdateSums* sums, float* average,
                   std::size_t count, Stream& stream) override {
    Queue(stream).Post(
        [=, this] { host_->MoveAverage(values, share, sums, average, count, *host_stream_); });
  }
  std::unique_ptr<Stream> MakeStream() override { return std::make_unique<QueueStream>(); }
  std::unique_ptr<Event> MakeEvent() override { return std::make_unique<QueueEvent>(); }
  DType compute_type() const override { return host_->compute_type(); }

  std::unique_ptr<InputTransform> MakeInputTransform(const Shape& images) override {
    return host_->MakeInputTransform(images);
  }
  std::unique_ptr<Convolution> MakeConvolution(const ConvolutionSpec& spec) override {
    return host_->MakeConvolution(spec);
  }
  std::unique_ptr<BatchNorm> MakeBatchNorm(const BatchNormSpec& spec) override {
    return host_->MakeBatchNorm(spec);
  }
  std::unique_ptr<MaxPool> MakeMaxPool(const MaxPoolSpec& spec) override {
    return host_->MakeMaxPool(spec);
  }
  std::unique_ptr<GlobalAveragePool> MakeGlobalAveragePool(const TensorDesc& src) override {
    return host_->MakeGlobalAveragePool(src);
  }
  std::unique_ptr<Linear> MakeLinear(const LinearSpec& spec) override {
    return host_->MakeLinear(spec);
  }
  std::unique_ptr<SoftmaxCrossEntropy> MakeSoftmaxCrossEntropy(
      const SoftmaxCrossEntropySpec& spec) override {
    return host_->MakeSoftmaxCrossEntropy(spec);
  }
  std::unique_ptr<Optimizer> MakeOptimizer(OptimizerKind kind,
                                           std::vector<ParameterSegment> segments) override {
    return host_->MakeOptimizer(kind, std::move(segments));
  }

 protected:
  Backend& host() { return *host_; }

 private:
  static QueueStream& Queue(Stream& stream) { return static_cast<QueueStream&>(stream); }

  const std::unique_ptr<Backend> host_;
  const std::unique_ptr<Stream> host_stream_;
};

// The same for what computes as well: all work is done when it is queued, so that nothing but the
// order of calls is that of a device.
class PromptBackend : public DeferredBackend {
 public:
  using DeferredBackend::DeferredBackend;

  std::string name() const override { return "prompt"; }
  void CopyToDevice(void* dst, const void* src, std::size_t bytes, Stream& /*stream*/) override {
    std::memcpy(dst, src, bytes);
  }
  void CopyOnDevice(void* dst, const void* src, std::size_t bytes, Stream& stream) override {
    CopyToDevice(dst, src, bytes, stream);
  }
  void Zero(void* dst, std::size_t bytes, Stream& /*stream*/) override {
    std::memset(dst, 0, bytes);
  }
  void Add(const void* src, DType type, float* dst, std::size_t count, Stream& stream) override {
    host().Add(src, type, dst, count, stream);
  }
  void MoveAverage(const float* values, float share, const UpdateSums* sums, float* average,
                   std::size_t count, Stream& stream) override {
    host().MoveAverage(values, share, sums, average, count, stream);
  }
  std::unique_ptr<Stream> MakeStream() override { return host().MakeStream(); }
  std::unique_ptr<Event> MakeEvent() override { return host().MakeEvent(); }
};

}  // namespace trainer
