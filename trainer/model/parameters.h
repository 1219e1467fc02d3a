// SPDX-License-Identifier: Apache-2.0
//
// Where every parameter of a network lives in its flat memory.  Pure: sizes and offsets, no
// addresses.
//
// Weights, gradients and momentum have one flat memory each, of the same layout: tensors lie in the
// order of the forward pass, so that backward completes the gradients from the end to the front,
// and an all-reduce of the end can start while backward goes on (comm/gradient_buckets.h).  Where a
// back end computes with some of them in another type than fp32, those lie behind all others, so
// that gradients of one type are one stretch; the few before them (of batch norm and biases) are
// complete when all are.
// Statistics have a flat memory of their own.  Weights, momentum and statistics are fp32; the
// weights that a back end computes with in another type are a copy, element for element.

#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "trainer/backend/blocks.h"
#include "trainer/backend/optimizer.h"

namespace trainer {

// Tensors start at multiples of this many elements (64 bytes).  What lies between them is zero and
// stays zero.
inline constexpr std::size_t kParameterAlignment = 16;

struct Parameter {
  std::string name;  // of the whole network, torchvision's: "layer1.0.conv1.weight"
  ParameterSpec spec;
  std::size_t begin = 0;  // elements into the flat memory of its kind
  std::size_t count = 0;  // elements there, the back end's padding included
};

// The parameters of one block, and what to put before their names ("layer1.0.", or "").
struct BlockParameters {
  std::string prefix;
  std::vector<ParameterSpec> specs;
};

struct ParameterLayout {
  // In the order of the forward pass, which is that of torchvision's state_dict() without its
  // num_batches_tracked.  A parameter's place here is its number, for model/network.h.
  std::vector<Parameter> parameters;
  std::vector<std::size_t> first_of_block;  // places in `parameters`; one more entry than blocks
  std::size_t elements = 0;                 // of each of weights, gradients and momentum
  std::size_t compute_from = 0;             // of those, the first that blocks do not have in fp32
  std::size_t statistic_elements = 0;
  // When block b has run backward, the gradients of [complete_from[b], elements) are there.
  std::vector<std::size_t> complete_from;
  // Covers [0, elements): neighbours with the same decay are one segment, gaps included.
  std::vector<ParameterSegment> segments;
  // Each trained parameter, with what pads it in the back end's layout; decay: an
  // optimizer that goes by tensors gives it decay, and a rate by its norms: weights of convolutions
  // and of the last layer, neither biases nor batch norm.
  std::vector<ParameterSegment> tensors;
};

// `blocks` in the order of the forward pass, at least one.
ParameterLayout LayOutParameters(std::span<const BlockParameters> blocks);

}  // namespace trainer
