// SPDX-License-Identifier: Apache-2.0

#include "launcher/report/report_lines.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <sstream>

#include "launcher/base/error.h"
#include "launcher/cli/quoting.h"
#include "launcher/launch/child_environment.h"
#include "launcher/launch/mpirun_version.h"
#include "launcher/report/site_report.h"
#include "launcher/slurm/slurm_job.h"
#include "launcher/slurm/slurm_version.h"
#include "launcher/system/child_process.h"
#include "launcher/system/files.h"

namespace launcher {
namespace {

constexpr char kMemory[] = "memory";
constexpr char kNumaNode[] = "NUMA node";
constexpr char kCpusOfJob[] = "CPUs of this job";

// One kind of fact, with the hosts that have each text, in the order of the nodes.
struct Kind {
  std::string name;
  std::vector<SiteReportField> groups;
};

void AddFact(const std::string& name, const std::string& text, const std::string& host,
             std::vector<Kind>& kinds) {
  if (text.empty()) return;
  auto kind = std::find_if(kinds.begin(), kinds.end(),
                           [&](const Kind& candidate) { return candidate.name == name; });
  if (kind == kinds.end()) kind = kinds.insert(kinds.end(), Kind{name, {}});
  auto group =
      std::find_if(kind->groups.begin(), kind->groups.end(),
                   [&](const SiteReportField& candidate) { return candidate.text == text; });
  if (group == kind->groups.end()) group = kind->groups.insert(kind->groups.end(), {name, text});
  group->hosts.push_back(host);
}

std::string GibibytesText(long long bytes) {
  return bytes <= 0 ? "" : std::to_string((bytes + (1LL << 29)) >> 30) + " GiB";
}

std::string GpuText(const GpuInfo& gpu) {
  std::string text = gpu.model.empty() ? "model not known" : gpu.model;
  if (gpu.nvlinks >= 0) text += ", " + std::to_string(gpu.nvlinks) + " NVLinks";
  if (gpu.pcie_lanes > 0) {
    text += ", " + std::to_string(gpu.pcie_lanes) + " of " + std::to_string(gpu.pcie_lanes_max) +
            " PCIe lanes";
  }
  return text;
}

// "4 x Tesla V100-SXM2-16GB, 6 NVLinks, 16 of 16 PCIe lanes"; several kinds with "; " between them.
std::string GpusText(const NodeInfo& info) {
  if (info.gpus.empty()) {
    return info.nvidia_devices == 0
               ? "none"
               : "none of " + std::to_string(info.nvidia_devices) + " on the PCI bus";
  }
  std::string text;
  for (std::size_t first = 0; first < info.gpus.size();) {
    const std::string kind = GpuText(info.gpus[first]);
    std::size_t end = first + 1;
    while (end < info.gpus.size() && GpuText(info.gpus[end]) == kind) ++end;
    text += (text.empty() ? "" : "; ") + std::to_string(end - first) + " x " + kind;
    first = end;
  }
  return text + ", by " + info.gpu_source;
}

std::string PortsText(const std::vector<IbPortInfo>& ports) {
  std::string text;
  for (const IbPortInfo& port : ports) {
    text += (text.empty() ? "" : "; ") + port.name + " " + port.state + ", " +
            std::to_string(port.rate_gbits) + " Gbit/s, " + port.protocol;
  }
  return text.empty() ? "none" : text;
}

std::vector<Kind> KindsOf(const std::vector<NodeInfo>& info) {
  std::vector<Kind> kinds;
  for (const NodeInfo& node : info) {
    if (node.host.empty()) continue;
    const auto add = [&](const std::string& name, const std::string& text) {
      AddFact(name, text, node.host, kinds);
    };
    add("distribution", node.system);
    add("kernel", node.kernel);
    add("processor", node.cpu_model + ", " + std::to_string(node.cpus) + " hardware threads");
    add(kMemory, GibibytesText(node.memory_bytes));
    add("GPUs", GpusText(node));
    add("NVML", node.gpu_problem);
    add("InfiniBand", PortsText(node.ports));
    add("MPI library", node.mpi);
    add("PMIx library", node.pmix);
    add("PMIx of the launcher", node.pmix_server);
    add("UCX library", node.ucx);
    for (const Detail& detail : node.details) add(detail.name, detail.text);
  }
  return kinds;
}

std::string StatusWord(Status status) {
  if (status == Status::kOk) return "ok";
  if (status == Status::kWarn) return "warn";
  return status == Status::kFail ? "fail" : "not known";
}

}  // namespace

std::vector<SiteReportField> NodeLines(const std::vector<NodeInfo>& info) {
  std::vector<std::string> hosts;
  for (const NodeInfo& node : info) {
    if (!node.host.empty()) hosts.push_back(node.host);
  }
  std::vector<SiteReportField> lines;
  for (Kind& kind : KindsOf(info)) {
    // Nodes without it are a group, too.
    std::vector<std::string> without = hosts;
    for (const SiteReportField& group : kind.groups) {
      std::erase_if(without, [&group](const std::string& host) {
        return std::find(group.hosts.begin(), group.hosts.end(), host) != group.hosts.end();
      });
    }
    if (!without.empty()) kind.groups.push_back({kind.name, "not there", without});
    std::stable_sort(kind.groups.begin(), kind.groups.end(),
                     [](const SiteReportField& one, const SiteReportField& other) {
                       return one.hosts.size() > other.hosts.size();
                     });
    if (kind.groups.size() == 1) kind.groups.front().hosts.clear();
    lines.insert(lines.end(), kind.groups.begin(), kind.groups.end());
  }
  return lines;
}

std::vector<SiteReportField> Differences(const std::vector<SiteReportField>& lines) {
  std::vector<SiteReportField> differences;
  for (const SiteReportField& line : lines) {
    const bool may_differ =
        line.name == kMemory || line.name == kCpusOfJob || line.name.starts_with(kNumaNode);
    if (line.hosts.empty() || may_differ) continue;
    const std::string text = line.text + " (" + HostsText(line.hosts) + ")";
    const bool continues = !differences.empty() && differences.back().name == line.name;
    if (continues) {
      differences.back().text += ", " + text;
    } else {
      differences.push_back({line.name, "differs between nodes: " + text});
    }
  }
  return differences;
}

std::vector<SiteReportField> VerdictLines(const std::vector<Verdict>& verdicts) {
  std::vector<SiteReportField> lines;
  for (const Verdict& verdict : verdicts) {
    lines.push_back({verdict.check, StatusWord(verdict.status) + ": " + verdict.seen +
                                        (verdict.advice.empty() ? "" : ": " + verdict.advice)});
  }
  return lines;
}

std::vector<SiteReportField> OddVerdicts(const std::vector<Verdict>& verdicts) {
  std::vector<Verdict> odd = verdicts;
  std::erase_if(odd, [](const Verdict& verdict) { return verdict.status == Status::kOk; });
  return VerdictLines(odd);
}

namespace {

constexpr char kOfEnvironment[] = "environment.";

std::string ArgumentsText(const std::string& quoted) {
  std::string text;
  try {
    for (const std::string& word : WithoutValues(SplitOnWhitespace(quoted))) {
      text += (text.empty() ? "" : " ") + word;
    }
  } catch (const LaunchError&) {
    return "...";
  }
  return text;
}

std::string ReportedValue(const ShownSetting& setting) {
  if (setting.name == "mpi_arguments" || setting.name == "srun_arguments")
    return ArgumentsText(setting.value);
  if (!setting.name.starts_with(kOfEnvironment)) return setting.value;
  return IsKnownVariable(setting.name.substr(sizeof(kOfEnvironment) - 1)) ? setting.value : "...";
}

}  // namespace

std::vector<SiteReportField> SettingsLines(const Settings& settings) {
  std::vector<SiteReportField> lines;
  for (const ShownSetting& setting : settings.shown) {
    lines.push_back({setting.name, ReportedValue(setting) + "  # " + setting.origin});
  }
  return lines;
}

std::vector<SiteReportField> VariableLines(const Environment& environment) {
  std::vector<SiteReportField> lines;
  std::string others;
  for (const auto& [name, value] : environment) {
    if (IsKnownVariable(name)) {
      lines.push_back({name, value});
    } else if (IsNamedVariable(name)) {
      others += (others.empty() ? "" : ", ") + name;
    }
  }
  if (!others.empty()) lines.push_back({"set, value withheld", others});
  return lines;
}

namespace {

constexpr std::chrono::seconds kTimeout{10};

std::string Requested(const std::string& program, const std::string& question,
                      const Environment& environment) {
  CommandOutput output({program, question}, environment);
  output.Wait(kTimeout);
  return output.text();
}

// "slurm 22.05.8, PATH", or why srun does not tell.
std::string SlurmText(const std::string& srun, const std::string& answer) {
  std::istringstream lines(answer);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("slurm")) return line + ", " + srun;
  }
  const std::string reason = LastLineOf(answer);
  return srun + " does not answer" + (reason.empty() ? "" : ": " + reason);
}

std::vector<SiteReportField> SlurmLines(const Environment& environment) {
  const std::string srun = FindProgram("srun", environment);
  if (srun.empty()) return {{"Slurm", "srun is not in PATH"}};
  const Environment clean = EnvironmentForSrun(environment);
  std::string types;
  for (const std::string& type : ParseMpiList(Requested(srun, "--mpi=list", clean))) {
    types += (types.empty() ? "" : ", ") + type;
  }
  std::vector<SiteReportField> lines = {
      {"Slurm", SlurmText(srun, Requested(srun, "--version", clean))},
      {"PMI of srun", types.empty() ? "not known" : types}};
  const ScontrolAnswer answer = RunScontrol({"show", "config"}, environment);
  if (!answer.is_ok) {
    lines.push_back({"Slurm's configuration", "not known: " + answer.text});
    return lines;
  }
  const std::vector<SiteReportField> configuration = ConfigurationLines(answer.text);
  lines.insert(lines.end(), configuration.begin(), configuration.end());
  return lines;
}

std::string MpirunText(const std::string& mpirun, const Environment& environment) {
  const std::string path = FindProgramOrNeighbor(mpirun, environment);
  const std::unique_ptr<CommandOutput> requested = QueryMpirun(path, environment);
  if (requested == nullptr) return mpirun + " is not in PATH";
  const MpirunVersion version = AnswerOfMpirun(requested.get());
  return (version.name.empty() ? "of an unknown MPI" : version.name) + ", " + path;
}

}  // namespace

std::vector<SiteReportField> ConfigurationLines(const std::string& text) {
  static const std::set<std::string> wanted = {"CgroupPlugin",
                                               "ConstrainCores",
                                               "ConstrainDevices",
                                               "ConstrainRAMSpace",
                                               "ConstrainSwapSpace",
                                               "GresTypes",
                                               "KillWait",
                                               "LaunchParameters",
                                               "MpiDefault",
                                               "MpiParams",
                                               "PrologFlags",
                                               "ProctrackType",
                                               "PropagateResourceLimits",
                                               "PropagateResourceLimitsExcept",
                                               "SelectType",
                                               "SelectTypeParameters",
                                               "SlurmdParameters",
                                               "SrunPortRange",
                                               "SwitchType",
                                               "TaskPlugin",
                                               "TaskPluginParam",
                                               "TopologyParam",
                                               "TopologyPlugin",
                                               "UnkillableStepTimeout"};
  std::vector<SiteReportField> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    std::string name = line.substr(0, equals);
    name.erase(name.find_last_not_of(" \t") + 1);
    std::string value = line.substr(equals + 1);
    value.erase(0, value.find_first_not_of(" \t"));
    if (!wanted.contains(name) || value.empty() || value == "(null)") continue;
    lines.push_back({name, value});
  }
  return lines;
}

std::vector<SiteReportField> SoftwareLines(const std::string& mpirun,
                                           const Environment& environment) {
  std::vector<SiteReportField> lines;
  try {
    lines = SlurmLines(environment);
    lines.push_back({"mpirun", MpirunText(mpirun, environment)});
  } catch (const LaunchError& error) {
    lines.push_back({"not known", error.what()});
  }
  return lines;
}

}  // namespace launcher
