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

// Model FLOPs utilization (MFU): the arithmetic that training needs by its definition, over what
// the tensor cores of the card reach by its data sheet in that time.  What is computed again does
// not count, nor does how often memory is read, so that it stays comparable when kernels change
// (the definition of PaLM, arXiv 2204.02311, appendix B).  Pure.

// ResNet-50 v1.5 on 224 x 224 pixels, one image: 2 for each multiplication and addition of the 53
// convolutions and the linear layer, 4.089e9 forward, backward twice as many, but none for the
// gradient of the image.
inline constexpr double kResNet50Flop = 24.30e9;

// FLOP/s of the card that the driver calls so ("NVIDIA H200"), in fp16 with sums in fp32, without
// sparsity; empty for another card and for a part of one (MIG).
std::optional<double> PeakFlopsOfCard(std::string_view name);

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
