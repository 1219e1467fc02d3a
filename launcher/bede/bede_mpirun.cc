// SPDX-License-Identifier: Apache-2.0

#include "launcher/bede/bede_mpirun.h"

#include <unistd.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "launcher/base/environment.h"
#include "launcher/base/error.h"
#include "launcher/base/messages.h"
#include "launcher/cli/settings.h"
#include "launcher/cli/site_config.h"
#include "launcher/features/closed_output.h"
#include "launcher/launch/child_environment.h"
#include "launcher/launch/mpirun_version.h"
#include "launcher/pipeline/commands.h"
#include "launcher/pipeline/read_allocation.h"
#include "launcher/placement/launch_plan_files.h"
#include "launcher/placement/planner.h"
#include "launcher/slurm/complete_allocation.h"
#include "launcher/supervise/supervisor.h"
#include "launcher/system/files.h"
#include "launcher/system/output_queue.h"
#include "launcher/system/run_directory.h"
#include "launcher/topology/hwloc_topology.h"
#include "rankfile/hostfile.h"
#include "support/number.h"

namespace launcher {
namespace {

constexpr char kThreadsVariable[] = "OMP_NUM_THREADS";

int Threads(const NodeTopology& topology, const std::vector<int>& cores) {
  int threads = 0;
  for (const int core : cores) threads += static_cast<int>(topology.cores[core].cpus.size());
  return threads;
}

// OMP_NUM_THREADS of a rank that has `cores`.
int ThreadsOf(const NodeTopology& topology, const std::vector<int>& cores, const BedePar& par) {
  switch (par.threads) {
    case ThreadShare::kCores:
      return std::max(1, static_cast<int>(cores.size()));
    case ThreadShare::kHardwareThreads:
      return std::max(1, Threads(topology, cores));
    case ThreadShare::kOne:
      break;
  }
  return 1;
}

[[noreturn]] void RejectWithoutGpu(const std::string& host) {
  throw LaunchError(EX_CONFIG, "--bede-par 1ppg: no GPU on " + host +
                                   ": ask for GPUs with '#SBATCH --gres=gpu:4', or for one rank "
                                   "per node with --bede-par 1ppn");
}

// Leaves it to the planner, which plans one rank per GPU when nothing else was asked for.
BedeLayout PlanByGpu(Allocation allocation, const NodeTopology& topology, const BedePar& par) {
  allocation.ranks.reset();
  allocation.cpus_per_rank.reset();
  for (AllocatedNode& node : allocation.nodes) {
    node.slots.reset();
    if (node.gpus == 0) RejectWithoutGpu(node.host);
  }
  const LaunchPlan plan = MakePlan(allocation, {topology}, PlacementOptions());

  BedeLayout result;
  result.ranks = static_cast<int>(plan.ranks.size());
  result.threads = std::numeric_limits<int>::max();
  for (const RankPlacement& rank : plan.ranks) {
    if (rank.gpu < 0) RejectWithoutGpu(plan.nodes[static_cast<std::size_t>(rank.node)].host);
    result.threads = std::min(result.threads, ThreadsOf(topology, rank.cores, par));
  }
  for (const NodePlacement& node : plan.nodes) {
    result.hosts.push_back(
        {node.host, static_cast<int>(node.ranks.size()), node.gpus, node.component});
  }
  result.rankfile = RankfileText(plan, {topology});
  result.warnings = plan.warnings;
  return result;
}

using Variables = std::map<std::string, std::string>;

Variables OrteParameters(const BedeJob& job) {
  Variables parameters;
  if (!job.in_slurm) parameters["orte_default_hostfile"] = job.hostfile;
  switch (job.par.ranks) {
    case RankShare::kNode:
      parameters["rmaps_base_mapping_policy"] = "slot";
      parameters["hwloc_base_binding_policy"] = "none";
      break;
    case RankShare::kGpu:
      parameters["orte_rankfile"] = job.rankfile;
      break;
    case RankShare::kCore:
      parameters["rmaps_base_mapping_policy"] = "core";
      parameters["hwloc_base_binding_policy"] = "core";
      break;
    case RankShare::kHardwareThread:
      parameters["hwloc_base_use_hwthreads_as_cpus"] = "1";
      parameters["rmaps_base_mapping_policy"] = "hwthread";
      parameters["hwloc_base_binding_policy"] = "hwthread";
      break;
  }
  return parameters;
}

Variables PrrteParameters(const BedeJob& job) {
  Variables parameters;
  if (!job.in_slurm) parameters["prte_default_hostfile"] = job.hostfile;
  switch (job.par.ranks) {
    case RankShare::kNode:
      parameters["hwloc_default_binding_policy"] = "none";
      break;
    case RankShare::kGpu:
      // Where a node has fewer cores than GPUs, ranks share cores.
      parameters["hwloc_default_binding_policy"] = ":overload-allowed";
      break;
    case RankShare::kCore:
      parameters["hwloc_default_binding_policy"] = "core";
      break;
    case RankShare::kHardwareThread:
      parameters["rmaps_default_mapping_policy"] = ":HWTCPUS";
      parameters["hwloc_default_binding_policy"] = "hwthread";
      break;
  }
  return parameters;
}

// With those of Slurm.
Variables MakeVariables(const BedeJob& job, Variables variables) {
  const bool is_prrte = job.mpi_runtime == MpiRuntime::kPrrte;
  for (const auto& [name, value] : is_prrte ? PrrteParameters(job) : OrteParameters(job)) {
    const std::string variable = (is_prrte ? "PRTE_MCA_" : "OMPI_MCA_") + name;
    if (!job.environment.contains(variable)) variables[variable] = value;
  }
  return variables;
}

}  // namespace

std::string HostfileText(const BedeLayout& plan) {
  std::vector<rankfile::HostfileEntry> entries;
  for (const HostSlots& host : plan.hosts) entries.push_back({host.host, host.slots, std::nullopt});
  return rankfile::FormatHostfile(entries);
}

BedeLayout PlanBede(const Allocation& allocation, const NodeTopology& topology,
                    const BedePar& par) {
  if (par.ranks == RankShare::kGpu) return PlanByGpu(allocation, topology, par);

  std::vector<int> all_cores;
  for (std::size_t i = 0; i < topology.cores.size(); ++i) all_cores.push_back(static_cast<int>(i));
  const std::vector<int> first_core = {0};
  BedeLayout plan;
  int per_node = 1;
  if (par.ranks == RankShare::kNode) {
    plan.threads = ThreadsOf(topology, all_cores, par);
  } else if (par.ranks == RankShare::kCore) {
    per_node = static_cast<int>(all_cores.size());
    plan.threads = ThreadsOf(topology, first_core, par);
  } else {
    per_node = Threads(topology, all_cores);
  }
  const AllocatedNode& first = allocation.nodes.front();
  for (const AllocatedNode& node : allocation.nodes) {
    const bool is_like_first = node.component == first.component;
    const int gpus = node.gpus ? *node.gpus : is_like_first ? first.gpus.value_or(0) : 0;
    plan.hosts.push_back({node.host, per_node, gpus, node.component});
  }
  plan.ranks = per_node * static_cast<int>(plan.hosts.size());
  return plan;
}

ChildCommand MakeBedeCommand(const BedeJob& job) {
  ChildCommand command;
  command.launcher = &TraitsOf("mpirun");
  const auto append = [&command](const std::vector<std::string>& words) {
    command.argv.insert(command.argv.end(), words.begin(), words.end());
  };
  SlurmForMpirun slurm;
  if (job.in_slurm) {
    std::vector<std::string> words = job.mpi_arguments;
    words.insert(words.end(), job.mpirun_args.begin(), job.mpirun_args.end());
    // All nodes of the job: there is no argument of the user's to add nodes to.
    slurm = MakeSlurmForMpirun(job.plan.hosts, job.plan.hosts.size(), job.environment,
                               job.mpi_runtime, words);
  }
  append({kEnv});
  for (const std::string& name : slurm.hidden) append({"-u", name});
  for (const auto& [name, value] : MakeVariables(job, slurm.variables)) {
    append({name + "=" + value});
  }
  append({job.mpirun});
  if (job.is_root) append({"--allow-run-as-root"});
  append(slurm.options);
  const bool users_threads =
      !job.par.are_threads_requested && job.environment.contains(kThreadsVariable);
  append({"-x", users_threads ? kThreadsVariable
                              : kThreadsVariable + ("=" + std::to_string(job.plan.threads))});
  for (const auto& [name, value] : job.rank_settings) append({"-x", name});
  if (job.mpi_runtime == MpiRuntime::kPrrte && job.par.ranks == RankShare::kGpu) {
    append({"--map-by", "rankfile:FILE=" + job.rankfile});
  }
  append(job.mpi_arguments);
  append(job.mpirun_args);

  Environment environment;
  for (const auto& [name, value] : job.environment) {
    if (!IsRankIdentity(name)) environment.emplace(name, value);
  }
  // Every user of the machine can read the command line.
  for (const auto& [name, value] : job.rank_settings) environment[name] = value;
  command.environment = ToStrings(environment);
  return command;
}

namespace {

// Refuses to run where no node of the job is, since the cores of the nodes are known only on a
// node.
void RequireNodeOfJob(const Allocation& allocation, const Environment& environment) {
  if (allocation.origin != Allocation::Origin::kSlurm ||
      std::any_of(allocation.nodes.begin(), allocation.nodes.end(), [&](const AllocatedNode& node) {
        return IsThisMachine(node.host, environment);
      })) {
    return;
  }
  throw LaunchError(EX_CONFIG, "this machine is not in the job (" + allocation.origin_text +
                                   "), so its nodes' cores are not known here: start bede-mpirun "
                                   "in a batch script, or in 'srun --pty bash'");
}

// The runtime of mpirun, which must be that of Open MPI.
MpiRuntime RuntimeOf(const std::string& mpirun, CommandOutput* requested,
                     const Settings& settings) {
  std::string lacks = settings.mpirun + " is not in PATH";
  if (requested != nullptr) {
    const MpirunVersion version = AnswerOfMpirun(requested);
    if (version.runtime) return *version.runtime;
    lacks = MpirunLacks(mpirun, version);
  }
  throw LaunchError(EX_UNAVAILABLE, lacks + ": " + kHowToHaveOpenMpi);
}

BedeJob MakeJob(const BedeOptions& options, const Settings& settings,
                const Environment& environment) {
  Allocation allocation = ReadAllocation(Options(), environment, false);
  RequireNodeOfJob(allocation, environment);
  if (options.par.ranks == RankShare::kGpu) QuerySlurmForGpus(environment, &allocation);
  BedeJob job;
  job.mpirun = FindProgramOrNeighbor(settings.mpirun, environment);
  const std::unique_ptr<CommandOutput> version = QueryMpirun(job.mpirun, environment);
  job.plan = PlanBede(allocation, ReadTopologyOfJob(GrantedBySlurm(environment)), options.par);
  job.par = options.par;
  job.mpi_runtime = RuntimeOf(job.mpirun, version.get(), settings);
  job.mpi_arguments = settings.mpi_arguments;
  job.mpirun_args = options.mpirun_args;
  job.rank_settings = settings.rank_settings;
  job.environment = environment;
  job.in_slurm = !allocation.job_id.empty();
  job.is_root = geteuid() == 0;
  return job;
}

std::string Announcement(const BedeJob& job) {
  std::string text;
  for (const std::string& warning : job.plan.warnings) text += "bede-mpirun: " + warning + "\n";
  return text + "bede-mpirun: " + FormatBedePar(job.par) + ": " +
         support::Counted(job.plan.ranks, "rank") + " unless an option of mpirun says otherwise, " +
         support::Counted(job.plan.threads, "thread") + " each\n";
}

std::string FilesText(const BedeLayout& plan) {
  const std::string hostfile = std::string(kHostfileName) + "\n" + HostfileText(plan);
  return plan.rankfile.empty() ? hostfile : hostfile + kRankfileName + "\n" + plan.rankfile;
}

// What the user is told when mpirun has ended.
std::string MpirunEndText(const JobResult& result) {
  std::string text;
  for (const std::string& note : result.notes) text += "bede-mpirun: " + note + "\n";
  if (result.exit_code == 0) return text;
  const std::string code = std::to_string(result.exit_code);
  if (result.stop_signal != 0) {
    return text + "bede-mpirun: stopped by " + NameOfStopRequest(result.stop_signal) +
           " (exit code " + code + ")\n";
  }
  if (result.own_end) {
    return text + "bede-mpirun: " + result.own_end->text + " (exit code " + code + ")\n";
  }
  return text + "bede-mpirun: " +
         Coded(Message::kJobFailed,
               "mpirun ended with exit code " + code + "; the messages above say why") +
         "\n";
}

int Start(BedeJob job, const Settings& settings) {
  // From here on a signal does not end the program, and so cannot leave the directory behind.
  SignalRelay& signals = SignalsOfProgram();
  const RunDirectory directory(settings.run_directory, false);
  directory.Append(kHostfileName, HostfileText(job.plan));
  directory.Append(kRankfileName, job.plan.rankfile);
  // This keeps the file open until mpirun has ended.
  const PlainPath rankfile(directory.path() + "/" + kRankfileName);
  job.rankfile = rankfile.path();
  job.hostfile = directory.path() + "/" + kHostfileName;
  const std::vector<ChildCommand> commands = {MakeBedeCommand(job)};
  Say(Announcement(job) + CommandsText(commands));

  CleanupProcess cleanup_process(directory.path());
  SupervisorOptions supervisor;
  supervisor.cleanup_process = &cleanup_process;
  supervisor.grace = settings.grace;
  supervisor.watchers.push_back(std::make_unique<ClosedOutput>());
  const JobResult result = Supervise(commands, supervisor, signals);
  Say(MpirunEndText(result), result.stop_requested);
  return result.exit_code;
}

}  // namespace

int RunBedeMpirun(const std::vector<std::string>& arguments) {
  const BedeOptions options = ParseBedeOptions(arguments);
  if (options.help) {
    Print(BedeHelpText());
    return EX_OK;
  }
  if (options.version) {
    Print(std::string("bede-mpirun ") + DDLRUN_VERSION + "\n");
    return EX_OK;
  }
  const Environment environment =
      WithoutEnclosingLaunch(WithoutInheritedComponents(SnapshotEnvironment()));
  const Settings settings = MergeBaseSettings(Options(), LoadSite("", environment), environment);
  BedeJob job = MakeJob(options, settings, environment);
  if (!options.dry_run) return Start(std::move(job), settings);

  const std::string directory = settings.run_directory + "/" + kRunDirectoryName + "/";
  job.rankfile = directory + kRankfileName;
  job.hostfile = directory + kHostfileName;
  Print(Announcement(job) + CommandsText({MakeBedeCommand(job)}) + FilesText(job.plan));
  return EX_OK;
}

}  // namespace launcher
