// SPDX-License-Identifier: Apache-2.0
//
// Numbers in texts that people or other programs have written: of the environment, of files, of
// options.  Pure, safe from any thread.
//
// The shim of a rank, which has no C++ library, reads numbers by strtol and looks where they end.

#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace support {

// The number that all of `text` is.  nullopt for anything else: "", blanks, a plus sign, something
// behind the number ("29500abc"), a number that `Number` cannot hold.  Of real numbers "inf" and
// "nan" are some.
template <typename Number>
std::optional<Number> WholeNumber(std::string_view text) {
  Number number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

// The same of a whole number of base 2 to 36, without a mark such as 0x.
template <typename Number>
std::optional<Number> WholeNumber(std::string_view text, int base) {
  Number number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, base);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

}  // namespace support
