// SPDX-License-Identifier: Apache-2.0

#include "bench/report/readers/python_json.h"

#include <array>
#include <string>

namespace bench {
namespace {

// Python's words for what is no finite number, outside of texts, become null.
std::string WithoutStrangeNumbers(std::string_view text) {
  constexpr std::array<std::string_view, 3> kWords = {"NaN", "-Infinity", "Infinity"};
  std::string clean;
  bool is_in_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    if (letter == '"') is_in_text = !is_in_text;
    if (is_in_text && letter == '\\' && i + 1 < text.size()) clean += text[i++];
    std::size_t length = 0;
    for (const std::string_view word : kWords) {
      if (!is_in_text && length == 0 && text.substr(i).starts_with(word)) length = word.size();
    }
    if (length == 0) {
      clean += text[i];
    } else {
      clean += "null";
      i += length - 1;
    }
  }
  return clean;
}

bool HasStrangeNumbers(std::string_view text) {
  return text.find("NaN") != std::string_view::npos ||
         text.find("Infinity") != std::string_view::npos;
}

}  // namespace

nlohmann::ordered_json ParsePythonJson(std::string_view text) {
  if (!HasStrangeNumbers(text)) return nlohmann::ordered_json::parse(text, nullptr, false);
  return nlohmann::ordered_json::parse(WithoutStrangeNumbers(text), nullptr, false);
}

}  // namespace bench
