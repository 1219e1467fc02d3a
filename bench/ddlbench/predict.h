// SPDX-License-Identifier: Apache-2.0
//
// ddlbench predict: what a few speeds and the links of a machine say of a training on many nodes.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/base/diagnostics.h"
#include "scaling/predict.h"
#include "scaling/step.h"

namespace bench {

// Of a step that is backward: a convolution has two products there, and one forward.
inline constexpr double kTypicalShare = 0.667;

struct PredictOptions {
  // How fast it is; images/s, 0: not given.
  double speed = 0;            // of one GPU
  double node_speed = 0;       // of one node
  double two_nodes_speed = 0;  // of two nodes
  std::string from;            // logs of a sweep that say these; "": none
  std::string precision = "fp16";
  std::int64_t batch_size = 256;  // of a GPU
  std::string site;               // site file, or the name of an installed one; "": none
  // Nodes of another kind in the same job; 0: none.
  int other_nodes = 0;
  std::string other_site;
  double other_speed = 0;  // of one of their GPUs, images/s; 0: not given
  // By the keys of scaling/machine.h, as given; "": not given.
  std::map<std::string, std::string> machine;
  std::string table;  // of all_reduce_perf; "": none
  double delay_us = 0;
  // What is summed, and how.
  std::string sums = "fp32";
  std::string buckets = "ddltraind";
  std::string overlap = "auto";
  double backward_share = kTypicalShare;  // of a step
  std::string profile;  // profile.json that says when gradients are there; "": none
  double cycle_ms = 0;
  double staging_gbs = 0;
  // Where images come from.
  double node_input = 0;  // images/s
  double image_kb = 110;
  std::vector<int> nodes = {1, 2, 4, 8, 16};
  std::vector<int> ranks;  // instead of nodes, also of a part of one; none: nodes
  bool json = false;
};

// Reads what the options name, and returns a table with a line for each number of nodes or ranks
// and what would be faster than the last, or all that as one JSON object.  Throws trainer::Error:
// EX_USAGE naming the option that is wrong, EX_DATAERR, EX_NOINPUT or EX_CONFIG naming the file.
// Logs that cannot be used are problems.
std::string RunPredict(const PredictOptions& options, Diagnostics& diagnostics);

// How long backward takes in each block of ResNet-50, by the profile of a training.
struct ProfiledBackward {
  scaling::BackwardTimes times = {};  // seconds of a step
  double share = 0;                   // of what all ops of a step take, the update among them
};

// `text`: of profile.json (doc/reference/benchmarks.md, Profile).  Throws
// trainer::Error(EX_DATAERR) naming `path` where it is none, or one of another network.  Pure.
ProfiledBackward ParseProfiledBackward(std::string_view text, const std::string& path);

}  // namespace bench
