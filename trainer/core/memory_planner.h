// SPDX-License-Identifier: Apache-2.0
//
// Plans one arena for everything a training step needs, before the step runs.  Requests state when
// their bytes are used; requests that are never in use at the same time may share bytes.  Pure: no
// memory is touched.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace trainer {

class MemoryPlanner {
 public:
  static constexpr std::size_t kAlignment = 256;  // bytes; every offset is a multiple of it

  struct Request {
    std::string name;
    std::size_t bytes;
    int first_use;  // inclusive, in the units of the caller's clock
    int last_use;   // inclusive
    std::size_t offset = 0;
  };

  // Returns the request's id.  REQUIRES: first_use <= last_use, and Solve() not called yet.
  int Reserve(std::string name, std::size_t bytes, int first_use, int last_use);

  // Gives every request its offset: largest first, each at the lowest place that is free over its
  // whole time.
  void Solve();

  // After Solve().
  std::size_t total_bytes() const { return total_bytes_; }
  std::size_t offset(int id) const { return requests_[static_cast<std::size_t>(id)].offset; }
  const std::vector<Request>& requests() const { return requests_; }
  // At the tick at which most bytes are in use: those of the requests that are used at no other.
  std::size_t passing_bytes() const;

 private:
  std::vector<Request> requests_;
  std::size_t total_bytes_ = 0;
  bool solved_ = false;
};

}  // namespace trainer
