// SPDX-License-Identifier: Apache-2.0

#include "support/quoting.h"

#include <algorithm>
#include <cctype>
#include <functional>
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

constexpr std::size_t kMaxWordCharacters = 1000;
constexpr std::size_t kMaxCommandBytes = 16384;

// Where the character that begins at `start` ends.
std::size_t EndOfCharacter(std::string_view text, std::size_t start) {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(start);
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  std::size_t end = start + 1;
  while (end < text.size() && end < start + length && (byte(end) & 0xc0) == 0x80) ++end;
  return end;
}

}  // namespace

std::string Shortened(std::string_view text, std::size_t max) {
  if (text.size() <= max) return std::string(text);
  std::size_t shown = 0;  // bytes
  std::size_t characters = 0;
  for (std::size_t end = 0; end < text.size(); end = EndOfCharacter(text, end)) {
    if (characters == max) shown = end;
    ++characters;
  }
  if (characters <= max) return std::string(text);
  return std::string(text.substr(0, shown)) + "... (" + std::to_string(characters) + " characters)";
}

std::string WithShortArguments(std::string message, const std::vector<std::string>& arguments) {
  // Those that are short stay, and few are long.
  std::vector<std::string_view> values;
  const auto add = [&](std::string_view value) {
    const bool may_be_there = value.size() > kMaxShownCharacters && value.size() <= message.size();
    if (may_be_there) values.push_back(value);
  };
  for (const std::string& argument : arguments) {
    add(argument);
    if (argument.size() <= kMaxShownCharacters) continue;
    for (const char separator : {'=', ','}) {
      for (std::size_t start = 0; start <= argument.size();) {
        const std::size_t end = std::min(argument.find(separator, start), argument.size());
        add(std::string_view(argument).substr(start, end - start));
        // Of NAME=value all that follows is the value.
        if (separator == '=' && end < argument.size()) {
          add(std::string_view(argument).substr(end + 1));
          break;
        }
        start = end + 1;
      }
    }
  }
  // A part of another comes after it.
  std::ranges::stable_sort(values, std::ranges::greater(), &std::string_view::size);
  for (const std::string_view value : values) {
    const std::string instead = Shortened(value);
    for (std::size_t at = 0; (at = message.find(value, at)) != std::string::npos;
         at += instead.size()) {
      message.replace(at, value.size(), instead);
    }
  }
  return message;
}

std::string ShortCommand(const std::vector<std::string>& words) {
  std::string line;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string word = QuoteWord(Shortened(words[i], kMaxWordCharacters));
    if (line.size() + 1 + word.size() > kMaxCommandBytes) {
      return line + " ... (" + std::to_string(words.size() - i) + " more words)";
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return line;
}

std::string QuoteCommand(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    line += QuoteWord(word);
  }
  return line;
}

}  // namespace support
