// SPDX-License-Identifier: Apache-2.0

#include "launcher/report/site_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "launcher/health/verdict.h"

namespace launcher {
namespace {

// A name that is longer pushes its own text to the right, and nobody else's.
constexpr std::size_t kWidestName = 32;
constexpr std::size_t kMaxKinds = 8;  // of nodes: thousands may all differ

std::string OnOneLine(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char letter) { return letter < ' ' || letter == 127; },
      ' ');
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

}  // namespace

std::string ReportAsText(const SiteReport& report) {
  std::string text = "ddlrun --site-report, " + report.time + "\n";
  for (const SiteReportSection& part : report.parts) {
    std::size_t width = 0;
    for (const SiteReportField& line : part.lines) width = std::max(width, line.name.size());
    width = std::min(width, kWidestName);
    text += "\n" + part.title + "\n";
    std::size_t kinds = 0;  // of this name
    for (std::size_t i = 0; i < part.lines.size(); ++i) {
      const SiteReportField& line = part.lines[i];
      const bool is_next = i > 0 && part.lines[i - 1].name == line.name && !line.hosts.empty();
      const bool is_last = i + 1 == part.lines.size() || part.lines[i + 1].name != line.name;
      kinds = is_next ? kinds + 1 : 1;
      std::string name = line.name;
      if (kinds > kMaxKinds) {
        if (!is_last) continue;
        name.resize(std::max(width, name.size()), ' ');
        text += "  " + name + "  " + std::to_string(kinds - kMaxKinds) +
                " more, see --site-report=json\n";
        continue;
      }
      name.resize(std::max(width, name.size()), ' ');
      text += "  " + name + "  " + OnOneLine(line.text);
      if (!line.hosts.empty()) text += " (" + HostsText(line.hosts) + ")";
      text += "\n";
    }
  }
  return text;
}

std::string ReportAsJson(const SiteReport& report) {
  using nlohmann::json;
  json parts = json::array();
  for (const SiteReportSection& part : report.parts) {
    json lines = json::array();
    for (const SiteReportField& line : part.lines) {
      json written = {{"name", line.name}, {"text", line.text}};
      if (!line.hosts.empty()) written["hosts"] = line.hosts;
      lines.push_back(written);
    }
    parts.push_back({{"title", part.title}, {"lines", lines}});
  }
  const json whole = {{"format", kSiteReportFormat}, {"time", report.time}, {"parts", parts}};
  return whole.dump(2, ' ', true, json::error_handler_t::replace) + "\n";
}

SiteReport Redacted(SiteReport report, const Redaction& redaction) {
  for (SiteReportSection& part : report.parts) {
    for (SiteReportField& line : part.lines) line.text = WithoutNames(line.text, redaction);
  }
  return report;
}

namespace {

constexpr char kHidden[] = "...";

// What ends a path in a text.  A path with blanks in it is taken for several.
constexpr char kEndsOfPaths[] = " \t\r\n'\":,;()[]=";

bool IsSegmentAt(const std::string& path, const std::string& start) {
  return !start.empty() && path.starts_with(start) &&
         (path.size() == start.size() || path[start.size()] == '/');
}

// "/users/alice" -> "/users"; "" where that is the root itself.
std::string ParentOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

std::string HideInPath(const std::string& path, const Redaction& redaction) {
  const bool has_home = redaction.home.size() > 1;
  if (has_home && IsSegmentAt(path, redaction.home)) {
    return "~" + (path.size() > redaction.home.size()
                      ? HideInPath(path.substr(redaction.home.size()), redaction)
                      : "");
  }
  std::set<std::string> homes = {"/home", "/users"};
  if (has_home) homes.insert(ParentOf(redaction.home));
  std::string hidden;
  std::size_t next = 0;
  while (next < path.size()) {
    const std::size_t end = std::min(path.find('/', next + 1), path.size());
    const std::string name = path.substr(next + 1, end - next - 1);
    const bool is_home = homes.contains(path.substr(0, next)) && next > 0;
    const bool is_user = !name.empty() && (name == redaction.user || redaction.is_other_user(name));
    hidden += "/" + (!name.empty() && (is_home || is_user) ? kHidden : name);
    next = end;
  }
  return hidden;
}

bool IsNumber(const std::string& word) {
  return !word.empty() && word.find_first_not_of("0123456789") == std::string::npos;
}

bool NamesParameter(const std::string& word) {
  const std::string name = word.substr(std::min(word.find_first_not_of('-'), word.size()));
  return name == "mca" || name == "gmca" || name == "prtemca" || name == "pmixmca";
}

}  // namespace

std::string WithoutNames(const std::string& text, const Redaction& redaction) {
  std::string hidden;
  std::size_t next = 0;
  while (next < text.size()) {
    // Not the slash of "8/16" or "Gbit/s".
    const bool begins =
        text[next] == '/' &&
        (next == 0 || std::string(kEndsOfPaths).find(text[next - 1]) != std::string::npos);
    if (!begins) {
      hidden += text[next++];
      continue;
    }
    const std::size_t end = std::min(text.find_first_of(kEndsOfPaths, next), text.size());
    hidden += HideInPath(text.substr(next, end - next), redaction);
    next = end;
  }
  return hidden;
}

bool IsKnownVariable(const std::string& name) {
  static const std::set<std::string> known = {"CUDA_DEVICE_MAX_CONNECTIONS",
                                              "CUDA_DEVICE_ORDER",
                                              "CUDA_VISIBLE_DEVICES",
                                              "NCCL_ALGO",
                                              "NCCL_BUFFSIZE",
                                              "NCCL_COLLNET_ENABLE",
                                              "NCCL_CROSS_NIC",
                                              "NCCL_CUMEM_ENABLE",
                                              "NCCL_DEBUG",
                                              "NCCL_DEBUG_SUBSYS",
                                              "NCCL_IB_DISABLE",
                                              "NCCL_IB_GID_INDEX",
                                              "NCCL_IB_HCA",
                                              "NCCL_IB_RESILIENCY_PORT_FAILOVER",
                                              "NCCL_IB_RETRY_CNT",
                                              "NCCL_IB_SL",
                                              "NCCL_IB_TC",
                                              "NCCL_IB_TIMEOUT",
                                              "NCCL_LOCAL_REGISTER",
                                              "NCCL_MAX_CTAS",
                                              "NCCL_MAX_NCHANNELS",
                                              "NCCL_MIN_NCHANNELS",
                                              "NCCL_NET",
                                              "NCCL_NET_GDR_LEVEL",
                                              "NCCL_NET_GDR_READ",
                                              "NCCL_NSOCKS_PERTHREAD",
                                              "NCCL_NVLS_ENABLE",
                                              "NCCL_P2P_DISABLE",
                                              "NCCL_P2P_LEVEL",
                                              "NCCL_PROTO",
                                              "NCCL_SHM_DISABLE",
                                              "NCCL_SOCKET_FAMILY",
                                              "NCCL_SOCKET_IFNAME",
                                              "NCCL_SOCKET_NTHREADS",
                                              "OMPI_MCA_btl",
                                              "OMPI_MCA_btl_tcp_if_exclude",
                                              "OMPI_MCA_btl_tcp_if_include",
                                              "OMPI_MCA_coll",
                                              "OMPI_MCA_coll_han_priority",
                                              "OMPI_MCA_mtl",
                                              "OMPI_MCA_oob_tcp_if_exclude",
                                              "OMPI_MCA_oob_tcp_if_include",
                                              "OMPI_MCA_opal_cuda_support",
                                              "OMPI_MCA_osc",
                                              "OMPI_MCA_plm",
                                              "OMPI_MCA_pml",
                                              "OMPI_MCA_rmaps_base_mapping_policy",
                                              "OMPI_MCA_hwloc_base_binding_policy",
                                              "OMP_NUM_THREADS",
                                              "OMP_PLACES",
                                              "OMP_PROC_BIND",
                                              "PMIX_MCA_gds",
                                              "PMIX_MCA_psec",
                                              "SLURM_CPUS_PER_TASK",
                                              "SLURM_CPU_BIND",
                                              "SLURM_GPUS_ON_NODE",
                                              "SLURM_JOB_CPUS_PER_NODE",
                                              "SLURM_JOB_GPUS",
                                              "SLURM_JOB_ID",
                                              "SLURM_JOB_NODELIST",
                                              "SLURM_JOB_NUM_NODES",
                                              "SLURM_JOB_PARTITION",
                                              "SLURM_MEM_PER_NODE",
                                              "SLURM_MPI_TYPE",
                                              "SLURM_NTASKS",
                                              "SLURM_NTASKS_PER_NODE",
                                              "SLURM_STEP_GPUS",
                                              "SLURM_THREADS_PER_CORE",
                                              "UCX_IB_GPU_DIRECT_RDMA",
                                              "UCX_MAX_RNDV_RAILS",
                                              "UCX_MEMTYPE_CACHE",
                                              "UCX_NET_DEVICES",
                                              "UCX_RNDV_SCHEME",
                                              "UCX_RNDV_THRESH",
                                              "UCX_TCP_CONN_NB",
                                              "UCX_TLS"};
  return known.contains(name);
}

bool IsNamedVariable(const std::string& name) {
  if (name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") !=
      std::string::npos) {
    return false;
  }
  if (name == "LD_LIBRARY_PATH" || name == "LD_PRELOAD") return true;
  for (const char* start : {"CUDA_", "DDL", "NCCL_", "OMPI_", "OMP_", "PRTE_", "PMIX_", "UCX_"}) {
    if (name.starts_with(start)) return true;
  }
  return false;
}

std::vector<std::string> WithoutValues(const std::vector<std::string>& mpi_arguments) {
  std::vector<std::string> logged;
  for (std::size_t next = 0; next < mpi_arguments.size(); ++next) {
    const std::string& word = mpi_arguments[next];
    const std::size_t left = mpi_arguments.size() - next - 1;
    if ((word == "-x" || word == "--x") && left >= 1) {
      const std::string& variable = mpi_arguments[++next];
      const std::size_t equals = variable.find('=');
      logged.push_back(word);
      logged.push_back(variable.substr(0, equals) +
                       (equals == std::string::npos ? "" : std::string("=") + kHidden));
    } else if (NamesParameter(word) && word.starts_with("-") && left >= 2) {
      const std::string& name = mpi_arguments[next + 1];
      const bool is_known = IsKnownVariable("OMPI_MCA_" + name);
      logged.insert(logged.end(), {word, name, is_known ? mpi_arguments[next + 2] : kHidden});
      next += 2;
    } else if (word.starts_with("-")) {
      const std::size_t equals = word.find('=');
      logged.push_back(word.substr(0, equals) +
                       (equals == std::string::npos ? "" : std::string("=") + kHidden));
    } else {
      logged.push_back(IsNumber(word) ? word : kHidden);
    }
  }
  return logged;
}

std::string WithoutQuotedValue(const std::string& message) {
  const std::size_t quoted = message.find(", not '");
  if (quoted != std::string::npos) return message.substr(0, quoted) + ", and is not";
  // NAME=VALUE in place of NAME: VALUE is a common slip.
  std::string text;
  for (std::size_t begin = 0; begin < message.size();) {
    const std::size_t quote = std::min(message.find('\'', begin), message.size());
    const std::size_t end = std::min(message.find('\'', quote + 1), message.size());
    const std::string inside = message.substr(quote, end - quote);
    const std::size_t equals = inside.find('=');
    text += message.substr(begin, quote - begin) +
            (equals == std::string::npos ? inside : inside.substr(0, equals) + "=...");
    if (end < message.size()) text += '\'';
    begin = end + 1;
  }
  return text;
}

}  // namespace launcher
