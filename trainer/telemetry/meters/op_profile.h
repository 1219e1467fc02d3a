// SPDX-License-Identifier: Apache-2.0
//
// Where the time of a step goes, op by op, and how far each is from its roofline.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/core/profiled_op.h"

namespace trainer {

// How fast a GPU could train at most, by what it can compute and what its memory can move; to say
// how much of that was reached.  Pure.

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

// How far ops are from what the machine allows: each op beside its roofline, worst first, and sums
// by layer and by kind of op.  Pure.  doc/reference/metrics.md has the definitions.

// What an op, or several together, did in one step.
struct ProfileRow {
  std::string layer;  // "" in a sum by kind
  std::string op;     // "" in a sum by layer
  std::string shape;  // "" in a sum
  double calls = 0;
  double seconds = 0;
  OpWork work;
  // What the calls take at least: of each, the longer of its flop and its bytes at the peaks.
  double limit_seconds = 0;
  // Of limit_seconds, where the bytes take longer.
  double memory_seconds = 0;

  double lost_seconds() const { return seconds - limit_seconds; }
  // Of 1; 0 where no time was measured.
  double share() const { return seconds > 0 ? limit_seconds / seconds : 0; }
  // What most of limit_seconds is: "memory" or "compute".
  const char* bound() const { return 2 * memory_seconds > limit_seconds ? "memory" : "compute"; }
};

// What was profiled.
struct ProfileHead {
  std::string backend;          // its description
  std::int64_t first_step = 1;  // from 1
  std::int64_t steps = 1;
  double step_seconds = 0;  // mean
  MachinePeaks peaks;
  bool are_peaks_measured = false;  // else given
};

struct OpProfile {
  ProfileHead head;
  // Each with the most lost_seconds() first.
  std::vector<ProfileRow> ops;
  std::vector<ProfileRow> layers;
  std::vector<ProfileRow> kinds;
  ProfileRow all;  // ops together
};

// `ops` of all steps of `head`.
OpProfile AnalyzeOps(ProfileHead head, std::span<const ProfiledOp> ops);

// Tables for people: of ops and layers the first `rows` each.  One line each, without line ends.
std::vector<std::string> ProfileLines(const OpProfile& profile, std::size_t rows);

// One line of titles, and one for each op.
std::string ProfileCsv(const OpProfile& profile);

// {"backend": ..., "first_step": ..., ..., "ops": [...], "layers": [...], "kinds": [...]}
std::string ProfileJson(const OpProfile& profile);

}  // namespace trainer
