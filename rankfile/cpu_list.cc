// SPDX-License-Identifier: Apache-2.0

#include "rankfile/cpu_list.h"

#include <algorithm>

#include "rankfile/scanner.h"

namespace rankfile {

namespace {

constexpr std::string_view kCpuListExample = "0-3,8,10-14:2";

void SortUnique(std::vector<int>& numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

// Reads one item, "8", "0-3" or "10-14:2", into `cpus`.
void ReadItem(Scanner& scanner, std::vector<int>& cpus) {
  const Position start = scanner.Here();
  const int first = scanner.ReadNumber("a CPU number", 0, kMaxCpu);
  int last = first;
  int stride = 1;
  if (scanner.Eat('-')) {
    last = scanner.ReadNumber("a CPU number", 0, kMaxCpu);
    if (scanner.Eat(':')) stride = scanner.ReadNumber("a stride", 1, kMaxCpu);
  }
  if (last < first) {
    scanner.FailAt(start, "the range " + std::to_string(first) + "-" + std::to_string(last) +
                              " runs backwards; write " + std::to_string(last) + "-" +
                              std::to_string(first));
  }
  for (int cpu = first; cpu <= last; cpu += stride) cpus.push_back(cpu);
  if (cpus.size() > kMaxCpu + 1) {
    scanner.FailAt(start, "the list names more than " + std::to_string(kMaxCpu + 1) +
                              " CPUs from here on; write each number once");
  }
}

}  // namespace

std::vector<int> ParseCpuList(std::string_view text, std::string_view source) {
  Scanner scanner(text, source);
  std::vector<int> cpus;
  if (!scanner.AtEnd() && scanner.Peek() != '\n') {
    do {
      ReadItem(scanner, cpus);
    } while (scanner.Eat(','));
  }
  scanner.ExpectEnd(kCpuListExample);
  SortUnique(cpus);
  return cpus;
}

std::string FormatCpuList(std::vector<int> cpus) {
  SortUnique(cpus);
  std::string text;
  for (std::size_t i = 0; i < cpus.size(); ++i) {
    std::size_t end = i;
    while (end + 1 < cpus.size() && cpus[end + 1] == cpus[end] + 1) ++end;
    if (!text.empty()) text += ',';
    text += std::to_string(cpus[i]);
    if (end > i) text += '-' + std::to_string(cpus[end]);
    i = end;
  }
  return text;
}

}  // namespace rankfile
