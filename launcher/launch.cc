// SPDX-License-Identifier: Apache-2.0

#include "launcher/launch.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <sstream>
#include <utility>

#include "launcher/base/error.h"
#include "launcher/cli/quoting.h"
#include "launcher/plan/plan_files.h"
#include "launcher/protocol/rank_job.h"
#include "launcher/slurm/pmi_types.h"
#include "launcher/spawn/ask_mpirun.h"
#include "launcher/spawn/child_environment.h"
#include "launcher/spawn/master_port.h"
#include "launcher/system/command_output.h"
#include "launcher/system/programs.h"
#include "support/counted.h"

namespace launcher {
namespace {

namespace fs = std::filesystem;

// The port of DDL itself, in every command line of IBM's ddlrun that is known.
constexpr char kDdlHostPort[] = "2200";
constexpr unsigned long kPortsPerJob = 619;  // seven jobs apart they may meet again
constexpr std::chrono::seconds kSrunPatience{30};

// "pmix" of "pmix_v4".
std::string PmiOf(const std::string& mpi_type) { return mpi_type.substr(0, mpi_type.find('_')); }

// At random, so that nobody can know it.
std::string MakeReportKey() {
  std::random_device random;
  std::array<char, kReportKeyBytes + 1> key = {};
  std::snprintf(key.data(), key.size(), "%08x%08x", random(), random());
  return key.data();
}

RankJob MakeRankJob(const Options& options, const Settings& settings, const PlannedJob& planned,
                    const Launch& launch, const Environment& environment,
                    const std::string& run_directory) {
  RankJob job;
  job.plan = planned.plan;
  job.bind = settings.bind && options.rankfile.empty();
  job.check = settings.check != "off";
  job.spawner = launch.choice.name;
  job.pmi = PmiOf(launch.choice.mpi_type);
  job.report_key = MakeReportKey();
  job.pause =
      job.pmi == "pmix" && planned.plan.nodes.size() > 1 && PmixServersNeedPause(launch.slurm);
  // The ranks of the local launcher are where the plan was made.
  job.planned_for = job.spawner == "local" ? "" : planned.planned_for;
  job.run_directory = run_directory;
  if (!options.log_directory.empty()) job.log_directory = fs::absolute(options.log_directory);
  const NodePlan& first = planned.plan.nodes[static_cast<std::size_t>(planned.plan.ranks[0].node)];
  job.master_address = ValueOr(environment, "MASTER_ADDR",
                               planned.plan.nodes.size() == 1 ? "127.0.0.1" : first.host);
  const std::string port = ValueOr(environment, "MASTER_PORT", "");
  // Two ddlruns may run in one job, so that the number of the process counts as well.  It is not
  // simply added to that of the job: job 7 with process 101 and job 8 with process 100, which may
  // start together, would have the same port.  After a restart, connections of the run before may
  // not be quite gone.
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
  const std::string host_list = options.no_ddl_host_list ? "" : DdlHostList(plan);
  if (!host_list.empty() && host_list.size() <= kMaxHostListBytes) {
    settings.emplace("DDL_HOST_LIST", host_list);
  }
  if (options.no_ddl_options) return;
  std::string ddl_options = DdlOptions(plan);
  for (const std::string& option : options.ddl_options) ddl_options += option + " ";
  settings.emplace("DDL_OPTIONS", ddl_options);
}

// Reads what srun said of its types of --mpi.
void ReadMpiList(CommandOutput* list, SpawnerMeans* means) {
  if (list == nullptr) {
    means->srun_lacks = "it is not in PATH";
  } else if (!list->Wait(kSrunPatience)) {
    means->srun_lacks = "'srun --mpi=list' failed";
  } else {
    means->mpi_types = ParseMpiList(list->text());
  }
}

SlurmVersion ReadVersion(CommandOutput* version) {
  const bool is_known = version != nullptr && version->Wait(kSrunPatience);
  return is_known ? ParseSlurmVersion(version->text()) : kNewestSlurm;
}

bool HasOneNode(const Environment& environment) {
  return ValueOr(environment, "SLURM_JOB_NUM_NODES", "") == "1" &&
         !environment.contains("SLURM_HET_SIZE");
}

// Why mpirun cannot start the ranks, "" when it can; sets its runtime.  Asks it now where that has
// not been done.
std::string LookAtMpirun(const std::string& name, const Environment& environment,
                         std::unique_ptr<CommandOutput> asked, Launch* launch) {
  if (asked == nullptr) asked = AskMpirun(launch->mpirun, environment);
  if (asked == nullptr) return name + " is not in PATH";
  const MpirunVersion version = AnswerOfMpirun(asked.get());
  launch->mpi_runtime = version.runtime.value_or(launch->mpi_runtime);
  return MpirunLacks(launch->mpirun, version);
}

}  // namespace

SrunQuestions AskSrun(const Options& options, const Settings& settings,
                      const Environment& environment) {
  SrunQuestions questions;
  const bool may_be_srun = settings.launcher == "auto" || settings.launcher == "srun";
  const std::string srun = FindProgram("srun", environment);
  if (!may_be_srun || !options.rankfile.empty() || srun.empty() ||
      ValueOr(environment, "SLURM_JOB_ID", "").empty()) {
    return questions;
  }
  // A value that srun does not like in one of its variables would be its answer.
  const Environment clean = EnvironmentForSrun(environment);
  const auto ask = [&](const char* question) {
    return std::make_unique<CommandOutput>(std::vector<std::string>{srun, question}, clean);
  };
  questions.mpi_list = ask("--mpi=list");
  const bool may_be_pmix = settings.pmi == "auto" || settings.pmi == "pmix";
  if (may_be_pmix && !HasOneNode(environment)) questions.version = ask("--version");
  return questions;
}

std::unique_ptr<CommandOutput> AskMpirunEarly(const Options& options, const Settings& settings,
                                              const Environment& environment) {
  // Inside Slurm `auto` needs it only where srun has no PMIx.
  const bool may_be_auto = settings.launcher == "auto" && options.ranks.value_or(0) != 1 &&
                           ValueOr(environment, "SLURM_JOB_ID", "").empty();
  if (settings.launcher != "mpirun" && options.rankfile.empty() && !may_be_auto) {
    return nullptr;
  }
  return AskMpirun(FindProgram(settings.mpirun, environment), environment);
}

Launch ChooseLaunch(const Options& options, const Settings& settings, const PlannedJob& planned,
                    const Environment& environment, const SrunQuestions& questions,
                    std::unique_ptr<CommandOutput> mpirun_version) {
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
  means.in_slurm = !planned.job_id.empty();
  if (means.in_slurm && options.rankfile.empty() && (asked == "auto" || asked == "srun")) {
    launch.srun = FindProgram("srun", environment);
    ReadMpiList(questions.mpi_list.get(), &means);
    launch.slurm = ReadVersion(questions.version.get());
  }
  const bool has_srun = means.in_slurm && means.srun_lacks.empty() &&
                        (settings.pmi != "auto" || !FindMpiType("pmix", means.mpi_types).empty());
  const bool needs_none = planned.plan.ranks.size() == 1 && !planned.has_remote_ranks;
  if (!options.rankfile.empty() || asked == "mpirun" ||
      (asked == "auto" && !has_srun && !needs_none)) {
    means.mpirun_lacks =
        LookAtMpirun(settings.mpirun, environment, std::move(mpirun_version), &launch);
  }
  if (!options.rankfile.empty()) {
    launch.choice = {"mpirun", "it reads the rankfile", ""};
  } else if (asked == "auto") {
    launch.choice = ChooseSpawner(planned.plan, planned.has_remote_ranks, settings.pmi, means);
  } else if (asked == "srun") {
    launch.choice = ChooseSrun(settings.pmi, means);
    launch.choice.reason = "";
  } else {
    launch.choice = {asked, "", ""};
  }
  if (options.spare_nodes > 0 && launch.choice.name != "srun") {
    throw LaunchError(EX_USAGE, "--spare-nodes needs srun to start the ranks, not " +
                                    launch.choice.name + ": only srun can do without a lost node");
  }
  if (launch.choice.name == "mpirun" && !means.mpirun_lacks.empty()) {
    throw LaunchError(EX_UNAVAILABLE,
                      means.mpirun_lacks + ": " + kHowToHaveOpenMpi +
                          "; --launcher=srun inside Slurm and --launcher=local on one machine do "
                          "without");
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
  job.shim = RequireHelper("ddlrun-rank", program_directory);
  // What the shim becomes on a node that is not as planned: better missed here than there.
  RequireHelper("ddlrun-rank-check", program_directory);
  for (const auto& [name, value] : environment) {
    if (!IsRankIdentity(name)) job.environment.emplace(name, value);
  }
  job.rank_settings = settings.rank_settings;
  AddDdlSettings(options, planned.plan, job.rank_settings);
  const RankJob rank_job =
      MakeRankJob(options, settings, planned, launch, environment, run_directory);
  for (const auto& [name, value] : RankJobVariables(EncodeRankJob(rank_job))) {
    job.rank_settings[name] = value;
  }
  job.asked_exports = settings.asked_exports;
  job.run_directory = run_directory;
  job.tag_output = options.tag_output;
  job.srun = launch.srun;
  job.mpi_type = launch.choice.mpi_type;
  job.hosts_of_job = planned.hosts_of_job;
  job.in_step = planned.in_step;
  job.has_lost_nodes = planned.has_lost_nodes;
  job.mpirun = launch.mpirun;
  job.mpi_runtime = launch.mpi_runtime;
  job.mpi_arguments = settings.mpi_arguments;
  job.rankfile =
      planned.rankfile_text.empty() ? options.rankfile : run_directory + "/" + kRankfileName;
  job.plan_rankfile = run_directory + "/RANKFILE";
  std::shared_ptr<const PlainPath> rankfile;
  if (launch.choice.name == "mpirun" && launch.mpi_runtime == MpiRuntime::kPrrte) {
    std::string& used = job.rankfile.empty() ? job.plan_rankfile : job.rankfile;
    rankfile = std::make_shared<const PlainPath>(used);
    used = rankfile->path();
  }
  // Children on this machine inherit the environment; mpirun carries it to others only by name.
  job.has_remote_ranks = planned.has_remote_ranks;
  job.in_slurm = !planned.job_id.empty();
  job.is_root = geteuid() == 0;
  std::vector<ChildCommand> commands = FindSpawner(launch.choice.name).make_commands(job);
  commands.front().open_file = rankfile;
  for (ChildCommand& command : commands) command.report_key = rank_job.report_key;
  return commands;
}

std::string CommandsText(const std::vector<ChildCommand>& commands) {
  std::string text = "+ " + QuoteCommand(commands.front().argv) + "\n";
  if (commands.size() > 1) {
    text += "  (and so for the other " + std::to_string(commands.size() - 1) + ")\n";
  }
  return text;
}

}  // namespace launcher
