// SPDX-License-Identifier: Apache-2.0
//
// Numbers: in texts that people or other programs have written (of the environment, of files, of
// options), of the elements of a list, of things in messages.  Pure, safe from any thread.
//
// The shim of a rank, which has no C++ library, reads numbers by strtol and looks where they end.

#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace support {

template <typename Element>
int Size(const std::vector<Element>& list) {
  return static_cast<int>(list.size());
}

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

// `noun` is one whose plural ends in s.
inline std::string Counted(long long count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace support
