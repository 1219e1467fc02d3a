// SPDX-License-Identifier: Apache-2.0
//
// How long each rank is busy in a step, what of it it waits for its data, and how its device fares.
// Not thread-safe.

#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trainer/telemetry/meters/device_state.h"

namespace trainer {

// What a rank says of itself now and then; beside it all hear its own seconds in each step.
struct RankMetrics {
  double input_wait_seconds = 0;  // mean of a step since it has said so last
  DeviceState device;
  bool is_known = false;  // it has said something
};

struct RankLoad {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

  int rank = 0;
  std::string host = {};                 // "": not known
  double busy_seconds = kUnknown;        // in a step, busy itself, its input wait included
  double input_wait_seconds = kUnknown;  // of these
  std::optional<int> gpu_percent = {};   // of the time: its GPU computes
  std::optional<int> compute_mhz = {};   // of its GPU, or of processor cores
  std::optional<int> celsius = {};
};

class RankLoads {
 public:
  static constexpr double kSteps = 20;     // that means are taken over, the newest weighing most
  static constexpr std::size_t kMax = 64;  // that are told
  static constexpr std::size_t kLetters = 63;  // of a host; what is longer is cut

  void SetHosts(std::vector<std::string> hosts) { hosts_ = std::move(hosts); }
  // After a step, by rank; seconds that are not above 0 are not known.
  void Add(std::span<const double> busy_seconds, std::span<const RankMetrics> said);

  // By rank; of more than kMax the slowest.  Those of which nothing is known are left out.
  std::vector<RankLoad> Slowest() const;
  // Of the own seconds of all; the lower of the middle two.  Not a number where none is known.
  double Median() const;

 private:
  struct Rank {
    double seconds = 0;
    double steps = 0;
    RankMetrics said;
  };

  std::vector<std::string> hosts_;
  std::vector<Rank> ranks_;
};

}  // namespace trainer
