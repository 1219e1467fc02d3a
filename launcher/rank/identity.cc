// SPDX-License-Identifier: Apache-2.0

#include "launcher/rank/identity.h"

#include <charconv>

#include "launcher/error.h"

namespace launcher {
namespace {

std::optional<int> ReadNumber(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  if (found == environment.end()) return std::nullopt;
  const std::string& text = found->second;
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) {
    throw LaunchError(EX_CONFIG, name + "='" + text + "' is not a rank or a number of ranks");
  }
  return number;
}

void RequireSame(const char* what, std::optional<int> started, std::size_t planned, int rank,
                 const std::string& spawner) {
  if (!started || static_cast<std::size_t>(*started) == planned) return;
  throw LaunchError(EX_CONFIG, "rank " + std::to_string(rank) + ": " + spawner + " gives it " +
                                   what + " " + std::to_string(*started) + ", the plan says " +
                                   std::to_string(planned) +
                                   "; take options that place ranks out of --mpiarg");
}

}  // namespace

Identity ReadIdentity(const Environment& environment, std::optional<int> given) {
  if (given) return Identity{*given, {}, {}, {}, "--rank"};
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK"}) {
    const std::optional<int> rank = ReadNumber(environment, name);
    if (!rank) continue;
    return Identity{*rank, ReadNumber(environment, "OMPI_COMM_WORLD_SIZE"),
                    ReadNumber(environment, "OMPI_COMM_WORLD_LOCAL_RANK"),
                    ReadNumber(environment, "OMPI_COMM_WORLD_LOCAL_SIZE"), name};
  }
  throw LaunchError(
      EX_CONFIG,
      "nothing says which rank this is: neither OMPI_COMM_WORLD_RANK nor PMIX_RANK is "
      "set, so that every rank would be a world of its own; is mpirun that of Open "
      "MPI? 'mpirun --version' tells");
}

const RankPlan& FindOwnPlan(const RankJob& job, const Identity& identity) {
  const std::size_t world = job.plan.ranks.size();
  RequireSame("a world of", identity.world_size, world, identity.rank, job.spawner);
  const auto rank = static_cast<std::size_t>(identity.rank);
  if (rank >= world) {
    throw LaunchError(EX_CONFIG, identity.source + " is " + std::to_string(identity.rank) +
                                     ", the plan has ranks 0 to " + std::to_string(world - 1));
  }
  const RankPlan& own = job.plan.ranks[rank];
  const NodePlan& node = job.plan.nodes[static_cast<std::size_t>(own.node)];
  RequireSame("local rank", identity.local_rank, static_cast<std::size_t>(own.local_rank),
              identity.rank, job.spawner);
  RequireSame("a local world of", identity.local_world_size, node.ranks.size(), identity.rank,
              job.spawner);
  return own;
}

}  // namespace launcher
