// SPDX-License-Identifier: Apache-2.0
//
// A libcupti for kernel_trace.cc on a machine without a GPU: RunKernel stands for a kernel.  Like
// CUPTI it hands a buffer over when it is full, here with the third kernel, or when it is told to.
// Where FAKE_CUPTI_REFUSES is set it refuses, as CUPTI does without the right to profile.

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "trainer/telemetry/meters/kernel_trace.h"

namespace {

using trainer::CuptiKernel;

constexpr int kNoRight = 35;   // CUPTI_ERROR_INSUFFICIENT_PRIVILEGES
constexpr int kNoRecord = 12;  // CUPTI_ERROR_MAX_LIMIT_REACHED
constexpr std::size_t kMaxKernels = 3;
constexpr std::uint64_t kNow = 1'000'000'000;

using Request = void (*)(std::uint8_t**, std::size_t*, std::size_t*);
using Complete = void (*)(void*, std::uint32_t, std::uint8_t*, std::size_t, std::size_t);

Request request;
Complete complete;
bool is_on;
std::uint8_t* buffer;
std::size_t buffer_bytes;
std::size_t count;
std::size_t dropped;

void HandOver() {
  if (buffer == nullptr) return;
  complete(nullptr, 0, buffer, buffer_bytes, count * sizeof(CuptiKernel));
  buffer = nullptr;
  count = 0;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): NVIDIA's names.
extern "C" {

int cuptiActivityRegisterCallbacks(Request on_request, Complete on_complete) {
  request = on_request;
  complete = on_complete;
  return 0;
}

int cuptiActivityEnable(int kind) {
  if (std::getenv("FAKE_CUPTI_REFUSES") != nullptr) return kNoRight;
  is_on = kind == trainer::kCuptiConcurrentKernel;
  return 0;
}

int cuptiActivityDisable(int /*kind*/) {
  is_on = false;
  return 0;
}

int cuptiActivityFlushAll(std::uint32_t flag) {
  if (flag == 1) HandOver();
  return 0;
}

int cuptiActivityGetNextRecord(std::uint8_t* from, std::size_t valid_bytes, CuptiKernel** record) {
  auto* const next = *record == nullptr ? reinterpret_cast<CuptiKernel*>(from) : *record + 1;
  if (reinterpret_cast<std::uint8_t*>(next) >= from + valid_bytes) return kNoRecord;
  *record = next;
  return 0;
}

int cuptiActivityGetNumDroppedRecords(void* /*context*/, std::uint32_t /*stream*/,
                                      std::size_t* number) {
  *number = dropped;
  dropped = 0;
  return 0;
}

int cuptiGetTimestamp(std::uint64_t* time) {
  *time = kNow;
  return 0;
}

int cuptiGetResultString(int result, const char** text) {
  *text = result == kNoRight ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES" : "?";
  return 0;
}

// Both times in nanoseconds.
void RunKernel(const char* name, std::uint64_t begin, std::uint64_t length) {
  if (!is_on) return;
  if (buffer == nullptr) {
    std::size_t max = 1;
    request(&buffer, &buffer_bytes, &max);
  }
  CuptiKernel kernel = {};
  kernel.kind = trainer::kCuptiConcurrentKernel;
  kernel.start = kNow + begin;
  kernel.end = kernel.start + length;
  kernel.name = name;
  std::memcpy(buffer + count * sizeof(kernel), &kernel, sizeof(kernel));
  if (++count == kMaxKernels) HandOver();
}

void LoseKernels(std::size_t number) { dropped += number; }

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
