// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <map>
#include <numeric>

#include "launcher/base/error.h"
#include "launcher/launch/child_environment.h"
#include "launcher/launch/launcher.h"
#include "launcher/launch/slurm_for_mpirun.h"
#include "launcher/protocol/launchers.h"
#include "launcher/protocol/rank_job.h"
#include "launcher/protocol/rank_variables.h"
#include "launcher/system/run_directory.h"
#include "rankfile/host_name.h"

namespace launcher {
namespace {

// What mpirun makes of its environment: without the name of its node by which it knows that node
// it takes itself to be on another machine, and starts a daemon on this one as well.
Environment SeenByMpirun(const LaunchRequest& job) {
  Environment environment = job.environment;
  if (job.has_other_host_names) {
    for (const char* name : {"SLURMD_NODENAME", "SLURM_GPUS_ON_NODE"}) environment.erase(name);
  }
  return environment;
}

// The nodes of the plan: in a job of Slurm in the order of the job, otherwise in that of the plan.
std::vector<int> NodesInJobOrder(const LaunchRequest& job) {
  std::vector<int> nodes(job.plan.nodes.size());
  std::iota(nodes.begin(), nodes.end(), 0);
  if (!job.in_slurm) return nodes;
  std::map<std::string, std::size_t> places;
  for (const std::string& host : job.hosts_of_job) places.emplace(host, places.size());
  std::ranges::stable_sort(nodes, {}, [&](int node) {
    return places[job.plan.nodes[static_cast<std::size_t>(node)].host];
  });
  return nodes;
}

// The same nodes in the order in which mpirun fills them: in a job of Slurm it takes the node that
// it runs on before the others.
std::vector<int> NodesInMpirunOrder(const LaunchRequest& job) {
  std::vector<int> nodes = NodesInJobOrder(job);
  const std::string here = job.in_slurm ? ValueOr(SeenByMpirun(job), "SLURMD_NODENAME", "") : "";
  std::stable_partition(nodes.begin(), nodes.end(), [&](int node) {
    return job.plan.nodes[static_cast<std::size_t>(node)].host == here;
  });
  return nodes;
}

// The node of each rank where mpirun fills one node after the other (--map-by slot), or deals the
// ranks out to the nodes in turn (--map-by node).
std::vector<int> NodesInOrder(const LaunchPlan& plan, const std::vector<int>& nodes,
                              bool node_by_node) {
  std::vector<std::size_t> left;
  for (const NodePlacement& node : plan.nodes) left.push_back(node.ranks.size());
  std::vector<int> order;
  while (order.size() < plan.ranks.size()) {
    for (const int node : nodes) {
      std::size_t& ranks = left[static_cast<std::size_t>(node)];
      const std::size_t taken = node_by_node ? ranks : std::min<std::size_t>(ranks, 1);
      order.insert(order.end(), taken, node);
      ranks -= taken;
    }
  }
  return order;
}

bool IsOrdered(const LaunchPlan& plan, const std::vector<int>& order) {
  return std::equal(plan.ranks.begin(), plan.ranks.end(), order.begin(), order.end(),
                    [](const RankPlacement& rank, int node) { return rank.node == node; });
}

// ORTE refuses --bind-to beside a rankfile.  PRRTE without it would refuse ranks that share a core.
std::vector<std::string> RankfileArguments(const LaunchRequest& job, const std::string& path,
                                           const std::string& bind_to, ChildCommand* command) {
  if (job.mpi_runtime == MpiRuntime::kOrte) return {"--rankfile", path};
  command->open_file = std::make_shared<const PlainPath>(path);
  return {"--map-by", "rankfile:FILE=" + command->open_file->path(), "--bind-to", bind_to};
}

// Where mpirun puts the ranks, and the hosts that it may use, where Slurm does not tell it.
std::vector<std::string> MappingArguments(const LaunchRequest& job, ChildCommand* command) {
  std::vector<std::string> hostfile = {"--hostfile", job.run_directory + "/" + kHostfileName};
  std::vector<std::string> mapping;
  const std::vector<int> nodes = NodesInMpirunOrder(job);
  if (!job.rankfile.empty()) {
    mapping = RankfileArguments(job, job.rankfile, ":overload-allowed", command);
  } else if (IsOrdered(job.plan, NodesInOrder(job.plan, nodes, true))) {
    mapping = {"--map-by", "slot", "--bind-to", "none"};
  } else if (IsOrdered(job.plan, NodesInOrder(job.plan, nodes, false))) {
    mapping = {"--map-by", "node", "--bind-to", "none"};
  } else if (job.mpi_runtime == MpiRuntime::kOrte) {
    // The sequential mapper takes a host for each rank, and needs no cores of nodes that may have
    // others than this one, as a rankfile does.
    return {"--hostfile", job.run_directory + "/" + kTaskfileName, "--map-by", "seq", "--bind-to",
            "none"};
  } else {
    mapping = RankfileArguments(job, job.plan_rankfile, "none", command);
  }
  if (job.in_slurm) return mapping;
  hostfile.insert(hostfile.end(), mapping.begin(), mapping.end());
  return hostfile;
}

// Of hosts that differ in their domain alone mpirun takes no notice unless it is told; that of Open
// MPI 5 (5.0.7) does not either where it is.
std::vector<std::string> DomainArguments(const LaunchRequest& job) {
  std::map<std::string, std::string> hosts;  // by their first labels
  for (const NodePlacement& node : job.plan.nodes) {
    const auto [other, is_new] = hosts.emplace(rankfile::KeyOfHost(node.host).label, node.host);
    if (is_new) continue;
    if (job.mpi_runtime == MpiRuntime::kOrte) return {"--mca", "orte_keep_fqdn_hostnames", "1"};
    throw LaunchError(EX_CONFIG, "mpirun of Open MPI 5 takes " + other->second + " and " +
                                     node.host +
                                     " for one host, since it reads names up to their first dot; "
                                     "give one of them by another name or its address");
  }
  return {};
}

// Has mpirun's daemon on this machine keep its files in the run directory: the name of its
// directory in /tmp could be guessed, and taken, by another user.  Not where there are other nodes,
// which have no run directory: ORTE's daemons there give their ranks a base of their own, and MPI
// refuses to start where one for mpirun's node (orte_local_tmpdir_base) is set beside it.
void SetDaemonDirectory(const LaunchRequest& job, Environment* environment) {
  if (job.mpi_runtime == MpiRuntime::kPrrte) {
    // PRRTE refuses to have both of these.
    if (environment->contains("PRTE_MCA_prte_tmpdir_base")) return;
    environment->emplace("PRTE_MCA_prte_local_tmpdir_base", job.run_directory);
  } else if (!job.has_remote_ranks) {
    environment->emplace("OMPI_MCA_orte_tmpdir_base", job.run_directory);
  }
}

// Has mpirun pass the signal on that tells ranks of the failure of a peer.  For Open MPI 4 the list
// is one of signals beyond those that it always passes on; PRRTE's manual has it for all of them.
void ForwardPeerFailure(MpiRuntime runtime, Environment* environment) {
  const bool is_prrte = runtime == MpiRuntime::kPrrte;
  std::string& signals =
      (*environment)[(is_prrte ? "PRTE_" : "OMPI_") + std::string("MCA_ess_base_forward_signals")];
  if (!signals.empty()) signals += ",";
  if (is_prrte) signals += "SIGTSTP,SIGUSR1,SIGUSR2,SIGABRT,SIGALRM,SIGCONT,";
  signals += std::to_string(kPeerFailedSignal);
}

std::vector<HostSlots> SlotsOf(const LaunchRequest& job) {
  std::vector<HostSlots> slots;
  for (const int index : NodesInJobOrder(job)) {
    const NodePlacement& node = job.plan.nodes[static_cast<std::size_t>(index)];
    slots.push_back({node.host, static_cast<int>(node.ranks.size()), node.gpus, node.component});
  }
  return slots;
}

// With "-x NAME" mpirun takes the value from its own environment, where ddlrun has put all
// variables: every user of the machine can read its command line.
std::vector<std::string> ExportArguments(const LaunchRequest& job) {
  std::vector<std::string> arguments;
  for (const auto& [name, value] : job.environment) {
    const bool requested = std::find(job.requested_exports.begin(), job.requested_exports.end(),
                                     name) != job.requested_exports.end();
    if (job.has_remote_ranks && (IsForwarded(name) || requested) &&
        !job.rank_settings.contains(name)) {
      arguments.insert(arguments.end(), {"-x", name});
    }
  }
  for (const auto& [name, value] : job.rank_settings) {
    arguments.insert(arguments.end(), {"-x", name});
  }
  return arguments;
}

// Whether the user has mpirun set PATH for the ranks by itself: -x PATH, -x PATH=...
bool HasMpirunSetPath(const std::vector<std::string>& mpi_arguments) {
  for (std::size_t i = 1; i < mpi_arguments.size(); ++i) {
    const std::string& word = mpi_arguments[i];
    const bool is_export = mpi_arguments[i - 1] == "-x" || mpi_arguments[i - 1] == "--x";
    if (is_export && (word == "PATH" || word.starts_with("PATH="))) return true;
  }
  return false;
}

// The PATH that the shim gives to the ranks; "" for the one that they get from mpirun.
std::string PathOfRanks(const LaunchRequest& job) {
  if (HasMpirunSetPath(job.mpi_arguments)) return "";
  return ValueOr(job.rank_settings, "PATH", ValueOr(job.environment, "PATH", ""));
}

// Whether the user or the site may have mpirun send the output of the ranks elsewhere: by
// --output-filename, --output, --xterm, --xml, --merge-stderr-to-stdout, or by variables for these.
bool MayRedirectOutput(const LaunchRequest& job) {
  const auto may = [](const std::string& word) {
    const auto names = {"output", "stdout", "xterm", "xml"};
    return std::ranges::any_of(
        names, [&](const char* name) { return word.find(name) != std::string::npos; });
  };
  const auto may_by_variable = [&](const auto& variable) {
    const std::string& name = variable.first;
    return (name.starts_with("OMPI_MCA_") || name.starts_with("PRTE_MCA_")) && may(name);
  };
  return std::ranges::any_of(job.mpi_arguments, may) ||
         std::ranges::any_of(job.environment, may_by_variable);
}

}  // namespace

std::vector<ChildCommand> MakeMpirunCommands(const LaunchRequest& job) {
  ChildCommand command;
  command.launcher = &TraitsOf("mpirun");
  std::vector<std::string>& argv = command.argv;
  const auto append = [&argv](const std::vector<std::string>& words) {
    argv.insert(argv.end(), words.begin(), words.end());
  };
  SlurmForMpirun slurm;
  if (job.in_slurm) {
    slurm = MakeSlurmForMpirun(SlotsOf(job), job.hosts_of_job.size(), SeenByMpirun(job),
                               job.mpi_runtime, job.mpi_arguments);
    append({kEnv});
    for (const std::string& name : slurm.hidden) append({"-u", name});
    for (const auto& [name, value] : slurm.variables) append({name + "=" + value});
  }
  append({job.mpirun});
  if (job.is_root) append({"--allow-run-as-root"});
  append(slurm.options);
  const bool is_isolated =
      job.mpirun_is_alone && !job.has_remote_ranks && job.mpi_runtime == MpiRuntime::kOrte;
  if (!job.in_slurm && job.environment.contains("SLURM_JOB_ID")) {
    const std::string parameter = job.mpi_runtime == MpiRuntime::kPrrte ? "--prtemca" : "--mca";
    append({parameter, "ras", "^slurm"});
    if (!is_isolated) append({parameter, "plm", "^slurm"});
  }
  if (is_isolated) append({"--mca", "plm", "isolated"});
  append(DomainArguments(job));
  append(MappingArguments(job, &command));
  append({"-n", std::to_string(job.plan.ranks.size())});
  append(job.in_slurm ? slurm.mpirun_args : job.mpi_arguments);

  append(ExportArguments(job));
  Environment environment = job.in_slurm ? EnvironmentForMpirun(job.environment) : job.environment;
  if (const std::string path = PathOfRanks(job); !path.empty()) {
    environment[kPathVariable] = path;
    if (job.has_remote_ranks) append({"-x", kPathVariable});
  }
  // The step of the daemons waits for what another step has unless it shares that.
  if (job.in_slurm && (job.in_step || job.has_lost_nodes)) environment["SLURM_OVERLAP"] = "1";
  for (const auto& [name, value] : job.rank_settings) environment[name] = value;
  SetDaemonDirectory(job, &environment);
  if (!job.has_home) environment["HOME"] = job.run_directory;  // else Open MPI 4.1.4 crashes
  ForwardPeerFailure(job.mpi_runtime, &environment);
  append({job.shim, "--"});
  append(WithMoreColons(job.program));
  command.environment = ToStrings(environment);
  command.may_hide_events = MayRedirectOutput(job);
  if (command.may_hide_events && job.frames) {
    throw LaunchError(EX_USAGE,
                      "--tag-output and --fold-output need the output of the ranks, which an "
                      "argument or a variable of mpirun may send elsewhere (output, stdout, xterm, "
                      "xml): leave one of them out");
  }
  return {command};
}

}  // namespace launcher
