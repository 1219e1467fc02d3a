// SPDX-License-Identifier: Apache-2.0

#include "support/quoting.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace support {
namespace {

bool IsPlain(char c) {
  constexpr std::string_view kPlain = "_-+=./:,@%^";
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         kPlain.find(c) != std::string_view::npos;
}

std::string QuoteWord(const std::string& word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), IsPlain)) return word;
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

}  // namespace

std::string QuoteCommand(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    line += QuoteWord(word);
  }
  return line;
}

}  // namespace support
