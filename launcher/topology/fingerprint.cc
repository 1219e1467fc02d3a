// SPDX-License-Identifier: Apache-2.0
#include "launcher/topology/fingerprint.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace launcher {
namespace {

class Text {
 public:
  explicit Text(Fingerprint* to) : to_(to) { to->text[0] = '\0'; }
  __attribute__((format(printf, 2, 3))) void Add(const char* format, ...) {
    const size_t room = sizeof(to_->text) - length_;
    va_list arguments;
    va_start(arguments, format);
    const int needed = vsnprintf(to_->text + length_, room, format, arguments);
    va_end(arguments);
    is_whole_ = is_whole_ && needed >= 0 && static_cast<size_t>(needed) < room;
    if (is_whole_) length_ += static_cast<size_t>(needed);
  }
  bool is_whole() const { return is_whole_; }

 private:
  Fingerprint* to_;
  size_t length_ = 0;
  bool is_whole_ = true;
};

// The first line of a file; those of /sys have only one.
struct Line {
  char text[4096];

  __attribute__((format(printf, 2, 3))) explicit Line(const char* format, ...) {
    char path[PATH_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(path, sizeof(path), format, arguments);
    va_end(arguments);
    const int fd = open(path, O_RDONLY);  // needs no O_CLOEXEC: no program is started meanwhile
    const ssize_t got = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0) close(fd);
    text[got > 0 ? got : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
  }
  bool empty() const { return text[0] == '\0'; }
};

// Calls `use` with the names in a directory, in order.
template <typename Use>
void ForEachName(const char* root, const char* path, const Use& use) {
  char directory[PATH_MAX];
  snprintf(directory, sizeof(directory), "%s%s", root, path);
  dirent** names = nullptr;
  const int count = scandir(
      directory, &names, [](const dirent* entry) { return entry->d_name[0] != '.' ? 1 : 0; },
      [](const dirent** a, const dirent** b) { return strcmp((*a)->d_name, (*b)->d_name); });
  for (int i = 0; i < count; ++i) {
    use(names[i]->d_name);
    free(names[i]);
  }
  free(names);
}

// In hexadecimal, lowest CPU first.
void AddAllowedCpus(Text* text) {
  unsigned long mask[kMaxCpus / kWordBits] = {};
  if (sched_getaffinity(0, sizeof(mask), reinterpret_cast<cpu_set_t*>(mask)) != 0) return;
  size_t digits = kMaxCpus / 4;
  const auto digit = [&mask](size_t i) { return mask[i * 4 / kWordBits] >> (i * 4 % kWordBits); };
  while (digits > 0 && (digit(digits - 1) & 0xf) == 0) --digits;
  for (size_t i = 0; i < digits; ++i) text->Add("%lx", digit(i) & 0xf);
}

bool IsNodeName(const char* name) {
  return strncmp(name, "node", 4) == 0 && name[4] != '\0' &&
         name[4 + strspn(name + 4, "0123456789")] == '\0';
}

}  // namespace

void ReadFingerprint(const char* root, Fingerprint* fingerprint) {
  Text text(fingerprint);
  text.Add("allowed=");
  AddAllowedCpus(&text);
  const Line online("%s/sys/devices/system/cpu/online", root);
  const Line threads("%s/sys/devices/system/cpu/cpu0/topology/thread_siblings_list", root);
  text.Add(" online=%s threads=%s", online.text, threads.text);
  ForEachName(root, "/sys/devices/system/node", [&](const char* name) {
    if (!IsNodeName(name)) return;
    // On POWER9 the memory of a GPU is a NUMA node without CPUs, which no plan uses.
    const Line cpus("%s/sys/devices/system/node/%s/cpulist", root, name);
    if (!cpus.empty()) text.Add(" %s=%s", name, cpus.text);
  });
  ForEachName(root, "/sys/bus/pci/devices", [&](const char* address) {
    const auto read = [&](const char* what) {
      return Line("%s/sys/bus/pci/devices/%s/%s", root, address, what);
    };
    if (strcmp(read("vendor").text, "0x10de") != 0) return;
    if (strncmp(read("class").text, "0x03", 4) != 0) return;
    text.Add(" %s@%s", address, read("numa_node").text);
  });
  const bool is_known = strncmp(fingerprint->text, "allowed= ", 9) != 0 && !online.empty();
  if (!is_known || !text.is_whole()) {
    snprintf(fingerprint->text, sizeof(fingerprint->text), "unknown %d",
             static_cast<int>(getpid()));
  }
}

}  // namespace launcher
