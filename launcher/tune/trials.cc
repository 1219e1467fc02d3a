// SPDX-License-Identifier: Apache-2.0

#include "launcher/tune/trials.h"

namespace launcher {
namespace {

std::string FiguresText(const TriedChoice& choice) {
  if (choice.failed) return "failed";
  const std::string text = SummaryText(Summarize(choice.microseconds));
  return choice.hopeless ? text + ", not tried again" : text;
}

}  // namespace

KnobResult TryKnob(const Knob& knob, const Change& base, const Measure& measure) {
  KnobResult result;
  result.title = knob.title;
  result.tried.push_back({.label = "as it is", .change = base});
  for (const Choice& choice : knob.choices) {
    result.tried.push_back({.label = choice.label, .change = Together(base, choice.change)});
  }
  const std::size_t count = result.tried.size();
  for (std::size_t round = 0; round < kTrialRounds; ++round) {
    for (std::size_t turn = 0; turn < count; ++turn) {
      TriedChoice& choice = result.tried[(round + turn) % count];
      if (choice.failed || choice.hopeless) continue;
      const std::optional<double> time = measure(choice.change);
      if (time) {
        choice.microseconds.push_back(*time);
      } else {
        choice.failed = true;
      }
    }
    const TriedChoice& now = result.tried.front();
    for (std::size_t other = 1; round == 0 && !now.failed && other < count; ++other) {
      TriedChoice& choice = result.tried[other];
      choice.hopeless =
          !choice.failed && choice.microseconds.front() > kHopeless * now.microseconds.front();
    }
  }
  const TriedChoice& now = result.tried.front();
  double min = 0;
  for (std::size_t other = 1; other < count; ++other) {
    const TriedChoice& choice = result.tried[other];
    if (choice.failed || choice.hopeless) continue;
    const Summary figures = Summarize(choice.microseconds);
    if (!now.failed && !IsBetter(figures, Summarize(now.microseconds))) continue;
    if (result.best != 0 && figures.median >= min) continue;
    result.best = other;
    min = figures.median;
  }
  return result;
}

std::vector<std::string> ResultLines(const KnobResult& result) {
  const TriedChoice& best = result.tried[result.best];
  std::vector<std::string> lines;
  lines.push_back(result.title + ": " +
                  (result.best == 0
                       ? "kept as it is, nothing else is better by more than its scatter"
                       : best.label + " is better"));
  for (const TriedChoice& choice : result.tried) {
    lines.push_back("  " + choice.label + ": " + FiguresText(choice));
  }
  return lines;
}

}  // namespace launcher
