// SPDX-License-Identifier: Apache-2.0

#include "launcher/rank/identity.h"

#include <algorithm>

#include "launcher/base/error.h"
#include "rankfile/host_name.h"
#include "rankfile/hostlist.h"
#include "rankfile/scanner.h"
#include "support/number.h"

namespace launcher {
namespace {

// A number that is only compared with that of the plan: a value that is not numeric is ignored.
std::optional<int> ReadNumber(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  if (found == environment.end()) return std::nullopt;
  const std::optional<int> number = support::WholeNumber<int>(found->second);
  return number && *number >= 0 ? number : std::nullopt;
}

// The number of a rank: a value that is not numeric is refused.
std::optional<int> ReadRank(const Environment& environment, const std::string& name) {
  const std::optional<int> rank = ReadNumber(environment, name);
  if (!rank && environment.contains(name)) {
    throw LaunchError(EX_CONFIG, name + "='" + environment.at(name) + "' is not a rank");
  }
  return rank;
}

constexpr char kNoPlacement[] = "; take options that place ranks out of --mpiarg";

void RequireSame(const char* what, std::optional<int> started, std::size_t planned, int rank,
                 const LauncherTraits& launcher) {
  if (!started || static_cast<std::size_t>(*started) == planned) return;
  throw LaunchError(EX_CONFIG, "rank " + std::to_string(rank) + ": " + launcher.program +
                                   " gives it " + what + " " + std::to_string(*started) +
                                   ", the plan says " + std::to_string(planned) +
                                   (launcher.is_open_mpi ? kNoPlacement : ""));
}

// Where the ranks have a PMI, it must say the same rank as Slurm.
void RequirePmi(const Environment& environment, const std::string& pmi, int rank,
                const std::string& source) {
  if (pmi == "none") return;
  const std::string name = pmi == "pmi2" ? "PMI_RANK" : "PMIX_RANK";
  const std::optional<int> of_pmi = ReadRank(environment, name);
  if (!of_pmi) {
    throw LaunchError(EX_CONFIG, "srun started this task without " + pmi + " (no " + name +
                                     "), so that every rank would be a world of its own: 'srun "
                                     "--mpi=list' must name " +
                                     pmi + " on this node too; --launcher=mpirun does without");
  }
  if (*of_pmi != rank) {
    throw LaunchError(EX_CONFIG, source + "=" + std::to_string(rank) + " contradicts " + name +
                                     "=" + std::to_string(*of_pmi));
  }
}

// Whether the job of Slurm that this process belongs to, or one of its components, has `host`.
bool IsOfSlurmJob(const std::string& host, const Environment& environment) {
  return std::ranges::any_of(environment, [&](const auto& variable) {
    if (!variable.first.starts_with("SLURM_JOB_NODELIST")) return false;
    try {
      const std::vector<std::string> hosts =
          rankfile::ExpandHostlist(variable.second, variable.first);
      return std::ranges::find(hosts, host) != hosts.end();
    } catch (const rankfile::ParseError&) {
      return false;
    }
  });
}

}  // namespace

std::string HostOfRank(const RankJob& job, const RankPlacement& rank,
                       const Environment& environment, const std::string& kernel_name) {
  const std::string& planned = job.plan.nodes[static_cast<std::size_t>(rank.node)].host;
  const auto slurm = environment.find("SLURMD_NODENAME");
  const bool has_slurm = slurm != environment.end() && !slurm->second.empty();
  if (has_slurm && (job.traits().makes_step || IsOfSlurmJob(planned, environment))) {
    return slurm->second;
  }
  if (job.traits().makes_step || rankfile::SameHost(kernel_name, planned)) return planned;
  for (const NodePlacement& node : job.plan.nodes) {
    if (rankfile::SameHost(kernel_name, node.host)) return node.host;
  }
  return planned;
}

Identity ReadIdentity(const Environment& environment, const LauncherTraits& launcher,
                      const std::string& pmi, std::optional<int> given) {
  Identity identity;
  if (given) {
    identity.rank = *given;
    identity.source = "--rank";
    return identity;
  }
  std::string names;
  for (const std::string name : launcher.rank_variables) {
    if (name.empty()) continue;
    names += (names.empty() ? "no " : " and no ") + name;
    const std::optional<int> rank = ReadRank(environment, name);
    if (!rank) continue;
    if (launcher.makes_step) RequirePmi(environment, pmi, *rank, name);
    identity.rank = *rank;
    identity.world_size = ReadNumber(environment, launcher.world_size_variable);
    identity.local_rank = ReadNumber(environment, launcher.local_rank_variable);
    identity.local_world_size = ReadNumber(environment, launcher.local_world_size_variable);
    identity.source = name;
    return identity;
  }
  throw LaunchError(EX_CONFIG, "nothing says which rank this is (" + names +
                                   "), so that every rank would be a world of its own: this was "
                                   "not started by " +
                                   launcher.program + ", or by that of another MPI");
}

const RankPlacement& FindOwnPlacement(const RankJob& job, const Identity& identity,
                                      const Environment& environment,
                                      const std::string& kernel_name) {
  const std::size_t world = job.plan.ranks.size();
  RequireSame("a world of", identity.world_size, world, identity.rank, job.traits());
  const auto rank = static_cast<std::size_t>(identity.rank);
  if (rank >= world) {
    throw LaunchError(EX_CONFIG, identity.source + " is " + std::to_string(identity.rank) +
                                     ", the plan has ranks 0 to " + std::to_string(world - 1));
  }
  const RankPlacement& own = job.plan.ranks[rank];
  const NodePlacement& node = job.plan.nodes[static_cast<std::size_t>(own.node)];
  RequireSame("local rank", identity.local_rank, static_cast<std::size_t>(own.local_rank),
              identity.rank, job.traits());
  RequireSame("a local world of", identity.local_world_size, node.ranks.size(), identity.rank,
              job.traits());
  const std::string host = HostOfRank(job, own, environment, kernel_name);
  if (host != node.host) {
    throw LaunchError(EX_CONFIG, "rank " + std::to_string(identity.rank) + " runs on " + host +
                                     ", the plan says " + node.host +
                                     (job.traits().is_open_mpi ? kNoPlacement : ""));
  }
  return own;
}

}  // namespace launcher
