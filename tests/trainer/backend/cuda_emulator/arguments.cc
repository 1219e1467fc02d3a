// SPDX-License-Identifier: Apache-2.0

#include "tests/trainer/backend/cuda_emulator/arguments.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <sstream>
#include <stdexcept>

namespace cuda_emulator {
namespace {

constexpr std::uintptr_t kLowest = std::uintptr_t{1} << 45;

// Whether this process has memory there.
bool IsMapped(std::uintptr_t address) {
  static const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  unsigned char is_resident = 0;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): it may be none
  return mincore(reinterpret_cast<void*>(address / page * page), 1, &is_resident) == 0;
}

}  // namespace

const void* FindHostAddress(const void* argument, std::size_t bytes) {
  const auto* words = static_cast<const std::byte*>(argument);
  for (std::size_t at = 0; at + sizeof(std::uintptr_t) <= bytes; at += sizeof(std::uintptr_t)) {
    std::uintptr_t word = 0;
    std::memcpy(&word, words + at, sizeof word);
    if (word < kLowest || !IsMapped(word)) continue;
    const void* const address = reinterpret_cast<const void*>(word);  // NOLINT: the same
    if (!IsForKernels(address)) return address;
  }
  return nullptr;
}

void RejectHostAddress(std::size_t number, const void* address) {
  std::ostringstream text;
  text << "emulated kernel: argument " << number << " is or holds " << address
       << ", an address of the host's memory, at which a GPU would fail";
  throw std::runtime_error(text.str());
}

}  // namespace cuda_emulator
