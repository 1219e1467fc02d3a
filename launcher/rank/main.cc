// SPDX-License-Identifier: Apache-2.0
//
// ddlrun-rank: what ddlrun starts once per rank, in front of the program.  Verifies who this rank
// is, binds it, sets its environment and starts the program.
//
//   ddlrun-rank [--rank R] -- program arguments ...

#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "launcher/environment.h"
#include "launcher/error.h"
#include "launcher/messages.h"
#include "launcher/rank/binding.h"
#include "launcher/rank/gpu_check.h"
#include "launcher/rank/identity.h"
#include "launcher/rank/node_plan.h"
#include "launcher/rank/rank_end.h"
#include "launcher/rank/rank_job.h"
#include "launcher/rank/rank_log.h"
#include "launcher/rank/run_program.h"
#include "launcher/rank_environment.h"
#include "launcher/topology/fingerprint.h"

namespace launcher {
namespace {

constexpr std::chrono::seconds kFirstRankSpeaks{5};

struct Arguments {
  std::optional<int> rank;
  char** program = nullptr;  // argv of the program, ended by a null pointer
};

Arguments ReadArguments(int argc, char** argv) {
  Arguments arguments;
  int next = 1;
  if (next + 1 < argc && std::strcmp(argv[next], "--rank") == 0) {
    const std::string text = argv[next + 1];
    int rank = -1;
    std::from_chars(text.data(), text.data() + text.size(), rank);
    arguments.rank = rank;
    next += 2;
  }
  if (next + 1 >= argc || std::strcmp(argv[next], "--") != 0 || arguments.rank.value_or(0) < 0) {
    throw LaunchError(EX_USAGE,
                      "usage: ddlrun-rank [--rank R] -- program [arguments]; it is "
                      "started by ddlrun, not by hand");
  }
  arguments.program = argv + next + 1;
  return arguments;
}

// The run directory is on ddlrun's node only.
bool IsOwnDirectory(const std::string& path) {
  struct stat info = {};
  return lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid();
}

RankInfo MakeRankInfo(const RankJob& job, const RankPlan& own) {
  const NodePlan& node = job.plan.nodes[static_cast<std::size_t>(own.node)];
  RankInfo info;
  info.rank = own.rank;
  info.world_size = static_cast<int>(job.plan.ranks.size());
  info.local_rank = own.local_rank;
  info.local_world_size = static_cast<int>(node.ranks.size());
  info.node_rank = own.node;
  info.node_count = static_cast<int>(job.plan.nodes.size());
  info.host = node.host;
  info.spawner = job.spawner;
  info.run_dir = IsOwnDirectory(job.run_directory) ? job.run_directory : "";
  info.master_address = job.master_address;
  info.master_port = job.master_port;
  info.restart_count = job.restart_count;
  return info;
}

// What mpirun's daemons were started with on this node must not be taken for this rank's own.
void RemoveStaleIdentity(const Environment& environment) {
  for (const auto& [name, value] : environment) {
    const bool from_mpi =
        name.starts_with("OMPI_") || name.starts_with("PMIX_") || name.starts_with("PMI_");
    if (IsRankIdentity(name) && !from_mpi) unsetenv(name.c_str());
  }
}

void SetRankEnvironment(const RankJob& job, const RankPlan& own) {
  for (const auto& [name, value] : MakeRankEnvironment(MakeRankInfo(job, own))) {
    setenv(name.c_str(), value.c_str(), 1);
  }
  // One thread per core of the rank; hardware threads share the units that training needs.
  if (!own.cores.empty()) {
    setenv("OMP_NUM_THREADS", std::to_string(own.cores.size()).c_str(), 0);
  }
  unsetenv(kRankJobVariable);
}

// ddlrun needs it to send a signal to the ranks.
void SayStep(const Environment& environment) {
  const auto job = environment.find("SLURM_JOB_ID");
  const auto step = environment.find("SLURM_STEP_ID");
  if (job == environment.end() || step == environment.end()) return;
  std::fputs(FormatStep(job->second + "." + step->second).c_str(), stderr);
}

// The first rank of a node speaks for all; the launcher ends the others, or they speak as well.
void CheckGpusOfNode(const Plan& plan, const RankPlan& own, const Environment& environment) {
  const NodePlan& node = plan.nodes[static_cast<std::size_t>(own.node)];
  if (node.gpus == 0) return;
  try {
    CheckGpus(node.gpus, node.host, environment, CountGpuDevices());
  } catch (const LaunchError&) {
    if (own.local_rank > 0) std::this_thread::sleep_for(kFirstRankSpeaks);
    throw;
  }
}

RankJob ReadRankJob(const Environment& environment) {
  const auto text = environment.find(kRankJobVariable);
  if (text == environment.end()) {
    throw LaunchError(EX_SOFTWARE, std::string(kRankJobVariable) +
                                       " is not set: mpirun did not pass it on, or this was not "
                                       "started by ddlrun");
  }
  return DecodeRankJob(text->second);
}

// As planned, or as this node is made where that is not like the one the plan was made on.
void BindRank(const RankPlan& own, char** argv, RankJob* job) {
  if (!job->bind) return;
  const bool is_like_planned =
      job->planned_for.empty() || job->planned_for == TopologyFingerprint();
  if (!is_like_planned) PlanThisNode(own.node, argv, &job->plan);
  if (!own.cpus.empty()) BindCpus(own.cpus);
  if (own.numa_os_index >= 0) PreferMemoryOf(own.numa_os_index);
}

[[noreturn]] void StartProgram(const RankJob& job, const RankPlan& own, const std::string& host,
                               char** program) {
  if (job.spawner == "local") BecomeProgram(program);
  RankProcess process;
  process.rank = own.rank;
  process.host = host;
  process.is_of_mpirun = job.spawner == "mpirun";
  if (!job.log_directory.empty()) process.log = OpenRankLog(job.log_directory, own.rank);
  RunProgram(program, process);
}

void Run(int argc, char** argv) {
  const Arguments arguments = ReadArguments(argc, argv);
  const Environment environment = SnapshotEnvironment();
  RankJob job = ReadRankJob(environment);
  const RankPlan& own = FindOwnPlan(job, ReadIdentity(environment, job.spawner, arguments.rank));
  const std::string& host = job.plan.nodes[static_cast<std::size_t>(own.node)].host;
  try {
    if (job.check && job.spawner != "local") CheckGpusOfNode(job.plan, own, environment);
    BindRank(own, argv, &job);
    if (job.spawner != "srun") RemoveStaleIdentity(environment);
    SetRankEnvironment(job, own);
    if (job.spawner == "srun" && own.rank == 0) SayStep(environment);
    StartProgram(job, own, host, arguments.program);
  } catch (const LaunchError& error) {
    throw LaunchError(error.exit_code(),
                      "rank " + std::to_string(own.rank) + " on " + host + ": " + error.what());
  }
}

}  // namespace
}  // namespace launcher

int main(int argc, char** argv) {
  try {
    launcher::Run(argc, argv);
  } catch (const launcher::LaunchError& error) {
    std::fprintf(stderr, "ddlrun-rank: %s\n", launcher::CodedError(error).c_str());
    return error.exit_code();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ddlrun-rank: %s\n", launcher::CodedUnexpected(error.what()).c_str());
    return EX_SOFTWARE;
  }
}
