// SPDX-License-Identifier: Apache-2.0
//
// Tries the choices of a knob against what the job has now, in turns, and decides.  Pure but for
// `measure`.

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launcher/tune/knobs.h"
#include "launcher/tune/measurements.h"

namespace launcher {

// How often each choice is measured.  The median of five is what one odd run does not move.
inline constexpr int kTrialRounds = 5;
// A choice that took this many times as long is not measured again.
inline constexpr double kHopeless = 3;

// Microseconds (ScoreOf) of one run with this change; nullopt when it failed.
using Measure = std::function<std::optional<double>(const Change&)>;

struct TriedChoice {
  std::string label;  // "as it is" for the first
  Change change;
  std::vector<double> microseconds = {};
  bool failed = false;
  bool hopeless = false;  // given up after its first round
};

struct KnobResult {
  std::string title;
  std::vector<TriedChoice> tried;  // the first is what the job has now
  std::size_t best = 0;            // index into tried: the first, unless another one is better
};

// Measures in kTrialRounds rounds, each of which begins with another choice, so that what changes
// meanwhile meets all alike.  Each choice is tried on top of `base`.
KnobResult TryKnob(const Knob& knob, const Change& base, const Measure& measure);

// "network: eth1, 1.20 ms (scatter 0.02 ms), instead of as it is, 8.3 ms (scatter 0.4 ms)" and
// what else was tried, in lines without their ends.
std::vector<std::string> ResultLines(const KnobResult& result);

}  // namespace launcher
