// SPDX-License-Identifier: Apache-2.0

#include "launcher/launch.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "launcher/allocation/hosts_of_job.h"
#include "launcher/allocation/slurm_allocation.h"
#include "launcher/error.h"
#include "launcher/plan/plan_files.h"
#include "launcher/plan/planner.h"
#include "launcher/rank/rank_job.h"
#include "launcher/rankfile_plan.h"
#include "launcher/spawn/master_port.h"
#include "launcher/spawn/quoting.h"
#include "launcher/supervise/command_output.h"
#include "launcher/surroundings.h"
#include "launcher/topology/fingerprint.h"
#include "launcher/topology/hwloc_topology.h"
#include "support/counted.h"

namespace launcher {
namespace {

namespace fs = std::filesystem;

// The port of DDL itself, in every command line of IBM's ddlrun that is known.
constexpr char kDdlHostPort[] = "2200";
constexpr unsigned long kPortsPerJob = 619;  // seven jobs apart they may meet again
constexpr char kRankfileName[] = "RANKFILE";
constexpr std::chrono::seconds kSrunPatience{30};

PlanOptions MakePlanOptions(const Options& options, const Settings& settings) {
  PlanOptions plan;
  plan.ranks = options.ranks;
  plan.gpus_per_node = options.accelerators;
  plan.oversubscribe = options.oversubscribe;
  plan.bind = settings.bind;
  plan.order = settings.cyclic ? RankOrder::kCyclic : RankOrder::kByNode;
  plan.mode = options.mode;
  plan.nodes_per_rack = options.nodes;
  plan.racks = options.racks.value_or(1);
  plan.aisles = options.aisles.value_or(1);
  return plan;
}

// Inside Slurm all hosts must be of the job; PlannedJob::rankfile_text has them by Slurm's names.
void PlanByRankfile(const Options& options, const Environment& environment, PlannedJob* planned) {
  const std::string text = ReadFile(options.rankfile);
  const std::optional<Allocation> job = ReadSlurmAllocation(environment);
  if (job) planned->rankfile_text = WithHostsOfJob(text, options.rankfile, *job);
  const bool is_renamed = !planned->rankfile_text.empty();
  planned->plan = PlanFromRankfile(is_renamed ? planned->rankfile_text : text, options.rankfile);
  const auto ranks = static_cast<long long>(planned->plan.ranks.size());
  if (options.ranks && *options.ranks != ranks) {
    throw LaunchError(EX_USAGE, "-n " + std::to_string(*options.ranks) + ", but " +
                                    options.rankfile + " has " + support::Counted(ranks, "rank"));
  }
  planned->plan.mode = options.mode;
}

RankJob MakeRankJob(const Options& options, const Settings& settings, const PlannedJob& planned,
                    const std::string& spawner, const Environment& environment,
                    const std::string& run_directory) {
  RankJob job;
  job.plan = planned.plan;
  job.bind = settings.bind && options.rankfile.empty();
  job.check = settings.check != "off";
  job.spawner = spawner;
  // The ranks of the local launcher are where the plan was made.
  job.planned_for = spawner == "local" ? "" : planned.planned_for;
  job.run_directory = run_directory;
  if (!options.log_directory.empty()) job.log_directory = fs::absolute(options.log_directory);
  const NodePlan& first = planned.plan.nodes[static_cast<std::size_t>(planned.plan.ranks[0].node)];
  job.master_address = ValueOr(environment, "MASTER_ADDR",
                               planned.plan.nodes.size() == 1 ? "127.0.0.1" : first.host);
  const std::string port = ValueOr(environment, "MASTER_PORT", "");
  // Two ddlruns may run in one job, so that its id alone is no seed.  Jobs that start together have
  // neighbouring numbers and processes: their sums would often be the same.  After a restart,
  // connections of the run before may not be quite gone.
  const unsigned long seed = std::strtoul(planned.job_id.c_str(), nullptr, 10) * kPortsPerJob +
                             static_cast<unsigned long>(getpid()) +
                             static_cast<unsigned long>(planned.restart_count);
  job.restart_count = planned.restart_count;
  job.master_port = port.empty() ? ChooseMasterPort(seed) : std::atoi(port.c_str());
  if (job.master_port < 1 || job.master_port > 65535) {
    throw LaunchError(EX_CONFIG, "MASTER_PORT='" + port + "' is no port from 1 to 65535");
  }
  return job;
}

// What DDL programs read; a value the user gave with -x stays.
void AddDdlSettings(const Options& options, const Plan& plan,
                    std::map<std::string, std::string>& settings) {
  settings.emplace("DDL_HOST_PORT", kDdlHostPort);
  settings.emplace("DDL_HOST_LIST", DdlHostList(plan));
  if (options.no_ddl_options) return;
  std::string ddl_options = DdlOptions(plan);
  for (const std::string& option : options.ddl_options) ddl_options += option + " ";
  settings.emplace("DDL_OPTIONS", ddl_options);
}

// The topology that stands for all nodes, and what it was read from.
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
  if (is_node_of_job) planned->topologies = {ReadLiveTopology()};
  planned->planned_for = is_node_of_job ? TopologyFingerprint() : "none";
}

// Leaves out the nodes that are down, and of the others as many as shall be spare.
void ChooseNodes(const Options& options, const std::vector<std::string>& lost_nodes,
                 Allocation* allocation) {
  std::vector<AllocatedNode>& nodes = allocation->nodes;
  const auto spare = static_cast<std::size_t>(options.spare_nodes);
  if (spare > 0 && allocation->job_id.empty()) {
    throw LaunchError(
        EX_USAGE, "--spare-nodes needs the nodes of a Slurm job: only Slurm says which is down");
  }
  if (spare > 0 && options.max_restarts == 0) {
    throw LaunchError(EX_USAGE,
                      "--spare-nodes without --max-restarts: no spare would ever be used; add "
                      "--max-restarts 3");
  }
  if (spare >= nodes.size()) {
    throw LaunchError(EX_CONFIG,
                      "--spare-nodes " + std::to_string(spare) + " leaves none of the " +
                          support::Counted(static_cast<long long>(nodes.size()), "node") +
                          " of this job: ask for more, #SBATCH -N" + std::to_string(spare + 1));
  }
  const std::size_t wanted = nodes.size() - spare;
  std::erase_if(nodes, [&](const AllocatedNode& node) {
    return std::any_of(lost_nodes.begin(), lost_nodes.end(),
                       [&](const std::string& lost) { return IsSameHost(node.host, lost); });
  });
  if (nodes.size() > wanted) nodes.resize(wanted);
  if (spare > 0) allocation->ranks.reset();  // those of the nodes that are left
}

// Why srun cannot start the ranks, "" when it can.
std::string SrunLacks(CommandOutput* list) {
  if (list == nullptr) return "it is not in PATH";
  if (!list->Wait(kSrunPatience)) return "'srun --mpi=list' failed";
  std::string known;
  std::istringstream words(list->text());
  for (std::string word; words >> word;) {
    if (word == "pmix" || word.starts_with("pmix_v")) return "";
    known += " " + word;
  }
  return "'srun --mpi=list' knows no pmix:" + known.substr(0, 200);
}

}  // namespace

PlannedJob PlanJob(const Options& options, const Settings& settings, const Environment& environment,
                   const std::vector<std::string>& lost_nodes) {
  PlannedJob planned;
  planned.has_lost_nodes = !lost_nodes.empty();
  if (options.rankfile.empty()) {
    Allocation allocation = ReadAllocation(options, environment, settings.launcher == "mpirun");
    planned.job_id = allocation.job_id;
    planned.allocated_nodes = allocation.nodes_of_job;
    ChooseNodes(options, lost_nodes, &allocation);
    if (!options.accelerators) AskSlurmForGpus(environment, &allocation);
    if (!options.accelerators && !options.ranks) LookForForgottenGpus(environment, &allocation);
    planned.in_step = allocation.in_step;
    ReadTopology(options, allocation, environment, &planned);
    planned.plan = MakePlan(allocation, planned.topologies, MakePlanOptions(options, settings));
  } else {
    planned.job_id = ValueOr(environment, "SLURM_JOB_ID", "");
    planned.topologies = {options.topology.empty() ? ReadLiveTopology()
                                                   : ReadTopologyFile(options.topology)};
    PlanByRankfile(options, environment, &planned);
  }
  for (const NodePlan& node : planned.plan.nodes) {
    if (!IsThisMachine(node.host, environment)) planned.has_remote_ranks = true;
  }
  return planned;
}

std::unique_ptr<CommandOutput> AskSrun(const Options& options, const Settings& settings,
                                       const Environment& environment) {
  const bool may_be_srun = settings.launcher == "auto" || settings.launcher == "srun";
  const std::string srun = FindProgram("srun", environment);
  if (!may_be_srun || !options.rankfile.empty() || srun.empty() ||
      ValueOr(environment, "SLURM_JOB_ID", "").empty()) {
    return nullptr;
  }
  return std::make_unique<CommandOutput>(std::vector<std::string>{srun, "--mpi=list"}, environment);
}

Launch ChooseLaunch(const Options& options, const Settings& settings, const PlannedJob& planned,
                    const Environment& environment, CommandOutput* mpi_list) {
  Launch launch;
  launch.mpirun = FindProgram(settings.mpirun, environment);
  const std::string& asked = settings.launcher;
  if (!options.rankfile.empty() && (asked == "local" || asked == "srun")) {
    throw LaunchError(EX_USAGE,
                      "--rankfile is mpirun's; --launcher=" + asked + " does not read it");
  }
  if (asked == "srun" && planned.job_id.empty()) {
    throw LaunchError(EX_CONFIG,
                      "--launcher=srun needs a Slurm job: submit a batch script, or start a shell "
                      "with salloc -N2 --gres=gpu:4");
  }
  SpawnerMeans means;
  means.has_mpirun = !launch.mpirun.empty();
  means.in_slurm = !planned.job_id.empty();
  if (means.in_slurm && options.rankfile.empty() && (asked == "auto" || asked == "srun")) {
    launch.srun = FindProgram("srun", environment);
    means.srun_lacks = SrunLacks(mpi_list);
  }
  if (asked == "srun" && !means.srun_lacks.empty()) {
    throw LaunchError(EX_UNAVAILABLE, "srun cannot start ranks: " + means.srun_lacks +
                                          "; use --launcher=mpirun, or ask your admin for Slurm's "
                                          "PMIx plug-in");
  }
  if (!options.rankfile.empty()) {
    launch.choice = {"mpirun", "it reads the rankfile"};
  } else if (asked == "auto") {
    launch.choice = ChooseSpawner(planned.plan, planned.has_remote_ranks, means);
  } else {
    launch.choice = {asked, ""};
  }
  if (options.spare_nodes > 0 && launch.choice.name != "srun") {
    throw LaunchError(EX_USAGE, "--spare-nodes needs srun to start the ranks, not " +
                                    launch.choice.name + ": only srun can do without a lost node");
  }
  if (launch.choice.name == "mpirun" && launch.mpirun.empty()) {
    throw LaunchError(EX_UNAVAILABLE, settings.mpirun +
                                          " is not in PATH: load Open MPI ('module load openmpi') "
                                          "or, on one machine, use --launcher=local");
  }
  return launch;
}

std::vector<ChildCommand> MakeCommands(const Options& options, const Settings& settings,
                                       const PlannedJob& planned, const Launch& launch,
                                       const Environment& environment,
                                       const std::string& run_directory,
                                       const std::string& program_directory) {
  Job job;
  job.plan = planned.plan;
  job.program = options.program;
  job.shim = fs::path(program_directory).parent_path() / "libexec/ddlrun/ddlrun-rank";
  if (access(job.shim.c_str(), X_OK) != 0) {
    throw LaunchError(EX_UNAVAILABLE, job.shim + " is missing: ddlrun is not completely installed");
  }
  for (const auto& [name, value] : environment) {
    if (!IsRankIdentity(name)) job.environment.emplace(name, value);
  }
  job.rank_settings = settings.rank_settings;
  AddDdlSettings(options, planned.plan, job.rank_settings);
  job.rank_settings[kRankJobVariable] = EncodeRankJob(
      MakeRankJob(options, settings, planned, launch.choice.name, environment, run_directory));
  job.asked_exports = settings.asked_exports;
  job.run_directory = run_directory;
  job.tag_output = options.tag_output;
  job.srun = launch.srun;
  job.allocated_nodes = planned.allocated_nodes;
  job.in_step = planned.in_step;
  job.has_lost_nodes = planned.has_lost_nodes;
  job.mpirun = launch.mpirun;
  job.mpi_arguments = settings.mpi_arguments;
  job.rankfile =
      planned.rankfile_text.empty() ? options.rankfile : run_directory + "/" + kRankfileName;
  // Children on this machine inherit the environment; mpirun carries it to others only by name.
  job.has_remote_ranks = planned.has_remote_ranks;
  job.in_slurm = !planned.job_id.empty();
  job.is_root = geteuid() == 0;
  return FindSpawner(launch.choice.name).make_commands(job);
}

std::map<std::string, std::string> FilesOf(const PlannedJob& planned) {
  std::map<std::string, std::string> files = {{"HOSTFILE", HostfileText(planned.plan)},
                                              {"TASKFILE", TaskfileText(planned.plan)},
                                              {"plan.json", PlanAsJson(planned.plan)}};
  // Its cores are those of a node that was seen.
  if (!planned.topologies.empty()) {
    files[kRankfileName] = RankfileText(planned.plan, planned.topologies);
  }
  if (!planned.rankfile_text.empty()) files[kRankfileName] = planned.rankfile_text;
  return files;
}

std::string CommandsText(const std::vector<ChildCommand>& commands) {
  std::string text = "+ " + QuoteCommand(commands.front().argv) + "\n";
  if (commands.size() > 1) {
    text += "  (and so for the other " + std::to_string(commands.size() - 1) + ")\n";
  }
  return text;
}

}  // namespace launcher
