// SPDX-License-Identifier: Apache-2.0
//
// What the nodes find out together: whether they meet, whether their clocks agree, and whether the
// pairs of pair_schedule.h can talk over the network of the ranks.

#pragma once

#include <chrono>
#include <functional>

#include "launcher/health/node_info.h"

namespace launcher {

struct ExchangeOptions {
  int node = 0;
  int nodes = 1;
  std::chrono::steady_clock::time_point deadline;  // for all of it
  std::chrono::milliseconds link_limit{5000};      // for one pair
};

// Joins the other nodes, fills in `info`, and calls `on_result` as soon as they are final.  Then
// it answers the other nodes until all are done.  Does not throw: what goes wrong is facts.problem.
void ExchangeWithNodes(const ExchangeOptions& plan, ConnectivityResult& info,
                       const std::function<void()>& on_result);

}  // namespace launcher
