// SPDX-License-Identifier: Apache-2.0

#include "rankfile/host_name.h"

#include <algorithm>

namespace rankfile {

namespace {

std::string ToLower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

bool LooksLikeAddress(std::string_view name) {
  return name.find_first_not_of("0123456789.") == std::string_view::npos;
}

}  // namespace

bool CanStartHostName(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool IsHostNameChar(char c) { return CanStartHostName(c) || c == '-' || c == '_' || c == '.'; }

bool IsHostName(std::string_view text) {
  return !text.empty() && text.size() <= kMaxHostNameLength && CanStartHostName(text.front()) &&
         std::all_of(text.begin(), text.end(), IsHostNameChar);
}

bool LooksLikeIpv6(std::string_view text) {
  const std::size_t bracket = text.starts_with('[') ? text.find(']') : 0;
  const std::string_view inside = text.substr(0, bracket == 0 ? text.size() : bracket);
  return std::count(inside.begin(), inside.end(), ':') > 1;
}

std::string ReadHostName(Scanner& scanner, std::string_view example) {
  const Position start = scanner.Here();
  if (!CanStartHostName(scanner.Peek())) {
    scanner.FailExpected("a host name (it starts with a letter or a digit)", example);
  }
  const std::string_view name = scanner.TakeWhile(IsHostNameChar);
  if (name.size() > kMaxHostNameLength) {
    scanner.FailAt(start, "the host name has " + std::to_string(name.size()) +
                              " characters, more than " + std::to_string(kMaxHostNameLength));
  }
  return std::string(name);
}

HostKey KeyOfHost(std::string_view name) {
  const std::string lower = ToLower(name);
  return {lower, LooksLikeAddress(lower) ? lower : lower.substr(0, lower.find('.'))};
}

bool SameHost(std::string_view left, std::string_view right) {
  const HostKey a = KeyOfHost(left);
  const HostKey b = KeyOfHost(right);
  return a.name == b.name || a.label == b.name || a.name == b.label;
}

const std::string* HostSpellings::Add(const std::string& host) {
  const auto [name, label] = KeyOfHost(host);
  const auto [known, is_new] = by_name_.try_emplace(name, host);
  if (!is_new) return known->second == host ? nullptr : &known->second;

  if (label == name) {
    const auto qualified = by_first_label_.find(name);
    return qualified == by_first_label_.end() ? nullptr : &qualified->second;
  }
  by_first_label_.try_emplace(label, host);
  const auto unqualified = by_name_.find(label);
  return unqualified == by_name_.end() ? nullptr : &unqualified->second;
}

}  // namespace rankfile
