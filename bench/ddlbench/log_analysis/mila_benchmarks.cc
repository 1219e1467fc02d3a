// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/log_analysis/mila_benchmarks.h"

#include <algorithm>
#include <array>

namespace bench {
namespace {

constexpr std::array kBenchmarks = {
    MilaBenchmark{"convnet", MilaKind::kOne, 64, false},
    MilaBenchmark{"convnet_fp16", MilaKind::kOne, 128, true},
    MilaBenchmark{"convnet_distributed", MilaKind::kDistributed, 64, false},
    MilaBenchmark{"convnet_distributed_fp16", MilaKind::kDistributed, 128, true},
    MilaBenchmark{"loader", MilaKind::kLoader, 256, false},
};

}  // namespace

MilaBenchmark MilaBenchmarkOf(std::string_view name) {
  const auto* const found =
      std::find_if(kBenchmarks.begin(), kBenchmarks.end(),
                   [&](const MilaBenchmark& benchmark) { return benchmark.name == name; });
  return found != kBenchmarks.end() ? *found : kBenchmarks.front();
}

}  // namespace bench
