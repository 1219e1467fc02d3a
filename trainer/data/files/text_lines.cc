// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/files/text_lines.h"

#include <cmath>

#include "support/number.h"

namespace trainer {

Error BadLine(const std::string& path, std::size_t line, const std::string& what) {
  return {EX_DATAERR, path + ":" + std::to_string(line) + ": " + what};
}

std::string_view Trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::string_view WithoutByteOrderMark(std::string_view text) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  return text.starts_with(kMark) ? text.substr(kMark.size()) : text;
}

void RequireNoUtf16(std::string_view text, const std::string& path) {
  const bool has_mark = text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff");
  if (!has_mark && text.find('\0') == std::string_view::npos) return;
  throw BadLine(path, 1, "the file is UTF-16 (or has bytes of value 0): save it as UTF-8");
}

std::string Quoted(std::string_view text) {
  constexpr std::size_t kShown = 40;
  std::string shown(text.substr(0, kShown));
  std::ranges::replace_if(
      shown, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, '?');
  return "\"" + shown + (text.size() > kShown ? "...\"" : "\"");
}

std::optional<double> ParseDecimal(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  const std::optional<double> value = support::WholeNumber<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

}  // namespace trainer
