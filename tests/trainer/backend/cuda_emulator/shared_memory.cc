// SPDX-License-Identifier: Apache-2.0

#include "tests/trainer/backend/cuda_emulator/shared_memory.h"

#include <link.h>

#include <algorithm>
#include <cstring>

namespace cuda_emulator {
namespace {

// Of the first object that the dynamic linker lists: the program itself.
int FindThreadLocalMemory(dl_phdr_info* info, std::size_t /*bytes*/, void* result) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    if (header.p_type != PT_TLS || info->dlpi_tls_data == nullptr) continue;
    *static_cast<std::span<std::byte>*>(result) = {static_cast<std::byte*>(info->dlpi_tls_data),
                                                   header.p_memsz};
  }
  return 1;
}

}  // namespace

SharedMemory::SharedMemory() {
  dl_iterate_phdr(FindThreadLocalMemory, &memory_);
  saved_.assign(memory_.begin(), memory_.end());
}

SharedMemory::~SharedMemory() { std::ranges::copy(saved_, memory_.begin()); }

// Not std::ranges::fill: a sanitizer looks at each of its bytes, a third of the time of these
// tests.
void SharedMemory::Poison() { std::memset(memory_.data(), 0xFF, memory_.size()); }

}  // namespace cuda_emulator
