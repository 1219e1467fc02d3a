// SPDX-License-Identifier: Apache-2.0
//
// Text files that people and scripts write, line by line, and the numbers in them.  Pure.

#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "trainer/core/error.h"

namespace trainer {

inline constexpr std::string_view kBlanks = " \t\r";

// An Error(EX_DATAERR) "PATH:LINE: WHAT".
Error BadLine(const std::string& path, std::size_t line, const std::string& what);

// Without blanks at its ends.
std::string_view Trimmed(std::string_view text);
// Without the mark that some editors put before a text in UTF-8.
std::string_view WithoutByteOrderMark(std::string_view text);
// In quotes, for a message of one line: shortened, and control characters as '?'.
std::string Quoted(std::string_view text);

// A decimal number such as "0.25" or "1e-3", of which all is read; nothing if it is none, is
// infinite or is larger than a double.
std::optional<double> ParseDecimal(std::string_view text);

// Throws if the text is UTF-16, as Windows' programs save "Unicode".
void RequireNoUtf16(std::string_view text, const std::string& path);

// Calls take(line, number) for each line, trimmed, from 1 on, without the text's byte order mark.
// Throws if the text or a line is empty, or the text is UTF-16.
template <typename Take>
void ForEachLine(std::string_view text, const std::string& path, Take take) {
  RequireNoUtf16(text, path);
  text = WithoutByteOrderMark(text);
  if (text.empty()) throw BadLine(path, 1, "the file is empty");
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t length = std::min(text.find('\n'), text.size());
    const std::string_view line = Trimmed(text.substr(0, length));
    if (line.empty()) throw BadLine(path, number, "the line is empty");
    take(line, number);
    text.remove_prefix(std::min(length + 1, text.size()));
  }
}

}  // namespace trainer
