// SPDX-License-Identifier: Apache-2.0
//
// Finds hosts by their names, as rankfile::SameHost compares them: a name may lack its domain, or
// have one that the known name lacks.  A value, made once for many questions.

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace launcher {

class HostIndex {
 public:
  HostIndex() = default;
  explicit HostIndex(const std::vector<std::string>& hosts);

  // Numbers hosts from 0, in the order in which they are added.
  void Add(const std::string& host);
  // The number of the first host that is the same as `host`.
  std::optional<std::size_t> Find(const std::string& host) const;
  bool IsEmpty() const { return size_ == 0; }
  bool Holds(const std::string& host) const { return Find(host).has_value(); }

 private:
  std::size_t size_ = 0;
  // The first host of each name and of each first label.
  std::unordered_map<std::string, std::size_t> by_name_, by_label_;
};

}  // namespace launcher
