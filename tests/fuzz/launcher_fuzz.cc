// SPDX-License-Identifier: Apache-2.0
//
// Texts that users, Slurm, mpirun and the nodes of a job have written.

#include <algorithm>
#include <set>
#include <sstream>

#include "launcher/allocation/host_allocation.h"
#include "launcher/allocation/network_order.h"
#include "launcher/base/error.h"
#include "launcher/bede/bede_options.h"
#include "launcher/cli/quoting.h"
#include "launcher/cli/site_config.h"
#include "launcher/cost/launch_record.h"
#include "launcher/diagnose/diagnosis.h"
#include "launcher/diagnose/flight_recorder.h"
#include "launcher/diagnose/process.h"
#include "launcher/diagnose/stacks.h"
#include "launcher/health/check_rules.h"
#include "launcher/health/node_info.h"
#include "launcher/launch/mpirun_version.h"
#include "launcher/placement/planner.h"
#include "launcher/protocol/job_status.h"
#include "launcher/protocol/local_rank_job.h"
#include "launcher/protocol/rank_job.h"
#include "launcher/slurm/complete_allocation.h"
#include "launcher/slurm/network_topology.h"
#include "launcher/slurm/slurm_allocation.h"
#include "launcher/slurm/slurm_job.h"
#include "support/quoting.h"
#include "tests/fuzz/fuzz.h"
#include "tests/launcher/placement/plan_check.h"

namespace {

using fuzz::Require;
using launcher::LaunchError;

std::vector<std::string> Lines(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

// The value of -H: hosts are named once, slots are at least 1.
FUZZ(host_list) {
  fuzz::MayReject<LaunchError>([&] {
    const auto allocation = launcher::AllocationFromHostList(std::string(text));
    std::set<std::string> hosts;
    for (const launcher::AllocatedNode& node : allocation.nodes) {
      Require(hosts.insert(node.host).second && node.slots.value_or(1) >= 1);
    }
    Require(!hosts.empty());
  });
}

FUZZ(site_config) {
  fuzz::MayReject<LaunchError>([&] { launcher::ParseSiteConfig(std::string(text), "site.yaml"); });
}

// What ddlrun prints must be what it starts: splitting undoes quoting for any words.
FUZZ(command_words) {
  fuzz::MayReject<LaunchError>([&] {
    const std::vector<std::string> words = launcher::SplitOnWhitespace(std::string(text));
    Require(launcher::SplitOnWhitespace(support::QuoteCommand(words)) == words);
  });
}

namespace {

constexpr int kRank = 1;

// What the shim reads of its rank is what the whole job says of it, where both can read the text.
[[maybe_unused]] void RequireSame(const launcher::LocalRankJob& own, const launcher::RankJob& job) {
  const launcher::RankPlacement& rank = job.plan.ranks.at(kRank);
  const launcher::NodePlacement& node = job.plan.nodes.at(static_cast<std::size_t>(rank.node));
  Require(own.world_size == static_cast<int>(job.plan.ranks.size()) && own.node == rank.node &&
          own.local_rank == rank.local_rank &&
          own.local_world_size == static_cast<int>(node.ranks.size()) && own.gpus == node.gpus &&
          own.gpu == rank.gpu && own.cpus_per_rank == job.plan.cpus_per_rank.value_or(0) &&
          own.numa_os_index == rank.numa_os_index &&
          own.cores == static_cast<int>(rank.cores.size()) &&
          std::string(own.host) == node.host.c_str());
}

}  // namespace

FUZZ(rank_job) {
  static launcher::LocalRankJob own;
  const std::string job_text = std::string(launcher::RankJobVersion()) + ' ' + std::string(text);
  const bool is_read = launcher::ReadLocalRankJob(job_text.c_str(), kRank, "0-1,3", &own);
  Require(!is_read || (own.node >= 0 && own.node < own.node_count));
  fuzz::MayReject<LaunchError>([&] {
    const launcher::RankJob job = launcher::DecodeRankJob(job_text);
    if (is_read) RequireSame(own, job);
    // What was read can be written, and read again.
    const launcher::RankJob again = launcher::DecodeRankJob(launcher::EncodeRankJob(job));
    Require(again.plan.ranks.size() == job.plan.ranks.size());
  });
}

// What was read can be written, and then reads the same.
FUZZ(job_status) {
  const auto status = launcher::ParseJobStatus(std::string(text));
  if (!status) return;
  const std::string written = launcher::FormatJobStatus(*status);
  const auto again = launcher::ParseJobStatus(written);
  Require(again && launcher::FormatJobStatus(*again) == written);
}

// A file of a launch: what was read can be written, read again, and added up.
FUZZ(launch_record) {
  std::string problem;
  const auto record = launcher::ParseLaunch(std::string(text), &problem);
  Require(record.has_value() == problem.empty());
  if (!record) return;
  Require(launcher::ParseLaunch(launcher::FormatLaunch(*record), &problem).has_value());
  Require(launcher::FormatMetrics(*record).ends_with("# EOF\n"));
  const auto history = launcher::HistoryOf({*record, *record}, 1e9);
  Require(launcher::CostText(history.sum).find('\n') == std::string::npos);
}

// What `mpirun --version` prints: what is Open MPI's has a name and lacks nothing.
FUZZ(mpirun_version) {
  const launcher::MpirunVersion version = launcher::ParseMpirunVersion(std::string(text));
  Require(!version.runtime || !version.name.empty());
  Require(version.runtime.has_value() == launcher::MpirunLacks("mpirun", version).empty());
  Require(version.first_line.size() <= 80 && version.name.size() <= 120);
}

// The command line of bede-mpirun, an argument per line: no word of mpirun's is lost.
FUZZ(bede_options) {
  const std::vector<std::string> arguments = Lines(text);
  fuzz::MayReject<LaunchError>([&] {
    const launcher::BedeOptions options = launcher::ParseBedeOptions(arguments);
    if (options.help || options.version) return;
    Require(options.mpirun_args.size() + 3 >= arguments.size());
    const std::string par = launcher::FormatBedePar(options.par);
    Require(launcher::FormatBedePar(launcher::ParseBedePar(par)) == par);
  });
}

// What ddlctl why reads: of nodes, of /proc, of py-spy.
// A dump of PyTorch's flight recorder: collectives in the order of their numbers.
FUZZ(flight_record) {
  for (const auto& group :
       launcher::ParseFlightRecord(text).value_or(std::vector<launcher::RecordedGroup>())) {
    Require(!group.collectives.empty() &&
            std::ranges::is_sorted(group.collectives, {}, &launcher::RecordedCollective::number));
  }
}

FUZZ(rank_facts) {
  launcher::ParsePySpy(text, 7);
  launcher::ParseNativeStack(text);
  launcher::ParseProcessStat(text);
  launcher::FileSystemOf(text, "/home/me/x", 20);
  std::string problem;
  launcher::ReadFactsLines(text, &problem);
  fuzz::MayReject<LaunchError>([&] {
    const launcher::NodeFacts facts = launcher::DecodeFacts(std::string(text));
    const std::string written = launcher::EncodeFacts(facts);
    Require(launcher::EncodeFacts(launcher::DecodeFacts(written)) == written);
    launcher::HangingJob job;
    job.nodes = {facts};
    Require(launcher::Diagnose(job).line.find('\n') == std::string::npos);
    launcher::RankTable(job);
  });
}

// What three nodes may have printed: read, judged, and, as far as it was facts, written again.
FUZZ(node_facts) {
  launcher::NodeInfoReader reader(3);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1);
    reader.Add(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  fuzz::MayReject<LaunchError>([&] {
    const std::vector<launcher::NodeInfo> facts = reader.Facts();
    launcher::CheckedJob job;
    job.nodes = {{"n1", 4}, {"n2", 4}, {"n3", 0}};
    launcher::VerdictTable(launcher::CheckNodes(job, facts));
    for (const launcher::NodeInfo& node : facts) {
      const std::string written = launcher::EncodeNodeInfo(node);
      Require(launcher::EncodeNodeInfo(launcher::DecodeNodeInfo(written)) == written);
    }
  });
}

// What scontrol prints.
FUZZ(job_detail) {
  launcher::StateOfEndedJob(std::string(text), "1");
  fuzz::MayReject<LaunchError>([&] { launcher::ParseJobDetail(std::string(text), "1"); });
}

FUZZ(slurm_job) { launcher::ParseSlurmJob(std::string(text), "1"); }

// All nodes of a job keep a place in the order of the network.
FUZZ(network_topology) {
  launcher::TopologyOfPartition(std::string(text));
  launcher::Allocation allocation;
  for (const char* host : {"n1", "n2", "n3", "n4"}) allocation.nodes.emplace_back().host = host;
  launcher::ReadNetworkTopology(std::string(text), &allocation);
  launcher::OrderByNetwork("n3", &allocation);
  std::set<std::string> hosts;
  for (const launcher::AllocatedNode& node : allocation.nodes) hosts.insert(node.host);
  Require(hosts.size() == 4 && allocation.nodes.front().host == "n3");
}

// NAME=value lines as the environment of a job: what is read can be planned.
FUZZ(slurm_environment) {
  launcher::Environment environment;
  for (const std::string& line : Lines(text)) {
    const std::size_t equals = line.find('=');
    if (equals != std::string::npos) environment[line.substr(0, equals)] = line.substr(equals + 1);
  }
  fuzz::MayReject<LaunchError>([&] {
    const auto allocation = launcher::ReadSlurmAllocation(environment);
    // More nodes or ranks only take longer.
    if (!allocation || allocation->nodes.size() > 64 || allocation->ranks.value_or(0) > 1024) {
      return;
    }
    const launcher::LaunchPlan plan = launcher::MakePlan(*allocation, {}, {});
    Require(launcher::FindPlanError(plan, false).empty());
  });
}
