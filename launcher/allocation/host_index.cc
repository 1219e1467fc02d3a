// SPDX-License-Identifier: Apache-2.0

#include "launcher/allocation/host_index.h"

#include <algorithm>

#include "rankfile/host_name.h"

namespace launcher {

HostIndex::HostIndex(const std::vector<std::string>& hosts) {
  for (const std::string& host : hosts) Add(host);
}

void HostIndex::Add(const std::string& host) {
  const rankfile::HostKey key = rankfile::KeyOfHost(host);
  by_name_.emplace(key.name, size_);
  by_label_.emplace(key.label, size_);
  ++size_;
}

std::optional<std::size_t> HostIndex::Find(const std::string& host) const {
  const rankfile::HostKey key = rankfile::KeyOfHost(host);
  std::optional<std::size_t> first;
  const auto look = [&first](const auto& numbers, const std::string& text) {
    const auto found = numbers.find(text);
    if (found != numbers.end()) first = std::min(first.value_or(found->second), found->second);
  };
  look(by_name_, key.name);
  look(by_label_, key.name);
  look(by_name_, key.label);
  return first;
}

}  // namespace launcher
