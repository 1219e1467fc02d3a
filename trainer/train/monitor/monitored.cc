// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/monitor/monitored.h"

#include <cstddef>
#include <span>
#include <string>

namespace trainer {
namespace {

// Tells the watch that a wait has begun, and that it is over, by an exception too: the run may go
// on after that.
class Watched {
 public:
  using Tell = void (HangWatchdog::*)();

  Watched(HangWatchdog& watch, Tell begin, Tell end) : watch_(watch), end_(end) {
    (watch_.*begin)();
  }
  ~Watched() { (watch_.*end_)(); }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

 private:
  HangWatchdog& watch_;
  const Tell end_;
};

class MonitoredDataLoader final : public DataLoader {
 public:
  MonitoredDataLoader(DataLoader& inner, HangWatchdog& watch) : inner_(inner), watch_(watch) {}

  std::int64_t samples() const override { return inner_.samples(); }
  std::vector<ConsistencyItem> items() const override { return inner_.items(); }
  ScanCost scan_cost() const override { return inner_.scan_cost(); }
  std::string note() const override { return inner_.note(); }
  void Seek(const Position& position) override { inner_.Seek(position); }
  bool Next(HostBatch& batch) override {
    const Watched reading(watch_, &HangWatchdog::BeginReading, &HangWatchdog::EndReading);
    return inner_.Next(batch);
  }

 private:
  DataLoader& inner_;
  HangWatchdog& watch_;
};

class WatchedCommunicator final : public Communicator {
 public:
  WatchedCommunicator(Communicator& inner, HangWatchdog& watch) : inner_(inner), watch_(watch) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  std::string description() const override { return inner_.description(); }
  bool reduces_device_memory() const override { return inner_.reduces_device_memory(); }
  Buffer AllocateReduced(std::size_t bytes) override { return inner_.AllocateReduced(bytes); }
  void StartAllReduce(void* data, std::size_t count, DType dtype, Reduction reduction,
                      Stream& producer) override {
    inner_.StartAllReduce(data, count, dtype, reduction, producer);
  }
  void Finish(Stream& consumer) override {
    Wait([&] { inner_.Finish(consumer); });
  }
  void Synchronize(Stream& stream) override {
    Wait([&] { inner_.Synchronize(stream); });
  }
  void AllReduceSum(std::span<double> values) override {
    Wait([&] { inner_.AllReduceSum(values); });
  }
  void AllReduceMax(std::span<double> values) override {
    Wait([&] { inner_.AllReduceMax(values); });
  }
  void Broadcast(void* data, std::size_t bytes, int root) override {
    Wait([&] { inner_.Broadcast(data, bytes, root); });
  }
  void Barrier() override {
    Wait([&] { inner_.Barrier(); });
  }
  std::optional<double> SecondsFromPrevious(std::size_t bytes) override {
    std::optional<double> seconds;
    Wait([&] { seconds = inner_.SecondsFromPrevious(bytes); });
    return seconds;
  }
  void Abort(int exit_code) override { inner_.Abort(exit_code); }

 private:
  template <typename Call>
  void Wait(const Call& call) {
    const Watched waiting(watch_, &HangWatchdog::BeginWaiting, &HangWatchdog::EndWaiting);
    call();
  }

  Communicator& inner_;
  HangWatchdog& watch_;
};

}  // namespace

std::unique_ptr<DataLoader> MakeMonitoredDataLoader(DataLoader& source, HangWatchdog& watch) {
  return std::make_unique<MonitoredDataLoader>(source, watch);
}

std::unique_ptr<Communicator> MakeWatchedCommunicator(Communicator& communicator,
                                                      HangWatchdog& watch) {
  return std::make_unique<WatchedCommunicator>(communicator, watch);
}

}  // namespace trainer
