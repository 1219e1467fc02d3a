// SPDX-License-Identifier: Apache-2.0
//
// Ranks that are threads of one test.  Sums are taken in the order of the ranks.

#pragma once

#include <algorithm>
#include <barrier>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "trainer/comm/communicator.h"
#include "trainer/core/error.h"

namespace trainer {

struct ThreadWorld {
  explicit ThreadWorld(int ranks) : size(ranks), barrier(ranks), places(ranks) {}
  const int size;
  std::barrier<> barrier;
  std::vector<void*> places;                   // what each rank has brought
  std::function<double(int)> seconds_of_byte;  // that a rank hears; null: there are no links
};

class ThreadCommunicator : public Communicator {
 public:
  ThreadCommunicator(ThreadWorld& world, int rank) : world_(world), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return world_.size; }
  std::string description() const override { return "threads of a test"; }

  void StartAllReduce(void* data, std::size_t count, DType dtype, Reduction reduction,
                      Stream& producer) override {
    DDL_CHECK(dtype == DType::kFloat32 && reduction == Reduction::kSum);
    producer.Synchronize();
    Reduce(static_cast<float*>(data), count, std::plus<>());
  }
  void Finish(Stream&) override {}
  void AllReduceSum(std::span<double> values) override {
    Reduce(values.data(), values.size(), std::plus<>());
  }
  void AllReduceMax(std::span<double> values) override {
    Reduce(values.data(), values.size(), [](double a, double b) { return std::max(a, b); });
  }
  void Broadcast(void* data, std::size_t bytes, int root) override {
    Meet(data);
    if (rank_ != root && bytes > 0)
      std::memcpy(data, world_.places[static_cast<std::size_t>(root)], bytes);
    world_.barrier.arrive_and_wait();
  }
  void Barrier() override { world_.barrier.arrive_and_wait(); }
  std::optional<double> SecondsFromPrevious(std::size_t bytes) override {
    if (!world_.seconds_of_byte) return std::nullopt;
    return static_cast<double>(bytes) * world_.seconds_of_byte(rank_);
  }
  [[noreturn]] void Abort(int exit_code) override { std::_Exit(exit_code); }

 private:
  void Meet(void* data) {
    world_.places[static_cast<std::size_t>(rank_)] = data;
    world_.barrier.arrive_and_wait();
  }
  template <typename T, typename Operation>
  void Reduce(T* data, std::size_t count, Operation operation) {
    Meet(data);
    std::vector<T> result(count);
    for (std::size_t i = 0; i < count; ++i) {
      result[i] = static_cast<const T*>(world_.places[0])[i];
      for (std::size_t r = 1; r < world_.places.size(); ++r) {
        result[i] = operation(result[i], static_cast<const T*>(world_.places[r])[i]);
      }
    }
    world_.barrier.arrive_and_wait();
    std::copy(result.begin(), result.end(), data);
  }

  ThreadWorld& world_;
  const int rank_;
};

// The only rank of a world.
struct WorldOfOne {
  ThreadWorld world{1};
};
class OneRank : private WorldOfOne, public ThreadCommunicator {
 public:
  OneRank() : ThreadCommunicator(world, 0) {}
};

// Runs `body` as each of `ranks` ranks.  What it throws ends the test program: the others would
// wait for ever.
inline void RunRanks(int ranks, const std::function<void(Communicator&)>& body,
                     std::function<double(int)> seconds_of_byte = {}) {
  ThreadWorld world(ranks);
  world.seconds_of_byte = std::move(seconds_of_byte);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&world, &body, rank] {
      ThreadCommunicator communicator(world, rank);
      body(communicator);
    });
  }
}

}  // namespace trainer
