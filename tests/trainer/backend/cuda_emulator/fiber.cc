// SPDX-License-Identifier: Apache-2.0

// Its longjmp takes a jump to another stack for a mistake.
#undef _FORTIFY_SOURCE

#include "tests/trainer/backend/cuda_emulator/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <new>
#include <utility>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#else
namespace {
inline void __sanitizer_start_switch_fiber(void** /*save*/, const void* /*stack*/, std::size_t) {}
inline void __sanitizer_finish_switch_fiber(void* /*saved*/, const void**, std::size_t*) {}
}  // namespace
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

Fiber::~Fiber() { munmap(memory_, PageBytes() + kStackBytes); }

// setcontext is a system call each time; _setjmp and _longjmp are not, so it does the first only.
void Fiber::Resume() {
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(&fake_stack, stack_, kStackBytes);
  if (_setjmp(caller_) == 0) {
    if (started_) _longjmp(own_, 1);
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

void Fiber::Suspend() {
  __sanitizer_start_switch_fiber(&own_fake_stack_, caller_stack_, caller_stack_bytes_);
  if (_setjmp(own_) == 0) _longjmp(caller_, 1);
  __sanitizer_finish_switch_fiber(own_fake_stack_, &caller_stack_, &caller_stack_bytes_);
}

void Fiber::Start(unsigned high, unsigned low) {
  const auto address = static_cast<std::uintptr_t>(std::uint64_t{high} << 32 | low);
  auto* self = reinterpret_cast<Fiber*>(address);
  __sanitizer_finish_switch_fiber(nullptr, &self->caller_stack_, &self->caller_stack_bytes_);
  self->body_();
}

}  // namespace cuda_emulator
