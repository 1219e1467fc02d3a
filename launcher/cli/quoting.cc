// SPDX-License-Identifier: Apache-2.0

#include "launcher/cli/quoting.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "launcher/base/error.h"

namespace launcher {
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

std::vector<std::string> SplitWords(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = '\0';
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != '\0' && c == quote) {
      quote = '\0';
    } else if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      word += text[++i];
      in_word = true;
    } else if (quote == '\0' && (c == '\'' || c == '"')) {
      quote = c;
      in_word = true;
    } else if (quote == '\0' && std::isspace(static_cast<unsigned char>(c)) != 0) {
      if (in_word) words.push_back(word);
      word.clear();
      in_word = false;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (quote != '\0') {
    throw LaunchError(EX_USAGE, "'" + text + "' has a " + quote + " that is not closed");
  }
  if (in_word) words.push_back(word);
  return words;
}

}  // namespace launcher
