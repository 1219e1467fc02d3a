// SPDX-License-Identifier: Apache-2.0
//
// For a build without PMIx.

#include "launcher/base/error.h"
#include "launcher/health/node/rendezvous.h"

namespace launcher {

namespace {
LaunchError NotBuilt() { return LaunchError(EX_UNAVAILABLE, Rendezvous::Problem()); }
}  // namespace

std::string Rendezvous::Problem() { return "ddlrun was built without PMIx (libpmix-dev)"; }
std::string Rendezvous::LibraryVersion() { return ""; }
Rendezvous::Rendezvous() { throw NotBuilt(); }
Rendezvous::~Rendezvous() = default;
void Rendezvous::Publish(const std::string&, const std::string&) const { throw NotBuilt(); }
std::string Rendezvous::Get(int, const std::string&) const { throw NotBuilt(); }
bool Rendezvous::Meet(std::chrono::steady_clock::time_point, const std::function<void()>&) const {
  throw NotBuilt();
}
std::vector<int> Rendezvous::FindSilent(const std::vector<int>&, const std::string&,
                                        std::chrono::steady_clock::time_point) const {
  throw NotBuilt();
}

}  // namespace launcher
