// SPDX-License-Identifier: Apache-2.0
//
// ddlbench predict: what a few speeds and the links of a machine say of a training on many nodes.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bench/base/diagnostics.h"
#include "scaling/predict.h"

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

// All that a prediction is made from.
struct PredictionBasis {
  scaling::Training training;
  scaling::Calibration calibration;
  std::string links;               // in words
  std::string speed_source;        // of one GPU
  std::string backward_source;     // of when gradients are there
  std::string others;              // nodes of another kind, in words; "": there are none
  std::map<int, double> measured;  // images/s by ranks, of `from`
};

// Reads what the options name.  Throws trainer::Error: EX_USAGE naming the option that is wrong,
// EX_DATAERR or EX_CONFIG naming the file.  Logs that cannot be used are problems.
PredictionBasis ReadPredictionBasis(const PredictOptions& options, Diagnostics& diagnostics);

// What is printed: a table with a line for each number of nodes or ranks, and what would be faster
// than the last.  Pure.
std::string FormatPrediction(const PredictOptions& options, const PredictionBasis& basis);

// The same as one JSON object.  Pure.
std::string PredictionAsJson(const PredictOptions& options, const PredictionBasis& basis);

std::string RunPredict(const PredictOptions& options, Diagnostics& diagnostics);

}  // namespace bench
