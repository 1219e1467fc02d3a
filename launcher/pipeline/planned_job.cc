// SPDX-License-Identifier: Apache-2.0

#include "launcher/pipeline/planned_job.h"

#include <sysexits.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "launcher/allocation/allocation.h"
#include "launcher/allocation/hosts_of_job.h"
#include "launcher/allocation/visible_gpus.h"
#include "launcher/base/error.h"
#include "launcher/base/messages.h"
#include "launcher/launch/launcher.h"
#include "launcher/launch/master_address.h"
#include "launcher/pipeline/batch_system.h"
#include "launcher/pipeline/node_order.h"
#include "launcher/pipeline/read_allocation.h"
#include "launcher/placement/launch_plan_files.h"
#include "launcher/placement/node_binding.h"
#include "launcher/placement/planner.h"
#include "launcher/slurm/complete_allocation.h"
#include "launcher/system/files.h"
#include "launcher/system/run_directory.h"
#include "launcher/topology/driver_gpus.h"
#include "launcher/topology/fingerprint.h"
#include "launcher/topology/hwloc_topology.h"
#include "rankfile/host_name.h"
#include "support/number.h"

namespace launcher {
namespace {

PlacementOptions MakePlacementOptions(const Options& options, const Settings& settings) {
  PlacementOptions plan;
  plan.ranks = options.ranks;
  plan.ranks_per_node = options.ranks_per_node;
  plan.cpus_per_rank = options.cpus_per_rank;
  plan.gpus_per_node = options.accelerators;
  plan.oversubscribe = options.oversubscribe;
  plan.bind = settings.bind;
  plan.order = settings.rank_order == "cyclic" ? RankOrder::kCyclic : RankOrder::kByNode;
  plan.mode = options.mode;
  plan.nodes_per_rack = options.nodes;
  plan.racks = options.racks.value_or(1);
  plan.aisles = options.aisles.value_or(1);
  return plan;
}

// Plans by the user's rankfile.  Inside Slurm all of its hosts must be nodes of the job.
void PlanByRankfile(const Options& options, const Environment& environment, PlannedJob* planned) {
  if (options.ranks_per_node || options.cpus_per_rank) {
    throw LaunchError(EX_USAGE,
                      "--rankfile places and binds all ranks; leave --ranks-per-node and "
                      "--cpus-per-rank out");
  }
  const std::string text = ReadFile(options.rankfile);
  const std::optional<Allocation> job = ReadJob(options, environment);
  if (job) {
    planned->rankfile_text = WithHostsOfJob(text, options.rankfile, *job);
    planned->hosts_of_job = job->hosts_of_job;
  }
  const bool is_renamed = !planned->rankfile_text.empty();
  planned->plan = PlanFromRankfile(is_renamed ? planned->rankfile_text : text, options.rankfile);
  const auto ranks = static_cast<long long>(planned->plan.ranks.size());
  if (options.ranks && *options.ranks != ranks) {
    throw LaunchError(EX_USAGE, "-n " + std::to_string(*options.ranks) + ", but " +
                                    options.rankfile + " has " + support::Counted(ranks, "rank"));
  }
  planned->plan.mode = options.mode;
}

// The UUIDs of the GPUs of `topology`, in its order; "" where the driver of this machine does not
// tell.
std::vector<std::string> UuidsOf(const NodeTopology& topology) {
  const std::vector<DriverGpu> known = ReadDriverGpus("");
  std::vector<std::string> uuids;
  for (const Gpu& gpu : topology.gpus) {
    const auto same = std::find_if(known.begin(), known.end(), [&](const DriverGpu& candidate) {
      return candidate.pci_bus_id == gpu.pci_bus_id;
    });
    uuids.push_back(same == known.end() ? "" : same->uuid);
  }
  return uuids;
}

// Reads the topology that stands for all nodes, and the fingerprint that belongs to it.
void ReadTopology(const Options& options, const Allocation& allocation,
                  const Environment& environment, PlannedJob* planned) {
  if (!options.topology.empty()) {
    planned->topologies = {ReadTopologyFile(options.topology)};
    return;
  }
  const bool is_node_of_job =
      allocation.job_id.empty() ||
      std::any_of(allocation.nodes.begin(), allocation.nodes.end(),
                  [&](const AllocatedNode& node) { return IsThisMachine(node.host, environment); });
  if (is_node_of_job) planned->topologies = {ReadTopologyOfJob(GrantedBySlurm(environment))};
  planned->planned_for = "none";
  if (is_node_of_job) {
    Fingerprint fingerprint;
    ReadFingerprint("", &fingerprint);
    planned->planned_for = fingerprint.text;
  }
}

// Warns where DDL_HOST_LIST is longer than a variable may be.  Programs of IBM's DDL read it; most
// others do not.
void WarnOfLongHostList(const Options& options, const Settings& settings, LaunchPlan* plan) {
  if (options.no_ddl_host_list || settings.rank_settings.contains("DDL_HOST_LIST")) return;
  const std::size_t bytes = DdlHostList(*plan).size();
  if (bytes <= kMaxHostListBytes) return;
  plan->warnings.push_back(
      Coded(Message::kHostListLeftOut,
            "DDL_HOST_LIST is not set: it would have " + std::to_string(bytes) +
                " bytes, and Linux passes at most " + std::to_string(kMaxHostListBytes) +
                " of it to a program; only programs of IBM's DDL read it, --no-ddl-host-list "
                "leaves it out without a word"));
}

// Warns where the user's MASTER_ADDR is no place for these ranks to meet.
void WarnOfOtherMaster(const Settings& settings, const Environment& environment, LaunchPlan* plan) {
  const std::string address =
      ValueOr(settings.rank_settings, "MASTER_ADDR", ValueOr(environment, "MASTER_ADDR", ""));
  if (address.empty() || plan->ranks.empty()) return;
  std::vector<std::string> hosts = {
      plan->nodes[static_cast<std::size_t>(plan->ranks[0].node)].host};
  for (const NodePlacement& node : plan->nodes) {
    if (node.host != hosts.front()) hosts.push_back(node.host);
  }
  const std::string problem = MasterAddressProblem(address, hosts);
  if (!problem.empty()) plan->warnings.push_back(Coded(Message::kMasterAddrNotInJob, problem));
}

// In a job of Slurm their steps would wait for each other for ever.
void WarnOfEnclosingLaunch(const Environment& environment, const std::string& job_id,
                           LaunchPlan* plan) {
  const std::string problem = DescribeEnclosingLaunch(environment);
  if (problem.empty()) return;
  if (!job_id.empty()) throw LaunchError(EX_CONFIG, problem);
  plan->warnings.push_back(Coded(Message::kStartedSeveralTimes, problem));
}

std::size_t OnlineCpus() {
  const long count = sysconf(_SC_NPROCESSORS_ONLN);
  return count > 0 ? static_cast<std::size_t>(count) : 0;
}

void LookWhatACpuIs(const Options& options, const Environment& environment,
                    const std::vector<NodeTopology>& topologies, Allocation* allocation) {
  if (topologies.empty() || options.cpus_per_rank) return;
  std::size_t threads = 0;
  for (const Core& core : topologies.front().cores) threads += core.cpus.size();
  // This machine may have more hardware threads than this job may use.
  if (options.topology.empty()) threads = std::max(threads, OnlineCpus());
  LookWhatACpuIs(static_cast<int>(threads), ThreadsPerCore(topologies.front()), environment,
                 allocation);
}

// Where nobody has granted GPUs, ranks may use those of this machine that CUDA_VISIBLE_DEVICES
// names. The planner takes the other nodes to be like the first.
void HonourVisibleGpus(const Environment& environment, const std::vector<NodeTopology>& topologies,
                       Allocation* allocation) {
  const auto list = environment.find("CUDA_VISIBLE_DEVICES");
  if (list == environment.end() || topologies.empty()) return;
  const std::vector<int> visible = VisibleGpus(list->second, UuidsOf(topologies.front()));
  const auto count = static_cast<int>(visible.size());
  for (AllocatedNode& node : allocation->nodes) {
    if (!IsThisMachine(node.host, environment)) continue;
    if (!node.gpus) node.gpus_visible = count;
    // In SLURM_JOB_GPUS Slurm numbers the slices, not the GPUs that they belong to.
    if (!node.gpus || (HasGpuSlices(list->second) && *node.gpus == count)) {
      node.gpu_indices = visible;
    }
  }
}

std::string CountedNodes(std::size_t count) {
  return support::Counted(static_cast<long long>(count), "node");
}

// What PlannedJob::min_nodes is, where the ranks start on `wanted` nodes.
std::size_t MinNodes(const Options& options, const Settings& settings, const Allocation& allocation,
                     std::size_t wanted) {
  const auto min = static_cast<std::size_t>(settings.min_nodes);
  const std::vector<AllocatedNode>& nodes = allocation.nodes;
  const bool is_heterogeneous = nodes.front().component != nodes.back().component;
  if (options.min_nodes && allocation.job_id.empty()) {
    throw LaunchError(EX_USAGE,
                      "--min-nodes needs the nodes of a Slurm job: only Slurm says which is down");
  }
  if (options.min_nodes && is_heterogeneous) {
    throw LaunchError(EX_USAGE,
                      "--min-nodes does not go with a heterogeneous job, which gets its ranks on "
                      "all of its nodes");
  }
  if (options.min_nodes && min > wanted) {
    throw LaunchError(
        EX_CONFIG, "--min-nodes " + std::to_string(min) + ", but the ranks of this job start on " +
                       CountedNodes(wanted) + ": give a smaller number, or ask for " +
                       "more nodes, #SBATCH -N" + std::to_string(min + nodes.size() - wanted));
  }
  const bool is_possible = !allocation.job_id.empty() && !is_heterogeneous && min <= wanted;
  return is_possible ? min : 0;
}

// The warning that there are fewer ranks than without `lost_nodes`.
std::string FewerNodes(const LaunchPlan& plan, const std::vector<std::string>& lost_nodes,
                       std::size_t nodes_of_job) {
  constexpr std::size_t kMaxNames = 8;
  std::string names;
  for (std::size_t i = 0; i < std::min(lost_nodes.size(), kMaxNames); ++i) {
    names += (i == 0 ? "" : ", ") + lost_nodes[i];
  }
  if (lost_nodes.size() > kMaxNames) names += ", ...";
  return Coded(Message::kFewerNodes,
               std::to_string(plan.nodes.size()) + " of the " + CountedNodes(nodes_of_job) +
                   " of this job are left, without " + names + ": " +
                   support::Counted(static_cast<long long>(plan.ranks.size()), "rank"));
}

// Leaves out the nodes that are down or bad, and the spare nodes among the others.
void ChooseNodes(const Options& options, const Settings& settings,
                 const std::vector<std::string>& lost_nodes, Allocation* allocation,
                 PlannedJob* planned) {
  std::vector<AllocatedNode>& nodes = allocation->nodes;
  const auto spare = static_cast<std::size_t>(options.spare_nodes);
  if (spare > 0 && allocation->job_id.empty()) {
    throw LaunchError(
        EX_USAGE, "--spare-nodes needs the nodes of a Slurm job: only Slurm says which is down");
  }
  if (spare > 0 && options.max_restarts == 0 && settings.check != "full") {
    throw LaunchError(EX_USAGE,
                      "--spare-nodes without --max-restarts or --check=full: no spare would ever "
                      "be used; add --max-restarts 3");
  }
  if (spare >= nodes.size()) {
    throw LaunchError(EX_CONFIG, "--spare-nodes " + std::to_string(spare) + " leaves none of the " +
                                     CountedNodes(nodes.size()) +
                                     " of this job: ask for more, #SBATCH -N" +
                                     std::to_string(spare + 1));
  }
  const std::size_t wanted = nodes.size() - spare;
  const std::size_t min = MinNodes(options, settings, *allocation, wanted);
  planned->min_nodes = static_cast<int>(min);
  planned->dispensable_nodes = static_cast<int>(min > 0 ? nodes.size() - min : spare);
  const HostIndex lost(lost_nodes);
  std::erase_if(nodes, [&lost](const AllocatedNode& node) { return lost.Holds(node.host); });
  if (nodes.size() > wanted) nodes.resize(wanted);
  // Now as many as the slots of the nodes that are left.
  if (spare > 0 || nodes.size() < wanted) allocation->ranks.reset();
}

// Finds out whether the nodes have other host names.  On a node whose host name is that of Slurm
// the others are taken to be named so as well, and nothing is looked up.
void LookForHostNames(const Environment& environment, PlannedJob* planned) {
  const LaunchPlan& plan = planned->plan;
  const std::string own = ValueOr(environment, "SLURMD_NODENAME", "");
  const bool are_host_names = !own.empty() && rankfile::SameHost(own, HostName());
  if (planned->job_id.empty() || are_host_names) return;
  const std::string& first = plan.nodes[static_cast<std::size_t>(plan.ranks[0].node)].host;
  planned->has_other_host_names = !IsKnownName(own.empty() ? first : own);
  if (planned->has_other_host_names && plan.nodes.size() > 1)
    planned->first_address = QuerySlurmForAddress(first, environment);
}

}  // namespace

PlannedJob PlanJob(const Options& options, const Settings& settings, const Environment& environment,
                   const std::vector<std::string>& lost_nodes) {
  PlannedJob planned;
  planned.has_lost_nodes = !lost_nodes.empty();
  if (options.rankfile.empty()) {
    Allocation allocation =
        ReadAllocation(options, environment, TraitsOf(settings.launcher.c_str()).has_ssh);
    planned.job_id = allocation.job_id;
    planned.hosts_of_job = allocation.hosts_of_job;
    const std::unique_ptr<NetworkQuestion> network =
        QueryNetwork(settings, allocation, environment);
    // Meanwhile Slurm answers.
    ReadTopology(options, allocation, environment, &planned);
    OrderNodes(settings, environment, network.get(), &allocation);
    const std::size_t nodes_of_job = allocation.nodes.size();
    ChooseNodes(options, settings, lost_nodes, &allocation, &planned);
    const bool lacks_nodes =
        allocation.nodes.size() + static_cast<std::size_t>(options.spare_nodes) < nodes_of_job;
    if (!options.accelerators) QuerySlurmForGpus(environment, &allocation);
    if (!options.accelerators && !options.ranks) LookForForgottenGpus(environment, &allocation);
    planned.in_step = allocation.in_step;
    LookWhatACpuIs(options, environment, planned.topologies, &allocation);
    HonourVisibleGpus(environment, planned.topologies, &allocation);
    planned.plan =
        MakePlan(allocation, planned.topologies, MakePlacementOptions(options, settings));
    WarnOfOrder(settings, environment, network.get(), &planned.plan);
    if (lacks_nodes) {
      planned.plan.warnings.push_back(FewerNodes(planned.plan, lost_nodes, nodes_of_job));
    }
  } else {
    planned.job_id = ValueOr(environment, "SLURM_JOB_ID", "");
    planned.topologies = {options.topology.empty() ? ReadTopologyOfJob(GrantedBySlurm(environment))
                                                   : ReadTopologyFile(options.topology)};
    PlanByRankfile(options, environment, &planned);
  }
  WarnOfLongHostList(options, settings, &planned.plan);
  WarnOfOtherMaster(settings, environment, &planned.plan);
  WarnOfEnclosingLaunch(environment, planned.job_id, &planned.plan);
  for (const NodePlacement& node : planned.plan.nodes) {
    if (!IsThisMachine(node.host, environment)) planned.has_remote_ranks = true;
  }
  LookForHostNames(environment, &planned);
  return planned;
}

std::map<std::string, std::string> FilesOf(const PlannedJob& planned) {
  std::map<std::string, std::string> files = Taskfiles(planned.plan);
  files[kMachinefileName] = Machinefile(planned.plan);
  files[kHostfileName] = HostfileText(planned.plan);
  files[kPlanFileName] = PlanAsJson(planned.plan);
  files[kRankfileName] = planned.rankfile_text.empty()
                             ? RankfileText(planned.plan, planned.topologies)
                             : planned.rankfile_text;
  return files;
}

}  // namespace launcher
