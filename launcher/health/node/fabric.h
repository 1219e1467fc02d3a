// SPDX-License-Identifier: Apache-2.0
//
// The network that the ranks will use, as UCX finds it by UCX_TLS and UCX_NET_DEVICES, and the test
// of pairs of nodes over it.  It is in fabric_ucx.cc, or in fabric_none.cc for a build without UCX.
// For one thread.

#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "launcher/health/node_info.h"

namespace launcher {

// What each pair sends there and back.  It is more than UCX sends as a short message, so that
// memory is registered with the network device, as in a training step.
inline constexpr std::size_t kLinkMessageBytes = 262144;

class Fabric {
 public:
  // Why there can be none: this build has no UCX, or it cannot be loaded here.  "": there can.
  static std::string Problem();
  // The version of UCX, "1.13.1"; "" when there can be none.
  static std::string LibraryVersion();

  // Throws LaunchError(EX_UNAVAILABLE) when UCX finds no device it may use, or
  // with Problem().
  Fabric();
  // Frees nothing: the process is about to end, and it takes long to close connections to nodes
  // that do not answer.
  ~Fabric();
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  // The bytes by which other nodes can reach this one.
  std::string address() const;

  // Talks to the partners of pair_schedule.h in its rounds.  The node with the lower index speaks
  // first, and reports about the pair.  A pair that is not done `limit` after its start has failed,
  // but the next round begins after kRoundTimeout at the latest.  `addresses` has one entry per
  // node; a node with "" is left out.  Fills in links_ok, slowest and failed.
  void TestLinks(int own, const std::vector<std::string>& addresses,
                 std::chrono::milliseconds limit, ConnectivityResult& info);

  // Answers other nodes.  To be called until all are done.
  void Progress();

 private:
  class Worker;
  std::unique_ptr<Worker> worker_;
};

}  // namespace launcher
