// SPDX-License-Identifier: Apache-2.0

#include "launcher/health/node_info.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "launcher/base/error.h"
#include "support/json.h"

namespace launcher {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GpuProcess, pid, bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GpuInfo, model, pci_bus_id, uncorrected_errors, remap_pending,
                                   remap_failed, nvlink_domain, nvlinks, pcie_lanes, pcie_lanes_max,
                                   processes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(IbPortInfo, name, state, rate_gbits, protocol)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DirectoryInfo, path, is_shared, write_error, free_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MasterAddrInfo, address, problem, own_loopback)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LinkTestResult, to, problem, seconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ConnectivityResult, unavailable, problem, clock_seconds,
                                   links_tested, links_ok, slowest, failed)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Detail, name, text)
// All but the details, which most reports have none of.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(NodeInfo, node, host, machine, cpu_model, cpus, memory_bytes,
                                   kernel, system, gpu_source, gpu_problem, gpus, nvidia_devices,
                                   imex_problem, granted_gpus, ports, memlock_bytes, shm_free_bytes,
                                   shm_error, other_users, directory, master, mpi, pmix,
                                   pmix_server, ucx, exchange)

namespace {

using nlohmann::json;

// Names that the kernel or a driver gives need not be UTF-8.
std::string Dump(const json& info) {
  return info.dump(-1, ' ', true, json::error_handler_t::replace);
}

json Parsed(const std::string& text) {
  constexpr support::JsonLimits kLimits = {
      .bytes = std::size_t{16} << 20, .depth = 16, .values = 1'000'000};
  const std::string over = support::JsonOverLimit(text, kLimits);
  if (!over.empty()) throw std::invalid_argument("it is " + over);
  return json::parse(text);
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
    const json encoded = Parsed(text);
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
    const json later = Parsed(text);
    const DirectoryInfo directory = later.at("directory").get<DirectoryInfo>();
    const MasterAddrInfo master = later.at("master").get<MasterAddrInfo>();
    info->exchange = later.at("exchange").get<ConnectivityResult>();
    info->directory = directory;
    info->master = master;
  } catch (const std::exception& error) {
    throw NotOurs(error);
  }
}

namespace {

constexpr char kPrefix[] = "ddlrun-node-check: ";
// The text of EncodeLaterInfo begins like this; that of EncodeNodeInfo begins with another name.
constexpr std::string_view kLaterStart = "{\"directory\":";
// No node sends as many reports.
constexpr int kMaxReports = 8;

}  // namespace

std::string FormatNodeInfo(const NodeInfo& info, int report, NodeInfoKind kind) {
  const std::string text =
      kind == NodeInfoKind::kAll ? EncodeNodeInfo(info) : EncodeLaterInfo(info);
  const std::size_t parts = (text.size() + kMaxChunkBytes - 1) / kMaxChunkBytes;
  std::string lines;
  for (std::size_t part = 0; part < parts; ++part) {
    const std::string body = text.substr(part * kMaxChunkBytes, kMaxChunkBytes);
    lines += kPrefix + std::to_string(info.node) + " " + std::to_string(report) + " " +
             std::to_string(part + 1) + "/" + std::to_string(parts) + " " +
             std::to_string(body.size()) + " " + body + "\n";
  }
  return lines;
}

bool NodeInfoReader::Add(std::string_view line) {
  const std::size_t start = line.rfind(kPrefix);
  if (start == std::string_view::npos) return false;
  const std::string text(line.substr(start + sizeof(kPrefix) - 1));
  int node = -1;
  int report = -1;
  int part = 0;
  int parts = 0;
  int bytes = 0;
  int length = 0;
  if (std::sscanf(text.c_str(), "%6d %1d %4d/%4d %4d%n", &node, &report, &part, &parts, &bytes,
                  &length) != 5 ||
      length == 0 || node < 0 || static_cast<std::size_t>(node) >= parts_.size() || report < 0 ||
      report >= kMaxReports || part < 1 || part > parts || parts > kMaxChunks) {
    return false;
  }
  // Only one blank is taken away, since the text itself may begin with blanks.
  const std::string body = text.substr(std::min(text.size(), static_cast<std::size_t>(length) + 1));
  if (body.size() > kMaxChunkBytes || body.size() != static_cast<std::size_t>(bytes)) return false;
  NodeInfoMessage& into = parts_[static_cast<std::size_t>(node)][report];
  into.parts = parts;
  into.texts[part] = body;
  return true;
}

std::vector<NodeInfo> NodeInfoReader::Facts() const {
  std::vector<NodeInfo> all;
  for (const auto& reports : parts_) {
    NodeInfo& info = all.emplace_back();
    for (const auto& [number, report] : reports) {
      if (report.texts.size() != static_cast<std::size_t>(report.parts)) continue;
      std::string text;
      for (const auto& [part, body] : report.texts) text += body;
      if (text.starts_with(kLaterStart)) {
        DecodeLaterInfo(text, &info);
      } else {
        info = DecodeNodeInfo(text);
      }
    }
  }
  return all;
}

}  // namespace launcher
