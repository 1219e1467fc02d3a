// SPDX-License-Identifier: Apache-2.0

#include "launcher/pipeline/read_allocation.h"

#include <algorithm>
#include <optional>

#include "launcher/allocation/host_allocation.h"
#include "launcher/allocation/hosts_of_job.h"
#include "launcher/base/error.h"
#include "launcher/pipeline/this_machine.h"
#include "launcher/slurm/complete_allocation.h"
#include "launcher/slurm/slurm_allocation.h"
#include "launcher/system/files.h"
#include "rankfile/host_name.h"

namespace launcher {
namespace {

// -H or -hostfile.
std::optional<Allocation> ReadRequestedHosts(const Options& options) {
  if (!options.hosts.empty() && !options.hostfile.empty()) {
    throw LaunchError(EX_USAGE, "give either -H or -hostfile, not both");
  }
  if (!options.hosts.empty()) return AllocationFromHostList(options.hosts);
  if (options.hostfile.empty()) return std::nullopt;
  return AllocationFromHostfile(ReadFile(options.hostfile), options.hostfile);
}

// Hosts that no job knows, by which two names of one node are told: refuses two names of one host,
// each of which would get the first GPU and the first cores.
Allocation WithDistinctHosts(Allocation requested, const Environment& environment) {
  const auto reject = [&](const std::string& words) {
    throw LaunchError(
        requested.origin == Allocation::Origin::kHostfile ? EX_DATAERR : EX_USAGE,
        requested.origin_text + ": " + words + "; write one of them, with all its slots");
  };
  rankfile::HostSpellings spellings;
  std::string own;  // of this machine
  for (const AllocatedNode& node : requested.nodes) {
    if (const std::string* other = spellings.Add(node.host)) {
      reject(*other + " and " + node.host + " are one host spelled in two ways");
    }
    if (!IsThisMachine(node.host, environment)) continue;
    if (!own.empty()) reject(own + " and " + node.host + " are both this machine");
    own = node.host;
  }
  return requested;
}

}  // namespace

std::optional<Allocation> ReadJob(const Options& options, Environment environment) {
  if (options.accelerators == 0) environment.erase("CUDA_VISIBLE_DEVICES");
  return ReadSlurmAllocation(environment);
}

Allocation ReadAllocation(const Options& options, const Environment& environment,
                          bool may_leave_job) {
  const std::optional<Allocation> requested = ReadRequestedHosts(options);
  std::optional<Allocation> slurm = ReadJob(options, environment);
  if (!slurm) {
    return requested ? WithDistinctHosts(*requested, environment)
                     : AllocationOfThisMachine(HostName());
  }
  if (!requested) return *slurm;
  const HostsOfJob hosts(*slurm);
  const bool leaves_job =
      std::any_of(requested->nodes.begin(), requested->nodes.end(),
                  [&](const AllocatedNode& node) { return hosts.Find(node.host) == nullptr; });
  if (leaves_job && may_leave_job) return WithDistinctHosts(*requested, environment);
  // While the allocation still has the node that Slurm's variables are about.
  if (!options.accelerators) QuerySlurmForGpus(environment, &*slurm);
  return RestrictToHosts(*slurm, *requested);
}

}  // namespace launcher
