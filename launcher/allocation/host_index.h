// SPDX-License-Identifier: Apache-2.0
//
// Hosts by their names, where one that is asked for may lack its domain or have one more.  A value,
// made once for many questions.

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace launcher {

// Whether both name one host, where either may lack its domain.
bool IsSameHost(const std::string& a, const std::string& b);

class HostIndex {
 public:
  HostIndex() = default;
  explicit HostIndex(const std::vector<std::string>& hosts);

  // Numbers hosts from 0, in the order in which they are added.
  void Add(const std::string& host);
  // The first that IsSameHost as `host`.
  std::optional<std::size_t> Find(const std::string& host) const;
  bool Holds(const std::string& host) const { return Find(host).has_value(); }

 private:
  std::size_t size_ = 0;
  // The first of each, by the name as it was added and by what is in front of its domain.
  std::unordered_map<std::string, std::size_t> by_name_, by_label_;
};

}  // namespace launcher
