// SPDX-License-Identifier: Apache-2.0
//
// Blocks are what the model calls: stem, bottleneck, head.  Each has a default composition out of
// ops that works on every back end (backend/block_defaults.cc); a back end may override a whole
// block with one of its own, and nothing outside it changes.
//
// Life of a block: made from a spec; says which parameters it has; reserves memory for one training
// step; is bound to addresses; then runs.  Nothing is allocated after Bind.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/backend/ops.h"
#include "trainer/core/memory_planner.h"

namespace trainer {

class OpRecorder;
struct BlockEnd;  // what a back end knows of the end of its own blocks

// How a parameter starts.
enum class Init : std::uint8_t {
  kVarianceScaling,  // truncated normal, variance 2 / fan (model/parameters.h)
  kOnes,
  kZeros,
};

// A parameter (trained, has a gradient) or a statistic (neither).
struct ParameterSpec {
  std::string name;  // within the block, torchvision's: "conv1.weight", "bn1.running_mean",
                     // "downsample.0.weight"
  Shape shape;       // as torchvision stores it, row-major fp32
  TensorDesc desc;   // as the block computes with it
  Init init = Init::kZeros;
  bool decay = false;      // L2 applies: everything but batch norm
  bool statistic = false;  // running mean or variance
};

// Where one ParameterSpec lives.  gradient is empty for statistics.
struct ParameterBinding {
  Tensor value;
  Tensor gradient;
};

// Times on the clock of a training step, for MemoryPlanner: when the block runs forward, and
// backward.
struct BlockTimes {
  int forward = 0;
  int backward = 0;
};

class Block {
 public:
  virtual ~Block() = default;

  // One entry per parameter and statistic, in the order of the forward pass.
  virtual const std::vector<ParameterSpec>& parameters() const = 0;

  // Reserves what the block keeps from forward to backward, and its scratch, in `plan`.  Not: src,
  // dst and their gradients, which belong to the caller.
  virtual void Reserve(const BlockTimes& times, const std::string& name, MemoryPlanner& plan) = 0;

  // `arena` is the memory of the solved plan; `bindings` are in the order of parameters().
  virtual void Bind(const MemoryPlanner& plan, std::byte* arena,
                    std::vector<ParameterBinding> bindings) = 0;
};

// Input transform, 7x7 convolution with stride 2, batch norm, ReLU, 3x3 max pool with stride 2.
// Parameters: conv1.weight, bn1.{weight,bias,running_mean,running_var}.
struct StemSpec {
  std::int64_t batch = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t out_channels = 64;
};
// Device memory of one batch.
struct InputBatch {
  const std::uint8_t* pixels = nullptr;  // N x H x W x 3
  const std::uint8_t* mirror = nullptr;  // N
  const std::int32_t* labels = nullptr;  // N
  const float* lambda = nullptr;         // N, of mixup; null: 1 for all
  const LossParameters* loss = nullptr;
};
class Stem : public Block {
 public:
  virtual const TensorDesc& dst() const = 0;
  virtual void Forward(Mode mode, const InputBatch& batch, const Tensor& dst, Stream& stream) = 0;
  virtual void Backward(Mode mode, const Tensor& dst, const Tensor& diff_dst, Stream& stream) = 0;
};

// ResNet v1.5 bottleneck: 1x1 to `mid_channels`, 3x3 with the stride, 1x1 to `out_channels`, each
// with batch norm; ReLU after the first two and after the addition of the shortcut.  The shortcut
// is src, or, where stride != 1 or the channels differ, a strided 1x1 convolution with batch norm.
// Parameters: conv1.weight, bn1.*, conv2.weight, bn2.*, conv3.weight, bn3.*, then
// downsample.0.weight, downsample.1.* if there.
struct BottleneckSpec {
  TensorDesc src;
  std::int64_t mid_channels = 0;
  std::int64_t out_channels = 0;
  std::int64_t stride = 1;

  bool has_downsample() const { return stride != 1 || src.shape[1] != out_channels; }
};
class Bottleneck : public Block {
 public:
  virtual const TensorDesc& dst() const = 0;
  virtual void Forward(Mode mode, const Tensor& src, const Tensor& dst, Stream& stream) = 0;
  // Overwrites diff_dst (it is scratch afterwards).
  virtual void Backward(Mode mode, const Tensor& src, const Tensor& dst, const Tensor& diff_dst,
                        const Tensor& diff_src, Stream& stream) = 0;
  // What spans two blocks: `below` is end() of the block whose dst is this one's src, and is there
  // as long as this one runs; null: none.  Said before either is reserved.  From then on the two
  // are used together: forward this one at the time after the lower one's, which may leave dst to
  // it, backward the lower one at the time after this one's, and what this one leaves in diff_src
  // is for the two to know.
  virtual BlockEnd* end() { return nullptr; }
  virtual void set_below(BlockEnd* /*below*/) {}
  // Whoever is not made of ops of the back end tells `recorder`, or null for nobody, of the steps
  // of the calls that follow.
  virtual void set_recorder(OpRecorder* /*recorder*/) {}
};

// Global average pool, linear layer, softmax cross-entropy.  Parameters: fc.weight, fc.bias.
struct HeadSpec {
  TensorDesc src;
  std::int64_t classes = 1000;
  float label_smoothing = 0;
};
class Head : public Block {
 public:
  // (N, classes), fp32 row-major, of the last Forward; valid until the next call.
  virtual const Tensor& logits() const = 0;
  // In kInference label smoothing does not apply and nothing is kept.  Adds to *sums.
  virtual void Forward(Mode mode, const Tensor& src, const InputBatch& batch, LossSums* sums,
                       Stream& stream) = 0;
  virtual void Backward(const Tensor& src, const Tensor& diff_src, Stream& stream) = 0;
};

}  // namespace trainer
