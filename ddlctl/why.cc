// SPDX-License-Identifier: Apache-2.0

#include "ddlctl/why.h"

#include <sysexits.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "ddlctl/job.h"
#include "ddlctl/status_text.h"
#include "launcher/base/error.h"
#include "launcher/diagnose/collect.h"
#include "launcher/launch/child_environment.h"
#include "launcher/system/child_process.h"
#include "launcher/system/files.h"
#include "launcher/system/run_directory.h"
#include "support/file.h"
#include "trainer/core/error.h"

namespace ddlctl {
namespace {

namespace fs = std::filesystem;
using launcher::HangingJob;
using launcher::JobStatus;
using launcher::NodeFacts;
using trainer::Error;

// Whom to look for, and where.
struct WhyTarget {
  std::string directory;  // or
  std::string job;        // in Slurm; also of a directory, "" where that has none
  std::string run;        // in the job, as NodeFacts has it
  bool is_on_this_node = false;
};

// What comes between the job and the run in the name that other nodes are given.
constexpr char kBeforeRun = '@';

// Whether all ranks are where ddlrun is, and so the directory.
bool IsOnOneNode(const JobStatus& status) {
  return std::ranges::all_of(status.ranks, [&status](const JobStatus::Rank& rank) {
    return rank.host == status.ranks.front().host;
  });
}

WhyTarget TargetOf(const WhyOptions& options) {
  WhyTarget target;
  const std::size_t mark = options.facts_only ? options.name.find(kBeforeRun) : std::string::npos;
  const std::string job = options.name.substr(0, mark);
  if (IsJobNumber(job)) {
    target.job = job;
    if (mark != std::string::npos) target.run = options.name.substr(mark + 1);
    const std::optional<JobStatus> status =
        FindJobStatus(job, RunDirectoryBases(options.environment));
    target.is_on_this_node = status && IsOnOneNode(*status);
    return target;
  }
  std::error_code error;
  target.directory = fs::canonical(options.name, error).string();
  const std::optional<JobStatus> status = error ? std::nullopt : ReadJobStatus(target.directory);
  if (!status) {
    throw Error(EX_UNAVAILABLE,
                options.name +
                    " is no run directory of a ddlrun that runs on this node: give the number of "
                    "the job in Slurm, or what DDLRUN_RUN_DIR is in ranks on its node");
  }
  target.job = status->job;
  target.is_on_this_node = IsOnOneNode(*status);
  return target;
}

NodeFacts FactsHere(const WhyOptions& options, const WhyTarget& target) {
  return launcher::CollectFacts({.directory = target.directory,
                                 .job = target.job,
                                 .run = target.run,
                                 .host = NameOfThisNode(options),
                                 .environment = options.environment,
                                 .with_stacks = options.with_stacks});
}

// Of the job with the number in `found`, to which they are added.
void AskNodes(const WhyOptions& options, const std::string& srun, int nodes, FoundJob* found) {
  std::string output;
  try {
    launcher::CommandOutput command(
        FactsCommand(srun, found->job, nodes, options.program.string(), found->name),
        EnvironmentOutsideOfSteps(options.environment));
    command.Wait(kWhySeconds);
    output = command.text();
  } catch (const launcher::LaunchError& error) {
    throw Error(EX_UNAVAILABLE, error.what());
  }
  std::string problem;
  for (auto& [host, facts] : launcher::ReadFactsLines(output, &problem)) {
    found->nodes.push_back(std::move(facts));
  }
  if (found->nodes.empty()) {
    if (problem.empty()) problem = launcher::LastLineOf(output);
    throw Error(EX_UNAVAILABLE, "the nodes of job " + found->job + " do not answer: " +
                                    Harmless(problem.empty() ? "srun has not started" : problem));
  }
  if (!problem.empty()) found->nodes.front().notes.push_back(problem);
}

void RequireRanks(const std::vector<NodeFacts>& nodes, const std::string& name) {
  std::set<std::string> runs;
  std::string note;
  for (const NodeFacts& node : nodes) {
    if (!node.ranks.empty()) runs.insert(node.run);
    if (!node.notes.empty()) note = node.notes.front();
  }
  if (runs.size() == 1) return;
  if (runs.size() > 1) note = launcher::kSeveralRuns;
  throw Error(EX_UNAVAILABLE, "no rank of " + name + " that runs was found" +
                                  (note.empty() ? "" : ": " + Harmless(note)));
}

// What was seen is left where ddlrun's own files are, for whoever is asked later.
void Save(const std::vector<NodeFacts>& nodes, const std::string& text) {
  for (const NodeFacts& node : nodes) {
    std::error_code error;
    const fs::path directory = node.directory;
    if (node.directory.empty() || !fs::is_directory(directory, error)) continue;
    // Where that cannot be written there is no file.
    support::ReplaceFile(directory / launcher::kWhyFileName, text + "\n", {.mode = 0600});
    return;
  }
}

}  // namespace

std::string NameOfThisNode(const WhyOptions& options) {
  return launcher::ValueOr(options.environment, "SLURMD_NODENAME", options.host);
}

launcher::Environment EnvironmentOutsideOfSteps(const launcher::Environment& environment) {
  launcher::Environment result = launcher::EnvironmentForSrun(environment);
  const std::set<std::string> kept = {"SLURM_CONF", "SLURM_CLUSTERS", "SLURM_JWT"};
  std::erase_if(result, [&kept](const auto& variable) {
    return variable.first.starts_with("SLURM_") && !kept.contains(variable.first);
  });
  return result;
}

FoundJob FindJob(const WhyOptions& options) {
  const WhyTarget target = TargetOf(options);
  FoundJob found = {.nodes = {}, .job = target.job, .name = options.name};
  const std::string srun = launcher::FindProgram("srun", options.environment);
  const bool asks_slurm = options.may_use_srun && !options.facts_only && !target.is_on_this_node &&
                          !target.job.empty() && !srun.empty();
  std::optional<RunningJob> job;
  if (asks_slurm) job = FindRunningJob(target.job, options.environment);
  if (!job) {
    found.nodes = {FactsHere(options, target)};
  } else {
    found.expected = static_cast<std::size_t>(std::max(1, job->nodes));
    found.job = found.name = job->number;
    // Other nodes do not have the directory; and on this one all ranks may have ended.
    NodeFacts here;
    if (!target.directory.empty()) {
      WhyOptions quick = options;
      quick.with_stacks = false;
      here = FactsHere(quick, target);
      if (!here.run.empty()) found.name += kBeforeRun + here.run;
    }
    AskNodes(options, srun, job->nodes, &found);
    const bool has_status = std::ranges::any_of(
        found.nodes, [](const NodeFacts& node) { return !node.status.empty(); });
    if (!has_status && !found.nodes.empty()) {
      found.nodes.front().status = here.status;
      found.nodes.front().directory = here.directory;
    }
  }
  RequireRanks(found.nodes, options.name);
  return found;
}

std::vector<std::string> FactsCommand(const std::string& srun, const std::string& job, int nodes,
                                      const std::string& program, const std::string& name) {
  const std::string count = std::to_string(nodes);
  return {srun,
          "--overlap",
          "--jobid=" + job,
          "--nodes=" + count,
          "--ntasks=" + count,
          "--ntasks-per-node=1",
          "--mem=0",
          "--gres=none",
          "--mpi=none",
          "--quiet",
          "--input=none",
          program,
          "why",
          "--facts",
          "--srun=never",
          name};
}

HangingJob HangingJobOf(std::vector<NodeFacts> nodes, std::size_t expected) {
  HangingJob job;
  std::set<std::string> answered;
  std::size_t world = 0;
  std::optional<JobStatus> status;
  for (const NodeFacts& node : nodes) {
    answered.insert(node.host);
    for (const launcher::RankFacts& rank : node.ranks) {
      answered.insert(rank.host);
      world = std::max(world, static_cast<std::size_t>(rank.world));
    }
    if (!status) status = launcher::ParseJobStatus(node.status);
  }
  const bool is_incomplete = nodes.size() < expected;
  job.nodes = std::move(nodes);
  // Programs that have ranks of their own have more of them than ddlrun knows.
  if (!status || status->ranks.size() != world) return job;
  for (std::size_t i = 0; i < status->ranks.size(); ++i) {
    const JobStatus::Rank& rank = status->ranks[i];
    job.hosts.push_back(rank.host);
    if (rank.state == JobStatus::RankState::kEnded) job.ended[static_cast<int>(i)] = rank.exit_code;
    const bool is_silent = is_incomplete && !answered.contains(rank.host);
    if (is_silent && std::ranges::find(job.silent_nodes, rank.host) == job.silent_nodes.end()) {
      job.silent_nodes.push_back(rank.host);
    }
  }
  return job;
}

std::string WhyJson(const HangingJob& job, const launcher::Diagnosis& diagnosis) {
  using Json = nlohmann::ordered_json;
  Json nodes = Json::array();
  for (const NodeFacts& node : job.nodes) nodes.push_back(Json::parse(launcher::EncodeFacts(node)));
  const bool has_rank = !diagnosis.ranks.empty();
  const Json json = {{"line", diagnosis.line},
                     {"cause", launcher::NameOf(diagnosis.cause)},
                     {"is_sure", diagnosis.is_sure},
                     {"ranks", diagnosis.ranks},
                     {"host", has_rank ? Json(diagnosis.host) : Json(nullptr)},
                     {"pid", diagnosis.pid > 0 ? Json(diagnosis.pid) : Json(nullptr)},
                     {"silent_nodes", job.silent_nodes},
                     {"nodes", nodes}};
  return json.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

int ShowWhy(const WhyOptions& options) {
  if (options.facts_only) {
    options.print(launcher::FactsLines(FactsHere(options, TargetOf(options))));
    return EX_OK;
  }
  FoundJob found = FindJob(options);
  const HangingJob job = HangingJobOf(std::move(found.nodes), found.expected);
  const launcher::Diagnosis diagnosis = launcher::Diagnose(job);
  const std::string json = WhyJson(job, diagnosis);
  Save(job.nodes, json);
  options.print(options.as_json
                    ? json + "\n"
                    : diagnosis.line + "\n" + (options.is_verbose ? launcher::RankTable(job) : ""));
  return EX_OK;
}

}  // namespace ddlctl
