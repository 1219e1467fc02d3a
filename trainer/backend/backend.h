// SPDX-License-Identifier: Apache-2.0
//
// The contract of a back end: memory, streams, ops, blocks.  The model, the trainer and the tests
// know this and nothing more of a device.  backend/registry.h lists the back ends of this build.
//
// Threads: a Backend is used from one thread; several may exist.  Everything it makes must be gone
// before it is.

#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trainer/backend/blocks.h"
#include "trainer/backend/ops.h"
#include "trainer/backend/optimizer.h"
#include "trainer/core/stream.h"
#include "trainer/core/tensor.h"

namespace trainer {

// Work that was recorded once, to be queued any number of times.
class CapturedGraph {
 public:
  virtual ~CapturedGraph() = default;
  // Queues all of it on `stream`.
  virtual void Queue(Stream& stream) = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string name() const = 0;         // "reference", "cpu", "cuda"
  virtual std::string description() const = 0;  // one line: device, instruction set, threads
  // What its numbers come from: libraries, instruction set, type.  Ranks of one run must have the
  // same; what else may differ between their nodes (threads, memory) is not in it.
  virtual std::string arithmetic() const = 0;

  // How far apart two computations of the same gradients may lie: the norm of their difference to
  // their norm, for each parameter.  0: they have the same bits, as on every back end that does not
  // say otherwise.
  virtual double repeat_error() const { return 0; }

  // The number of threads on which the order of sums depends, and so their rounding; 0: on none.
  virtual int threads() const { return 0; }

  // Whether device memory is memory of the host, which anybody can read.
  virtual bool is_host() const = 0;
  // What this machine calls the device: the PCI bus id, "0000:1B:00.0"; "" if it is the host.
  virtual std::string device_id() const { return ""; }

  // What AllocateDevice can give; the largest number where that is not known.
  virtual std::size_t free_bytes() const = 0;
  // Zeroed.  Throws Error(EX_OSERR) that names the size if there is not enough.
  virtual Buffer AllocateDevice(std::size_t bytes) = 0;
  // Host memory the device reads at full speed.
  virtual Buffer AllocateHost(std::size_t bytes) = 0;
  // Queued on `stream`; host memory must stay until it is done.
  virtual void CopyToDevice(void* dst, const void* src, std::size_t bytes, Stream& stream) = 0;
  virtual void CopyToHost(void* dst, const void* src, std::size_t bytes, Stream& stream) = 0;
  // Within the device's memory, as fast as it can; src and dst do not overlap.
  virtual void CopyOnDevice(void* dst, const void* src, std::size_t bytes, Stream& stream) = 0;
  virtual void Zero(void* dst, std::size_t bytes, Stream& stream) = 0;

  // Between a tensor on the device and fp32 row-major values on the host, in the order of the
  // tensor's logical shape.  Padding of dst is zeroed.  Both wait until the copy is done.
  virtual void Import(const float* src, const Tensor& dst, Stream& stream) = 0;
  virtual void Export(const Tensor& src, float* dst, Stream& stream) = 0;

  // `count` elements of the compute type as fp32.
  virtual void Widen(const void* src, float* dst, std::size_t count, Stream& stream) = 0;
  // dst += src: `count` elements, those of src of `type`, which is fp32 or the compute type.
  virtual void Add(const void* src, DType type, float* dst, std::size_t count, Stream& stream) = 0;
  // average += share * (value - average), of `count` elements of fp32: an exponential moving
  // average with the decay 1 - share.  *sums (device memory) is read when the work runs: where it
  // is of an update that was left out (nonfinite), the average stays as it is.
  virtual void MoveAverage(const float* values, float share, const UpdateSums* sums, float* average,
                           std::size_t count, Stream& stream) = 0;

  virtual std::unique_ptr<Stream> MakeStream() = 0;
  // One whose kernels start before those of MakeStream's wherever both could: for little work that
  // much waits for.  The same as those where the device has no such thing.
  virtual std::unique_ptr<Stream> MakeHighPriorityStream() { return MakeStream(); }
  virtual std::unique_ptr<Event> MakeEvent() = 0;

  // Whether Capture works: starting recorded work costs the host less than queueing it call by
  // call.
  virtual bool can_capture() const { return false; }
  // What `queue` queues on `stream`, and on streams that wait for an event of it, which does not
  // run now.  Addresses are recorded too, so memory must stay where it is.  `queue` allocates
  // nothing, waits for nothing on the device, and has run once before: what is loaded at first use
  // must be there.  Nothing is added to a recording by two threads at a time, on whichever of its
  // streams: where `queue` has another thread add something, it waits until that is done.  What
  // other threads do on streams of their own is not recorded.  REQUIRES: can_capture().
  virtual std::unique_ptr<CapturedGraph> Capture(Stream& stream,
                                                 const std::function<void()>& queue);

  // Names what the calling thread does from here on, until the end of that range, for a profiler of
  // the device that watches; ranges lie in each other.  Without one this costs nothing.  `name`
  // lives as long as the program.
  virtual void BeginRange(const char* /*name*/) {}
  virtual void EndRange() {}

  // Type in which activations and filters are held.
  virtual DType compute_type() const = 0;

  virtual std::unique_ptr<InputTransform> MakeInputTransform(
      const Shape& images) = 0;  // (N, 3, H, W)
  virtual std::unique_ptr<Convolution> MakeConvolution(const ConvolutionSpec& spec) = 0;
  virtual std::unique_ptr<BatchNorm> MakeBatchNorm(const BatchNormSpec& spec) = 0;
  virtual std::unique_ptr<MaxPool> MakeMaxPool(const MaxPoolSpec& spec) = 0;
  virtual std::unique_ptr<GlobalAveragePool> MakeGlobalAveragePool(const TensorDesc& src) = 0;
  virtual std::unique_ptr<Linear> MakeLinear(const LinearSpec& spec) = 0;
  virtual std::unique_ptr<SoftmaxCrossEntropy> MakeSoftmaxCrossEntropy(
      const SoftmaxCrossEntropySpec& spec) = 0;
  // `segments` as OptimizerTraits has them.
  virtual std::unique_ptr<Optimizer> MakeOptimizer(OptimizerKind kind,
                                                   std::vector<ParameterSegment> segments) = 0;

  // The default compositions (backend/block_defaults.cc) unless a back end has something better.
  virtual std::unique_ptr<Stem> MakeStem(const StemSpec& spec);
  virtual std::unique_ptr<Bottleneck> MakeBottleneck(const BottleneckSpec& spec);
  // Whether both give something better.
  virtual bool has_own_blocks() const { return false; }
  virtual std::unique_ptr<Head> MakeHead(const HeadSpec& spec);
};

// A range from here to the end of the scope.
class RangeOfScope {
 public:
  // `backend` outlives it.
  RangeOfScope(Backend& backend, const char* name) : backend_(backend) { backend.BeginRange(name); }
  ~RangeOfScope() { backend_.EndRange(); }
  RangeOfScope(const RangeOfScope&) = delete;
  RangeOfScope& operator=(const RangeOfScope&) = delete;

 private:
  Backend& backend_;
};

}  // namespace trainer
