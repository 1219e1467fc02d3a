// SPDX-License-Identifier: Apache-2.0

#include "launcher/allocation/host_index.h"

#include <algorithm>

namespace launcher {
namespace {

bool IsShort(const std::string& host) { return host.find('.') == std::string::npos; }

std::string LabelOf(const std::string& host) { return host.substr(0, host.find('.')); }

}  // namespace

bool IsSameHost(const std::string& a, const std::string& b) {
  return a == b || ((IsShort(a) || IsShort(b)) && LabelOf(a) == LabelOf(b));
}

HostIndex::HostIndex(const std::vector<std::string>& hosts) {
  for (const std::string& host : hosts) Add(host);
}

void HostIndex::Add(const std::string& host) {
  by_name_.emplace(host, size_);
  by_label_.emplace(LabelOf(host), size_);
  ++size_;
}

std::optional<std::size_t> HostIndex::Find(const std::string& host) const {
  std::optional<std::size_t> first;
  const auto look = [&first](const auto& numbers, const std::string& name) {
    const auto found = numbers.find(name);
    if (found != numbers.end()) first = std::min(first.value_or(found->second), found->second);
  };
  if (IsShort(host)) {
    look(by_label_, host);
  } else {
    look(by_name_, host);
    look(by_name_, LabelOf(host));
  }
  return first;
}

}  // namespace launcher
