// SPDX-License-Identifier: Apache-2.0
//
// A thread that runs what it is given, in order.  The first exception stops it: what is queued
// behind is dropped, and Wait and Post throw that exception from then on.
//
// Post and Wait are called from one thread, not from the worker's own.

#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace trainer {

class OrderedWorker {
 public:
  OrderedWorker();
  // Runs what is queued, then ends.
  ~OrderedWorker();
  OrderedWorker(const OrderedWorker&) = delete;
  OrderedWorker& operator=(const OrderedWorker&) = delete;

  void Post(std::function<void()> work);
  // Returns when everything posted so far is done.
  void Wait();
  void PostAndWait(std::function<void()> work);

 private:
  void Run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  bool busy_ = false;
  bool stopping_ = false;
  std::exception_ptr failure_;
  std::jthread thread_;
};

}  // namespace trainer
