// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/meters/kernel_trace.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <utility>

#include "trainer/core/error.h"

namespace trainer {
namespace {

// cupti_result.h, cupti_activity.h
constexpr int kCuptiSuccess = 0;
constexpr std::uint32_t kFlushForced = 1;

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;  // some 5,000 kernels
constexpr std::size_t kAlignment = 8;                       // ACTIVITY_RECORD_ALIGNMENT

struct RawKernel {
  std::string name;
  std::uint64_t start = 0;
  std::uint64_t end = 0;
};

// What CUPTI's threads have handed over.
struct Delivery {
  int (*next_record)(std::uint8_t*, std::size_t, CuptiKernel**) = nullptr;
  int (*dropped_records)(void*, std::uint32_t, std::size_t*) = nullptr;
  std::mutex mutex;
  std::vector<RawKernel> kernels;  // under mutex
  std::int64_t lost = 0;           // under mutex
};

Delivery& TheDelivery() {
  static Delivery delivery;
  return delivery;
}

void GiveBuffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* max_records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(kAlignment, kBufferBytes));
  *bytes = *buffer == nullptr ? 0 : kBufferBytes;
  *max_records = 0;  // as many as there is room for
}

void TakeBuffer(void* /*context*/, std::uint32_t /*stream*/, std::uint8_t* buffer,
                std::size_t /*bytes*/, std::size_t valid_bytes) {
  Delivery& delivery = TheDelivery();
  const std::lock_guard lock(delivery.mutex);
  CuptiKernel* kernel = nullptr;
  while (delivery.next_record(buffer, valid_bytes, &kernel) == kCuptiSuccess) {
    if (kernel->kind != kCuptiConcurrentKernel) continue;
    const char* const name = kernel->name == nullptr ? "unknown" : kernel->name;
    delivery.kernels.push_back({name, kernel->start, kernel->end});
  }
  std::size_t dropped = 0;
  if (delivery.dropped_records(nullptr, 0, &dropped) == kCuptiSuccess) {
    delivery.lost += static_cast<std::int64_t>(dropped);
  }
  std::free(buffer);
}

std::string Demangle(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 ? text.get() : name;
}

}  // namespace

template <typename... Arguments>
int KernelTrace::Call(const char* function, Arguments... arguments) const {
  using Function = int (*)(Arguments...);
  return reinterpret_cast<Function>(dlsym(library_, function))(arguments...);
}

KernelTrace::KernelTrace(const std::vector<std::string>& libraries) {
  for (const std::string& name : libraries) {
    if (library_ == nullptr) library_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  problem_ = WhyNot();
}

std::string KernelTrace::WhyNot() const {
  if (library_ == nullptr) {
    return "CUPTI is not here: libcupti, of the CUDA toolkit or of Python's nvidia-cuda-cupti";
  }
  for (const char* const name :
       {"cuptiActivityRegisterCallbacks", "cuptiActivityEnable", "cuptiActivityDisable",
        "cuptiActivityFlushAll", "cuptiActivityGetNextRecord", "cuptiActivityGetNumDroppedRecords",
        "cuptiGetTimestamp", "cuptiGetResultString"}) {
    if (dlsym(library_, name) == nullptr) return std::string("CUPTI has no ") + name;
  }
  Delivery& delivery = TheDelivery();
  delivery.next_record = reinterpret_cast<decltype(delivery.next_record)>(
      dlsym(library_, "cuptiActivityGetNextRecord"));
  delivery.dropped_records = reinterpret_cast<decltype(delivery.dropped_records)>(
      dlsym(library_, "cuptiActivityGetNumDroppedRecords"));
  int result = Call("cuptiActivityRegisterCallbacks", GiveBuffer, TakeBuffer);
  if (result == kCuptiSuccess) result = Call("cuptiActivityEnable", kCuptiConcurrentKernel);
  if (result == kCuptiSuccess) result = Call("cuptiActivityDisable", kCuptiConcurrentKernel);
  if (result == kCuptiSuccess) return "";
  const char* text = nullptr;
  const bool has_text =
      Call("cuptiGetResultString", result, &text) == kCuptiSuccess && text != nullptr;
  return "CUPTI refuses: " + (has_text ? std::string(text) : "error " + std::to_string(result));
}

KernelTrace::~KernelTrace() {
  if (is_on_) Call("cuptiActivityDisable", kCuptiConcurrentKernel);
}

void KernelTrace::Start() {
  DDL_CHECK(problem_.empty() && !is_on_);
  is_on_ = Call("cuptiGetTimestamp", &start_) == kCuptiSuccess &&
           Call("cuptiActivityEnable", kCuptiConcurrentKernel) == kCuptiSuccess;
  if (!is_on_) throw Error(EX_UNAVAILABLE, "CUPTI has stopped tracing: is there another profiler?");
}

std::vector<TracedKernel> KernelTrace::Take() {
  Delivery& delivery = TheDelivery();
  std::vector<RawKernel> delivered;
  {
    const std::lock_guard lock(delivery.mutex);
    std::swap(delivered, delivery.kernels);
  }
  std::ranges::sort(delivered, {}, &RawKernel::start);
  std::vector<TracedKernel> kernels;
  constexpr double kNanosecond = 1e-9;
  for (const RawKernel& raw : delivered) {
    const auto since_start = static_cast<std::int64_t>(raw.start - start_);
    kernels.push_back({Demangle(raw.name), static_cast<double>(since_start) * kNanosecond,
                       static_cast<double>(raw.end - raw.start) * kNanosecond});
  }
  return kernels;
}

std::vector<TracedKernel> KernelTrace::Stop() {
  if (is_on_) {
    Call("cuptiActivityDisable", kCuptiConcurrentKernel);
    Call("cuptiActivityFlushAll", kFlushForced);
    is_on_ = false;
  }
  return Take();
}

std::int64_t KernelTrace::lost() const {
  Delivery& delivery = TheDelivery();
  const std::lock_guard lock(delivery.mutex);
  return delivery.lost;
}

}  // namespace trainer
