// SPDX-License-Identifier: Apache-2.0

#include "launcher/allocation/hosts_of_job.h"

#include <algorithm>

#include "launcher/error.h"

namespace launcher {

bool IsSameHost(const std::string& a, const std::string& b) {
  const bool one_is_short = a.find('.') == std::string::npos || b.find('.') == std::string::npos;
  return a == b || (one_is_short && a.substr(0, a.find('.')) == b.substr(0, b.find('.')));
}

const AllocatedNode* FindHost(const Allocation& job, const std::string& host) {
  const auto found =
      std::find_if(job.nodes.begin(), job.nodes.end(),
                   [&](const AllocatedNode& node) { return IsSameHost(node.host, host); });
  return found == job.nodes.end() ? nullptr : &*found;
}

const AllocatedNode& RequireHost(const Allocation& job, const std::string& host,
                                 const std::string& who) {
  const AllocatedNode* node = FindHost(job, host);
  if (node != nullptr) return *node;
  throw LaunchError(
      EX_CONFIG, who + " names " + host + ", which is not in this job (" + job.origin_text +
                     "): write its hosts, or #SBATCH --nodelist=" + host.substr(0, host.find('.')));
}

Allocation RestrictToHosts(const Allocation& job, const Allocation& asked) {
  Allocation result = job;
  result.origin = asked.origin;
  result.origin_text = asked.origin_text + ", " + job.origin_text;
  result.ranks.reset();
  result.nodes.clear();
  const AllocatedNode& first = job.nodes.front();
  for (const AllocatedNode& wanted : asked.nodes) {
    AllocatedNode node = RequireHost(job, wanted.host, asked.origin_text);
    // Where Slurm's variables do not say, a node is like the first of the job, as in MakePlan.
    if (!node.gpus && node.component == first.component) node.gpus = first.gpus;
    if (wanted.slots || node.gpus.value_or(0) > 0) node.slots = wanted.slots;
    const auto before =
        std::find_if(result.nodes.begin(), result.nodes.end(),
                     [&](const AllocatedNode& other) { return other.host == node.host; });
    if (before == result.nodes.end()) {
      result.nodes.push_back(std::move(node));
    } else if (before->slots || node.slots) {
      before->slots = before->slots.value_or(1) + node.slots.value_or(1);
    }
  }
  return result;
}

}  // namespace launcher
