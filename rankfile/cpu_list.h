// SPDX-License-Identifier: Apache-2.0
//
// CPU lists as the Linux kernel writes them, "0-3,8", with the strides of taskset, "10-14:2".
// Grammar and test vectors: rankfile/README.md, "CPU list".  Pure functions, safe from any thread.

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rankfile {

inline constexpr int kMaxCpu = 65535;  // largest CPU number; the kernel's limit is 8191

// The CPU numbers, ascending, each once. "" gives none (a NUMA node without CPUs). Blanks and line
// ends after the list are ignored, as sysfs ends its files with one.
// Throws ParseError at the first bad character, and when more than kMaxCpu + 1 numbers are written.
std::vector<int> ParseCpuList(std::string_view text, std::string_view source = "cpu list");

// The shortest list without strides, as the kernel writes it: "0-3,8".  Order and duplicates do not
// matter.  REQUIRES: each number in [0, kMaxCpu].
std::string FormatCpuList(std::vector<int> cpus);

}  // namespace rankfile
