// SPDX-License-Identifier: Apache-2.0

#include "trainer/core/memory_planner.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "trainer/core/error.h"

namespace trainer {
namespace {

std::size_t RoundUp(std::size_t bytes) {
  return (bytes + MemoryPlanner::kAlignment - 1) / MemoryPlanner::kAlignment *
         MemoryPlanner::kAlignment;
}

bool Meet(const MemoryPlanner::Request& a, const MemoryPlanner::Request& b) {
  return a.first_use <= b.last_use && b.first_use <= a.last_use;
}

// The lowest offset at which `request` keeps clear of `neighbours`, which are sorted by offset.
std::size_t LowestGap(const MemoryPlanner::Request& request,
                      const std::vector<const MemoryPlanner::Request*>& neighbours) {
  std::size_t offset = 0;
  for (const MemoryPlanner::Request* neighbour : neighbours) {
    if (offset + RoundUp(request.bytes) <= neighbour->offset) break;
    offset = std::max(offset, neighbour->offset + RoundUp(neighbour->bytes));
  }
  return offset;
}

}  // namespace

int MemoryPlanner::Reserve(std::string name, std::size_t bytes, int first_use, int last_use) {
  DDL_CHECK(!solved_);
  DDL_CHECK(first_use <= last_use);
  requests_.push_back({std::move(name), bytes, first_use, last_use});
  return static_cast<int>(requests_.size()) - 1;
}

void MemoryPlanner::Solve() {
  DDL_CHECK(!solved_);
  std::vector<std::size_t> order(requests_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) {
    return requests_[a].bytes > requests_[b].bytes;
  });

  std::vector<const Request*> placed;  // sorted by offset
  for (const std::size_t id : order) {
    Request& request = requests_[id];
    std::vector<const Request*> neighbours;
    std::copy_if(placed.begin(), placed.end(), std::back_inserter(neighbours),
                 [&](const Request* other) { return Meet(*other, request); });
    request.offset = LowestGap(request, neighbours);
    total_bytes_ = std::max(total_bytes_, request.offset + RoundUp(request.bytes));
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), &request,
                         [](const Request* a, const Request* b) { return a->offset < b->offset; }),
        &request);
  }
  solved_ = true;
}

// Use grows only where a request begins.
std::size_t MemoryPlanner::passing_bytes() const {
  DDL_CHECK(solved_);
  std::size_t max = 0;
  std::size_t passing_then = 0;
  for (const Request& begins : requests_) {
    const Request tick{"", 0, begins.first_use, begins.first_use};
    std::size_t used = 0;
    std::size_t passing = 0;
    for (const Request& request : requests_) {
      if (!Meet(request, tick)) continue;
      used += RoundUp(request.bytes);
      if (request.first_use == request.last_use) passing += RoundUp(request.bytes);
    }
    if (used > max) {
      max = used;
      passing_then = passing;
    }
  }
  return passing_then;
}

}  // namespace trainer
