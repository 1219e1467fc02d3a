// SPDX-License-Identifier: Apache-2.0

#include "launcher/topology/gpus_of_node.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

namespace launcher {
namespace {

constexpr char kDigits[] = "0123456789";
constexpr char kPrefix[] = "nvidia";
constexpr size_t kPrefixLength = sizeof(kPrefix) - 1;
constexpr size_t kLongestRange = 11;
constexpr long kMaxGpus = 99999;  // two such numbers are the longest range

bool IsGpuDevice(const char* name) {
  if (strncmp(name, kPrefix, kPrefixLength) != 0) return false;
  const char* number = name + kPrefixLength;
  return *number != '\0' && number[strspn(number, kDigits)] == '\0';
}

// The part of a list before its first comma: one entry, or a range of numbers.
struct Part {
  size_t length;
  int first;  // -1: no number
  int count;
};

Part FirstPart(const char* list) {
  Part part = {strcspn(list, ","), -1, 1};
  const size_t first = strspn(list, kDigits);
  const size_t last = list[first] == '-' ? strspn(list + first + 1, kDigits) : 0;
  if (part.length > kLongestRange || first == 0) return part;
  const bool is_range = last > 0 && first + 1 + last == part.length;
  if (first != part.length && !is_range) return part;
  char* end = nullptr;
  const long begin = strtol(list, &end, 10);
  const long until = is_range ? strtol(end + 1, &end, 10) : begin;
  if (end != list + part.length || begin > kMaxGpus || until > kMaxGpus) return part;
  part.first = static_cast<int>(begin);
  part.count = static_cast<int>(until - begin) + 1;
  return part;
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

bool AreGpuSlices(const char* list) { return strncmp(list + strspn(list, " \t"), "MIG-", 4) == 0; }

int CountGpuEntries(const char* list) {
  int count = 0;
  while (*list != '\0') {
    const Part part = FirstPart(list);
    count += part.count;
    list += part.length;
    if (*list == ',') ++list;
  }
  return count;
}

int GpuNumberAt(const char* list, int position) {
  while (*list != '\0') {
    const Part part = FirstPart(list);
    if (position < part.count) return part.first < 0 ? -1 : part.first + position;
    position -= part.count;
    list += part.length;
    if (*list == ',') ++list;
  }
  return -1;
}

GpuEntry GpuEntryAt(const char* list, int position) {
  GpuEntry entry = {};
  int count = 1;
  for (const char* c = list; *c != '\0'; ++c) count += *c == ',' ? 1 : 0;
  for (position %= count; position > 0; --position) list += strcspn(list, ",") + 1;
  list += strspn(list, " \t");
  const size_t length = strcspn(list, ", \t");
  if (length < sizeof(entry.text)) memcpy(entry.text, list, length);
  return entry;
}

}  // namespace launcher
