// SPDX-License-Identifier: Apache-2.0

#include "launcher/cli/quoting.h"

#include "launcher/base/error.h"

namespace launcher {

std::vector<std::string> SplitOnWhitespace(const std::string& text) {
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

std::vector<std::string> SplitAll(const std::vector<std::string>& texts) {
  std::vector<std::string> words;
  for (const std::string& text : texts) {
    const std::vector<std::string> split = SplitOnWhitespace(text);
    words.insert(words.end(), split.begin(), split.end());
  }
  return words;
}

}  // namespace launcher
