// SPDX-License-Identifier: Apache-2.0

#include "launcher/bede/run_bede_mpirun.h"

#include <unistd.h>

#include <algorithm>
#include <memory>

#include "launcher/base/environment.h"
#include "launcher/base/error.h"
#include "launcher/base/messages.h"
#include "launcher/bede/bede_mpirun.h"
#include "launcher/cli/settings.h"
#include "launcher/cli/site_config.h"
#include "launcher/launch/mpirun_version.h"
#include "launcher/pipeline/commands.h"
#include "launcher/pipeline/read_allocation.h"
#include "launcher/slurm/complete_allocation.h"
#include "launcher/supervise/supervisor.h"
#include "launcher/system/files.h"
#include "launcher/system/output_queue.h"
#include "launcher/system/run_directory.h"
#include "launcher/topology/hwloc_topology.h"
#include "support/number.h"

namespace launcher {
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
  job.mpirun = FindProgram(settings.mpirun, environment);
  const std::unique_ptr<CommandOutput> version = QueryMpirun(job.mpirun, environment);
  job.plan = PlanBede(allocation, ReadLiveTopology(), options.par);
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
  if (result.output_is_closed) {
    return text + "bede-mpirun: nobody reads the output any more, so mpirun was ended (exit code " +
           code + ")\n";
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
  const Settings settings = MergeSettings(Options(), LoadSite("", environment), environment);
  BedeJob job = MakeJob(options, settings, environment);
  if (!options.dry_run) return Start(std::move(job), settings);

  const std::string directory = settings.run_directory + "/" + kRunDirectoryName + "/";
  job.rankfile = directory + kRankfileName;
  job.hostfile = directory + kHostfileName;
  Print(Announcement(job) + CommandsText({MakeBedeCommand(job)}) + FilesText(job.plan));
  return EX_OK;
}

}  // namespace launcher
