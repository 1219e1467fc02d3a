// SPDX-License-Identifier: Apache-2.0
//
// Looks at many things at once that may each hang, as a file of /proc may, without waiting for
// those that do.

#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace launcher {

// Calls visit(0) to visit(count - 1) in threads, until all have returned or the time is over.  True
// in the first case; else some threads go on: what `visit` uses must be its own.
inline bool VisitInThreads(std::size_t count, std::size_t max_threads,
                           std::chrono::steady_clock::time_point deadline,
                           std::function<void(std::size_t)> visit) {
  struct Work {
    std::mutex mutex;
    std::condition_variable ends;
    std::size_t next = 0;
    std::size_t done = 0;
  };
  const auto work = std::make_shared<Work>();
  const auto run = [work, count, visit = std::move(visit)] {
    for (std::unique_lock lock(work->mutex); work->next < count;) {
      const std::size_t index = work->next++;
      lock.unlock();
      visit(index);
      lock.lock();
      if (++work->done == count) work->ends.notify_all();
    }
  };
  try {
    for (std::size_t i = 0; i < std::min(count, max_threads); ++i) std::thread(run).detach();
  } catch (const std::system_error&) {
    // Those that there are go on.
  }
  std::unique_lock lock(work->mutex);
  return work->ends.wait_until(lock, deadline, [&] { return work->done == count; });
}

// Results that threads which were left alone may still add to.
template <typename Key, typename Value>
class SharedResults {
 public:
  void Set(const Key& key, Value value) {
    const std::lock_guard lock(state_->mutex);
    state_->values[key] = std::move(value);
  }
  std::map<Key, Value> Take() const {
    const std::lock_guard lock(state_->mutex);
    return state_->values;
  }

 private:
  struct State {
    std::mutex mutex;
    std::map<Key, Value> values;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace launcher
