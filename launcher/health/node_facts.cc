// SPDX-License-Identifier: Apache-2.0

#include "launcher/health/node_facts.h"

#include <nlohmann/json.hpp>

#include "launcher/base/error.h"

namespace launcher {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GpuProcess, pid, bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GpuFacts, model, pci_bus_id, uncorrected_errors, remap_pending,
                                   remap_failed, nvlink_domain, nvlinks, pcie_lanes,
                                   pcie_lanes_most, processes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PortFacts, name, state, rate_gbits, protocol)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DirectoryFacts, path, is_shared, write_error, free_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MasterFacts, address, problem)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LinkFacts, to, problem, seconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ExchangeFacts, unavailable, problem, clock_seconds, links_tested,
                                   links_ok, slowest, failed)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Detail, name, text)
// All but the details, which most reports have none of.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(NodeFacts, node, host, machine, cpu_model, cpus, memory_bytes,
                                   kernel, system, gpu_source, gpu_problem, gpus, nvidia_devices,
                                   imex_problem, granted_gpus, ports, memlock_bytes, shm_free_bytes,
                                   shm_error, directory, master, mpi, pmix, pmix_server, ucx,
                                   exchange)

namespace {

using nlohmann::json;

// Names that the kernel or a driver gives need not be UTF-8.
std::string Dump(const json& facts) {
  return facts.dump(-1, ' ', true, json::error_handler_t::replace);
}

LaunchError NotOurs(const std::exception& error) {
  return LaunchError(EX_SOFTWARE,
                     std::string("the facts of a node are not what this version of ddlrun writes; "
                                 "are all nodes' installations the same? ") +
                         error.what());
}

}  // namespace

std::string EncodeNodeFacts(const NodeFacts& facts) {
  json encoded = facts;
  if (!facts.details.empty()) encoded["details"] = facts.details;
  return Dump(encoded);
}

NodeFacts DecodeNodeFacts(const std::string& text) {
  try {
    const json encoded = json::parse(text);
    NodeFacts facts = encoded.get<NodeFacts>();
    if (encoded.contains("details"))
      facts.details = encoded.at("details").get<std::vector<Detail>>();
    return facts;
  } catch (const std::exception& error) {
    throw NotOurs(error);
  }
}

std::string EncodeLaterFacts(const NodeFacts& facts) {
  return Dump(
      {{"directory", facts.directory}, {"master", facts.master}, {"exchange", facts.exchange}});
}

void DecodeLaterFacts(const std::string& text, NodeFacts* facts) {
  try {
    const json later = json::parse(text);
    const DirectoryFacts directory = later.at("directory").get<DirectoryFacts>();
    const MasterFacts master = later.at("master").get<MasterFacts>();
    facts->exchange = later.at("exchange").get<ExchangeFacts>();
    facts->directory = directory;
    facts->master = master;
  } catch (const std::exception& error) {
    throw NotOurs(error);
  }
}

}  // namespace launcher
