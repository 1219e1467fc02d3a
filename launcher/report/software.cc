// SPDX-License-Identifier: Apache-2.0

#include "launcher/report/software.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <sstream>

#include "launcher/base/error.h"
#include "launcher/launch/child_environment.h"
#include "launcher/launch/mpirun_version.h"
#include "launcher/slurm/slurm_job.h"
#include "launcher/slurm/slurm_version.h"
#include "launcher/system/child_process.h"
#include "launcher/system/files.h"

namespace launcher {
namespace {

constexpr std::chrono::seconds kTimeout{10};

std::string Requested(const std::string& program, const std::string& question,
                      const Environment& environment) {
  CommandOutput output({program, question}, environment);
  output.Wait(kTimeout);
  return output.text();
}

std::string LastLineOf(std::string text) {
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  return text.substr(text.rfind('\n') + 1);
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
  const std::string path = FindProgram(mpirun, environment);
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
