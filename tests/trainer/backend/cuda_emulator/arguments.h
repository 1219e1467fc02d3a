// SPDX-License-Identifier: Apache-2.0
//
// A GPU fails at an address of the host's memory, and a CPU that stands in for it does not: the
// arguments of a launch are looked through for such addresses.

#pragma once

#include <cstddef>
#include <string>
#include <type_traits>

#include "tests/trainer/backend/cuda_emulator/runtime_api.h"

namespace cuda_emulator {

// The first word of those `bytes` that is an address of this process, from 2^45 on, but of no
// memory that a kernel may use (IsForKernels); null if there is none.  Below that, where
// AddressSanitizer has memory of its own and POWER programs, two small integers would be taken for
// an address.
const void* FindHostAddress(const void* argument, std::size_t bytes);

// "emulated kernel: argument 2 is or holds 0x7ffd..., ..."
[[noreturn]] void RejectHostAddress(std::size_t number, const void* address);

// Whether arguments that are no pointers are looked into: what was on the stack before may be an
// address, and clang leaves it in the gaps between members.
#if __has_builtin(__builtin_clear_padding)
inline constexpr bool kLooksIntoStructs = true;
#else
inline constexpr bool kLooksIntoStructs = false;
#endif

// Throws std::runtime_error for the first argument, counted from 1, that is or holds an address of
// the host.
template <typename... Arguments>
void CheckArguments(Arguments... arguments) {
  std::size_t number = 0;
  [[maybe_unused]] const auto check = [&number](auto argument) {
    using Argument = decltype(argument);
    static_assert(std::is_trivially_copyable_v<Argument>);
    ++number;
    if constexpr (std::is_pointer_v<Argument>) {
      if (argument != nullptr && !IsForKernels(argument)) RejectHostAddress(number, argument);
    }
#if __has_builtin(__builtin_clear_padding)
    __builtin_clear_padding(&argument);
    const void* const found = FindHostAddress(&argument, sizeof(argument));
    if (found != nullptr) RejectHostAddress(number, found);
#endif
  };
  (check(arguments), ...);
}

}  // namespace cuda_emulator
