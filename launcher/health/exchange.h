// SPDX-License-Identifier: Apache-2.0
//
// What the nodes find out together: whether they meet, whether their clocks agree, whether the
// pairs of pair_schedule.h can talk over the fabric.

#pragma once

#include <chrono>
#include <functional>

#include "launcher/health/node_facts.h"

namespace launcher {

struct ExchangePlan {
  int node = 0;
  int nodes = 1;
  std::chrono::steady_clock::time_point deadline;  // of all of it
  std::chrono::milliseconds link_limit{5000};      // of one pair
};

// Joins the other nodes, fills `facts` and calls `on_result` as soon as it is final; then answers
// the others until all are done.  Does not throw: what goes wrong is facts.problem.
void ExchangeWithNodes(const ExchangePlan& plan, ExchangeFacts& facts,
                       const std::function<void()>& on_result);

}  // namespace launcher
