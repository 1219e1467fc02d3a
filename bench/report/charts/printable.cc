// SPDX-License-Identifier: Apache-2.0

#include "bench/report/charts/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/run_log/log_lines.h"

namespace bench {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr std::string_view kEllipsis = "\xE2\x80\xA6";
constexpr std::size_t kLongest = 4;

bool Continues(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80; }

// Bytes of the letter at the front; 0 where there is none.
std::size_t LetterAtFront(std::string_view text) {
  for (std::size_t length = 1; length <= std::min(kLongest, text.size()); ++length) {
    if (IsUtf8(text.substr(0, length))) return length;
  }
  return 0;
}

// C0 and C1, and the marks that turn the direction of what follows.
bool IsControl(std::string_view letter) {
  const auto byte = static_cast<unsigned char>(letter[0]);
  if (letter.size() == 1) return byte < 0x20 || byte == 0x7F;
  if (byte == 0xC2) return static_cast<unsigned char>(letter[1]) < 0xA0;
  return (letter >= "\xE2\x80\xAA" && letter <= "\xE2\x80\xAE") ||
         (letter >= "\xE2\x81\xA6" && letter <= "\xE2\x81\xA9");
}

}  // namespace

std::string Printable(std::string_view text) {
  std::string printable;
  while (!text.empty()) {
    const std::size_t length = LetterAtFront(text);
    const std::string_view letter = text.substr(0, std::max<std::size_t>(1, length));
    if (length == 0) {
      printable += kReplacement;
    } else {
      printable += IsControl(letter) ? " " : letter;
    }
    text.remove_prefix(letter.size());
  }
  return printable;
}

std::size_t CountChars(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return !Continues(byte); }));
}

std::string Shortened(std::string_view text, std::size_t max) {
  const std::size_t letters = CountChars(text);
  if (letters <= max) return std::string(text);
  const std::size_t front = (max - 1) / 2;
  const std::size_t back = max - 1 - front;
  std::string shortened;
  std::size_t index = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i > 0 && !Continues(text[i])) ++index;
    if (index == front && !Continues(text[i])) shortened += kEllipsis;
    if (index < front || index >= letters - back) shortened += text[i];
  }
  return shortened;
}

std::string FourDigits(double value) {
  if (!std::isfinite(value)) return "-";
  if (value == 0) return "0";
  const double magnitude = std::floor(std::log10(std::fabs(value)));
  const int digits = static_cast<int>(std::clamp(3 - magnitude, 0.0, 9.0));
  return fmt::format("{:.{}f}", value, digits);
}

}  // namespace bench
