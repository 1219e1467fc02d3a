// SPDX-License-Identifier: Apache-2.0
//
// ddlrun-rank-check: the shim (launcher/shim) becomes this program where its rank or its node is
// not plainly as planned.  When the rank cannot run here, it says why and ends.  When the node only
// has other cores or GPUs than the one that ddlrun saw, or ddlrun saw none, it plans the cores of
// this node and becomes the shim again.
//
//   ddlrun-rank-check [--rank R] -- program arguments ...

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "launcher/base/environment.h"
#include "launcher/base/error.h"
#include "launcher/base/messages.h"
#include "launcher/placement/node_binding.h"
#include "launcher/protocol/rank_event.h"
#include "launcher/protocol/rank_job.h"
#include "launcher/rank/gpu_check.h"
#include "launcher/rank/identity.h"
#include "launcher/topology/fingerprint.h"
#include "launcher/topology/gpus_of_node.h"
#include "launcher/topology/hwloc_topology.h"
#include "support/number.h"

namespace launcher {
namespace {

constexpr std::chrono::seconds kFirstRankSpeaks{5};

struct Arguments {
  std::optional<int> rank;
  char** program = nullptr;  // argv of the program, ended by a null pointer
};

// The shim has checked everything but the number.
Arguments ReadArguments(int argc, char** argv) {
  Arguments arguments;
  int next = 1;
  if (next + 1 < argc && std::strcmp(argv[next], "--rank") == 0) {
    arguments.rank = support::WholeNumber<int>(argv[next + 1]).value_or(-1);
    next += 2;
  }
  if (next + 1 >= argc || std::strcmp(argv[next], "--") != 0 || arguments.rank.value_or(0) < 0) {
    throw LaunchError(EX_USAGE, "it is started by ddlrun-rank, not by hand");
  }
  arguments.program = argv + next + 1;
  return arguments;
}

// All ranks of a node find the same fault.  The first one says it at once; the others wait, so that
// the launcher can end them before they say it again.
void CheckGpusOfNode(const LaunchPlan& plan, const RankPlacement& own,
                     const Environment& environment) {
  const NodePlacement& node = plan.nodes[static_cast<std::size_t>(own.node)];
  if (node.gpus == 0) return;
  try {
    CheckGpus(node.gpus, node.host, environment, CountGpuDevices());
  } catch (const LaunchError&) {
    if (own.local_rank > 0) std::this_thread::sleep_for(kFirstRankSpeaks);
    throw;
  }
}

RankJob ReadRankJob(const Environment& environment) {
  const std::string text = RankJobText(environment);
  if (text.empty()) {
    throw LaunchError(EX_SOFTWARE, std::string(kRankJobVariable) +
                                       " is not set: mpirun did not pass it on, or this was not "
                                       "started by ddlrun");
  }
  return DecodeRankJob(text);
}

// Plans the cores of all ranks of node `node`, which is this one.
void PlanThisNode(int node, const Environment& environment, LaunchPlan* plan) {
  std::vector<RankPlacement*> ranks;
  for (RankPlacement& rank : plan->ranks) {
    if (rank.node == node) ranks.push_back(&rank);
  }
  std::sort(ranks.begin(), ranks.end(), [](const RankPlacement* a, const RankPlacement* b) {
    return a->local_rank < b->local_rank;
  });
  const NodeTopology topology = ReadTopologyOfJob(GrantedBySlurm(environment));
  for (RankPlacement* rank : ranks) {
    rank->cores.clear();
    rank->cpus.clear();
    rank->numa_os_index = -1;
  }
  // With too few cores the ranks stay unbound.  ddlrun warns of that on nodes that it can see.
  BindRanks(topology, plan->cpus_per_rank, plan->cpus_are_cores, ranks);
}

bool IsLikePlanned(const RankJob& job) {
  if (!job.bind || job.planned_for.empty()) return true;
  Fingerprint fingerprint;
  ReadFingerprint("", &fingerprint);
  return job.planned_for == fingerprint.text;
}

[[noreturn]] void BecomeShim(const RankJob& job, int rank, char** program) {
  constexpr std::string_view kSuffix = "-check";
  std::array<char, 4096> self = {};
  const ssize_t length = readlink("/proc/self/exe", self.data(), self.size() - 1);
  std::string shim(self.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  if (shim.ends_with(kSuffix)) shim.resize(shim.size() - kSuffix.size());
  std::vector<std::string> words = {shim, "--rank", std::to_string(rank), "--checked", "--"};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  while (*program != nullptr) argv.push_back(*program++);
  argv.push_back(nullptr);
  for (int i = 0; i < kMaxRankJobChunks; ++i) unsetenv(NameOfChunk(i).name);
  for (const auto& [name, value] : RankJobVariables(EncodeRankJob(job))) {
    setenv(name.c_str(), value.c_str(), 1);
  }
  execv(shim.c_str(), argv.data());
  throw LaunchError(EX_UNAVAILABLE, "cannot start " + shim + ": " + std::strerror(errno));
}

void Run(int argc, char** argv) {
  const Arguments arguments = ReadArguments(argc, argv);
  const Environment environment = SnapshotEnvironment();
  RankJob job = ReadRankJob(environment);
  const Identity identity = ReadIdentity(environment, job.traits(), job.pmi, arguments.rank);
  std::array<char, HOST_NAME_MAX + 1> kernel_name = {};
  gethostname(kernel_name.data(), kernel_name.size() - 1);
  const std::string host_name = kernel_name.data();
  const RankPlacement& own = FindOwnPlacement(job, identity, environment, host_name);
  try {
    const bool is_direct = job.traits().is_direct;
    if (job.check && !is_direct) CheckGpusOfNode(job.plan, own, environment);
    const auto granted = environment.find("SLURM_STEP_GPUS");
    const bool may_plan = job.bind && !job.planned_for.empty() && !is_direct;
    const bool has_other_gpus = may_plan && granted != environment.end() &&
                                TakeGrantedGpus(granted->second, own.node, &job.plan);
    if (has_other_gpus || !IsLikePlanned(job)) PlanThisNode(own.node, environment, &job.plan);
    BecomeShim(job, own.rank, arguments.program);
  } catch (const LaunchError& error) {
    const std::string& host = job.plan.nodes[static_cast<std::size_t>(own.node)].host;
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
    launcher::LetLastLinesPass();
    return error.exit_code();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ddlrun-rank: %s\n", launcher::CodedUnexpected(error.what()).c_str());
    launcher::LetLastLinesPass();
    return EX_SOFTWARE;
  }
}
