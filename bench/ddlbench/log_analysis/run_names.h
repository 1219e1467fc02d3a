// SPDX-License-Identifier: Apache-2.0
//
// How DLPerf names what is measured: a case is a directory <nodes>n<GPUs per node>g, a run of it a
// file <model>_b<batch per GPU>_<precision>_<repeat>.log in that directory.  Pure.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace bench {

struct Case {
  int nodes = 0;
  int gpus = 0;  // on each node

  int ranks() const { return nodes * gpus; }
  bool operator==(const Case&) const = default;
};

// By ranks, then by nodes.
bool operator<(const Case& a, const Case& b);

std::string NameOf(const Case& name);

// "2n8g"; nothing for another text.  Numbers are 1 to 9999.
std::optional<Case> ParseCase(std::string_view text);

// DLPerf's extractors read one digit of nodes and two of GPUs.
bool FitsDlperf(const Case& name);

struct RunName {
  std::string model;       // "r50"
  std::int64_t batch = 0;  // per GPU
  std::string precision;
  int repeat = 0;  // from 1
};

std::string FileNameOf(const RunName& name);

// "r50_b128_fp32_1.log"; nothing for another text.
std::optional<RunName> ParseRunName(std::string_view text);

}  // namespace bench
