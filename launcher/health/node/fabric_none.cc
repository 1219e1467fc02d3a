// SPDX-License-Identifier: Apache-2.0
//
// For a build without UCX.

#include "launcher/base/error.h"
#include "launcher/health/node/fabric.h"

namespace launcher {

class Fabric::Worker {};

std::string Fabric::Problem() { return "ddlrun was built without UCX (libucx-dev)"; }
std::string Fabric::LibraryVersion() { return ""; }
Fabric::Fabric() { throw LaunchError(EX_UNAVAILABLE, Problem()); }
Fabric::~Fabric() = default;
std::string Fabric::address() const { return ""; }
void Fabric::TestLinks(int, const std::vector<std::string>&, std::chrono::milliseconds,
                       ConnectivityResult&) {}
void Fabric::Progress() {}

}  // namespace launcher
