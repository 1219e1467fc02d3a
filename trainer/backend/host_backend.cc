// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/host_backend.h"

#include <chrono>
#include <cstdlib>
#include <cstring>

#include "trainer/core/error.h"
#include "trainer/core/memory_planner.h"

namespace trainer {
namespace {

class HostStream final : public Stream {
 public:
  void Synchronize() override {}
};

class HostEvent final : public Event {
 public:
  void Record(Stream& /*stream*/) override { time_ = Clock::now(); }
  void MakeWait(Stream& /*stream*/) override {}
  void Synchronize() override {}
  double SecondsSince(const Event& earlier) const override {
    const auto& start = static_cast<const HostEvent&>(earlier);
    return std::chrono::duration<double>(time_ - start.time_).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point time_;
};

}  // namespace

Buffer HostBackend::AllocateDevice(std::size_t bytes) {
  const std::size_t alignment = MemoryPlanner::kAlignment;
  const std::size_t whole = (bytes + alignment - 1) / alignment * alignment;
  void* data = whole < bytes ? nullptr : std::aligned_alloc(alignment, whole);
  if (data == nullptr && bytes > 0) {
    throw OutOfMemory("no memory: " + std::to_string(bytes) +
                      " bytes were asked for; use a smaller --batch_size");
  }
  if (bytes > 0) std::memset(data, 0, bytes);
  return {data, bytes, [](void* memory) { std::free(memory); }};
}

void HostBackend::CopyToDevice(void* dst, const void* src, std::size_t bytes, Stream& /*stream*/) {
  if (bytes > 0) std::memcpy(dst, src, bytes);
}

void HostBackend::CopyToHost(void* dst, const void* src, std::size_t bytes, Stream& /*stream*/) {
  if (bytes > 0) std::memcpy(dst, src, bytes);
}

void HostBackend::CopyOnDevice(void* dst, const void* src, std::size_t bytes, Stream& /*stream*/) {
  if (bytes > 0) std::memcpy(dst, src, bytes);
}

void HostBackend::Zero(void* dst, std::size_t bytes, Stream& /*stream*/) {
  if (bytes > 0) std::memset(dst, 0, bytes);
}

void HostBackend::Widen(const void* src, float* dst, std::size_t count, Stream& stream) {
  CopyToDevice(dst, src, count * sizeof(float), stream);
}

void HostBackend::Add(const void* src, DType type, float* dst, std::size_t count,
                      Stream& /*stream*/) {
  DDL_CHECK(type == DType::kFloat32);
  const auto* values = static_cast<const float*>(src);
  for (std::size_t i = 0; i < count; ++i) dst[i] += values[i];
}

void HostBackend::MoveAverage(const float* values, float share, const UpdateSums* sums,
                              float* average, std::size_t count, Stream& /*stream*/) {
  if (sums->nonfinite != 0) return;
  for (std::size_t i = 0; i < count; ++i) average[i] += share * (values[i] - average[i]);
}

std::unique_ptr<Stream> HostBackend::MakeStream() { return std::make_unique<HostStream>(); }

std::unique_ptr<Event> HostBackend::MakeEvent() { return std::make_unique<HostEvent>(); }

}  // namespace trainer
