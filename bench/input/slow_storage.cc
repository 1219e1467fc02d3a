// SPDX-License-Identifier: Apache-2.0
//
// LD_PRELOAD=slow_storage.so makes each pread of a file below the directory SLOW_STORAGE_DIR take
// SLOW_STORAGE_MS milliseconds longer, as a shared file system does, whatever else is being read.

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>
#include <string_view>

#include "support/number.h"

namespace {

struct Settings {
  std::string directory;  // ends with a slash
  timespec pause{};
};

Settings ReadSettings() {
  const char* directory = std::getenv("SLOW_STORAGE_DIR");
  const char* milliseconds = std::getenv("SLOW_STORAGE_MS");
  if (directory == nullptr || milliseconds == nullptr) return {};
  constexpr long kNanoseconds = 1'000'000'000;
  const long pause = support::WholeNumber<long>(milliseconds).value_or(0) * 1'000'000;
  return {std::string(directory) + "/", {pause / kNanoseconds, pause % kNanoseconds}};
}

void WaitAsStorageDoes(int file) {
  static const Settings settings = ReadSettings();
  if (settings.pause.tv_sec == 0 && settings.pause.tv_nsec == 0) return;
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  std::array<char, 4096> path{};
  const ssize_t length = ::readlink(link.c_str(), path.data(), path.size());
  if (length < 0) return;
  if (std::string_view(path.data(), static_cast<std::size_t>(length))
          .starts_with(settings.directory))
    ::clock_nanosleep(CLOCK_MONOTONIC, 0, &settings.pause, nullptr);
}

ssize_t SlowRead(int file, void* bytes, std::size_t size, long offset) {
  WaitAsStorageDoes(file);
  return ::syscall(SYS_pread64, file, bytes, size, offset);
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the C library's names
extern "C" ssize_t pread(int file, void* bytes, std::size_t size, off_t offset) {
  return SlowRead(file, bytes, size, offset);
}
extern "C" ssize_t pread64(int file, void* bytes, std::size_t size, off64_t offset) {
  return SlowRead(file, bytes, size, offset);
}
// NOLINTEND(readability-identifier-naming)
