// SPDX-License-Identifier: Apache-2.0
//
// How fast a GPU could train at most, by what it can compute and what its memory can move; to say
// how much of that was reached.  Pure.

#pragma once

#include <optional>
#include <string_view>

namespace trainer {

// Of one image in a training step.
struct ImageWork {
  double flop = 0;
  double bytes = 0;  // between the GPU and its memory
};

// ResNet-50 v1.5 on 224 x 224 pixels, 16 bits per value.
//   flop: 2 for each multiplication and addition of the 53 convolutions and the linear layer,
//     4.089e9 forward, backward twice as many, but none for the gradient of the image.
//   bytes: the largest tensors only (activations and their gradients: 11.114e6 values come out of
//     the convolutions), each kernel reading its inputs and writing its outputs once, with every
//     fusion that is known: statistics of batch norm in the convolution before it, scale, shift
//     and ReLU in the one behind it, both ways, and the stem's batch norm in its pool.  Batch norm
//     as a kernel of its own moves 344.4e6, batch norm, addition and ReLU as three 471.9e6.
inline constexpr ImageWork kResNet50Work = {24.30e9, 258.8e6};

// Of a card's data sheet: tensor cores in fp16 with sums in fp32, without sparsity; memory.
struct CardPeak {
  double flops = 0;             // per second
  double bytes_per_second = 0;  // 1e9 are a GB/s
};

// By the name that the driver gives it ("NVIDIA H200"); empty if the card is not in the table.
std::optional<CardPeak> PeakOfCard(std::string_view name);

// Of 1: the rate reached over the rate that computing alone, and moving alone, would allow.
struct RooflineShare {
  double compute = 0;
  double memory = 0;

  // Over the rate that both allow.
  double both() const { return compute > memory ? compute : memory; }
};
RooflineShare ShareOfRoofline(const ImageWork& work, const CardPeak& peak,
                              double images_per_second);

}  // namespace trainer
