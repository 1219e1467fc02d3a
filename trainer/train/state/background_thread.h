// SPDX-License-Identifier: Apache-2.0
//
// A thread of low priority (core/thread.h) that does one piece of work at a time, beside the thread
// that gives it.
//
// All calls come from that thread.  What either has written before it hands over to the other, that
// one sees.

#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace trainer {

class BackgroundThread {
 public:
  // `what` it is and may throw are as of StartThread.
  explicit BackgroundThread(const std::string& what);
  // Waits for the work under way.  What that throws is lost: Wait first.
  ~BackgroundThread();
  BackgroundThread(const BackgroundThread&) = delete;
  BackgroundThread& operator=(const BackgroundThread&) = delete;

  // Begins `work`, which outlives this call in all that it refers to.
  // REQUIRES: the work before it was taken back, by Done or by Wait.
  void Start(std::function<void()> work);

  // Whether there is work that was not taken back.
  bool has_work() const { return has_work_; }
  // Whether it is done; it is taken back then.  Throws what it threw.  REQUIRES: has_work().
  bool Done();
  // The same, once it is done.
  void Wait();

 private:
  void Run();
  void TakeBack();

  bool has_work_ = false;  // of the caller's thread alone

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> work_;  // empty: none is given, or it is under way or done
  bool is_done_ = false;
  bool is_stopping_ = false;
  std::exception_ptr failure_;
  std::jthread thread_;  // last: starts when all the rest is there
};

}  // namespace trainer
