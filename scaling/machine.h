// SPDX-License-Identifier: Apache-2.0
//
// A machine as people describe it, in a site file or by options: what is not said is unknown. Pure.
//
//   gpu: NAME               "V100-SXM2-32GB"
//   gpus_per_node: N
//   inside: NAME|GB/s       links between the GPUs of a node: a name (links.h) or a rate
//   adapters: N             of a node to the others
//   adapter_gbits: X        Gbit/s of each
//   file_system_gbs: X      GB/s of the shared file system, all nodes together

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scaling/links.h"

namespace scaling {

struct Machine {
  std::string gpu;  // "": not said
  std::optional<int> gpus_per_node;
  std::optional<std::string> inside;
  std::optional<int> adapters;
  std::optional<double> adapter_gbits;
  std::optional<double> file_system_gbs;
};

// In the order above.
const std::vector<std::string>& MachineKeys();

// Returns "" or what `value` should have been ("a whole number from 1 to 64").  REQUIRES: `key` is
// one of MachineKeys().
std::string SetMachineValue(Machine& machine, const std::string& key, const std::string& value);

// What is said, and else: 4 GPUs, those of its kind that are known to be linked (gpus.h) or NVLink
// of Volta, one adapter of 100 Gbit/s.
Links LinksOf(const Machine& machine);

// The same in words: "4 GPUs per node, xbus (32 GB/s) inside, 2 adapters of 100 Gbit/s", with
// "assumed" behind what was not said.
std::string DescribeLinks(const Machine& machine);

}  // namespace scaling
