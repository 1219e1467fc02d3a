// SPDX-License-Identifier: Apache-2.0

#include "launcher/cost/run_cost.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "support/number.h"

namespace launcher {
namespace {

constexpr std::array kParts = {CostPart{"plan", &RunCost::plan},
                               CostPart{"launch", &RunCost::launch},
                               CostPart{"productive", &RunCost::productive},
                               CostPart{"unknown", &RunCost::unknown},
                               CostPart{"detection", &RunCost::detection, true},
                               CostPart{"teardown", &RunCost::teardown, true},
                               CostPart{"restart", &RunCost::restart, true},
                               CostPart{"repeated", &RunCost::repeated, true},
                               CostPart{"requeued", &RunCost::requeued, true},
                               CostPart{"end", &RunCost::end}};

constexpr std::array kSources = {"none", "heartbeat", "checkpoints"};

// The time from where the one before it has ended.
class Cursor {
 public:
  Cursor(double begin, double limit) : at_(begin), limit_(std::max(begin, limit)) {}

  double Take(double until) {
    const double from = at_;
    at_ = std::clamp(until, at_, limit_);
    return at_ - from;
  }

 private:
  double at_;
  const double limit_;
};

// The time in which all ranks of `start` ran, up to `until`.
void SplitRunning(const StartTimes& start, double running, double until, Cursor* cursor,
                  RunCost* cost) {
  if (cost->source == ProgressSource::kNone) {
    cost->unknown += cursor->Take(until);
    return;
  }
  const bool has_checkpoints = cost->source == ProgressSource::kCheckpoints;
  const double progress = std::min(start.progress.value_or(until), until);
  const double saved = has_checkpoints ? std::max(running, start.checkpoint.value_or(running))
                                       : std::max(running, progress);
  if (!start.has_failed) {
    const double productive = cursor->Take(until);
    cost->productive += productive;
    if (!start.gone && has_checkpoints) {
      cost->unsaved = std::clamp(until - saved, 0.0, productive);
    }
    return;
  }
  cost->productive += cursor->Take(std::min(saved, until));
  cost->repeated += cursor->Take(progress);
  cost->detection += cursor->Take(until);
}

void SplitStart(const StartTimes& start, bool is_first, double now, Cursor* cursor, RunCost* cost) {
  const double gone = start.gone.value_or(now);
  const double noticed = start.has_failed || !start.gone ? start.noticed.value_or(gone) : gone;
  std::optional<double> running = start.running;
  // An mpirun whose output goes elsewhere reports no rank.
  const bool must_have_run = start.checkpoint || (start.gone && !start.has_failed);
  if (!running && must_have_run) running = start.launched;
  double* const waiting = is_first ? &cost->launch : &cost->restart;
  if (is_first) cost->plan += cursor->Take(start.launched.value_or(noticed));
  *waiting += cursor->Take(running.value_or(noticed));
  if (running) SplitRunning(start, *running, noticed, cursor, cost);
  cost->teardown += cursor->Take(gone);
}

// `before`: the cost without this start.
void AddEnergyOf(const StartTimes& start, const RunCost& before, RunCost* cost) {
  cost->lacks_energy = cost->lacks_energy || !start.energy || start.lacks_energy;
  if (!start.energy) return;
  const auto since = [&](double RunCost::*part) { return cost->*part - before.*part; };
  const double lost =
      since(&RunCost::repeated) + since(&RunCost::detection) + since(&RunCost::teardown);
  const double all = lost + since(&RunCost::productive) + since(&RunCost::unknown);
  const double never_ran = start.has_failed ? 1 : 0;
  cost->energy = cost->energy.value_or(0) + *start.energy;
  cost->lost_energy += *start.energy * (all > 0 ? lost / all : never_ran);
}

std::string Percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", share * 100);
  return text;
}

}  // namespace

const char* NameOf(ProgressSource source) { return kSources.at(static_cast<std::size_t>(source)); }

std::optional<ProgressSource> ProgressSourceOf(const std::string& name) {
  const auto* const found = std::find(kSources.begin(), kSources.end(), name);
  if (found == kSources.end()) return std::nullopt;
  return static_cast<ProgressSource>(found - kSources.begin());
}

std::span<const CostPart> CostParts() { return kParts; }

bool IsKnown(const RunCost& cost, const CostPart& part) {
  if (part.seconds == &RunCost::repeated) return cost.source == ProgressSource::kCheckpoints;
  const bool needs_progress =
      part.seconds == &RunCost::productive || part.seconds == &RunCost::detection;
  return !needs_progress || cost.source != ProgressSource::kNone;
}

std::optional<double> RunCost::Goodput() const {
  if (source == ProgressSource::kNone || wall <= 0) return std::nullopt;
  return productive / wall;
}

RunCost SplitRun(const RunTimeline& timeline, double now) {
  const double until = std::max(timeline.begin, timeline.end.value_or(now));
  RunCost cost;
  cost.source = timeline.source;
  cost.restarts = std::max(0, support::Size(timeline.starts) - 1);
  cost.wall = until - timeline.begin;
  Cursor cursor(timeline.begin, until);
  for (std::size_t i = 0; i < timeline.starts.size(); ++i) {
    const RunCost before = cost;
    SplitStart(timeline.starts[i], i == 0, until, &cursor, &cost);
    AddEnergyOf(timeline.starts[i], before, &cost);
  }
  cost.lacks_energy = cost.lacks_energy && cost.energy;
  // While ddlrun goes on without ranks, it is about to start them.
  double* const rest = timeline.end              ? &cost.end
                       : timeline.starts.empty() ? &cost.plan
                                                 : &cost.restart;
  *rest += cursor.Take(until);
  return cost;
}

RunCost AsKilled(RunCost cost) {
  cost.productive -= cost.unsaved;
  cost.repeated += cost.unsaved;
  cost.unsaved = 0;
  return cost;
}

bool IsLostEnergyKnown(const RunCost& cost) {
  return cost.energy && cost.source != ProgressSource::kNone;
}

void AddCost(const RunCost& more, RunCost* sum) {
  const bool is_of_one = more.energy.has_value() != sum->energy.has_value() && sum->wall > 0;
  sum->lacks_energy = sum->lacks_energy || more.lacks_energy || is_of_one;
  if (more.energy) sum->energy = sum->energy.value_or(0) + *more.energy;
  sum->lost_energy += more.lost_energy;
  for (const CostPart& part : kParts) sum->*part.seconds += more.*part.seconds;
  sum->wall += more.wall;
  sum->unsaved += more.unsaved;
  sum->restarts += more.restarts;
  sum->source = std::min(sum->source, more.source);
}

std::string CostDuration(double seconds) {
  char text[64];
  const auto whole = std::llround(seconds);
  if (seconds < 60) {
    std::snprintf(text, sizeof text, "%.1f s", seconds);
  } else if (whole < 3600) {
    std::snprintf(text, sizeof text, "%lld min %lld s", whole / 60, whole % 60);
  } else {
    std::snprintf(text, sizeof text, "%lld h %lld min", whole / 3600, whole / 60 % 60);
  }
  return text;
}

std::string CausesText(const RunCost& cost) {
  std::string text;
  for (const CostPart& part : kParts) {
    if (!part.is_lost || cost.*part.seconds < 0.05) continue;
    text += (text.empty() ? "" : ", ") + std::string(part.name) + " " +
            CostDuration(cost.*part.seconds);
  }
  return text;
}

std::string EnergyText(const RunCost& cost) {
  constexpr double kWattHour = 3600;  // joules
  constexpr double kShown = 0.005;    // rounds to more than 0 with two digits
  const double watt_hours = cost.energy.value_or(0) / kWattHour;
  const bool is_large = watt_hours >= 100;
  const double unit = is_large ? 1000 * kWattHour : kWattHour;
  if (watt_hours < kShown) return "";
  char text[64];
  std::snprintf(text, sizeof text, "%s%.2f %s", cost.lacks_energy ? "at least " : "",
                *cost.energy / unit, is_large ? "kWh" : "Wh");
  std::string result = text;
  if (IsLostEnergyKnown(cost) && cost.lost_energy / unit >= kShown) {
    std::snprintf(text, sizeof text, ", %.2f of it lost", cost.lost_energy / unit);
    result += text;
  }
  return result;
}

std::string CostText(const RunCost& cost) {
  std::string text = "wall time " + CostDuration(cost.wall);
  if (const std::optional<double> goodput = cost.Goodput()) {
    text += ", goodput " + Percent(*goodput);
  }
  text += ": start " + CostDuration(cost.plan + cost.launch);
  text += cost.source == ProgressSource::kNone ? ", running " + CostDuration(cost.unknown)
                                               : ", productive " + CostDuration(cost.productive);
  text += ", lost " + CostDuration(cost.Lost());
  const std::string causes = CausesText(cost);
  text += (causes.empty() ? "" : " (" + causes + ")") + ", end " + CostDuration(cost.end);
  const std::string energy = EnergyText(cost);
  if (!energy.empty()) text += ", energy " + energy;
  if (cost.source == ProgressSource::kNone) {
    text += "; productive time is not known: give --progress-file";
  } else if (cost.source == ProgressSource::kHeartbeat) {
    text += "; repeated time is not known: give --progress-file";
  }
  return text;
}

}  // namespace launcher
