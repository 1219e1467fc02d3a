// SPDX-License-Identifier: Apache-2.0
//
// Whatever scontrol prints of the network, all nodes of a job keep a place in its order.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>

#include "launcher/allocation/network_order.h"
#include "launcher/slurm/network_topology.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  launcher::TopologyOfPartition(text);
  launcher::Allocation allocation;
  for (const char* host : {"n1", "n2", "n3", "n4"}) allocation.nodes.emplace_back().host = host;
  launcher::ReadNetworkTopology(text, &allocation);
  launcher::OrderByNetwork("n3", &allocation);
  std::set<std::string> hosts;
  for (const launcher::AllocatedNode& node : allocation.nodes) hosts.insert(node.host);
  if (hosts.size() != 4 || allocation.nodes.front().host != "n3") std::abort();
  return 0;
}
