// SPDX-License-Identifier: Apache-2.0
//
// What ddlrun --tune tries: each knob is a setting with some choices, one of which the job has now.
// Pure.

#pragma once

#include <map>
#include <string>
#include <vector>

#include "launcher/cli/settings.h"
#include "launcher/health/node_info.h"

namespace launcher {

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

}  // namespace launcher
