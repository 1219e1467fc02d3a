// SPDX-License-Identifier: Apache-2.0

#include "tests/trainer/backend/cuda_emulator/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <new>
#include <utility>

#ifdef DDLRUN_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#else
namespace {
inline void __sanitizer_start_switch_fiber(void** /*save*/, const void* /*stack*/, std::size_t) {}
inline void __sanitizer_finish_switch_fiber(void* /*saved*/, const void**, std::size_t*) {}
inline void __asan_unpoison_memory_region(const void* /*memory*/, std::size_t) {}
}  // namespace
#endif

// Before a jump AddressSanitizer would forget all that it knows of this stack: two system calls,
// each time, for a stack that is left as it stands.
#define WITHOUT_ADDRESS_SANITIZER __attribute__((no_sanitize("address")))

// Whoever calls these knows nothing of what they leave in registers, and has no part of them in
// itself, not with -flto either, for a jump comes back with those of another fiber.
#ifdef __clang__
#define BY_ITSELF [[gnu::noinline]]
#else
#define BY_ITSELF [[gnu::noipa]]
#endif

namespace cuda_emulator {
namespace {

constexpr std::size_t kStackBytes = std::size_t{128} << 10;

std::size_t PageBytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)) {
  void* memory = mmap(nullptr, PageBytes() + kStackBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  memory_ = static_cast<std::byte*>(memory);
  stack_ = memory_ + PageBytes();
  mprotect(memory_, PageBytes(), PROT_NONE);
}

Fiber::~Fiber() {
  __asan_unpoison_memory_region(
      stack_, kStackBytes);  // it ends unfinished, and others will use these addresses
  munmap(memory_, PageBytes() + kStackBytes);
}

// A function of its own: __builtin_longjmp must not stand where __builtin_setjmp does.
BY_ITSELF WITHOUT_ADDRESS_SANITIZER void Fiber::JumpTo(JumpBuffer& place) {
  __builtin_longjmp(place.data(), 1);
}

// setcontext is a system call each time, so it does the first switch only. The C library's longjmp
// is made unfit for a jump to another stack by _FORTIFY_SOURCE, and slow by AddressSanitizer: the
// compiler's own is neither.
BY_ITSELF WITHOUT_ADDRESS_SANITIZER void Fiber::Resume() {
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(&fake_stack, stack_, kStackBytes);
  if (__builtin_setjmp(caller_.data()) == 0) {
    if (started_) JumpTo(own_);
    started_ = true;
    getcontext(&start_);
    start_.uc_stack.ss_sp = stack_;
    start_.uc_stack.ss_size = kStackBytes;
    // makecontext passes ints: a pointer goes in two halves.
    const auto self = reinterpret_cast<std::uintptr_t>(this);
    makecontext(&start_, reinterpret_cast<void (*)()>(&Fiber::Start), 2,
                static_cast<unsigned>(std::uint64_t{self} >> 32), static_cast<unsigned>(self));
    setcontext(&start_);
  }
  __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
}

BY_ITSELF WITHOUT_ADDRESS_SANITIZER void Fiber::Suspend() {
  __sanitizer_start_switch_fiber(&own_fake_stack_, caller_stack_, caller_stack_bytes_);
  if (__builtin_setjmp(own_.data()) == 0) JumpTo(caller_);
  __sanitizer_finish_switch_fiber(own_fake_stack_, &caller_stack_, &caller_stack_bytes_);
}

void Fiber::Start(unsigned high, unsigned low) {
  const auto address = static_cast<std::uintptr_t>(std::uint64_t{high} << 32 | low);
  auto* self = reinterpret_cast<Fiber*>(address);
  __sanitizer_finish_switch_fiber(nullptr, &self->caller_stack_, &self->caller_stack_bytes_);
  self->body_();
}

}  // namespace cuda_emulator
