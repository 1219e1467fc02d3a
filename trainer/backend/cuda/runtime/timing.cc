// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/runtime/timing.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <semaphore>
#include <string>
#include <tuple>
#include <vector>

#include "trainer/backend/cuda/runtime/copy_kernels.h"
#include "trainer/backend/cuda/runtime/difference_kernels.h"
#include "trainer/backend/cuda/runtime/runtime.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

constexpr int kTimes = 3;
constexpr int kRuns = 4;  // each time
// Whoever needs this many times the best so far in one run is not worth more of them.
constexpr double kHopeless = 3;

// Holds a stream up until it is opened, or gone.  For a moment at most, lest it waits for a library
// that waits for the stream.
class StreamGate {
 public:
  explicit StreamGate(cudaStream_t stream) : stream_(stream) {
    CheckCuda(cudaLaunchHostFunc(stream, &StreamGate::Wait, &is_open_), "holding a stream up");
  }
  StreamGate(const StreamGate&) = delete;
  StreamGate& operator=(const StreamGate&) = delete;
  ~StreamGate() {
    Open();
    cudaStreamSynchronize(stream_);  // it looks at this object
  }

  void Open() { is_open_.release(); }

 private:
  using Semaphore = std::counting_semaphore<2>;

  static void CUDART_CB Wait(void* is_open) {
    std::ignore = static_cast<Semaphore*>(is_open)->try_acquire_for(std::chrono::milliseconds(50));
  }

  const cudaStream_t stream_;
  Semaphore is_open_{0};
};

// Overwrites the L2 cache.  In a step other tensors have gone through it since a kernel's inputs
// were written; repeated runs of one kernel would find in a large cache what they have to wait for
// there.
class L2Flush {
 public:
  void Run(cudaStream_t stream) const {
    CheckCuda(cudaMemsetAsync(memory_.data(), 0, bytes_, stream), "flushing the L2 cache");
  }

 private:
  const std::size_t bytes_ = 2 * L2CacheBytes();
  const ScratchMemory memory_{bytes_};
};

// A stream of its own and the clock on it.
class Stopwatch {
 public:
  // What runs for the first time is loaded, and that may wait for the device: there is no gate.
  void RunOnce(const std::function<void(cudaStream_t)>& run) {
    run(HandleOf(*stream_));
    stream_->Synchronize();
  }

  // Seconds on the device of each of `runs`, the mean, with the L2 cache flushed before.  They
  // start when all are queued: what the host needs for that does not count.  REQUIRES: runs <=
  // kRuns.
  double Time(int runs, const std::function<void(cudaStream_t)>& run) {
    const std::span laps(laps_.data(), static_cast<std::size_t>(runs));
    StreamGate gate(HandleOf(*stream_));
    for (const Lap& lap : laps) {
      flush_.Run(HandleOf(*stream_));
      lap.begin->Record(*stream_);
      run(HandleOf(*stream_));
      lap.end->Record(*stream_);
    }
    gate.Open();
    laps.back().end->Synchronize();
    double seconds = 0;
    for (const Lap& lap : laps) seconds += lap.end->SecondsSince(*lap.begin);
    return seconds / runs;
  }

 private:
  struct Lap {
    std::unique_ptr<Event> begin = MakeCudaEvent();
    std::unique_ptr<Event> end = MakeCudaEvent();
  };

  const std::unique_ptr<Stream> stream_ = MakeCudaStream();
  const L2Flush flush_{};
  const std::array<Lap, kRuns> laps_{};
};

constexpr double kNever = std::numeric_limits<double>::infinity();

double MedianTime(Stopwatch& stopwatch, double best, const std::function<void(cudaStream_t)>& run) {
  stopwatch.RunOnce(run);
  const double first = stopwatch.Time(1, run);
  if (first > kHopeless * best) return first;
  std::vector<double> times(kTimes);
  for (double& time : times) time = stopwatch.Time(kRuns, run);
  std::nth_element(times.begin(), times.begin() + kTimes / 2, times.end());
  return times[kTimes / 2];
}

// Two at once would distort each other.
std::mutex& OneTimingAtATime() {
  static std::mutex one;
  return one;
}

}  // namespace

ScratchMemory::ScratchMemory(std::size_t bytes) {
  CheckCuda(cudaMalloc(&data_, std::max<std::size_t>(bytes, 1)),
            ("allocating " + std::to_string(bytes) + " bytes to time algorithms").c_str());
  try {
    FillWithNoise(data_, static_cast<std::int64_t>(bytes / sizeof(unsigned)), nullptr);
    // Streams that do not wait for the default stream must see it.
    CheckCuda(cudaDeviceSynchronize(), "filling memory to time algorithms");
  } catch (const Error&) {
    cudaFree(data_);
    throw;
  }
}

ScratchMemory::~ScratchMemory() { cudaFree(data_); }

std::size_t FastestOf(std::size_t candidates,
                      const std::function<void(std::size_t, cudaStream_t)>& run) {
  DDL_CHECK(candidates > 0);
  const std::scoped_lock lock(OneTimingAtATime());
  Stopwatch stopwatch;
  std::size_t fastest = candidates;
  double best = kNever;
  std::optional<Error> problem;
  for (std::size_t i = 0; i < candidates; ++i) {
    try {
      const double time = MedianTime(stopwatch, best, [&](cudaStream_t stream) { run(i, stream); });
      if (time >= best) continue;
      best = time;
      fastest = i;
    } catch (const Error& error) {
      if (error.exit_code() == EX_OSERR) throw;  // the device has failed, for all of them
      problem.emplace(error);
    }
  }
  if (fastest == candidates) throw *problem;
  return fastest;
}

double MedianSeconds(const std::function<void(cudaStream_t)>& run) {
  const std::scoped_lock lock(OneTimingAtATime());
  Stopwatch stopwatch;
  return MedianTime(stopwatch, kNever, run);
}

std::size_t PlanAutotuner::Choose(const std::string& what, std::span<const std::string> plans,
                                  const std::function<std::size_t()>& autotune) {
  if (const auto known = known_.find(what); known != known_.end()) return known->second;
  const std::optional<std::string> kept = plans_.Find(what);
  const auto found = kept ? std::find(plans.begin(), plans.end(), *kept) : plans.end();
  auto chosen = static_cast<std::size_t>(found - plans.begin());
  if (found == plans.end()) {
    chosen = autotune();
    plans_.Add(what, plans[chosen]);
  }
  return known_.emplace(what, chosen).first->second;
}

double RelativeDifference(const void* a, const void* b, DType dtype, std::int64_t count) {
  using Partial = std::array<std::array<float, kDifferenceBlocks>, 2>;
  const ScratchMemory partial(sizeof(Partial));
  SumSquaredDifferences(a, b, dtype, count,
                        static_cast<float(*)[kDifferenceBlocks]>(partial.data()), nullptr);
  Partial sums{};
  constexpr const char* kAction = "comparing the results of algorithms";
  CheckCuda(
      cudaMemcpyAsync(sums.data(), partial.data(), sizeof sums, cudaMemcpyDeviceToHost, nullptr),
      kAction);
  CheckCuda(cudaStreamSynchronize(nullptr), kAction);
  const auto sum = [](const auto& of) { return std::accumulate(of.begin(), of.end(), 0.0); };
  return std::sqrt(sum(sums[0]) / sum(sums[1]));
}

}  // namespace trainer
