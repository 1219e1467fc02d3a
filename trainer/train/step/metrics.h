// SPDX-License-Identifier: Apache-2.0
//
// What is counted during steps, over all ranks.  doc/reference/metrics.md defines what is printed
// of it.

#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <utility>
#include <vector>

#include "trainer/backend/ops.h"
#include "trainer/comm/communicator.h"
#include "trainer/control/run_control.h"
#include "trainer/control/run_status.h"
#include "trainer/telemetry/meters/device_state.h"
#include "trainer/telemetry/meters/step_timer.h"

namespace trainer {

// Sums over samples, in double so that a whole evaluation adds up.
struct LossTotals {
  double loss = 0;
  double top1 = 0;
  double top5 = 0;
  double samples = 0;

  void Add(const LossSums& sums);
  void Add(const LossTotals& other);
  // Means; not a number when there are no samples.
  double mean_loss() const { return loss / samples; }
  double top1_fraction() const { return top1 / samples; }
  double top5_fraction() const { return top5 / samples; }
};

// What the ranks tell each other at the end of each step.
struct StepExchange {
  LossTotals totals;   // in: of this rank; out: of all
  Requests requested;  // in: of this rank; out: of any
  // In: 1 if a summed gradient was NaN here; out: ranks that found one.
  int bad_gradients = 0;
  // The same of the weights before the update.
  int bad_weights = 0;
  // In: 1 if this rank had no batch, so that what it computed is nothing; out: ranks without one.
  int bad_inputs = 0;
  // In: of this rank in its place, 0 in the others; out: of all.  At
  // most RankSeconds::kPlaces, equally many on each rank.
  std::span<double> rank_seconds = {};
  // The same of what ranks say in turn; at most RankMetricsExchange::kPlaces.
  std::span<double> rank_metrics_exchange = {};

  // Out: all ranks had their batches, and all that they found is numbers.
  bool is_sound() const {
    return bad_gradients + bad_weights + bad_inputs == 0 && std::isfinite(totals.mean_loss());
  }
};

// Collective, where a sum of the ranks has told that some of them had no batch: throws RankFault on
// every rank.  `own`: what this rank has met, or null.
[[noreturn]] void ThrowInputFault(const std::exception_ptr& own, Communicator& communicator);

// One all-reduce.  Collective; every rank gets the same result, so all stop after the same step.
StepExchange Exchange(const StepExchange& own, Communicator& communicator);

// What ranks say by way of the sum that ends each step: one group of ranks after the other, a group
// in each step, so that the sum stays short.  Each has kNumbers of the places, of which the first
// is the mean of a number over the steps since its last turn.
//
// Used from the thread of the loop; after the constructor nothing is allocated.
template <std::size_t kSpeakers, std::size_t kNumbers>
class RankTurns {
 public:
  static constexpr std::size_t kPlaces = kSpeakers * kNumbers;

 protected:
  RankTurns(int rank, int ranks)
      : rank_(static_cast<std::size_t>(rank)), ranks_(static_cast<std::size_t>(ranks)) {}

  // Takes `number` into the mean, and clears all places.  Those of this rank if it is its turn.
  std::span<double> Turn(double number) {
    sum_ += number;
    ++steps_;
    places_.fill(0);
    if (rank_ < first_ || rank_ >= first_ + speakers()) return {};
    const std::span own = std::span(places_).subspan((rank_ - first_) * kNumbers, kNumbers);
    own[0] = std::exchange(sum_, 0) / static_cast<double>(std::exchange(steps_, 0));
    return own;
  }
  std::span<double> places() { return std::span(places_).first(speakers() * kNumbers); }
  std::size_t first() const { return first_; }  // rank of the group
  std::size_t speakers() const { return std::min(kSpeakers, ranks_ - first_); }
  void EndTurn() { first_ = first_ + kSpeakers < ranks_ ? first_ + kSpeakers : 0; }

 private:
  const std::size_t rank_;
  const std::size_t ranks_;
  std::array<double, kPlaces> places_{};
  std::size_t first_ = 0;
  double sum_ = 0;  // of this rank, since its last turn
  std::int64_t steps_ = 0;
};

// How long each rank is busy in a step, known to all of them.
class RankSeconds : public RankTurns<64, 1> {
 public:
  RankSeconds(int rank, int ranks)
      : RankTurns(rank, ranks), last_(static_cast<std::size_t>(ranks)) {}

  // The step took this rank so long.  What it has to say in the sum, 0 in the places of others; the
  // sum is to be written there.  Equally many on each rank.
  std::span<double> Say(double busy_seconds) {
    Turn(busy_seconds);
    return places();
  }
  // The sum is there: what each rank has said last, by rank; 0: nothing yet.
  std::span<const double> Received();

 private:
  std::vector<double> last_;  // by rank
};

// What each rank says of its input wait and its device, known to all.
class RankMetricsExchange : public RankTurns<8, 2> {
 public:
  RankMetricsExchange(int rank, int ranks)
      : RankTurns(rank, ranks), last_(static_cast<std::size_t>(ranks)) {}

  // As RankSeconds, of how long this rank has waited for its data.
  std::span<double> Say(double input_wait_seconds, const DeviceState& device);
  std::span<const RankMetrics> Received();

 private:
  std::vector<RankMetrics> last_;  // by rank
};

// Utilisation, clock and temperature as one whole number that a double holds; what does not fit is
// left out.  Above 0.
double PackState(const DeviceState& state);
DeviceState UnpackState(double number);

// What is known of a training step once it is over; all logs are written from it.

// One step, as all ranks agree on it.
struct StepResult {
  std::int64_t step = 0;         // from 0
  std::int64_t launch_step = 0;  // from 0 at the start of this process
  double cross_entropy = 0;      // mean over the global batch, label smoothing included
  double l2_loss = 0;            // weight_decay * sum of squares / 2, of the weights before it
  double top1 = 0;               // fraction of the global batch
  double gradient_norm = 0;      // of the mean over the global batch, L2 loss not included
  double learning_rate = 0;
  double loss_scale = 1;
  bool skipped = false;   // a gradient overflowed: nothing was updated
  bool left_out = false;  // loss or gradient was NaN: nothing was updated (non_finite_guard.h)
  StepTimes times;        // of this rank
  // How long each rank was busy itself, by rank, as it has said last; 0: not known.  Until the next
  // step.
  std::span<const double> rank_seconds;
  std::span<const RankMetrics> rank_metrics_exchange;  // the same of what each has said of itself

  double total_loss() const { return cross_entropy + l2_loss; }
};

// Looks at the steps of a launch and changes nothing of them.  The loop calls all of its watchers
// on every rank at the same steps, so a call may be collective.  Steps count from 0.
class StepObserver {
 public:
  virtual ~StepObserver() = default;

  // This launch makes the steps from `first` up to, but not, `end`.
  virtual void Start(std::int64_t /*first*/, std::int64_t /*end*/) {}
  virtual void Before(std::int64_t /*step*/) {}
  virtual void After(const StepResult& /*record*/) {}
  // What was computed since the last step is of none.
  virtual void LeaveOut() {}
  // The step that has begun does not count: training was rolled back to a checkpoint, and its
  // next step may be any.
  virtual void RolledBack() {}
  // No step follows in this launch.
  virtual void End() {}
};

}  // namespace trainer
