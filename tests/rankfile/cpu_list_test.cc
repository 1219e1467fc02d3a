// SPDX-License-Identifier: Apache-2.0

#include "rankfile/cpu_list.h"

#include <gtest/gtest.h>

#include <sstream>

#include "rankfile/parse_error.h"
#include "tests/rankfile/readme_vectors.h"

namespace rankfile {
namespace {

TEST(CpuList, ParsesAndRefusesAsTheReadmeSays) {
  CheckReadmeVectors("cpu-list-parse", [](const std::string& text) {
    std::string numbers;
    for (const int cpu : ParseCpuList(text)) {
      if (!numbers.empty()) numbers += ' ';
      numbers += std::to_string(cpu);
    }
    return numbers;
  });
}

TEST(CpuList, FormatsAsTheReadmeSays) {
  CheckReadmeVectors("cpu-list-format", [](const std::string& text) {
    std::istringstream numbers(text);
    std::vector<int> cpus;
    for (int cpu = 0; numbers >> cpu;) cpus.push_back(cpu);
    return FormatCpuList(cpus);
  });
}

TEST(CpuList, TakesEveryCpuThereMayBe) {
  EXPECT_EQ(FormatCpuList(ParseCpuList("0-65535")), "0-65535");
}

}  // namespace
}  // namespace rankfile
