// SPDX-License-Identifier: Apache-2.0

#include "launcher/allocation/hosts_of_job.h"

#include <optional>
#include <unordered_map>
#include <utility>

#include "launcher/base/error.h"

namespace launcher {

HostsOfJob::HostsOfJob(const Allocation& job) : job_(job) {
  for (const AllocatedNode& node : job.nodes) index_.Add(node.host);
}

const AllocatedNode* HostsOfJob::Find(const std::string& host) const {
  const std::optional<std::size_t> index = index_.Find(host);
  return index ? &job_.nodes[*index] : nullptr;
}

const AllocatedNode& HostsOfJob::Require(const std::string& host, const std::string& who) const {
  const AllocatedNode* node = Find(host);
  if (node != nullptr) return *node;
  throw LaunchError(
      EX_CONFIG, who + " names " + host + ", which is not in this job (" + job_.origin_text +
                     "): write its hosts, or #SBATCH --nodelist=" + host.substr(0, host.find('.')));
}

Allocation RestrictToHosts(const Allocation& job, const Allocation& requested) {
  Allocation result = job;
  result.origin = requested.origin;
  result.origin_text = requested.origin_text + ", " + job.origin_text;
  result.ranks.reset();
  result.nodes.clear();
  const AllocatedNode& first = job.nodes.front();
  const HostsOfJob hosts(job);
  std::unordered_map<std::string, std::size_t> index_of;  // in result.nodes, by the name in the job
  for (const AllocatedNode& wanted : requested.nodes) {
    AllocatedNode node = hosts.Require(wanted.host, requested.origin_text);
    // Where Slurm's variables do not say it, a node has as many GPUs as the first, as in MakePlan.
    if (!node.gpus && node.component == first.component) node.gpus = first.gpus;
    if (wanted.slots || node.gpus.value_or(0) > 0) node.slots = wanted.slots;
    const auto [known, is_new] = index_of.emplace(node.host, result.nodes.size());
    if (is_new) {
      result.nodes.push_back(std::move(node));
      continue;
    }
    AllocatedNode& before = result.nodes[known->second];
    if (before.slots || node.slots)
      before.slots = before.slots.value_or(1) + node.slots.value_or(1);
  }
  return result;
}

}  // namespace launcher
