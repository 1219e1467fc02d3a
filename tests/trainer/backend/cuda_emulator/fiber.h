// SPDX-License-Identifier: Apache-2.0
//
// A function on a stack of its own that can stop in its middle and be continued later.  One OS
// thread at a time; while it holds an exception, or the address of something thread-local, always
// the same.

#pragma once

#include <ucontext.h>

#include <array>
#include <cstddef>
#include <functional>

namespace cuda_emulator {

class Fiber {
 public:
  // `body` starts with the first Resume and must never return nor throw.  It ends with the fiber,
  // unfinished: nothing on its stack may need a destructor then.
  explicit Fiber(std::function<void()> body);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs the body until it suspends itself.  Not from inside a fiber.
  void Resume();
  // Returns to Resume.  From inside the body.
  void Suspend();

 private:
  // What __builtin_setjmp fills: five words (GCC manual, "Nonlocal Gotos").
  using JumpBuffer = std::array<void*, 5>;

  static void Start(unsigned high, unsigned low);
  [[noreturn]] static void JumpTo(JumpBuffer& place);

  std::function<void()> body_;
  std::byte* memory_ = nullptr;  // a guard page, then the stack
  std::byte* stack_ = nullptr;
  ucontext_t start_{};
  bool started_ = false;
  JumpBuffer own_{};
  JumpBuffer caller_{};
  // What AddressSanitizer is told of a switch; unused without it.
  void* own_fake_stack_ = nullptr;
  const void* caller_stack_ = nullptr;
  std::size_t caller_stack_bytes_ = 0;
};

}  // namespace cuda_emulator
