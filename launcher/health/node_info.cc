// SPDX-License-Identifier: Apache-2.0

#include "launcher/health/node_info.h"

#include <nlohmann/json.hpp>

#include "launcher/base/error.h"

namespace launcher {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GpuProcess, pid, bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GpuInfo, model, pci_bus_id, uncorrected_errors, remap_pending,
                                   remap_failed, nvlink_domain, nvlinks, pcie_lanes, pcie_lanes_max,
                                   processes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(IbPortInfo, name, state, rate_gbits, protocol)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DirectoryInfo, path, is_shared, write_error, free_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MasterAddrInfo, address, problem)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LinkTestResult, to, problem, seconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ConnectivityResult, unavailable, problem, clock_seconds,
                                   links_tested, links_ok, slowest, failed)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Detail, name, text)
// All but the details, which most reports have none of.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(NodeInfo, node, host, machine, cpu_model, cpus, memory_bytes,
                                   kernel, system, gpu_source, gpu_problem, gpus, nvidia_devices,
                                   imex_problem, granted_gpus, ports, memlock_bytes, shm_free_bytes,
                                   shm_error, directory, master, mpi, pmix, pmix_server, ucx,
                                   exchange)

namespace {

using nlohmann::json;

// Names that the kernel or a driver gives need not be UTF-8.
std::string Dump(const json& info) {
  return info.dump(-1, ' ', true, json::error_handler_t::replace);
}

LaunchError NotOurs(const std::exception& error) {
  return LaunchError(EX_SOFTWARE,
                     std::string("the facts of a node are not what this version of ddlrun writes; "
                                 "are all nodes' installations the same? ") +
                         error.what());
}

}  // namespace

std::string EncodeNodeInfo(const NodeInfo& info) {
  json encoded = info;
  if (!info.details.empty()) encoded["details"] = info.details;
  return Dump(encoded);
}

NodeInfo DecodeNodeInfo(const std::string& text) {
  try {
    const json encoded = json::parse(text);
    NodeInfo info = encoded.get<NodeInfo>();
    if (encoded.contains("details"))
      info.details = encoded.at("details").get<std::vector<Detail>>();
    return info;
  } catch (const std::exception& error) {
    throw NotOurs(error);
  }
}

std::string EncodeLaterInfo(const NodeInfo& info) {
  return Dump(
      {{"directory", info.directory}, {"master", info.master}, {"exchange", info.exchange}});
}

void DecodeLaterInfo(const std::string& text, NodeInfo* info) {
  try {
    const json later = json::parse(text);
    const DirectoryInfo directory = later.at("directory").get<DirectoryInfo>();
    const MasterAddrInfo master = later.at("master").get<MasterAddrInfo>();
    info->exchange = later.at("exchange").get<ConnectivityResult>();
    info->directory = directory;
    info->master = master;
  } catch (const std::exception& error) {
    throw NotOurs(error);
  }
}

}  // namespace launcher
