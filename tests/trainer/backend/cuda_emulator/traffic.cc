// SPDX-License-Identifier: Apache-2.0

#include "tests/trainer/backend/cuda_emulator/traffic.h"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "tests/trainer/backend/cuda_emulator/runtime_state.h"

namespace cuda_emulator {
namespace {

// Whole pages.
struct Pages {
  std::byte* begin = nullptr;
  std::size_t bytes = 0;
};

bool counts = false;
Traffic traffic;
std::vector<Pages> device;  // one entry an allocation
std::vector<Pages> opened;  // by this piece of work
struct sigaction before = {};

std::size_t PageSize() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

std::vector<Pages> PagesOfDevice() {
  const std::uintptr_t page = PageSize();
  std::vector<Pages> all;
  for (const auto& [start, bytes] : DeviceAllocations()) {
    const auto first = reinterpret_cast<std::uintptr_t>(start);
    const std::uintptr_t begin = (first + page - 1) / page * page;
    const std::uintptr_t end = (first + bytes) / page * page;
    if (begin < end) all.push_back({reinterpret_cast<std::byte*>(begin), end - begin});
  }
  return all;
}

void Protect(const std::vector<Pages>& all, int access) {
  for (const Pages& pages : all) {
    if (mprotect(pages.begin, pages.bytes, access) != 0) {
      throw std::runtime_error("emulated GPU: mprotect of device memory failed");
    }
  }
}

bool IsWrite([[maybe_unused]] const void* context) {
#ifdef __x86_64__
  constexpr greg_t kWriteBit = 2;  // of a page fault's error code: Intel SDM 3A, 4.7
  return (static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & kWriteBit) != 0;
#else
  return false;
#endif
}

// Lets the access through, and later ones of its kind.  A fault elsewhere is one of the program.
// May allocate: an access to the device's memory is never inside of malloc.
void Count(int /*signal*/, siginfo_t* info, void* context) {
  const std::size_t page = PageSize();
  auto* const address = static_cast<std::byte*>(info->si_addr);
  for (const Pages& pages : device) {
    if (address < pages.begin || address >= pages.begin + pages.bytes) continue;
    std::byte* begin = pages.begin + static_cast<std::size_t>(address - pages.begin) / page * page;
    const bool is_write = IsWrite(context);
    (is_write ? traffic.written : traffic.read) += page;
    opened.push_back({begin, page});
    mprotect(begin, page, is_write ? PROT_READ | PROT_WRITE : PROT_READ);
    return;
  }
  sigaction(SIGSEGV, &before, nullptr);
}

}  // namespace

bool CanCountTraffic() {
#ifdef __x86_64__
  return true;
#else
  return false;
#endif
}

void CountTraffic(bool count) {
  if (counts == count) return;
  counts = count;
  if (!count) {
    Protect(device, PROT_READ | PROT_WRITE);
    sigaction(SIGSEGV, &before, nullptr);
    return;
  }
  traffic = {};
  device = PagesOfDevice();
  opened = device;
  struct sigaction action = {};
  action.sa_sigaction = Count;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, &before);
}

Traffic TrafficSoFar() { return traffic; }

void RunCounted(const std::function<void()>& work) {
  if (counts) {
    Protect(opened, PROT_NONE);
    opened.clear();
  }
  work();
}

}  // namespace cuda_emulator
