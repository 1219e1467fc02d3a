// SPDX-License-Identifier: Apache-2.0
//
// The network that the ranks will use, as UCX finds it (UCX_TLS and UCX_NET_DEVICES are obeyed),
// and the test of pairs of nodes over it.  fabric_ucx.cc, or fabric_none.cc in a build without
// UCX. For one thread.

#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "launcher/health/node_facts.h"

namespace launcher {

// What each pair sends there and back: large enough to leave UCX's short messages, so that memory
// is registered as a training step does.
inline constexpr std::size_t kLinkMessageBytes = 262144;

class Fabric {
 public:
  // "1.13.1"; "" when this build has none.
  static std::string LibraryVersion();

  // Throws LaunchError(EX_UNAVAILABLE) when UCX finds no device it may use.
  Fabric();
  // Frees nothing: the process is about to end, and to close what does not answer takes its time.
  ~Fabric();
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  // What others need to reach this one; bytes.
  std::string address() const;

  // Talks to the partners of pair_schedule.h in its rounds; the lower index speaks first and
  // reports.  A pair that is not done `limit` after its start has failed; no pair waits for another
  // longer than kRoundPatience.  `addresses` by node; a node without one ("") is passed over.
  // Fills links_ok, slowest and failed.
  void TestLinks(int own, const std::vector<std::string>& addresses,
                 std::chrono::milliseconds limit, ExchangeFacts& facts);

  // Answers others.  Called until all are done.
  void Progress();

 private:
  class Worker;
  std::unique_ptr<Worker> worker_;
};

}  // namespace launcher
