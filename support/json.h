// SPDX-License-Identifier: Apache-2.0
//
// JSON that others have written: files, messages.  A text is looked at before a tree is made of it,
// since destroying and printing a deep tree recurses, and a wide one takes 75 times the memory of
// its text; a number is taken only where it is whole and within its range, for a double that does
// not fit is undefined behaviour.  Pure.

#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace support {

struct JsonLimits {
  std::size_t bytes = 0;
  std::size_t depth = 0;   // of lists and objects within each other
  std::size_t values = 0;  // about: commas, and one
};

// Which limit `text` is over; "" if none.  Whether it is JSON is not looked at.
inline std::string JsonOverLimit(std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.bytes) {
    return "longer than " + std::to_string(limits.bytes) + " bytes";
  }
  std::size_t depth = 0;
  std::size_t values = 1;
  bool is_in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    if (letter == '"') is_in_string = !is_in_string;
    if (letter == '\\') ++i;  // of a string; elsewhere it is no JSON
    if (is_in_string) continue;
    if (letter == '[' || letter == '{') ++depth;
    if ((letter == ']' || letter == '}') && depth > 0) --depth;
    if (letter == ',') ++values;
    if (depth > limits.depth) {
      return "nested deeper than " + std::to_string(limits.depth) + " levels";
    }
    if (values > limits.values) {
      return "of more than " + std::to_string(limits.values) + " values";
    }
  }
  return "";
}

// Discarded (is_discarded) where it is no JSON, or over a limit.
template <typename Json = nlohmann::json>
Json ParseJson(std::string_view text, const JsonLimits& limits) {
  if (!JsonOverLimit(text, limits).empty()) return Json(Json::value_t::discarded);
  return Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
}

// The number, if it is a whole one from `min` to `max`.
template <std::integral Int, typename Json>
std::optional<Int> IntegerOf(const Json& value, Int min, Int max) {
  const auto in_range = [&](auto number) {
    return std::cmp_greater_equal(number, min) && std::cmp_less_equal(number, max)
               ? std::optional(static_cast<Int>(number))
               : std::nullopt;
  };
  if (value.is_number_unsigned()) return in_range(value.template get<std::uint64_t>());
  if (value.is_number_integer()) return in_range(value.template get<std::int64_t>());
  return std::nullopt;
}

}  // namespace support
