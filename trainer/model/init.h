// SPDX-License-Identifier: Apache-2.0
//
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

#pragma once

#include <cstdint>
#include <vector>

#include "trainer/backend/blocks.h"
#include "trainer/model/network.h"

namespace trainer {

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
