// SPDX-License-Identifier: Apache-2.0

#include "launcher/ddlrun/report_site.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <sstream>
#include <utility>

#include "launcher/base/error.h"
#include "launcher/cli/settings.h"
#include "launcher/cli/site_config.h"
#include "launcher/ddlrun/query_nodes.h"
#include "launcher/ddlrun/run_messages.h"
#include "launcher/features/features.h"
#include "launcher/health/check_rules.h"
#include "launcher/health/node_info.h"
#include "launcher/pipeline/read_allocation.h"
#include "launcher/report/report_lines.h"
#include "launcher/report/site_report.h"
#include "launcher/system/child_process.h"
#include "launcher/system/files.h"
#include "launcher/system/output_queue.h"
#include "support/build.h"
#include "support/number.h"

namespace launcher {
namespace {

// The time for the check of this machine alone, which gives up by itself before.
constexpr std::chrono::seconds kTimeoutWithThisMachine{40};
// Accounts of people begin here on the distributions that are supported.
constexpr uid_t kFirstPerson = 1000;
constexpr uid_t kNobody = 65534;

// What the nodes were found to be.
struct Findings {
  std::vector<NodeInfo> info;
  std::vector<Verdict> verdicts;
  std::vector<SiteReportField> job;
  std::vector<SiteReportField> odd;
  int exit_code = EX_OK;
};

void RejectOtherModes(const Options& options) {
  if (!options.program.empty()) {
    throw LaunchError(EX_USAGE, "--site-report starts no program: leave '" +
                                    options.program.front() +
                                    "' and what follows out; options stand before it, as in "
                                    "ddlrun --site ./site.yaml --site-report");
  }
  std::string other;
  if (options.dry_run != DryRun::kNo) other = "--dry-run";
  if (options.advise) other = "--advise";
  if (options.show_config) other = "--show-config";
  if (options.check_only) other = "--check-only";
  if (!other.empty()) {
    throw LaunchError(EX_USAGE, "--site-report and " + other + ": ask for one of them");
  }
}

bool IsOtherUser(const std::string& name) {
  static std::map<std::string, bool> known;
  const auto found = known.find(name);
  if (found != known.end()) return found->second;
  const passwd* entry = getpwnam(name.c_str());
  const bool is_other = entry != nullptr && entry->pw_uid >= kFirstPerson &&
                        entry->pw_uid != kNobody && entry->pw_uid != getuid();
  return known[name] = is_other;
}

Redaction MakeRedaction(const Environment& environment) {
  Redaction redaction;
  const passwd* entry = getpwuid(getuid());
  if (entry != nullptr && getuid() >= kFirstPerson) redaction.user = entry->pw_name;
  redaction.home = ValueOr(environment, "HOME", entry == nullptr ? "" : entry->pw_dir);
  while (redaction.home.size() > 1 && redaction.home.back() == '/') redaction.home.pop_back();
  if (!redaction.home.starts_with("/")) redaction.home.clear();
  redaction.is_other_user = IsOtherUser;
  return redaction;
}

// The facts of this machine, without a launcher and without other nodes.
NodeInfo LookHere(const Environment& environment) {
  Environment own = environment;
  own["DDLRUN_HOST"] = HostName();
  own["DDLRUN_NODE_RANK"] = "0";
  own.erase("PMIX_NAMESPACE");
  const std::string program = RequireHelper("ddlrun-node-check", ProgramDirectory());
  CommandOutput check({program, "--details", "yes"}, own);
  check.Wait(kTimeoutWithThisMachine);
  NodeInfoReader reader(1);
  std::istringstream lines(check.text());
  for (std::string line; std::getline(lines, line);) reader.Add(line);
  return reader.Facts().front();
}

std::vector<SiteReportField> JobLines(const PlannedJob& planned, const Launch& launch) {
  const LaunchPlan& plan = planned.plan;
  std::vector<std::string> hosts;
  int gpus = 0;
  for (const NodePlacement& node : plan.nodes) {
    hosts.push_back(node.host);
    gpus += node.gpus;
  }
  const auto count = [](std::size_t number, const char* noun) {
    return support::Counted(static_cast<long long>(number), noun);
  };
  const std::string started =
      launch.choice.name +
      (launch.choice.mpi_type.empty() ? "" : ", --mpi=" + launch.choice.mpi_type) +
      (launch.choice.reason.empty() ? "" : ": " + launch.choice.reason);
  std::vector<SiteReportField> lines = {
      {"job", planned.job_id.empty() ? "none of Slurm" : "Slurm's " + planned.job_id},
      {"nodes", count(hosts.size(), "node") + ": " + HostsText(hosts)},
      {"GPUs", std::to_string(gpus)},
      {"ranks", std::to_string(plan.ranks.size()) + " planned"},
      {"launcher", started}};
  return lines;
}

void LookAtSite(const Options& options, const Settings& settings, const Environment& environment,
                Findings& found) {
  NodeQuery requested;
  PlanForQuery(options, settings, environment, requested);
  for (const std::string& warning : requested.planned.plan.warnings) {
    found.odd.push_back({"plan", warning});
  }
  found.job = JobLines(requested.planned, requested.launch);
  QueryNodes(options, settings, environment, requested);
  if (requested.report.exit_code > 128) {
    Say(requested.report.rejection, true);
    found.exit_code = requested.report.exit_code;
    return;
  }
  for (const std::string& line : requested.report.lines) {
    // What else is printed there, by a prolog of the site for example, may be anything.
    const bool is_of_slurm = line.starts_with("srun: ") || line.starts_with("slurmstepd: ");
    if (is_of_slurm) found.odd.push_back({"the launcher said", line});
  }
  found.info = std::move(requested.report.info);
  found.verdicts = std::move(requested.report.verdicts);
}

// This machine where it is no node of the job, as the login node on which salloc was typed, or
// where no node has answered.
void QueryThisMachine(const Environment& environment, const CheckLimits& limits, Findings& found) {
  const bool is_known =
      std::any_of(found.info.begin(), found.info.end(), [&](const NodeInfo& node) {
        return !node.host.empty() && IsThisMachine(node.host, environment);
      });
  if (is_known) return;
  try {
    NodeInfo here = LookHere(environment);
    if (here.host.empty()) {
      found.odd.push_back({"this machine", "ddlrun-node-check does not answer on it"});
      return;
    }
    if (found.verdicts.empty()) {
      CheckedJob alone;
      alone.nodes.push_back({here.host, 0});
      alone.limits = limits;
      found.verdicts = CheckNodes(alone, {here});
    } else {
      found.odd.push_back(
          {"this machine", here.host + " is reported below, and is no node of the job"});
    }
    found.info.push_back(std::move(here));
  } catch (const LaunchError& error) {
    found.odd.push_back({"this machine", error.what()});
  }
}

std::vector<SiteReportField> BuildLines() {
  std::vector<SiteReportField> lines = {
      {"ddlrun", support::ProgramVersion() + ", " + ProgramDirectory()}};
  std::istringstream logged(support::BuildText(support::Part::kLauncher));
  for (std::string line; std::getline(logged, line);) {
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) {
      lines.push_back({line.substr(0, colon), line.substr(colon + 2)});
    }
  }
  return lines;
}

}  // namespace

int ReportSite(const Options& options, const Environment& environment) {
  RejectOtherModes(options);
  Findings found;
  SiteConfig site;
  try {
    site = LoadSite(options.site, environment);
  } catch (const LaunchError& error) {
    found.odd.push_back({"site file", WithoutQuotedValue(error.what())});
  }
  const Settings settings = MergeSettings(options, site, environment);
  try {
    LookAtSite(options, settings, environment, found);
  } catch (const LaunchError& error) {
    found.odd.push_back({"ddlrun", std::string("no rank would start: ") + error.what()});
  }
  if (found.exit_code != EX_OK) return found.exit_code;
  QueryThisMachine(environment, settings.check_limits, found);

  const std::vector<SiteReportField> nodes = NodeLines(found.info);
  for (const std::vector<SiteReportField>& more :
       {OddVerdicts(found.verdicts), Differences(nodes)}) {
    found.odd.insert(found.odd.end(), more.begin(), more.end());
  }
  if (found.odd.empty()) found.odd.push_back({"nothing", "all checks passed, all nodes agree"});
  std::vector<SiteReportField> settings_lines = {
      {"site file", site.path.empty() ? "none that can be used" : site.path}};
  const std::vector<SiteReportField> more_settings = SettingsLines(settings);
  settings_lines.insert(settings_lines.end(), more_settings.begin(), more_settings.end());
  std::vector<SiteReportField> software = BuildLines();
  const std::vector<SiteReportField> others = SoftwareLines(settings.mpirun, environment);
  software.insert(software.end(), others.begin(), others.end());

  SiteReport report = {UtcNow(),
                       {{"What is odd", found.odd},
                        {"Software", software},
                        {"Job", found.job},
                        {"Nodes", nodes},
                        {"Checks", VerdictLines(found.verdicts)},
                        {"Settings, and where each comes from", settings_lines},
                        {"Environment", VariableLines(environment)}}};
  std::erase_if(report.parts, [](const SiteReportSection& part) { return part.lines.empty(); });
  report = Redacted(std::move(report), MakeRedaction(environment));
  Print(options.site_report == OutputFormat::kJson ? ReportAsJson(report) : ReportAsText(report));
  return EX_OK;
}

}  // namespace launcher
