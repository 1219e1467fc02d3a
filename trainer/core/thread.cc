// SPDX-License-Identifier: Apache-2.0

#include "trainer/core/thread.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <exception>
#include <filesystem>
#include <latch>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "trainer/core/error.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;

// Of this process, as the system counts them; 0 where it does not say.
std::ptrdiff_t CountThreads() {
  std::error_code error;
  std::ptrdiff_t count = 0;
  for (fs::directory_iterator task("/proc/self/task", error), end; !error && task != end;
       task.increment(error)) {
    ++count;
  }
  return error ? 0 : count;
}

// A thread that has been joined is counted a moment longer.
void WaitUntilUncounted(std::ptrdiff_t threads) {
  constexpr int kTimeout = 1000;  // milliseconds
  for (int i = 0; i < kTimeout && CountThreads() > threads; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// A tenth of the share of the others.  The least there is, a seventieth, would make a second of
// work last more than a minute beside a back end that computes on all processors.
constexpr int kNicer = 10;
constexpr int kNicest = 19;
// Linux' <linux/ioprio.h>, which older systems do not have: the class "best effort", of which 7
// comes last.  The class below it, "idle", might never get its turn.
constexpr int kOfThread = 1;
constexpr int kLastOfBestEffort = 2 << 13 | 7;

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

// On Linux these are of the calling thread alone.
void LowerOwnPriority() {
  errno = 0;
  const int now = ::getpriority(PRIO_PROCESS, 0);
  if (errno == 0) ::setpriority(PRIO_PROCESS, 0, std::min(now + kNicer, kNicest));
  ::syscall(SYS_ioprio_set, kOfThread, 0, kLastOfBestEffort);
}

namespace {

// Both sequentially consistent: whoever of a handler and a destructor comes second sees the first.
std::atomic<int> delays = 0;
std::atomic<bool> ends = false;
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

// The shim knows an end by SIGTERM for one that this rank was told of.
void EndProcess() {
  std::signal(SIGTERM, SIG_DFL);
  kill(getpid(), SIGTERM);
}

}  // namespace

void EndProcessSoon() {
  ends = true;
  if (delays == 0) EndProcess();
}

DelayedEnd::DelayedEnd() { ++delays; }

DelayedEnd::~DelayedEnd() {
  if (--delays == 0 && ends) EndProcess();
}

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
