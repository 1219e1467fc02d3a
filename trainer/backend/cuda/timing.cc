// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/timing.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/backend/cuda/copy_kernels.h"
#include "trainer/backend/cuda/runtime.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

constexpr int kRuns = 5;
// Whoever needs this many times the best so far in one run is not worth more of them.
constexpr double kHopeless = 3;

// A stream of its own and the clock on it.
class Stopwatch {
 public:
  // Seconds on the device.
  double Time(const std::function<void(cudaStream_t)>& run) {
    begin_->Record(*stream_);
    run(HandleOf(*stream_));
    end_->Record(*stream_);
    end_->Synchronize();
    return end_->SecondsSince(*begin_);
  }

 private:
  const std::unique_ptr<Stream> stream_ = MakeCudaStream();
  const std::unique_ptr<Event> begin_ = MakeCudaEvent();
  const std::unique_ptr<Event> end_ = MakeCudaEvent();
};

double MedianTime(Stopwatch& stopwatch, double best, const std::function<void(cudaStream_t)>& run) {
  stopwatch.Time(run);  // loads the kernels
  std::vector<double> times{stopwatch.Time(run)};
  if (times[0] > kHopeless * best) return times[0];
  while (times.size() < kRuns) times.push_back(stopwatch.Time(run));
  std::nth_element(times.begin(), times.begin() + kRuns / 2, times.end());
  return times[kRuns / 2];
}

}  // namespace

ScratchMemory::ScratchMemory(std::size_t bytes) {
  CheckCuda(cudaMalloc(&data_, std::max<std::size_t>(bytes, 1)),
            "allocating " + std::to_string(bytes) + " bytes to time algorithms");
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
  Stopwatch stopwatch;
  std::size_t fastest = candidates;
  double best = std::numeric_limits<double>::infinity();
  std::optional<Error> problem;
  for (std::size_t i = 0; i < candidates; ++i) {
    try {
      const double time = MedianTime(stopwatch, best, [&](cudaStream_t stream) { run(i, stream); });
      if (time >= best) continue;
      best = time;
      fastest = i;
    } catch (const Error& error) {
      problem.emplace(error);
    }
  }
  if (fastest == candidates) throw *problem;
  return fastest;
}

}  // namespace trainer
