// SPDX-License-Identifier: Apache-2.0

#include "launcher/pipeline/commands.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <utility>

#include "launcher/base/error.h"
#include "launcher/cli/launcher_arguments.h"
#include "launcher/cli/option_values.h"
#include "launcher/launch/child_environment.h"
#include "launcher/launch/master_address.h"
#include "launcher/pipeline/read_allocation.h"
#include "launcher/placement/launch_plan_files.h"
#include "launcher/protocol/rank_job.h"
#include "launcher/system/files.h"
#include "launcher/system/run_directory.h"
#include "support/number.h"
#include "support/quoting.h"

namespace launcher {
namespace {

// The port of DDL itself, which is the same in every known log of IBM's ddlrun.
constexpr char kDdlHostPort[] = "2200";

// The distance between the ports of two jobs with consecutive ids.  It is larger than most
// differences between their process ids, and seven such jobs fit into the ports that there are.
constexpr unsigned long kPortsPerJob = 619;
static_assert(7 * kPortsPerJob <= kMasterPorts);

// The ranks of different runs must not meet at one port, and so each run has a seed of its own. The
// process id is a part of it because two ddlruns may run in one job, and the number of restarts
// because connections of an earlier run may not be closed yet.  Jobs that start together have
// consecutive job ids and process ids, whose plain sums could be equal: job 7 with process 101, job
// 8 with process 100.
unsigned long PortSeed(const std::string& job_id, int restart_count) {
  return support::WholeNumber<unsigned long>(job_id).value_or(0) * kPortsPerJob +
         static_cast<unsigned long>(getpid()) + static_cast<unsigned long>(restart_count);
}

// "pmix" of "pmix_v4".
std::string PmiOf(const std::string& mpi_type) { return mpi_type.substr(0, mpi_type.find('_')); }

// A random key, which no program that runs in the job can guess.
std::string MakeEventKey() {
  std::random_device random;
  std::array<char, kEventKeyBytes + 1> key = {};
  std::snprintf(key.data(), key.size(), "%08x%08x", random(), random());
  return key.data();
}

// Whether mpirun is told by its arguments in which directory ranks are started.
bool ChooseDirectory(const std::vector<std::string>& mpi_arguments) {
  const std::set<std::string> names = {"wdir", "wd", "set-cwd-to-session-dir"};
  return std::any_of(mpi_arguments.begin(), mpi_arguments.end(), [&](const std::string& word) {
    const std::size_t name = word.find_first_not_of('-');
    return name != std::string::npos && name > 0 && names.contains(word.substr(name));
  });
}

// What -x or the site file sets for the ranks goes before the environment of ddlrun.
std::string Chosen(const Settings& settings, const Environment& environment,
                   const std::string& name, const std::string& fallback) {
  return ValueOr(settings.rank_settings, name, ValueOr(environment, name, fallback));
}

// A restart may have fewer ranks than the user has thought of.
void RequireRanks(const std::string& option, const std::string& list, const PlannedJob& planned) {
  const int ranks = support::Size(planned.plan.ranks);
  if (planned.restart_count > 0 || LargestRank(list).value_or(0) < ranks) return;
  throw LaunchError(EX_USAGE, option + " " + list + ": there are " +
                                  support::Counted(ranks, "rank") + ", 0 to " +
                                  std::to_string(ranks - 1));
}

// --show-ranks, --tag-output, --fold-output and --wrap.
void SetRanksOfOptions(const Options& options, const Environment& environment,
                       const PlannedJob& planned, const Launch& launch, RankJob* job) {
  if (!options.shown_ranks.empty()) RequireRanks("--show-ranks", options.shown_ranks, planned);
  job->shown_ranks = options.shown_ranks;
  // ddlrun knows itself whose a line is of its own children.
  job->frames = !launch.choice.traits().is_direct &&
                (!options.tag_format.empty() || !options.fold_output.empty());
  for (const Wrap& wrap : options.wraps) {
    RequireRanks("--wrap", wrap.ranks, planned);
    if (!planned.has_remote_ranks && FindProgram(wrap.words[0], environment).empty()) {
      throw LaunchError(EX_UNAVAILABLE, "--wrap: cannot find '" + wrap.words[0] +
                                            "': load its module, or give its path");
    }
    job->wraps.push_back({wrap.ranks, wrap.words});
  }
}

RankJob MakeRankJob(const Options& options, const Settings& settings, const PlannedJob& planned,
                    const Launch& launch, const Environment& environment,
                    const std::string& run_directory) {
  RankJob job;
  job.plan = planned.plan;
  job.bind = settings.bind && options.rankfile.empty();
  job.check = settings.check != "off" && options.accelerators != 0;
  job.launcher = launch.choice.name;
  job.pmi = PmiOf(launch.choice.mpi_type);
  job.event_key = MakeEventKey();
  job.pause =
      job.pmi == "pmix" && planned.plan.nodes.size() > 1 && PmixServersNeedPause(launch.slurm);
  const LauncherTraits& launcher = launch.choice.traits();
  // Ranks that ddlrun starts itself are on this machine, for which the plan was made.
  job.planned_for = launcher.is_direct ? "" : planned.planned_for;
  job.run_directory = run_directory;
  if (!options.log_directory.empty()) job.log_directory = AbsolutePath(options.log_directory);
  const bool is_placed =
      launcher.is_direct || (launcher.is_open_mpi && ChooseDirectory(settings.mpi_arguments));
  if (settings.stays_here && !is_placed) job.directory = CurrentDirectory(environment);
  job.master_address = MasterAddress(settings, planned, environment);
  const std::string port = Chosen(settings, environment, "MASTER_PORT", "");
  job.restart_count = planned.restart_count;
  SetRanksOfOptions(options, environment, planned, launch, &job);
  job.grace_ms = static_cast<int>(std::chrono::milliseconds(settings.grace).count());
  job.master_port = port.empty() ? ChooseMasterPort(PortSeed(planned.job_id, planned.restart_count))
                                 : support::WholeNumber<int>(port).value_or(0);
  if (job.master_port < 1 || job.master_port > 65535) {
    throw LaunchError(EX_CONFIG, "MASTER_PORT='" + port + "' is no port from 1 to 65535");
  }
  return job;
}

// NCCL answers questions about its state (RAS) at one address of a node, 28028 unless it is told
// another one: jobs that share a node would answer for each other (ddlctl why asks).  The ports are
// below those that Linux gives to connections, from 32768 on.
constexpr int kFirstRasPort = 28029;

void AddRasAddress(const Environment& environment, int master_port,
                   std::map<std::string, std::string>& settings) {
  constexpr char kName[] = "NCCL_RAS_ADDR";
  if (environment.contains(kName)) return;
  settings.emplace(kName,
                   "localhost:" + std::to_string(kFirstRasPort + master_port % kMasterPorts));
}

// Adds the variables that DDL programs read, except for those that the user has set with -x.
void AddDdlSettings(const Options& options, const LaunchPlan& plan,
                    std::map<std::string, std::string>& settings) {
  settings.emplace("DDL_HOST_PORT", kDdlHostPort);
  const std::string host_list = options.no_ddl_host_list ? "" : DdlHostList(plan);
  if (!host_list.empty() && host_list.size() <= kMaxHostListBytes) {
    settings.emplace("DDL_HOST_LIST", host_list);
  }
  if (options.no_ddl_options) return;
  std::string ddl_options = DdlOptions(plan);
  for (const std::string& option : options.ddl_options) ddl_options += option + " ";
  settings.emplace("DDL_OPTIONS", ddl_options);
}

}  // namespace

std::string MasterAddress(const Settings& settings, const PlannedJob& planned,
                          const Environment& environment) {
  const LaunchPlan& plan = planned.plan;
  const NodePlacement& first = plan.nodes[static_cast<std::size_t>(plan.ranks[0].node)];
  const std::string& known = planned.first_address.empty() ? first.host : planned.first_address;
  return Chosen(settings, environment, "MASTER_ADDR", plan.nodes.size() == 1 ? "127.0.0.1" : known);
}

std::vector<ChildCommand> MakeCommands(const Options& options, const Settings& settings,
                                       const PlannedJob& planned, const Launch& launch,
                                       const Environment& environment,
                                       const std::string& run_directory,
                                       const std::string& program_directory) {
  LaunchRequest job;
  job.plan = planned.plan;
  job.program = options.program;
  // ddltraind and others of ours, of a virtual environment that is not active.  No other program:
  // what is in no PATH here, as python, may be in that of a rank, in a container for example.
  if (!job.program.empty() && job.program.front().starts_with("ddl") &&
      FindProgram(job.program.front(), environment).empty()) {
    const std::string neighbor = FindProgramOrNeighbor(job.program.front(), environment);
    if (!neighbor.empty()) job.program.front() = neighbor;
  }
  job.shim = RequireHelper("ddlrun-rank", program_directory);
  // The shim becomes this program on a node that is not as planned.  If it is missing, ddlrun says
  // so here, before the shims do.
  RequireHelper("ddlrun-rank-check", program_directory);
  for (const auto& [name, value] : environment) {
    if (!IsRankIdentity(name)) job.environment.emplace(name, value);
  }
  job.rank_settings = settings.rank_settings;
  if (!launch.choice.traits().is_open_mpi) {
    for (const auto& [name, value] :
         SplitMpiArguments(settings.requested_mpi_arguments).variables) {
      job.rank_settings[name] = value;
    }
  }
  AddDdlSettings(options, planned.plan, job.rank_settings);
  const RankJob rank_job =
      MakeRankJob(options, settings, planned, launch, environment, run_directory);
  AddRasAddress(environment, rank_job.master_port, job.rank_settings);
  for (const auto& [name, value] : RankJobVariables(EncodeRankJob(rank_job))) {
    job.rank_settings[name] = value;
  }
  job.requested_exports = settings.requested_exports;
  job.run_directory = run_directory;
  job.frames = rank_job.frames;
  job.srun = launch.srun;
  job.srun_arguments = settings.srun_arguments;
  job.mpi_type = launch.choice.mpi_type;
  job.hosts_of_job = planned.hosts_of_job;
  job.has_other_host_names = planned.has_other_host_names;
  job.in_step = planned.in_step;
  job.has_lost_nodes = planned.has_lost_nodes;
  job.mpirun = launch.mpirun;
  job.mpi_runtime = launch.mpi_runtime;
  job.mpi_arguments = settings.mpi_arguments;
  job.rankfile =
      planned.rankfile_text.empty() ? options.rankfile : run_directory + "/" + kRankfileName;
  job.plan_rankfile = run_directory + "/" + kRankfileName;
  // Children on this machine inherit the environment.  To other machines mpirun carries only the
  // variables that it is told by name.
  job.has_remote_ranks = planned.has_remote_ranks;
  job.in_slurm = !planned.job_id.empty();
  if (launch.mpirun_lacks_srun && !planned.has_remote_ranks) {
    // What mpirun does not know for this machine it would ask srun to reach: Slurm's own name.
    for (NodePlacement& node : job.plan.nodes) node.host = HostName();
  }
  job.is_root = geteuid() == 0;
  job.has_home = !ValueOr(environment, "HOME", "").empty() || getpwuid(geteuid()) != nullptr;
  job.mpirun_is_alone = (!job.in_slurm || launch.mpirun_lacks_srun) &&
                        FindProgram("ssh", environment).empty() &&
                        FindProgram("rsh", environment).empty();
  std::vector<ChildCommand> commands = FindLauncher(launch.choice.name).make_commands(job);
  for (ChildCommand& command : commands) command.event_key = rank_job.event_key;
  return commands;
}

std::string CommandsText(const std::vector<ChildCommand>& commands, CommandLength length) {
  std::vector<std::string> argv = commands.front().argv;
  std::ranges::transform(argv, argv.begin(), WithoutSecret);
  std::string text = "+ " +
                     (length == CommandLength::kShort ? support::ShortCommand(argv)
                                                      : support::QuoteCommand(argv)) +
                     "\n";
  if (commands.size() > 1) {
    text += "  (and so for the other " + std::to_string(commands.size() - 1) + ")\n";
  }
  return text;
}

}  // namespace launcher
