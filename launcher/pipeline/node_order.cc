// SPDX-License-Identifier: Apache-2.0

#include "launcher/pipeline/node_order.h"

#include "launcher/allocation/network_order.h"
#include "launcher/base/messages.h"
#include "launcher/placement/segments.h"
#include "launcher/slurm/network_topology.h"
#include "support/number.h"

namespace launcher {
namespace {

constexpr char kSegmentSize[] = "SLURM_JOB_SEGMENT_SIZE";

bool IsOrderOfUser(const Settings& settings, const Allocation& allocation) {
  return allocation.origin != Allocation::Origin::kSlurm || settings.rank_order == "node";
}

}  // namespace

std::unique_ptr<NetworkQuestion> QueryNetwork(const Settings& settings,
                                              const Allocation& allocation,
                                              const Environment& environment) {
  const std::vector<AllocatedNode>& nodes = allocation.nodes;
  if (allocation.job_id.empty() || nodes.size() < 2 ||
      nodes.front().component != nodes.back().component) {
    return nullptr;
  }
  const bool has_segments = !ValueOr(environment, kSegmentSize, "").empty();
  const bool may_matter = !IsOrderOfUser(settings, allocation) &&
                          (settings.rank_order == "topology" || !HasFlatTopology(environment));
  if (!may_matter && !has_segments) return nullptr;
  const bool of_partition = has_segments || settings.rank_order == "topology";
  return std::make_unique<NetworkQuestion>(environment, of_partition);
}

void OrderNodes(const Settings& settings, const Environment& environment, NetworkQuestion* question,
                Allocation* allocation) {
  if (question == nullptr) return;
  const ScontrolAnswer answer = question->Wait();
  if (answer.is_ok) ReadNetworkTopology(answer.text, allocation);
  if (IsOrderOfUser(settings, *allocation) || allocation->network_unit.empty()) return;
  OrderByNetwork(ValueOr(environment, "SLURMD_NODENAME", ""), allocation);
}

void WarnOfOrder(const Settings& settings, const Environment& environment,
                 const NetworkQuestion* question, LaunchPlan* plan) {
  if (question == nullptr) return;
  if (plan->network_unit.empty()) {
    if (settings.rank_order != "topology") return;
    plan->warnings.push_back(
        Coded(Message::kNoTopology,
              "--rank-order=topology: Slurm knows no switch or block of these nodes (scontrol show "
              "topology), which stay in its order"));
    return;
  }
  if (settings.rank_order == "cyclic") return;
  const std::string size = ValueOr(environment, kSegmentSize, "");
  const std::string torn = TornSegment(*plan, support::WholeNumber<int>(size).value_or(0));
  if (torn.empty() || size.empty()) return;
  plan->warnings.push_back(
      Coded(Message::kSegmentTorn, kSegmentSize + ("=" + size) + ", but " + torn +
                                       "; nodes of a block are side by side by --rank-order=auto "
                                       "and without -H"));
}

}  // namespace launcher
