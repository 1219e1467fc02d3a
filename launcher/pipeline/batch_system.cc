// SPDX-License-Identifier: Apache-2.0

#include "launcher/pipeline/batch_system.h"

#include <algorithm>
#include <sstream>

#include "launcher/allocation/host_allocation.h"
#include "launcher/base/error.h"
#include "launcher/protocol/launchers.h"
#include "support/number.h"

namespace launcher {
namespace {

// The text of a hostfile for "host1 42 host2 42".
std::string HostfileOfLsf(const std::string& hosts_and_slots) {
  std::istringstream words(hosts_and_slots);
  std::string text;
  std::string host;
  std::string slots;
  while (words >> host >> slots) text += host + " slots=" + slots + "\n";
  return text;
}

Allocation FromHostfile(const std::string& text, const std::string& origin) {
  Allocation allocation = AllocationFromHostfile(text, origin);
  allocation.origin_text = origin;
  allocation.slots_may_be_cores = true;
  return allocation;
}

void LeaveOutLaunchHost(Allocation* allocation) {
  std::vector<AllocatedNode>& nodes = allocation->nodes;
  const bool is_first_alone =
      nodes.size() > 1 && nodes.front().slots.value_or(1) == 1 &&
      std::all_of(nodes.begin() + 1, nodes.end(),
                  [](const AllocatedNode& node) { return node.slots.value_or(1) > 1; });
  if (is_first_alone) nodes.erase(nodes.begin());
}

void RejectFlux(const Environment& environment) {
  const std::string nodes = ValueOr(environment, "FLUX_JOB_NNODES", "");
  if (support::WholeNumber<int>(nodes).value_or(1) < 2) return;
  throw LaunchError(EX_CONFIG, "this is a job of Flux on " + nodes +
                                   " nodes (FLUX_JOB_NNODES), whose names its variables do not "
                                   "tell: write ddlrun -H \"$(flux hostlist local)\"");
}

}  // namespace

std::optional<Allocation> ReadBatchAllocation(
    const Environment& environment,
    const std::function<std::string(const std::string& path)>& read) {
  // A launch that a rank starts has what its rank has.
  if (environment.contains("DDLRUN_LAUNCHER")) return std::nullopt;
  const auto value = [&environment](const char* name) { return ValueOr(environment, name, ""); };
  if (const std::string file = value("PBS_NODEFILE"); !file.empty()) {
    return FromHostfile(read(file), "PBS_NODEFILE=" + file);
  }
  const std::string file = value("LSB_DJOB_HOSTFILE");
  const std::string list = value("LSB_MCPU_HOSTS");
  if (!file.empty() || !list.empty()) {
    Allocation allocation =
        file.empty() ? FromHostfile(HostfileOfLsf(list), "LSB_MCPU_HOSTS=" + list.substr(0, 120))
                     : FromHostfile(read(file), "LSB_DJOB_HOSTFILE=" + file);
    LeaveOutLaunchHost(&allocation);
    return allocation;
  }
  RejectFlux(environment);
  return std::nullopt;
}

std::string DescribeEnclosingLaunch(const Environment& environment) {
  if (environment.contains("DDLRUN_LAUNCHER")) return "";
  for (const LauncherTraits& launcher : kLaunchers) {
    const std::string name = launcher.world_size_variable;
    // In several tasks of a step ddlrun is refused.
    if (launcher.makes_step || name.empty()) continue;
    const std::string size = ValueOr(environment, name.c_str(), "");
    if (support::WholeNumber<int>(size).value_or(1) < 2) continue;
    return "ddlrun is one of " + size + " processes of " + launcher.program + " (" + name + "=" +
           size + "), each of which starts all ranks: write `ddlrun PROGRAM` without " +
           launcher.program + "; if " + name + " is left of another job, unset it";
  }
  return "";
}

}  // namespace launcher
