// SPDX-License-Identifier: Apache-2.0

#include "trainer/core/data_identity.h"

#include <algorithm>
#include <cstddef>

namespace trainer {
namespace {

// Bytes that follow the first one of a character; -1 where none begins with it.
int BytesBehind(unsigned char first) {
  if (first < 0x80) return 0;
  if (first >= 0xc2 && first < 0xe0) return 1;
  if (first >= 0xe0 && first < 0xf0) return 2;
  if (first >= 0xf0 && first < 0xf5) return 3;
  return -1;
}

// Without overlong forms, surrogates and numbers beyond the last character, as JSON's writers and
// Python demand.
bool IsUtf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto first = static_cast<unsigned char>(text[i]);
    const int behind = BytesBehind(first);
    if (behind < 0) return false;
    for (int j = 1; j <= behind; ++j) {
      if (++i == text.size()) return false;
      const auto byte = static_cast<unsigned char>(text[i]);
      unsigned char low = 0x80;
      unsigned char high = 0xbf;
      if (j == 1 && first == 0xe0) low = 0xa0;
      if (j == 1 && first == 0xed) high = 0x9f;
      if (j == 1 && first == 0xf0) low = 0x90;
      if (j == 1 && first == 0xf4) high = 0x8f;
      if (byte < low || byte > high) return false;
    }
  }
  return true;
}

constexpr std::string_view kListing = ", listing ";

std::string CountsOf(const SplitIdentity& split) {
  std::string counts = split.files.substr(0, split.files.find(kListing));
  if (counts.ends_with(" in 1 files")) counts.pop_back();
  return counts;
}

std::string_view ListingOf(const SplitIdentity& split) {
  const std::string_view files = split.files;
  const std::size_t at = files.find(kListing);
  return at == std::string_view::npos ? std::string_view() : files.substr(at + kListing.size());
}

}  // namespace

std::string NameAsText(std::string_view name) {
  const bool is_utf8 = IsUtf8(name);
  std::string text;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_control = byte < 0x20 || byte == 0x7f;
    if (c == '\\') {
      text += "\\\\";
    } else if (is_control || (byte >= 0x80 && !is_utf8)) {
      constexpr std::string_view kDigits = "0123456789abcdef";
      text += {'\\', 'x', kDigits[byte >> 4U], kDigits[byte & 15U]};
    } else {
      text += c;
    }
  }
  return text;
}

bool IsOtherData(const SplitIdentity& one, const SplitIdentity& other) {
  if (!one.manifest.empty() && !other.manifest.empty()) return one.manifest != other.manifest;
  return !one.files.empty() && !other.files.empty() && one.files != other.files;
}

std::string DescribeOtherData(const SplitIdentity& then, const SplitIdentity& now) {
  const std::string counts = CountsOf(then);
  if (counts != CountsOf(now)) return counts + " (now " + CountsOf(now) + ")";
  if (ListingOf(then) != ListingOf(now)) {
    return counts + " (now as many, but files of other names or sizes: listing " +
           std::string(ListingOf(then)) + ", now " + std::string(ListingOf(now)) + ")";
  }
  return counts +
         " (now as many in files of the same names and sizes, but other images or other labels: "
         "checksum in ddldata.manifest " +
         then.manifest + ", now " + now.manifest + ")";
}

std::string DescribeOtherClasses(const ClassNames& ours, const ClassNames& theirs,
                                 bool may_rename) {
  const std::size_t count = std::min(ours.names.size(), theirs.names.size());
  for (std::size_t i = 0; i < count; ++i) {
    const std::string& name = ours.names[i];
    if (name == theirs.names[i]) continue;
    if (may_rename && std::ranges::find(theirs.names, name) == theirs.names.end()) continue;
    return "label " + std::to_string(i + 1) + " is \"" + name + "\" in " + ours.where + ", and \"" +
           theirs.names[i] + "\" in " + theirs.where;
  }
  return "";
}

}  // namespace trainer
