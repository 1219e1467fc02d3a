// SPDX-License-Identifier: Apache-2.0
//
// The update of the weights, as an op (ops.h), and what is known of an optimizer beside that.

#pragma once

#include <cstddef>
#include <cstdint>

#include "trainer/backend/calls.h"
#include "trainer/core/stream.h"

namespace trainer {

// One stretch of the flat parameter memory, in elements.
struct ParameterSegment {
  std::size_t begin = 0;
  std::size_t count = 0;
  bool decay = false;
};

// What --optimizer names.
enum class OptimizerKind : std::uint8_t { kSgd, kLars };

// What is known of an optimizer beside its update, for all who do not compute it.
struct OptimizerTraits {
  OptimizerKind value;
  const char* name;         // of --optimizer, manifests of checkpoints and MLPerf's logs
  const char* description;  // for people
  const char* note;         // in the description of a run; "": none
  bool is_by_tensor;        // a segment is one tensor, and not a stretch with the same decay
  // UpdateWork: operations for each weight with decay, beside 5 for one without; whether gradient
  // and weight are read once more, since no update can start before the norms are there.
  int flop_with_decay;
  bool reads_twice;
};
inline constexpr OptimizerTraits kOptimizerTraits[] = {
    {OptimizerKind::kSgd, "sgd", "SGD with momentum", "", false, 9, false},
    {OptimizerKind::kLars, "lars", "LARS", "LARS: each tensor's rate goes by its norms", true, 11,
     true}};

inline const OptimizerTraits& TraitsOf(OptimizerKind kind) {
  return kOptimizerTraits[static_cast<std::size_t>(kind)];
}

// Whether an update is to be left out for the one before it, where device memory is of the host.
inline bool FollowsOneLeftOut(const UpdateParameters& call) {
  return call.before != nullptr && call.before->nonfinite != 0;
}

// An update of the flat memory of all parameters by their gradients.
//
// SGD with momentum as TensorFlow's MomentumOptimizer:
//   g = gradient_scale * gradient + (decay ? weight_decay * weight : 0)
//   momentum = momentum_factor * momentum + g;  weight -= learning_rate * momentum
//
// LARS as MLPerf's reference has it (mlcommons/training, image_classification/tensorflow2/
// lars_optimizer.py): each segment is one tensor, whose rate goes by two norms, |weight| and
// |gradient_scale * gradient|, in fp32 or better and in an order that is the same each time.  A
// segment without decay has the ratio 1.
//   ratio = kLarsEta * |weight| / (|gradient| + weight_decay * |weight|);  1 where a norm is 0
//   g as above;  momentum = momentum_factor * momentum + learning_rate * ratio * g
//   weight -= momentum
// So its momentum has the rate in it, and is no momentum of SGD.  What pads a tensor is 0 and
// changes no norm.
//
// Of both: compute_copy = weight.  weight, momentum: fp32.  compute_copy: null when the network
// computes in fp32 on the weights themselves.  *sums is overwritten; a gradient that is not finite
// leaves everything else untouched, and so does an update before that was left out (call->before).
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  virtual void Step(const UpdateParameters* call, float* weight, float* momentum,
                    const FlatGradients& gradients, void* compute_copy, UpdateSums* sums,
                    Stream& stream) = 0;
};

}  // namespace trainer
