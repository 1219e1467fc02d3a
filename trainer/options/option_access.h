// SPDX-License-Identifier: Apache-2.0
//
// How a row of ddltraind's option table gets into a member of Options and out of it again.  A
// member is named by the path to it: <&Options::seed>, or <&Options::schedule,
// &ScheduleConfig::num_iter>. Included only where rows are: by option_table.cc, and by log formats.

#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/command_line.h"
#include "trainer/core/span_recorder.h"
#include "trainer/options/option_names.h"
#include "trainer/options/options.h"

namespace trainer {

inline constexpr bool kNvidia = true;
inline constexpr bool kOurs = false;
inline constexpr RankRule kSame = RankRule::kSame;
inline constexpr RankRule kMustMatch = RankRule::kMustMatch;
inline constexpr RankRule kOwn = RankRule::kOwn;
inline constexpr RankRule kOtherName = RankRule::kOtherName;

template <auto... kPath>
auto& Member(Options& options) {
  return (options.*....*kPath);
}
template <auto... kPath>
const auto& Member(const Options& options) {
  return (options.*....*kPath);
}
template <auto... kPath>
using TypeOf = std::remove_cvref_t<decltype(Member<kPath...>(std::declval<Options&>()))>;

// The shape of a value in --help; the default stands behind it, and limits are told by the refusal.
template <typename T>
constexpr const char* kValueName = std::is_integral_v<T>         ? "N"
                                   : std::is_floating_point_v<T> ? "X"
                                                                 : "WORD";

// Refuses a number that is too large for T, for which CLI11 takes the largest that fits.
template <typename T>
std::string RejectTooLarge(const std::string& text) {
  T value{};
  const char* begin = text.data() + (text.starts_with('+') ? 1 : 0);
  const bool fits =
      std::from_chars(begin, text.data() + text.size(), value).ec != std::errc::result_out_of_range;
  return fits ? ""
              : "needs a number of at most " + std::to_string(std::numeric_limits<T>::max()) +
                    ", not '" + text + "'";
}

using support::Checked;
using support::Needs;
using support::NeedsNumber;
using support::WithDefault;

inline support::Option Shaped(support::Option option, std::string shape) {
  option.shape = std::move(shape);
  return option;
}

template <auto... kPath>
support::Option Value(const OptionRow& row, Options& options) {
  using T = TypeOf<kPath...>;
  support::Option option = {"--" + row.name, &Member<kPath...>(options), kValueName<T>, row.help};
  if constexpr (std::is_integral_v<T>) option.checks.push_back(RejectTooLarge<T>);
  return option;
}

template <auto... kPath>
support::Option Text(const OptionRow& row, Options& options) {
  auto& member = Member<kPath...>(options);
  const auto take = [&member](const std::string& text) { member = text; };
  return {"--" + row.name, take, row.help.starts_with("directory ") ? "DIR" : "FILE", row.help};
}

// Several, behind one or more of the option.
template <auto... kPath>
support::Option Paths(const OptionRow& row, Options& options) {
  auto& member = Member<kPath...>(options);
  const auto take = [&member](const std::vector<std::string>& texts) {
    member.assign(texts.begin(), texts.end());
  };
  return {"--" + row.name, take, "FILE|DIR", row.help};
}

template <auto... kPath>
support::Option Positive(const OptionRow& row, Options& options) {
  const auto fits = [](double x) { return x > 0 && std::isfinite(x); };
  return Checked(Value<kPath...>(row, options), NeedsNumber("a number above 0", fits));
}

template <auto... kPath>
support::Option NotNegative(const OptionRow& row, Options& options) {
  const auto fits = [](double x) { return x >= 0 && std::isfinite(x); };
  return Checked(Value<kPath...>(row, options), NeedsNumber("a number from 0", fits));
}

// Numbers from kMin to kMax, both included.
template <int kMin, int kMax, auto... kPath>
support::Option Between(const OptionRow& row, Options& options) {
  const auto fits = [](double x) { return x >= kMin && x <= kMax; };
  return Checked(
      Value<kPath...>(row, options),
      NeedsNumber("a number from " + std::to_string(kMin) + " to " + std::to_string(kMax), fits));
}

// The same; 0 where it is not given.
template <int kMin, int kMax, auto... kPath>
support::Option BetweenIfGiven(const OptionRow& row, Options& options) {
  return WithDefault(Between<kMin, kMax, kPath...>(row, options), "");
}

// 0 to 1, both excluded: of a moving average.
template <auto... kPath>
support::Option Decay(const OptionRow& row, Options& options) {
  const auto fits = [](double x) { return x > 0 && x < 1; };
  return Checked(WithDefault(Shaped(Value<kPath...>(row, options), "DECAY"), ""),
                 NeedsNumber("a number above 0 and below 1 such as 0.9999", fits));
}

// Who means a fraction of 1 is not to get less than 1 percent.
template <auto... kPath>
support::Option PercentOrNever(const OptionRow& row, Options& options) {
  const auto fits = [](double x) { return x == 0 || (x >= 1 && x <= 100); };
  return Checked(Shaped(Value<kPath...>(row, options), "PERCENT"),
                 NeedsNumber("percent, 1 to 100 such as 75.9, or 0 for never", fits));
}

// On with --name, off with --noname.
template <auto... kPath>
support::Option Switch(const OptionRow& row, Options& options) {
  return {"--" + row.name + ",!--no" + row.name, &Member<kPath...>(options), "", row.help};
}

template <auto... kPath>
support::Option Flag(const OptionRow& row, Options& options) {
  return {"--" + row.name, &Member<kPath...>(options), "", row.help};
}

// "a|b|c" and "a, b, c".
inline std::string Joined(const std::vector<std::string>& words, const std::string& separator) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

// `option`, which refuses all words but the `choices`.
inline support::Option Choice(support::Option option, const std::vector<std::string>& choices) {
  const auto is_one = [choices](const std::string& text) {
    return std::find(choices.begin(), choices.end(), text) != choices.end();
  };
  return Checked(Shaped(std::move(option), Joined(choices, "|")),
                 Needs("one of " + Joined(choices, ", "), is_one));
}

// A text that is one of some words.
template <const auto& kWords, auto... kPath>
support::Option OneOf(const OptionRow& row, Options& options) {
  return Choice(Value<kPath...>(row, options), {std::begin(kWords), std::end(kWords)});
}

// A member whose values have the names of a table in option_names.h.
template <const auto& kNames, auto... kPath>
support::Option FromNames(const OptionRow& row, Options& options) {
  auto& member = Member<kPath...>(options);
  std::vector<std::string> choices;
  for (const auto& named : kNames) choices.emplace_back(named.name);
  const auto take = [&member](const std::string& text) {
    for (const auto& named : kNames) {
      if (text == named.name) member = named.value;
    }
  };
  return Choice(WithDefault({"--" + row.name, take, "", row.help}, NameOf(kNames, member)),
                choices);
}
template <const auto& kNames, auto... kPath>
std::string ShowNamed(const Options& options) {
  return NameOf(kNames, Member<kPath...>(options));
}

// Some steps; none where it is not given.
template <auto... kPath>
support::Option Steps(const OptionRow& row, Options& options) {
  auto& member = Member<kPath...>(options);
  const auto take = [&member](const std::string& text) { member = ParseStepWindow(text).value(); };
  const auto is_window = [](const std::string& text) { return ParseStepWindow(text).has_value(); };
  return Checked({"--" + row.name, take, "STEP:COUNT", row.help},
                 Needs("STEP:COUNT, both from 1, COUNT up to " + std::to_string(kMaxWindowSteps) +
                           ", such as 200:20",
                       is_window));
}

// What SharedOptions says of a member.
inline std::string TextOf(const std::string& value) { return value; }
inline std::string TextOf(const std::filesystem::path& value) { return value.string(); }
inline std::string TextOf(const std::vector<std::filesystem::path>& values) {
  std::string text;
  for (const std::filesystem::path& value : values)
    text += (text.empty() ? "" : " ") + value.string();
  return text;
}
inline std::string TextOf(const StepWindow& steps) {
  return steps.count == 0 ? "" : std::to_string(steps.first) + ":" + std::to_string(steps.count);
}
inline std::string TextOf(bool value) { return value ? "on" : ""; }
template <typename Number>
std::string TextOf(Number value) {
  char text[32];
  return {text, std::to_chars(std::begin(text), std::end(text), value).ptr};
}

template <auto... kPath>
std::string Show(const Options& options) {
  return TextOf(Member<kPath...>(options));
}

template <auto... kPath>
std::string ShowIfGiven(const Options& options) {
  return Member<kPath...>(options) == 0 ? "" : Show<kPath...>(options);
}

template <auto... kPath>
constexpr OptionAccess With(support::Option (*describe)(const OptionRow&, Options&)) {
  return {describe, Show<kPath...>, std::is_same_v<TypeOf<kPath...>, bool>};
}
template <const auto& kNames, auto... kPath>
constexpr OptionAccess kNamed = {FromNames<kNames, kPath...>, ShowNamed<kNames, kPath...>, false};
template <const auto& kWords, auto... kPath>
constexpr OptionAccess kOneOf = With<kPath...>(OneOf<kWords, kPath...>);
template <auto... kPath>
constexpr OptionAccess kPaths = With<kPath...>(Paths<kPath...>);
template <auto... kPath>
constexpr OptionAccess kSteps = With<kPath...>(Steps<kPath...>);
template <auto... kPath>
constexpr OptionAccess kValue = With<kPath...>(Value<kPath...>);
template <auto... kPath>
constexpr OptionAccess kText = With<kPath...>(Text<kPath...>);
template <auto... kPath>
constexpr OptionAccess kPositive = With<kPath...>(Positive<kPath...>);
template <auto... kPath>
constexpr OptionAccess kNotNegative = With<kPath...>(NotNegative<kPath...>);
template <auto... kPath>
constexpr OptionAccess kFraction = With<kPath...>(Between<0, 1, kPath...>);
template <auto... kPath>
constexpr OptionAccess kDecay = With<kPath...>(Decay<kPath...>);
template <auto... kPath>
constexpr OptionAccess kPercentOrNever = With<kPath...>(PercentOrNever<kPath...>);
template <int kMin, int kMax, auto... kPath>
constexpr OptionAccess kBetween = With<kPath...>(Between<kMin, kMax, kPath...>);
template <int kMin, int kMax, auto... kPath>
constexpr OptionAccess kBetweenIfGiven = {BetweenIfGiven<kMin, kMax, kPath...>,
                                          ShowIfGiven<kPath...>, false};
template <auto... kPath>
constexpr OptionAccess kSwitch = {Switch<kPath...>, Show<kPath...>, true, /*is_switch=*/true};
template <auto... kPath>
constexpr OptionAccess kFlag = With<kPath...>(Flag<kPath...>);

}  // namespace trainer
