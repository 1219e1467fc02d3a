// SPDX-License-Identifier: Apache-2.0
//
// What NCCL itself knows of a job that hangs: how many collectives each rank has launched.  NCCL
// (2.28.7 and later, which speak JSON) listens for that question in the ranks of a node, at
// NCCL_RAS_ADDR: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/ras.html

#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/diagnose/facts.h"

namespace launcher {

// Where it listens unless NCCL_RAS_ADDR says otherwise.
inline constexpr char kRasAddress[] = "localhost:28028";

// The answer at HOST:PORT, which may take NCCL seconds; "" where nobody listens or answers in time.
std::string AskRas(const std::string& address, std::chrono::steady_clock::time_point deadline);

// The communicators of each process, of which `hosts` are the addresses of its node, in the answer;
// none in any other text, for which `problem` says what it is.  Pure.
std::map<pid_t, std::vector<CommunicatorFacts>> ParseRas(std::string_view answer,
                                                         const std::set<std::string>& hosts,
                                                         std::string* problem);

// The addresses of this node, as numbers.
std::set<std::string> AddressesOfThisNode();

}  // namespace launcher
