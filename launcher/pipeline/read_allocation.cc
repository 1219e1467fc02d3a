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

namespace launcher {
namespace {

// -H or -hostfile.
std::optional<Allocation> ReadAskedHosts(const Options& options) {
  if (!options.hosts.empty() && !options.hostfile.empty()) {
    throw LaunchError(EX_USAGE, "give either -H or -hostfile, not both");
  }
  if (!options.hosts.empty()) return AllocationFromHostList(options.hosts);
  if (options.hostfile.empty()) return std::nullopt;
  return AllocationFromHostfile(ReadFile(options.hostfile), options.hostfile);
}

}  // namespace

std::optional<Allocation> ReadJob(const Options& options, Environment environment) {
  if (options.accelerators == 0) environment.erase("CUDA_VISIBLE_DEVICES");
  return ReadSlurmAllocation(environment);
}

Allocation ReadAllocation(const Options& options, const Environment& environment,
                          bool may_leave_job) {
  const std::optional<Allocation> asked = ReadAskedHosts(options);
  std::optional<Allocation> slurm = ReadJob(options, environment);
  if (!slurm) return asked ? *asked : AllocationOfThisMachine(HostName());
  if (!asked) return *slurm;
  const HostsOfJob hosts(*slurm);
  const bool leaves_job =
      std::any_of(asked->nodes.begin(), asked->nodes.end(),
                  [&](const AllocatedNode& node) { return hosts.Find(node.host) == nullptr; });
  if (leaves_job && may_leave_job) return *asked;
  // While the allocation still has the node that Slurm's variables are about.
  if (!options.accelerators) AskSlurmForGpus(environment, &*slurm);
  return RestrictToHosts(*slurm, *asked);
}

}  // namespace launcher
