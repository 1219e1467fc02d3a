// SPDX-License-Identifier: Apache-2.0

#include "launcher/protocol/tokens.h"

#include <array>
#include <cctype>
#include <cstdio>
#include <stdexcept>

#include "support/number.h"

namespace launcher {
namespace {

constexpr std::string_view kPlain = "_./+,@";
constexpr char kNothing[] = "-";

}  // namespace

std::string EscapeToken(const std::string& text) {
  if (text.empty()) return kNothing;
  std::string word;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 128 && (std::isalnum(byte) != 0 || kPlain.find(c) != std::string_view::npos)) {
      word += c;
    } else {
      std::array<char, 4> escaped = {};
      std::snprintf(escaped.data(), escaped.size(), "%%%02X", byte);
      word += escaped.data();
    }
  }
  return word;
}

std::string UnescapeToken(std::string_view word) {
  if (word == kNothing) return "";
  std::string text;
  for (std::size_t i = 0; i < word.size(); ++i) {
    int byte = static_cast<unsigned char>(word[i]);
    if (word[i] == '%') {
      const std::string_view digits = word.substr(i + 1, 2);
      const auto number = support::WholeNumber<unsigned>(digits, 16);
      if (digits.size() != 2 || !number) throw std::out_of_range("a %");
      byte = static_cast<int>(*number);
      i += 2;
    }
    text += static_cast<char>(byte);
  }
  return text;
}

int DecodeNumber(std::string_view text) {
  const std::optional<int> number = support::WholeNumber<int>(text);
  if (!number || *number < -1) {
    throw std::out_of_range("'" + std::string(text.substr(0, 40)) + "' is not numeric");
  }
  return *number;
}

std::string TokenReader::Next() {
  std::string word;
  if (!std::getline(stream_, word, ' ')) throw std::out_of_range("it is too short");
  return word;
}

std::vector<std::string> TokenReader::Fields(std::size_t count) {
  std::vector<std::string> fields;
  std::istringstream word(Next());
  for (std::string field; std::getline(word, field, ':');) fields.push_back(field);
  if (fields.size() != count) throw std::out_of_range("another number of fields");
  return fields;
}

void TokenReader::ExpectEnd() {
  std::string word;
  if (std::getline(stream_, word, ' ')) throw std::out_of_range("it is too long");
}

}  // namespace launcher
