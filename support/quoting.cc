// SPDX-License-Identifier: Apache-2.0

#include "support/quoting.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
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

std::string DescribeSlip(std::string_view value) {
  if (value == "~" || value.starts_with("~/")) {
    return "needs a path in which no ~ is left, not '" + std::string(value) +
           "': a shell replaces it at the beginning of a word alone: write $HOME" +
           std::string(value.substr(1));
  }
  if (value.ends_with('\r')) {
    return "ends with a carriage return: the script has ends of lines of Windows: sed -i "
           "'s/\\r$//' SCRIPT";
  }
  for (const std::string_view quote : {"\u201c", "\u201d", "\u201e", "\u2018", "\u2019"}) {
    if (!value.starts_with(quote) && !value.ends_with(quote)) continue;
    return "has " + std::string(quote) + ", a quote of a text processor, in '" +
           std::string(value) + "': write \" or '";
  }
  return "";
}

std::string DescribeDash(std::string_view word) {
  for (const std::string_view dash : {"\u2010", "\u2011", "\u2013", "\u2014", "\u2212"}) {
    const bool is_second = word.starts_with("-") && word.substr(1).starts_with(dash);
    if (!word.starts_with(dash) && !is_second) continue;
    return "; its dash is one of a text processor, which only looks like that of the keyboard: "
           "write - or --";
  }
  return "";
}

std::string QuoteCommand(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    line += QuoteWord(word);
  }
  return line;
}

namespace {

struct Character {
  char32_t code = 0;
  std::size_t bytes = 1;
  bool is_valid = false;
};

// The first character of UTF-8 text.
Character FirstOf(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {lead, 1, false};
  char32_t code = lead & (0xffU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {lead, 1, false};
    code = code << 6 | (byte(i) & 0x3fU);
  }
  constexpr char32_t kMin[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < kMin[bytes] || code > 0x10ffff || is_surrogate) return {lead, 1, false};
  return {code, bytes, true};
}

bool IsControl(char32_t code) {
  return (code < 0x20 && code != '\t') || (code >= 0x7f && code < 0xa0) || code == 0x61c ||
         code == 0x200e || code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069) || code == 0xfeff;
}

}  // namespace

std::string WithoutControls(std::string_view text, bool keeps_lines) {
  std::size_t end = text.size();
  while (end > 0 && text[end - 1] == '\n') --end;
  std::string shown;
  for (std::size_t i = 0; i < end;) {
    const Character character = FirstOf(text.substr(i, end - i));
    const bool is_kept = character.is_valid &&
                         (!IsControl(character.code) || (keeps_lines && character.code == '\n'));
    if (is_kept) {
      shown += text.substr(i, character.bytes);
    } else {
      char code[12];
      std::snprintf(code, sizeof code, character.code < 0x100 ? "\\x%02x" : "\\u%04x",
                    static_cast<unsigned>(character.code));
      shown += code;
    }
    i += character.bytes;
  }
  return shown.append(text.substr(end));
}

}  // namespace support
