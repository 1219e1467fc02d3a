// SPDX-License-Identifier: Apache-2.0
//
// Ranks that are threads of one test, one of which has a fault: its share of a sum of gradients is
// no number, as where a loss is none, or what it gets of the sum has another bit, as where memory
// or a GPU fails.

#pragma once

#include <atomic>
#include <bit>
#include <thread>

#include "tests/support/test.h"
#include "tests/trainer/train/training_run.h"
#include "trainer/core/error.h"

namespace trainer {

struct Fault {
  int rank = 1;
  std::set<int> steps = {};     // of the run, from 0
  bool is_own_share = true;     // no number; else a bit of the sum flips
  bool is_of_loss_too = false;  // the rank's loss is NaN too
};

class FaultyCommunicator : public ThreadCommunicator {
 public:
  FaultyCommunicator(ThreadWorld& world, int rank, const Fault& fault, std::atomic<bool>& ended)
      : ThreadCommunicator(world, rank), fault_(fault), ended_(ended) {}

  void StartAllReduce(void* data, std::size_t count, DType dtype, Reduction reduction,
                      Stream& producer) override {
    auto* values = static_cast<float*>(data);
    const bool strikes = Strikes();
    if (strikes && fault_.is_own_share) values[count / 2] = NAN;
    ThreadCommunicator::StartAllReduce(data, count, dtype, reduction, producer);
    if (strikes && !fault_.is_own_share) {
      const auto bits = std::bit_cast<std::uint32_t>(values[count / 2]);
      values[count / 2] = std::bit_cast<float>(bits ^ 1U << 20);
    }
  }
  void Finish(Stream& consumer) override {
    ThreadCommunicator::Finish(consumer);
    is_exchange_next_ = true;
  }
  // The first one after gradients is what a step exchanges when it is over; its first number is the
  // loss.
  void AllReduceSum(std::span<double> values) override {
    if (is_exchange_next_) {
      if (Strikes() && fault_.is_of_loss_too) values[0] = NAN;
      is_exchange_next_ = false;
      ++step_;
    }
    ThreadCommunicator::AllReduceSum(values);
  }
  // Where no checkpoint is written, ranks wait here for one that has failed.
  void Barrier() override {
    if (!fails_) return ThreadCommunicator::Barrier();
    for (int i = 0; i < 2000 && !ended_; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    throw Error(EX_UNAVAILABLE, ended_ ? "a rank is gone" : "no rank has failed");
  }
  void ExpectFailure() { fails_ = true; }

 private:
  bool Strikes() const { return rank() == fault_.rank && fault_.steps.contains(step_); }

  const Fault& fault_;
  std::atomic<bool>& ended_;
  int step_ = 0;
  bool is_exchange_next_ = false;
  bool fails_ = false;
};

// How a rank ended.
struct FaultyEnd {
  int exit_code = 0;
  std::string message;  // of its Error
  std::string log;
};

// Trains with `ranks` ranks.  `is_waited_for`: ranks wait in Barrier for the one that fails.
inline std::vector<FaultyEnd> TrainWith(const Fault& fault, const TrainConfig& config,
                                        int ranks = 2, bool is_waited_for = false,
                                        const std::string& backend = "reference") {
  std::vector<FaultyEnd> ends(static_cast<std::size_t>(ranks));
  std::atomic<bool> ended = false;
  ThreadWorld world(ranks);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      FaultyEnd& end = ends[static_cast<std::size_t>(rank)];
      FaultyCommunicator communicator(world, rank, fault, ended);
      if (is_waited_for) communicator.ExpectFailure();
      std::ostringstream log;
      try {
        RunRank(config, communicator, log, 0, backend);
      } catch (const Error& error) {
        end = {error.exit_code(), error.what(), ""};
        ended = true;
      }
      end.log = log.str();
    });
  }
  threads.clear();
  return ends;
}

}  // namespace trainer
