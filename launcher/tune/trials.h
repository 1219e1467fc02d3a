// SPDX-License-Identifier: Apache-2.0
//
// Tries the choices of a knob against what the job has now, in turns, and decides.  Pure but for
// `measure`.

#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launcher/cli/settings.h"
#include "launcher/health/node_info.h"
#include "launcher/tune/measurements.h"

namespace launcher {

// What ddlrun --tune tries: each knob is a setting with some choices, one of which the job has now.
// Pure.

// Keys of the site file and variables of the ranks, by name, that are other than those the job has.
struct Change {
  std::map<std::string, std::string> keys;  // bind, rank_order
  std::map<std::string, std::string> variables;
};

struct Choice {
  std::string label;  // "eth1"
  Change change;
};

struct Knob {
  std::string title;  // "network"
  std::vector<Choice> choices;
};

// Ways between the nodes: InfiniBand's active ports, else the networks of the kernel, which all
// nodes have by the same name.  Bridges of containers and virtual machines are left out, since they
// lead nowhere.
struct Rails {
  std::vector<std::string> ports;     // "mlx5_0:1"
  std::vector<std::string> networks;  // "eth0"
};

// REQUIRES: the facts have details.
Rails RailsOf(const std::vector<NodeInfo>& info);

struct Tuned {
  bool by_nccl = false;      // the sums are NCCL's, else MPI's
  bool by_open_mpi = false;  // the MPI is Open MPI
  int max_ranks_of_a_node = 1;
};

// Each rail alone and, of ports, all together.
std::vector<Choice> RailChoices(const Rails& rails, bool by_nccl);

// The knobs in the order in which they are tried: each is tried with what was chosen of those
// before it.  Without choices that are as `settings` have it.  A knob without a choice is left out.
std::vector<Knob> MakeKnobs(const Rails& rails, const Tuned& tuned, const Settings& settings);

// `first`, and `second` where it says something else.
Change Together(Change first, const Change& second);

// The options by which ddlrun tries `change`.
std::vector<std::string> OptionsFor(const Change& change);

// How often each choice is measured.  The median of five is what one odd run does not move.
inline constexpr int kTrialRounds = 5;
// A choice that took this many times as long is not measured again.
inline constexpr double kHopeless = 3;

// Microseconds (ScoreOf) of one run with this change; nullopt when it failed.
using Measure = std::function<std::optional<double>(const Change&)>;

struct TriedChoice {
  std::string label;  // "as it is" for the first
  Change change;
  std::vector<double> microseconds = {};
  bool failed = false;
  bool hopeless = false;  // given up after its first round
};

struct KnobResult {
  std::string title;
  std::vector<TriedChoice> tried;  // the first is what the job has now
  std::size_t best = 0;            // index into tried: the first, unless another one is better
};

// Measures in kTrialRounds rounds, each of which begins with another choice, so that what changes
// meanwhile meets all alike.  Each choice is tried on top of `base`.
KnobResult TryKnob(const Knob& knob, const Change& base, const Measure& measure);

// "network: eth1, 1.20 ms (scatter 0.02 ms), instead of as it is, 8.3 ms (scatter 0.4 ms)" and
// what else was tried, in lines without their ends.
std::vector<std::string> ResultLines(const KnobResult& result);

}  // namespace launcher
