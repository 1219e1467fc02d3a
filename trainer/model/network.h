// SPDX-License-Identifier: Apache-2.0
//
// A network on a back end: stem, bottlenecks, head, and all their memory.  Everything is allocated
// by the constructor, as planned (model/network_definition.h); nothing is allocated afterwards.
//
// Used from one thread.  The back end outlives the network.  All work is queued on the stream that
// is passed in; use one stream for all calls.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "trainer/backend/backend.h"
#include "trainer/backend/blocks.h"
#include "trainer/core/consistency_item.h"
#include "trainer/model/network_definition.h"
#include "trainer/model/parameters.h"

namespace trainer {

class Network {
 public:
  // Called by Backward each time a block is done: the work of the gradients in [complete_from,
  // elements()) is queued.  complete_from falls from call to call, to 0.
  using GradientsReady = std::function<void(std::size_t complete_from)>;

  // Weights, gradients, momentum and statistics are zero: see model/parameters.h and Import.
  // `allocate_gradients` gives memory of the device; empty: the back end does.
  Network(Backend& backend, NetworkDefinition plan, const AllocateMemory& allocate_gradients = {});
  Network(Backend& backend, const NetworkSpec& spec)
      : Network(backend, DefineNetwork(backend, spec)) {}
  // Not copyable: blocks hold addresses into the buffers.
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  const NetworkSpec& spec() const { return plan_.spec; }

  // Runs the whole network on `batch` (memory of the device, as large as the spec says) and adds to
  // *loss_sums (device memory).
  void Forward(Mode mode, const InputBatch& batch, LossSums* loss_sums, Stream& stream);
  // Gradients of the last Forward; overwrites gradients().  REQUIRES: it was not kInference.
  void Backward(Stream& stream, const GradientsReady& gradients_ready);

  // (N, classes), fp32 row-major, on the device; valid until the next Forward.
  const Tensor& logits() const { return plan_.head->logits(); }

  // The flat memories (model/parameters.h).
  const std::vector<Parameter>& parameters() const { return plan_.layout.parameters; }
  const std::vector<ParameterSegment>& segments() const { return plan_.layout.segments; }
  const std::vector<ParameterSegment>& tensors() const { return plan_.layout.tensors; }
  std::size_t elements() const { return plan_.layout.elements; }
  float* weights() const { return reinterpret_cast<float*>(weights_.data()); }
  // As the blocks write them.  All of them have a place in its fp32 memory: those of the compute
  // type can be widened into theirs.
  FlatGradients gradients() const {
    return {reinterpret_cast<float*>(gradients_.data()), compute_gradients_.data(),
            plan_.layout.compute_from};
  }
  // Running statistics of batch norm, which each rank has its own of.
  const Buffer& statistics() const { return statistics_; }
  float* momentum() const { return reinterpret_cast<float*>(momentum_.data()); }
  bool has_ema() const { return plan_.spec.has_ema(); }
  // Sets the moving averages to the weights and statistics of now, those of a start.  Does nothing
  // where none are kept.
  void InitEma(Stream& stream);
  // Moves them on after an update, whose sums are on the device, unless that was left out:
  // average = decay * average + (1 - decay) * value.  Does nothing where none are kept.
  void UpdateEma(const UpdateSums* sums, Stream& stream);

  // The weights that the back end computes with, in its compute type, for the optimizer to write;
  // null where it computes with weights() themselves.
  void* compute_weights() const { return compute_weights_.data(); }

  // Where the blocks have it.
  ParameterBinding BindingOf(const Parameter& parameter) const;

  // Which number of a parameter; statistics have no momentum.  kAverage REQUIRES has_ema().
  enum class Part : std::uint8_t { kValue, kMomentum, kAverage };
  // Host values in torchvision's shape, row-major: spec.shape.elements() of them.  All wait until
  // the copy is done, and are exact.
  std::vector<float> Export(Part part, const Parameter& parameter, Stream& stream) const;
  void Export(Part part, const Parameter& parameter, float* dst, Stream& stream) const;
  // The same of a gradient, out of gradients() or what was made of them.
  std::vector<float> ExportGradient(const FlatGradients& gradients, const Parameter& parameter,
                                    Stream& stream) const;
  void Import(Part part, const Parameter& parameter, std::span<const float> values, Stream& stream);

 private:
  void AllocateParameters(const AllocateMemory& allocate_gradients);
  void AllocateArena();
  void BindBlocks();
  bool IsCopied(const Parameter& parameter) const {
    return parameter.spec.desc.dtype != DType::kFloat32;
  }
  const Buffer& BufferOf(Part part, bool statistic) const;
  Tensor TensorOf(Part part, const Parameter& parameter) const;
  std::vector<float> ExportTensor(const Tensor& tensor, const Parameter& parameter,
                                  Stream& stream) const;
  int block_count() const { return static_cast<int>(plan_.bodies.size()) + 2; }

  Backend& backend_;
  const NetworkDefinition plan_;
  Mode last_mode_ = Mode::kInference;

  Buffer weights_;
  Buffer gradients_;
  Buffer momentum_;
  Buffer statistics_;
  // Moving averages, elements as in weights_ and statistics_; empty unless they are kept.
  Buffer ema_weights_;
  Buffer ema_statistics_;
  // In the compute type, elements as in weights_ and gradients_; empty where that is fp32.
  Buffer compute_weights_;
  Buffer compute_gradients_;
  Buffer arena_;
  std::vector<Tensor> activations_;  // [b] leaves block b and enters block b + 1
  std::vector<Tensor> gradients_of_activations_;
};

// How a network's weights lie in its flat memory, which ranks sum element by element: a back end
// may choose another layout on another processor, or for another number of threads.

// One fact for each parameter that is trained: where it begins, and a fingerprint of the order of
// its elements.  Waits for `stream`.  Takes as long as exporting the weights once.
std::vector<ConsistencyItem> WeightLayout(const Network& network, Backend& backend, Stream& stream);

// How a network starts.  Reproducible outside this program: the values are a function of (seed,
// number of the parameter, its shape, fan) alone.
//
//   number     place among the tensors of the network in torchvision's state_dict() order,
//              num_batches_tracked left out: conv1.weight 0, bn1.weight 1, bn1.bias 2,
//              bn1.running_mean 3, bn1.running_var 4, layer1.0.conv1.weight 5, ...
//   ones       batch norm's weight and running_var;  zeros: every bias and running_mean
//   convolution (K, C, R, S) and fc (K, C), R = S = 1:
//     value[i] = float(stddev * draw i),  i in row-major order of torchvision's shape
//     draw     = Random(seed, RandomPurpose::kInit, number).TruncatedNormal()  (core/philox.h)
//     stddev   = sqrt(2 / fan) / 0.87962566103423978, in double: the divisor is the standard
//                deviation of a normal cut at 2, so that the values have variance 2 / fan
//     fan      = C*R*S for fan_in, K*R*S for fan_out
// This is TensorFlow's variance_scaling_initializer(scale=2, distribution="truncated_normal"), as
// NVIDIA's ResNet-50 uses it.

enum class WeightInit : std::uint8_t { kFanIn, kFanOut };

// The values of parameter `number`, row-major in spec.shape.
std::vector<float> InitialValues(const ParameterSpec& spec, std::uint64_t number,
                                 std::uint64_t seed, WeightInit weight_init);

struct Initialization {
  std::uint64_t seed = 1;
  WeightInit weight_init = WeightInit::kFanOut;
  // Every residual branch starts as zero, by the scale of its last batch norm (Goyal et al.,
  // "Accurate, large minibatch SGD", section 5.1).  Not NVIDIA's; training starts more gently.
  bool zero_init_residual = false;
};

// Sets all values of `network`; momentum is left as it is.
void Initialize(Network& network, const Initialization& start, Stream& stream);

}  // namespace trainer
