// SPDX-License-Identifier: Apache-2.0

#include "trainer/core/thread.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <latch>
#include <system_error>
#include <utility>
#include <vector>

#include "trainer/core/error.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;

// Of this process, as the system counts them; 0 where it does not say.
std::ptrdiff_t CountThreads() {
  std::error_code error;
  const fs::directory_iterator tasks("/proc/self/task", error);
  return error ? 0 : std::distance(fs::begin(tasks), fs::end(tasks));
}

// A thread that has been joined is counted a moment longer.
void WaitUntilUncounted(std::ptrdiff_t threads) {
  constexpr int kPatience = 1000;  // milliseconds
  for (int i = 0; i < kPatience && CountThreads() > threads; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

std::jthread StartThread(const std::string& what, std::function<void()> body) {
  try {
    return std::jthread(std::move(body));
  } catch (const std::system_error& error) {
    throw Error(EX_OSERR, "cannot start " + what + ": " + error.code().message() +
                              "; ask for fewer threads (--threads, --data_threads), or raise what "
                              "limits them: ulimit -u, pids.max of the control group, memory");
  }
}

void TryThreads(const std::string& what, int count) {
  const std::ptrdiff_t before = CountThreads();
  {
    std::latch end(1);
    std::vector<std::jthread> threads;
    try {
      for (int i = 0; i < count; ++i) {
        threads.push_back(StartThread(what, [&end] { end.wait(); }));
      }
    } catch (...) {
      end.count_down();
      throw;
    }
    end.count_down();
  }
  WaitUntilUncounted(before);
}

}  // namespace trainer
