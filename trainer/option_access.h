// SPDX-License-Identifier: Apache-2.0
//
// How a row of ddltraind's option table gets into a member of Options, by CLI11, and out of it
// again.  Included by option_table.cc and accepted_options.cc alone.

#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "trainer/options.h"

namespace trainer {

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

template <auto kMember>
CLI::Option* AddValue(CLI::App& app, const OptionRow& row, Options& options) {
  using T = std::remove_reference_t<decltype(options.*kMember)>;
  CLI::Option* option = app.add_option("--" + row.name, options.*kMember, row.help)
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

template <auto kMember>
CLI::Option* AddText(CLI::App& app, const OptionRow& row, Options& options) {
  return app.add_option("--" + row.name, options.*kMember, row.help)
      ->type_name(row.name.ends_with("_dir") ? "DIR" : "FILE");
}

template <auto kMember>
CLI::Option* AddPositive(CLI::App& app, const OptionRow& row, Options& options) {
  return AddValue<kMember>(app, row, options)->check(Number("a number above 0", [](double x) {
    return x > 0 && std::isfinite(x);
  }));
}

template <auto kMember>
CLI::Option* AddNotNegative(CLI::App& app, const OptionRow& row, Options& options) {
  return AddValue<kMember>(app, row, options)->check(Number("a number from 0", [](double x) {
    return x >= 0 && std::isfinite(x);
  }));
}

// Whole numbers from kMin to kMax.
template <auto kMember, int kMin, int kMax>
CLI::Option* AddBetween(CLI::App& app, const OptionRow& row, Options& options) {
  return AddValue<kMember>(app, row, options)
      ->check(Number("a number from " + std::to_string(kMin) + " to " + std::to_string(kMax),
                     [](double x) { return x >= kMin && x <= kMax; }));
}

// 0 to 1, both included.
template <auto kMember>
CLI::Option* AddFraction(CLI::App& app, const OptionRow& row, Options& options) {
  return AddValue<kMember>(app, row, options)->check(Number("a number from 0 to 1", [](double x) {
    return x >= 0 && x <= 1;
  }));
}

// On with --name, off with --noname.
template <auto kMember>
CLI::Option* AddSwitch(CLI::App& app, const OptionRow& row, Options& options) {
  return app.add_flag("--" + row.name + ",!--no" + row.name, options.*kMember, row.help);
}

template <auto kMember>
CLI::Option* AddFlag(CLI::App& app, const OptionRow& row, Options& options) {
  return app.add_flag("--" + row.name, options.*kMember, row.help);
}

template <auto kMember>
CLI::Option* OneOf(CLI::App& app, const OptionRow& row, Options& options,
                   std::vector<std::string> choices) {
  std::string shape;
  for (const std::string& choice : choices) shape += (shape.empty() ? "" : "|") + choice;
  const auto is_one = [choices = std::move(choices)](const std::string& text) {
    std::string list;
    for (const std::string& choice : choices) {
      if (text == choice) return std::string();
      list += (list.empty() ? "" : ", ") + choice;
    }
    return "needs one of " + list + ", not '" + text + "'";
  };
  return AddValue<kMember>(app, row, options)->type_name(shape)->check(CLI::Validator(is_one, ""));
}

// What SharedOptions says of a member.
inline std::string TextOf(const std::string& value) { return value; }
inline std::string TextOf(bool value) { return value ? "on" : ""; }
template <typename Number>
std::string TextOf(Number value) {
  char text[32];
  return {text, std::to_chars(std::begin(text), std::end(text), value).ptr};
}

template <auto kMember>
std::string Show(const Options& options) {
  return TextOf(options.*kMember);
}

template <auto kMember>
constexpr OptionAccess With(CLI::Option* (*add)(CLI::App&, const OptionRow&, Options&)) {
  return {add, Show<kMember>, std::is_same_v<decltype(Options().*kMember), bool&&>};
}
template <auto kMember>
constexpr OptionAccess kValue = With<kMember>(AddValue<kMember>);
template <auto kMember>
constexpr OptionAccess kText = With<kMember>(AddText<kMember>);
template <auto kMember>
constexpr OptionAccess kPositive = With<kMember>(AddPositive<kMember>);
template <auto kMember>
constexpr OptionAccess kNotNegative = With<kMember>(AddNotNegative<kMember>);
template <auto kMember>
constexpr OptionAccess kFraction = With<kMember>(AddFraction<kMember>);
template <auto kMember, int kMin, int kMax>
constexpr OptionAccess kBetween = With<kMember>(AddBetween<kMember, kMin, kMax>);
template <auto kMember>
constexpr OptionAccess kSwitch = With<kMember>(AddSwitch<kMember>);
template <auto kMember>
constexpr OptionAccess kFlag = With<kMember>(AddFlag<kMember>);

}  // namespace trainer
