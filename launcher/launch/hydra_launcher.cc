// SPDX-License-Identifier: Apache-2.0
//
// Hydra is the mpiexec of MPICH and of what is made of it: MVAPICH, Intel MPI, Cray MPICH.  Seen
// with MPICH 4.0.2 and 5.0.2 and Intel MPI 2021.19, of which all take these options.  It starts a
// daemon (hydra_pmi_proxy) on each node, in a job of Slurm by srun, otherwise by ssh.

#include <algorithm>
#include <set>

#include "launcher/base/error.h"
#include "launcher/launch/child_environment.h"
#include "launcher/launch/launcher.h"
#include "launcher/system/files.h"
#include "launcher/system/run_directory.h"

namespace launcher {
namespace {

struct Block {
  std::string host;
  int ranks = 0;
};

// The hosts of neighbouring ranks.  From the last one on Hydra begins again with the first: where
// ranks are dealt out to the hosts in turn, the first turn says all, and each host gets one daemon.
std::vector<Block> BlocksOf(const LaunchPlan& plan) {
  std::vector<Block> blocks;
  for (const RankPlacement& rank : plan.ranks) {
    const std::string& host = plan.nodes[static_cast<std::size_t>(rank.node)].host;
    if (blocks.empty() || blocks.back().host != host) blocks.push_back({host, 0});
    ++blocks.back().ranks;
  }
  const std::size_t turn = plan.nodes.size();
  for (std::size_t i = turn; i < blocks.size(); ++i) {
    const Block& first = blocks[i % turn];
    const bool is_as_first =
        blocks[i].ranks == first.ranks || (i + 1 == blocks.size() && blocks[i].ranks < first.ranks);
    if (blocks[i].host != first.host || !is_as_first) return blocks;
  }
  blocks.resize(std::min(blocks.size(), turn));
  return blocks;
}

// A daemon takes its number from its place among the nodes of its step, which Slurm has in the
// order of the job.
void RequireOrderOfJob(const LaunchRequest& job) {
  auto next = job.hosts_of_job.begin();
  for (const Block& block : BlocksOf(job.plan)) {
    next = std::find(next, job.hosts_of_job.end(), block.host);
    if (next != job.hosts_of_job.end()) {
      ++next;
      continue;
    }
    throw LaunchError(EX_CONFIG,
                      "in a job of Slurm Hydra places ranks in the order of its nodes "
                      "alone: add --rank-order=node and leave out -H, or use "
                      "--launcher=srun (--pmi=pmi2)");
  }
}

// What the daemons are to carry to other nodes: the values come from the environment of mpiexec, by
// its connection to the daemons.
std::string NamesToCarry(const LaunchRequest& job) {
  std::set<std::string> names(job.requested_exports.begin(), job.requested_exports.end());
  for (const auto& [name, value] : job.environment) {
    if (IsForwarded(name)) names.insert(name);
  }
  for (const auto& [name, value] : job.rank_settings) names.insert(name);
  std::string list;
  for (const std::string& name : names) {
    if (name.find(',') == std::string::npos) list += (list.empty() ? "" : ",") + name;
  }
  return list;
}

// What the srun reads that starts the daemons, which get the GPUs that the plan counts on and all
// CPUs of their nodes, no PMI, and their share of a step or of one that was lost.
void SetStep(const LaunchRequest& job, Environment* environment) {
  int gpus = 0;
  for (const NodePlacement& node : job.plan.nodes) gpus += node.gpus;
  const auto is_like_first = [&](const NodePlacement& node) {
    return node.gpus == job.plan.nodes.front().gpus;
  };
  if (gpus > 0 && std::ranges::all_of(job.plan.nodes, is_like_first)) {
    (*environment)["SLURM_GPUS_PER_NODE"] = std::to_string(job.plan.nodes.front().gpus);
  } else if (gpus > 0) {
    (*environment)["SLURM_GPUS"] = std::to_string(gpus);
  }
  (*environment)["SLURM_CPU_BIND"] = "none";
  (*environment)["SLURM_MPI_TYPE"] = "none";
  if (job.in_step || job.has_lost_nodes) (*environment)["SLURM_OVERLAP"] = "1";
}

}  // namespace

// Under the first of its names that is one.
std::string FindHydra(const std::string& mpirun, bool is_known, const Environment& environment) {
  for (const std::string& name : {mpirun, std::string("mpiexec"), std::string("mpiexec.hydra")}) {
    const std::string path = FindProgram(name, environment);
    const auto requested = is_known ? nullptr : QueryMpirun(path, environment);
    const bool is_hydra =
        requested != nullptr && AnswerOfMpirun(requested.get()).other_launcher == "hydra";
    if (!is_known && !is_hydra) continue;
    // Intel's mpirun is a script, which a signal for the ranks would end.
    const std::string beside =
        FindProgram(path.substr(0, path.rfind('/') + 1) + "mpiexec.hydra", environment);
    return beside.empty() ? path : beside;
  }
  throw LaunchError(EX_UNAVAILABLE,
                    "neither " + mpirun +
                        " nor mpiexec nor mpiexec.hydra is that of MPICH, MVAPICH or Intel MPI: "
                        "load one of these ('module load mpich'), or name its mpiexec in the site "
                        "file (mpirun: PATH)");
}

std::string Machinefile(const LaunchPlan& plan) {
  std::string text;
  for (const Block& block : BlocksOf(plan)) {
    text += block.host + ":" + std::to_string(block.ranks) + "\n";
  }
  return text;
}

std::vector<ChildCommand> MakeHydraCommands(const LaunchRequest& job) {
  ChildCommand command;
  command.launcher = &TraitsOf("hydra");
  std::vector<std::string>& argv = command.argv;
  const auto append = [&argv](const std::vector<std::string>& words) {
    argv.insert(argv.end(), words.begin(), words.end());
  };
  append({job.mpirun});
  const bool is_step = job.has_remote_ranks && job.in_slurm;
  Environment environment = is_step ? EnvironmentForSrun(job.environment) : job.environment;
  for (const auto& [name, value] : job.rank_settings) environment[name] = value;
  if (!job.has_remote_ranks) {
    append({"-bootstrap", "fork", "-hosts", "localhost"});
  } else {
    if (is_step) {
      RequireOrderOfJob(job);
      SetStep(job, &environment);
    }
    append({"-bootstrap", is_step ? "slurm" : "ssh"});
    append({"-machinefile", job.run_directory + "/" + kMachinefileName});
    append({"-genvlist", NamesToCarry(job)});
  }
  append({"-n", std::to_string(job.plan.ranks.size())});
  append({job.shim, "--"});
  append(WithMoreColons(job.program));
  command.environment = ToStrings(environment);
  return {command};
}

}  // namespace launcher
