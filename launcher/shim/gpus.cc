// SPDX-License-Identifier: Apache-2.0

#include "launcher/shim/gpus.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

namespace launcher {
namespace {

constexpr char kDigits[] = "0123456789";
constexpr char kPrefix[] = "nvidia";
constexpr size_t kPrefixLength = sizeof(kPrefix) - 1;
constexpr size_t kLongestRange = 11;

bool IsGpuDevice(const char* name) {
  if (strncmp(name, kPrefix, kPrefixLength) != 0) return false;
  const char* number = name + kPrefixLength;
  return *number != '\0' && number[strspn(number, kDigits)] == '\0';
}

}  // namespace

int CountGpuDevices() {
  DIR* directory = opendir("/dev");
  if (directory == nullptr) return 0;
  int count = 0;
  while (const dirent* entry = readdir(directory)) count += IsGpuDevice(entry->d_name) ? 1 : 0;
  closedir(directory);
  return count;
}

int CountGpuEntries(const char* list) {
  int count = 0;
  while (*list != '\0') {
    const size_t length = strcspn(list, ",");
    const size_t first = strspn(list, kDigits);
    const size_t last = list[first] == '-' ? strspn(list + first + 1, kDigits) : 0;
    const bool is_range =
        first > 0 && last > 0 && first + 1 + last == length && length <= kLongestRange;
    count += is_range ? atoi(list + first + 1) - atoi(list) + 1 : 1;
    list += length;
    if (*list == ',') ++list;
  }
  return count;
}

}  // namespace launcher
