// SPDX-License-Identifier: Apache-2.0
#include "launcher/protocol/rank_environment.h"

#include <limits>
#include <stdexcept>

#include "support/number.h"

namespace launcher {
namespace {

using Lookup = std::function<std::optional<std::string>(const std::string&)>;

[[noreturn]] void Reject(const std::string& message) {
  throw std::runtime_error(message + "; start the program with ddlrun, which sets both");
}

std::optional<int> ParseNumber(const std::string& text) {
  const std::optional<int> value = support::WholeNumber<int>(text);
  return value && *value >= 0 ? value : std::nullopt;
}

std::optional<int> ReadNumber(const Lookup& get, const std::string& name) {
  const std::optional<std::string> text = get(name);
  if (!text) return std::nullopt;
  const std::optional<int> value = ParseNumber(*text);
  if (!value) {
    throw std::runtime_error(name + "=" + text->substr(0, 40) +
                             " is not a number from 0 to 2147483647");
  }
  return value;
}

struct Position {
  int index = 0;
  int count = 1;
};

// Reads the variables `index_name` and `count_name`, of which both are set or none.
std::optional<Position> ReadPair(const Lookup& get, const std::string& index_name,
                                 const std::string& count_name) {
  const std::optional<int> index = ReadNumber(get, index_name);
  const std::optional<int> count = ReadNumber(get, count_name);
  if (!index && !count) return std::nullopt;
  if (!index) Reject(count_name + "=" + std::to_string(*count) + " but no " + index_name);
  if (!count) Reject(index_name + "=" + std::to_string(*index) + " but no " + count_name);
  if (*index >= *count) {
    Reject(index_name + "=" + std::to_string(*index) + " is not below " + count_name + "=" +
           std::to_string(*count));
  }
  return Position{*index, *count};
}

// A value of the process manager that is no number is ignored.
void RequireEqual(const Lookup& get, const std::string& name, const std::string& our_name,
                  int our_value) {
  const std::optional<int> value = ParseNumber(get(name).value_or(""));
  if (value && *value != our_value) {
    Reject(name + "=" + std::to_string(*value) + " contradicts " + our_name + "=" +
           std::to_string(our_value));
  }
}

// The launcher that started this rank must agree.  Variables of another one, further out, do not
// count: the daemons of mpirun are themselves a step of srun, and the ranks of the local launcher
// may be inside any step.
void CompareWithLauncher(const Lookup& get, const RankInfo& info) {
  const std::string by = info.traits().name;
  for (const LauncherTraits& launcher : kLaunchers) {
    if (!by.empty() && by != launcher.name) continue;
    // Batch scripts have SLURM_PROCID, and since 26.05 SLURM_STEP_ID, but no number of tasks.
    if (launcher.makes_step && !get(launcher.world_size_variable)) continue;
    const int tasks = ParseNumber(get(launcher.world_size_variable).value_or("")).value_or(1);
    if (tasks > 1 && !get("WORLD_SIZE")) {
      const std::string program = launcher.program;
      throw std::runtime_error(program + " has started this program " + std::to_string(tasks) +
                               " times (" + launcher.world_size_variable +
                               ") without ddlrun, and each would be alone: write ddlrun in the "
                               "place of " +
                               program + ", as in ddlrun -n " + std::to_string(tasks) +
                               " PROGRAM; it calls " + program + " where that is needed");
    }
    RequireEqual(get, launcher.world_size_variable, "WORLD_SIZE", info.world_size);
    for (const char* name : launcher.rank_variables) RequireEqual(get, name, "RANK", info.rank);
  }
  if (info.traits().makes_step) RequireEqual(get, "PMIX_RANK", "RANK", info.rank);
}

}  // namespace

RankInfo ReadRankEnvironment(const Lookup& get) {
  RankInfo info;
  info.host = get("DDLRUN_HOST").value_or("");
  info.launcher = get("DDLRUN_LAUNCHER").value_or(get("DDLRUN_SPAWNER").value_or(""));
  info.pmi = get("DDLRUN_PMI").value_or("");
  info.run_dir = get("DDLRUN_RUN_DIR").value_or("");
  info.restart_count = ReadNumber(get, "DDLRUN_RESTART_COUNT").value_or(0);
  info.gpus = ReadNumber(get, "DDLRUN_GPUS")
                  .value_or(ParseNumber(get("SLURM_GPUS_ON_NODE").value_or("")).value_or(0));
  info.master_address = get("MASTER_ADDR").value_or("");
  info.master_port = ReadNumber(get, "MASTER_PORT").value_or(0);
  if (info.master_port > std::numeric_limits<unsigned short>::max()) {
    throw std::runtime_error("MASTER_PORT=" + std::to_string(info.master_port) +
                             " is not a port: write 1 to 65535");
  }

  const std::optional<Position> world = ReadPair(get, "RANK", "WORLD_SIZE");
  if (world) {
    info.rank = world->index;
    info.world_size = world->count;
  }
  const std::optional<Position> local = ReadPair(get, "LOCAL_RANK", "LOCAL_WORLD_SIZE");
  if (local) {
    info.local_rank = local->index;
    info.local_world_size = local->count;
  } else if (info.world_size > 1) {
    Reject("RANK=" + std::to_string(info.rank) + " but no LOCAL_RANK");
  }
  if (info.local_world_size > info.world_size) {
    Reject("LOCAL_WORLD_SIZE=" + std::to_string(info.local_world_size) +
           " is more than WORLD_SIZE=" + std::to_string(info.world_size));
  }
  const std::optional<Position> node = ReadPair(get, "DDLRUN_NODE_RANK", "DDLRUN_NODE_COUNT");
  if (node) {
    info.node_rank = node->index;
    info.node_count = node->count;
  }
  CompareWithLauncher(get, info);
  return info;
}

}  // namespace launcher
