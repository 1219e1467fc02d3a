// SPDX-License-Identifier: Apache-2.0

#include "support/option_values.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace support {
namespace {

// Free text, and flags.
constexpr std::array<std::string_view, 3> kMayBeEmpty = {"", "TEXT", "ARG"};
constexpr std::array<std::string_view, 3> kNumbers = {"N", "SECONDS", "SECONDS|auto|off"};

template <typename Names>
bool IsAmong(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string RefuseNoValue(const std::string& text) {
  if (!text.empty() && !text.starts_with("--")) return "";
  return text.empty()
             ? "has no value: is a variable of your script empty?"
             : "has no value but the option '" + text + "': is a variable of your script empty?";
}

// "-010" to "-10", "00" to "0"; what is no whole decimal number stays.
std::string RemoveZeros(std::string& text) {
  const std::size_t sign = text.starts_with('-') || text.starts_with('+') ? 1 : 0;
  const bool is_number =
      text.size() > sign && text.find_first_not_of("0123456789", sign) == std::string::npos;
  if (!is_number) return "";
  const std::size_t first = std::min(text.find_first_not_of('0', sign), text.size() - 1);
  text.erase(sign, first - sign);
  return "";
}

template <typename Number>
bool IsA(const std::string& text) {
  Number value{};
  return CLI::detail::lexical_cast(text, value);
}

// What CLI11 would call "Could not convert".
std::string RefuseFraction(const std::string& text) {
  if (IsA<std::int64_t>(text) || IsA<std::uint64_t>(text)) return "";
  return "needs a whole number, not '" + text + "'";
}

std::string RefuseNoNumber(const std::string& text) {
  return IsA<double>(text) ? "" : "needs a number, not '" + text + "'";
}

std::string RefuseNoTruth(const std::string& text) {
  return IsA<bool>(text) ? "" : "needs true or false, not '" + text + "'";
}

}  // namespace

void RefuseSlips(CLI::App& app) {
  for (CLI::Option* option : app.get_options([](CLI::Option*) { return true; })) {
    const std::string name = option->get_type_name();
    if (!IsAmong(kMayBeEmpty, name)) option->check(CLI::Validator(RefuseNoValue, ""));
    if (name == "N") option->check(CLI::Validator(RefuseFraction, ""));
    if (name == "X" || name == "SECONDS") option->check(CLI::Validator(RefuseNoNumber, ""));
    if (option->get_expected_max() == 0) option->check(CLI::Validator(RefuseNoTruth, ""));
    if (IsAmong(kNumbers, name)) option->transform(CLI::Validator(RemoveZeros, ""));
  }
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    RefuseSlips(*command);
  }
}

}  // namespace support
