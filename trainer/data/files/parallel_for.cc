// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/files/parallel_for.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace trainer {

void ParallelFor(int threads, std::int64_t count, const std::function<void(std::int64_t)>& body) {
  std::mutex mutex;
  std::int64_t next = 0;
  std::int64_t failed_index = count;
  std::exception_ptr failure;

  const auto work = [&] {
    while (true) {
      std::int64_t index = 0;
      {
        const std::lock_guard lock(mutex);
        if (failure || next == count) return;
        index = next++;
      }
      try {
        body(index);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (index < failed_index) {
          failed_index = index;
          failure = std::current_exception();
        }
      }
    }
  };

  {
    std::vector<std::jthread> helpers;
    const std::int64_t helper_count = std::min<std::int64_t>(threads, count) - 1;
    try {
      for (std::int64_t i = 0; i < helper_count; ++i) helpers.emplace_back(work);
    } catch (const std::system_error&) {
      // No more threads: those there are do it all.
    }
    work();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace trainer
