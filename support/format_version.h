// SPDX-License-Identifier: Apache-2.0
//
// Versions of what a program of another version may have written.  Each format has a number that is
// raised when a program that knows the number before would read it wrongly (doc/formats.md has them
// all).  Pure, safe from any thread.

#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace support {

// The number behind `beginning`, with which `text` begins: 2 of "ddldata manifest 2\n..." for
// "ddldata manifest ".  nullopt for any other text.
inline std::optional<int> FormatVersion(std::string_view text, std::string_view beginning) {
  if (!text.starts_with(beginning)) return std::nullopt;
  text.remove_prefix(beginning.size());
  int version = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  if (error != std::errc() || version < 0) return std::nullopt;
  return version;
}

// Of a format whose number is above that which this program reads: "a data manifest of format 2,
// and this program reads format 1: use the version of ddlrun that has written it, or a newer one".
inline std::string DescribeNewerFormat(const std::string& what, int found, int known) {
  return what + " of format " + std::to_string(found) + ", and this program reads format " +
         std::to_string(known) + ": use the version of ddlrun that has written it, or a newer one";
}

}  // namespace support
