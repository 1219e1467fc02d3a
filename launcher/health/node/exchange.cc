// SPDX-License-Identifier: Apache-2.0

#include "launcher/health/node/exchange.h"

#include <memory>

#include "launcher/base/error.h"
#include "launcher/health/node/fabric.h"
#include "launcher/health/node/rendezvous.h"
#include "launcher/health/pair_schedule.h"

namespace launcher {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kAddressKey[] = "ddlrun.address";
// Time that is kept for the report, and for leaving the other nodes.
constexpr std::chrono::seconds kReserve{2};

// The fabric of this node.  Null for a single node, without UCX, and when UCX fails.
std::unique_ptr<Fabric> OpenFabric(int nodes, ConnectivityResult& info) {
  if (nodes == 1) return nullptr;
  if (!Fabric::Problem().empty()) {
    info.unavailable = Fabric::Problem();
    return nullptr;
  }
  try {
    return std::make_unique<Fabric>();
  } catch (const LaunchError& error) {
    info.problem = error.what();
    return nullptr;
  }
}

// The nodes that this node talks to.
std::vector<int> PartnersOf(const ExchangeOptions& plan) {
  std::vector<int> partners = PartnersByRound(plan.node, plan.nodes);
  std::erase(partners, -1);
  return partners;
}

// The addresses by node; "" for all nodes but the partners.
std::vector<std::string> ReadAddresses(const ExchangeOptions& plan, const Rendezvous& others) {
  std::vector<std::string> addresses(static_cast<std::size_t>(plan.nodes));
  for (const int partner : PartnersOf(plan)) {
    addresses[static_cast<std::size_t>(partner)] = others.Get(partner, kAddressKey);
  }
  return addresses;
}

void RequireSamePlace(const ExchangeOptions& plan, const Rendezvous& others) {
  if (others.rank() == plan.node && others.size() == plan.nodes) return;
  throw LaunchError(EX_CONFIG, "PMIx says " + std::to_string(others.rank()) + " of " +
                                   std::to_string(others.size()) + ", the plan says " +
                                   std::to_string(plan.node) + " of " + std::to_string(plan.nodes));
}

// False when the others did not come in time.
bool Exchange(const ExchangeOptions& plan, const Rendezvous& others, Fabric* fabric,
              ConnectivityResult& info) {
  others.Publish(kAddressKey, fabric == nullptr ? "" : fabric->address());
  const auto meeting = plan.deadline - LongestTest(plan.nodes, plan.link_limit) - kReserve;
  const auto nothing = [] {};
  // Nothing is published before the second barrier, so that all nodes leave it at the same moment.
  if (!others.Meet(meeting, nothing) || !others.Meet(meeting, nothing)) {
    info.problem = "not all nodes came to the exchange in time";
    for (const int silent :
         others.FindSilent(PartnersOf(plan), kAddressKey, meeting + plan.link_limit)) {
      info.failed.push_back({silent, "no answer over the launcher's network", 0});
    }
    return false;
  }
  info.clock_seconds =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  if (fabric != nullptr) {
    fabric->TestLinks(plan.node, ReadAddresses(plan, others), plan.link_limit, info);
    info.links_tested = true;
  }
  return true;
}

}  // namespace

void ExchangeWithNodes(const ExchangeOptions& plan, ConnectivityResult& info,
                       const std::function<void()>& on_result) {
  try {
    const Rendezvous others;
    RequireSamePlace(plan, others);
    const std::unique_ptr<Fabric> fabric = OpenFabric(plan.nodes, info);
    const bool met = Exchange(plan, others, fabric.get(), info);
    on_result();
    if (!met) return;
    others.Meet(plan.deadline - kReserve / 2, [&fabric] {
      if (fabric) fabric->Progress();
    });
  } catch (const LaunchError& error) {
    info.problem = error.what();
    on_result();
  }
}

}  // namespace launcher
