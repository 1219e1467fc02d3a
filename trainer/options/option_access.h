// SPDX-License-Identifier: Apache-2.0
//
// How a row of ddltraind's option table gets into a member of Options, by CLI11, and out of it
// again.  A member is named by the path to it: <&Options::seed>, or
// <&Options::schedule, &ScheduleConfig::num_iter>.  Included by option_table.cc and
// accepted_options.cc alone.

#pragma once

#include <CLI/CLI.hpp>
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

#include "trainer/core/step_window.h"
#include "trainer/options/option_names.h"
#include "trainer/options/options.h"

namespace trainer {

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
std::string RefuseTooLarge(const std::string& text) {
  T value{};
  const char* begin = text.data() + (text.starts_with('+') ? 1 : 0);
  const bool fits =
      std::from_chars(begin, text.data() + text.size(), value).ec != std::errc::result_out_of_range;
  return fits ? ""
              : "needs a number of at most " + std::to_string(std::numeric_limits<T>::max()) +
                    ", not '" + text + "'";
}

template <auto... kPath>
CLI::Option* AddValue(CLI::App& app, const OptionRow& row, Options& options) {
  using T = TypeOf<kPath...>;
  CLI::Option* option = app.add_option("--" + row.name, Member<kPath...>(options), row.help)
                            ->capture_default_str()
                            ->type_name(kValueName<T>);
  if constexpr (std::is_integral_v<T>) option->check(CLI::Validator(RefuseTooLarge<T>, ""));
  return option;
}

// Refuses values for which `holds` is false, saying what is `expected`.
inline CLI::Validator Number(const std::string& expected, bool (*holds)(double)) {
  return CLI::Validator(
      [=](const std::string& text) {
        double value = 0;
        const bool fits = CLI::detail::lexical_cast(text, value) && holds(value);
        return fits ? std::string() : "needs " + expected + ", not '" + text + "'";
      },
      "");
}

template <auto... kPath>
CLI::Option* AddText(CLI::App& app, const OptionRow& row, Options& options) {
  auto& member = Member<kPath...>(options);
  const auto take = [&member](const std::string& text) { member = text; };
  return app.add_option_function<std::string>("--" + row.name, take, row.help)
      ->type_name(row.help.starts_with("folder ") ? "DIR" : "FILE");
}

// Several, behind one or more of the option.
template <auto... kPath>
CLI::Option* AddPaths(CLI::App& app, const OptionRow& row, Options& options) {
  auto& member = Member<kPath...>(options);
  const auto take = [&member](const std::vector<std::string>& texts) {
    member.assign(texts.begin(), texts.end());
  };
  return app.add_option_function<std::vector<std::string>>("--" + row.name, take, row.help)
      ->type_name("FILE|DIR");
}

template <auto... kPath>
CLI::Option* AddPositive(CLI::App& app, const OptionRow& row, Options& options) {
  return AddValue<kPath...>(app, row, options)->check(Number("a number above 0", [](double x) {
    return x > 0 && std::isfinite(x);
  }));
}

template <auto... kPath>
CLI::Option* AddNotNegative(CLI::App& app, const OptionRow& row, Options& options) {
  return AddValue<kPath...>(app, row, options)->check(Number("a number from 0", [](double x) {
    return x >= 0 && std::isfinite(x);
  }));
}

// Whole numbers from kMin to kMax.
template <int kMin, int kMax, auto... kPath>
CLI::Option* AddBetween(CLI::App& app, const OptionRow& row, Options& options) {
  return AddValue<kPath...>(app, row, options)
      ->check(Number("a number from " + std::to_string(kMin) + " to " + std::to_string(kMax),
                     [](double x) { return x >= kMin && x <= kMax; }));
}

// 0 to 1, both included.
template <auto... kPath>
CLI::Option* AddFraction(CLI::App& app, const OptionRow& row, Options& options) {
  return AddValue<kPath...>(app, row, options)->check(Number("a number from 0 to 1", [](double x) {
    return x >= 0 && x <= 1;
  }));
}

// 0 to 1, both excluded: of a moving average.
template <auto... kPath>
CLI::Option* AddDecay(CLI::App& app, const OptionRow& row, Options& options) {
  return AddValue<kPath...>(app, row, options)
      ->type_name("DECAY")
      ->default_str("")
      ->check(Number("a number above 0 and below 1 such as 0.9999",
                     [](double x) { return x > 0 && x < 1; }));
}

// Who means a fraction of 1 is not to get less than 1 percent.
template <auto... kPath>
CLI::Option* AddPercentOrNever(CLI::App& app, const OptionRow& row, Options& options) {
  return AddValue<kPath...>(app, row, options)
      ->type_name("PERCENT")
      ->check(Number("percent, 1 to 100 such as 75.9, or 0 for never",
                     [](double x) { return x == 0 || (x >= 1 && x <= 100); }));
}

// On with --name, off with --noname.
template <auto... kPath>
CLI::Option* AddSwitch(CLI::App& app, const OptionRow& row, Options& options) {
  return app.add_flag("--" + row.name + ",!--no" + row.name, Member<kPath...>(options), row.help);
}

template <auto... kPath>
CLI::Option* AddFlag(CLI::App& app, const OptionRow& row, Options& options) {
  return app.add_flag("--" + row.name, Member<kPath...>(options), row.help);
}

// "a|b|c" and "a, b, c".
inline std::string Joined(const std::vector<std::string>& words, const std::string& separator) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

// Makes `option` refuse all words but the `choices`.
inline CLI::Option* OneOf(CLI::Option* option, const std::vector<std::string>& choices) {
  const auto refuse = [choices](const std::string& text) {
    const bool is_one = std::find(choices.begin(), choices.end(), text) != choices.end();
    return is_one ? std::string()
                  : "needs one of " + Joined(choices, ", ") + ", not '" + text + "'";
  };
  return option->type_name(Joined(choices, "|"))->check(CLI::Validator(refuse, ""));
}
template <auto... kPath>
CLI::Option* OneOf(CLI::App& app, const OptionRow& row, Options& options,
                   const std::vector<std::string>& choices) {
  return OneOf(AddValue<kPath...>(app, row, options), choices);
}

// A member whose values have the names of a table in option_names.h.
template <const auto& kNames, auto... kPath>
CLI::Option* AddNamed(CLI::App& app, const OptionRow& row, Options& options) {
  auto& member = Member<kPath...>(options);
  std::vector<std::string> choices;
  for (const auto& named : kNames) choices.emplace_back(named.name);
  const auto take = [&member](const std::string& text) {
    for (const auto& named : kNames) {
      if (text == named.name) member = named.value;
    }
  };
  return OneOf(app.add_option_function<std::string>("--" + row.name, take, row.help)
                   ->default_str(NameOf(kNames, member)),
               choices);
}
template <const auto& kNames, auto... kPath>
std::string ShowNamed(const Options& options) {
  return NameOf(kNames, Member<kPath...>(options));
}

// Some steps; none where it is not given.
template <auto... kPath>
CLI::Option* AddSteps(CLI::App& app, const OptionRow& row, Options& options) {
  auto& member = Member<kPath...>(options);
  const auto take = [&member](const std::string& text) { member = ParseStepWindow(text).value(); };
  const auto refuse = [](const std::string& text) {
    return ParseStepWindow(text)
               ? std::string()
               : "needs STEP:COUNT, both from 1, COUNT up to " + std::to_string(kMaxWindowSteps) +
                     ", such as 200:20, not '" + text + "'";
  };
  return app.add_option_function<std::string>("--" + row.name, take, row.help)
      ->type_name("STEP:COUNT")
      ->check(CLI::Validator(refuse, ""));
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
constexpr OptionAccess With(CLI::Option* (*add)(CLI::App&, const OptionRow&, Options&)) {
  return {add, Show<kPath...>, std::is_same_v<TypeOf<kPath...>, bool>};
}
template <const auto& kNames, auto... kPath>
constexpr OptionAccess kNamed = {AddNamed<kNames, kPath...>, ShowNamed<kNames, kPath...>, false};
template <auto... kPath>
constexpr OptionAccess kPaths = With<kPath...>(AddPaths<kPath...>);
template <auto... kPath>
constexpr OptionAccess kSteps = With<kPath...>(AddSteps<kPath...>);
template <auto... kPath>
constexpr OptionAccess kValue = With<kPath...>(AddValue<kPath...>);
template <auto... kPath>
constexpr OptionAccess kText = With<kPath...>(AddText<kPath...>);
template <auto... kPath>
constexpr OptionAccess kPositive = With<kPath...>(AddPositive<kPath...>);
template <auto... kPath>
constexpr OptionAccess kNotNegative = With<kPath...>(AddNotNegative<kPath...>);
template <auto... kPath>
constexpr OptionAccess kFraction = With<kPath...>(AddFraction<kPath...>);
template <auto... kPath>
constexpr OptionAccess kDecay = With<kPath...>(AddDecay<kPath...>);
template <auto... kPath>
constexpr OptionAccess kPercentOrNever = With<kPath...>(AddPercentOrNever<kPath...>);
template <int kMin, int kMax, auto... kPath>
constexpr OptionAccess kBetween = With<kPath...>(AddBetween<kMin, kMax, kPath...>);
template <auto... kPath>
constexpr OptionAccess kSwitch = With<kPath...>(AddSwitch<kPath...>);
template <auto... kPath>
constexpr OptionAccess kFlag = With<kPath...>(AddFlag<kPath...>);

}  // namespace trainer
