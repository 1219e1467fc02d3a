// SPDX-License-Identifier: Apache-2.0

#include "ddldata/source_names.h"

#include <algorithm>
#include <cstddef>

#include "trainer/data/images/image_files.h"

namespace trainer {
namespace {

constexpr std::size_t kSynsetLength = 9;  // n01440764

bool IsSynset(std::string_view text) {
  return text.size() == kSynsetLength && text.front() == 'n' &&
         text.find_first_not_of("0123456789", 1) == std::string_view::npos;
}

// With '#' for each number.
std::string ShapeOf(std::string_view name) {
  std::string shape;
  for (const char c : name) {
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit) shape += c;
    if (is_digit && !shape.ends_with('#')) shape += '#';
  }
  return shape;
}

}  // namespace

std::string SynsetInName(std::string_view path) {
  const std::string_view name = WithoutImageEnding(BaseName(path));
  const std::string_view first = name.substr(0, name.find('_'));
  const std::string_view last = name.substr(name.rfind('_') + 1);
  if (first.size() == name.size()) return "";
  if (IsSynset(first) && IsSynset(last) && first != last) return "";
  return std::string(IsSynset(first) ? first : IsSynset(last) ? last : std::string_view());
}

bool AreNamesOfParts(const std::set<std::string>& names) {
  if (names.size() < 2) return false;
  const std::string shape = ShapeOf(*names.begin());
  const auto has_shape = [&](const std::string& name) { return ShapeOf(name) == shape; };
  if (shape.find('#') == std::string::npos || !std::ranges::all_of(names, has_shape)) return false;
  if (shape == "n#") return false;  // as synsets
  // Plain numbers are classes, unless they are written as parts are: 00000, 00001.
  constexpr std::size_t kDigitsOfParts = 3;
  if (shape == "#") {
    return names.begin()->size() >= kDigitsOfParts && names.begin()->starts_with('0');
  }
  std::string folded = shape;
  std::ranges::transform(folded, folded.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return folded.find("class") == std::string::npos && folded.find("label") == std::string::npos;
}

std::string RootOfClasses(const std::set<std::string>& directories) {
  if (directories.empty()) return "";
  // Of all: what the first and the last in order have in common.
  const std::string& first = *directories.begin();
  const std::string& last = *directories.rbegin();
  const auto [end, ignored] = std::mismatch(first.begin(), first.end(), last.begin(), last.end());
  const std::string common(first.begin(), end);
  std::string root = common.substr(0, common.rfind('/') + 1);
  // Images right in it: it is their class where there are no directories in it.
  if (directories.size() == 1) root = root.substr(0, root.rfind('/', root.size() - 2) + 1);
  return root;
}

}  // namespace trainer
