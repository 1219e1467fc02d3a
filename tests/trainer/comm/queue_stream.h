// SPDX-License-Identifier: Apache-2.0
//
// A stream of a device that does not exist: work that was queued on it is done by a thread, later.

#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <utility>

#include "trainer/comm/serial_executor.h"
#include "trainer/core/stream.h"

namespace trainer {

class QueueStream final : public Stream {
 public:
  void Post(std::function<void()> work) {
    ++queued_;
    worker_.Post([this, work = std::move(work)] {
      work();
      --queued_;
    });
  }

  void Synchronize() override { worker_.Wait(); }
  bool Finished() override { return queued_ == 0; }
  void* handle() const override { return const_cast<QueueStream*>(this); }

 private:
  std::atomic<int> queued_ = 0;
  OrderedWorker worker_;
};

class QueueEvent final : public Event {
 public:
  void Record(Stream& stream) override {
    auto reached = std::make_shared<std::promise<void>>();
    reached_ = reached->get_future().share();
    static_cast<QueueStream&>(stream).Post([reached] { reached->set_value(); });
  }
  void MakeWait(Stream& stream) override {
    static_cast<QueueStream&>(stream).Post([reached = reached_] { reached.wait(); });
  }
  void Synchronize() override { reached_.wait(); }
  double SecondsSince(const Event& /*earlier*/) const override { return 0; }

 private:
  std::shared_future<void> reached_;
};

}  // namespace trainer
