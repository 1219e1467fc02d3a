// SPDX-License-Identifier: Apache-2.0

#include "trainer/comm/shared_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "trainer/comm/serial_executor.h"
#include "trainer/comm/shared_region.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

class SharedMemoryCommunicator : public Communicator {
 public:
  explicit SharedMemoryCommunicator(const CommOptions& options)
      : rank_(options.rank), size_(options.size), spans_(options.spans) {
    // In the worker: the mutex that says "alive" belongs to a thread, and this one lives as long as
    // the communicator.
    worker_.PostAndWait([&] { region_.emplace(options); });
  }
  ~SharedMemoryCommunicator() override {
    try {
      worker_.PostAndWait([this] { region_->Leave(); });
    } catch (const Error&) {
      // An earlier call failed and its Error was thrown: the others are to see this rank as dead.
    }
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string description() const override {
    return "shared memory, " + std::to_string(size_) + " ranks";
  }

  void StartAllReduce(void* data, std::size_t count, DType dtype, Reduction reduction,
                      Stream& producer) override {
    DDL_CHECK(dtype == DType::kFloat32 && reduction == Reduction::kSum);
    producer.Synchronize();
    worker_.Post([this, data, count] {
      const SpanOfScope span(spans_, SpanKind::kAllReduce, 0,
                             static_cast<std::int64_t>(count * sizeof(float)));
      AllReduce(static_cast<float*>(data), count, [](float a, float b) { return a + b; });
    });
  }
  void Finish(Stream&) override { worker_.Wait(); }

  void AllReduceSum(std::span<double> values) override {
    worker_.PostAndWait([this, values] {
      AllReduce(values.data(), values.size(), [](double a, double b) { return a + b; });
    });
  }
  void AllReduceMax(std::span<double> values) override {
    worker_.PostAndWait([this, values] {
      AllReduce(values.data(), values.size(), [](double a, double b) { return std::max(a, b); });
    });
  }
  void Broadcast(void* data, std::size_t bytes, int root) override {
    DDL_CHECK(root >= 0 && root < size_);
    worker_.PostAndWait(
        [this, data, bytes, root] { BroadcastChunks(static_cast<std::byte*>(data), bytes, root); });
  }
  void Barrier() override {
    worker_.PostAndWait([this] { region_->Barrier(); });
  }

  void Abort(int exit_code) override {
    region_->AnnounceAbort(exit_code);
    ::_exit(exit_code);
  }

 private:
  // In chunks of a slot: every rank copies its values into its slot; each adds up one section of
  // all slots, in the order of the ranks, into the result; every rank copies the whole result back.
  // The next chunk's slots are written after all have read this one's (second barrier), and its
  // result after all have copied this one's (they do so before they come to the next first
  // barrier).
  template <typename T, typename Operation>
  void AllReduce(T* data, std::size_t count, Operation operation) {
    constexpr std::size_t kChunk = SharedRegion::kSlotBytes / sizeof(T);
    for (std::size_t done = 0; done < count; done += kChunk) {
      const std::size_t length = std::min(kChunk, count - done);
      std::memcpy(region_->slot(rank_), data + done, length * sizeof(T));
      region_->Barrier();
      ReduceSection<T>(length, operation);
      region_->Barrier();
      std::memcpy(data + done, region_->result(), length * sizeof(T));
    }
  }

  template <typename T, typename Operation>
  void ReduceSection(std::size_t length, Operation operation) {
    const auto bound = [&](int rank) {
      return length * static_cast<std::size_t>(rank) / static_cast<std::size_t>(size_);
    };
    const std::size_t begin = bound(rank_);
    const std::size_t end = bound(rank_ + 1);
    T* result = reinterpret_cast<T*>(region_->result());
    const T* first = reinterpret_cast<const T*>(region_->slot(0));
    std::copy(first + begin, first + end, result + begin);
    for (int rank = 1; rank < size_; ++rank) {
      const T* source = reinterpret_cast<const T*>(region_->slot(rank));
      for (std::size_t i = begin; i < end; ++i) result[i] = operation(result[i], source[i]);
    }
  }

  void BroadcastChunks(std::byte* data, std::size_t bytes, int root) {
    for (std::size_t done = 0; done < bytes; done += SharedRegion::kSlotBytes) {
      const std::size_t length = std::min(SharedRegion::kSlotBytes, bytes - done);
      if (rank_ == root) std::memcpy(region_->slot(root), data + done, length);
      region_->Barrier();
      if (rank_ != root) std::memcpy(data + done, region_->slot(root), length);
      region_->Barrier();
    }
  }

  int rank_;
  int size_;
  SpanRecorder* spans_;
  std::optional<SharedRegion> region_;
  OrderedWorker worker_;  // ends before the region is unmapped
};

}  // namespace

std::unique_ptr<Communicator> MakeSharedMemoryCommunicator(const CommOptions& options) {
  return std::make_unique<SharedMemoryCommunicator>(options);
}

}  // namespace trainer
