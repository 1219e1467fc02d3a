// SPDX-License-Identifier: Apache-2.0

#include "scaling/gpus.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace scaling {
namespace {

// The first whose name is a part of what was asked for counts.
constexpr Gpu kGpus[] = {
    {"h200", 9455, 4206, 0, 700, 141, "nvlink4", "measured with ddltraind (doc/performance.md)"},
    {"h100", 7854, 0, 0, 700, 80, "nvlink4", "measured with ddltraind (doc/performance.md)"},
    {"a100", 2470, 938, 0, 400, 40, "nvlink3",
     "published for NVIDIA's PyTorch trainer on a DGX A100, not measured with ddltraind"},
    {"v100", 1270, 0, 367, 300, 16, "nvlink2",
     "published for NVIDIA's TensorFlow (fp16) and PyTorch (fp32) trainers on a DGX-1, not "
     "measured "
     "with ddltraind"},
};

}  // namespace

const Gpu* FindGpu(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto found = std::ranges::find_if(
      kGpus, [&](const Gpu& gpu) { return lower.find(gpu.name) != std::string::npos; });
  return found == std::end(kGpus) ? nullptr : &*found;
}

double SpeedOf(const Gpu& gpu, std::string_view precision) {
  if (precision == "fp16" || precision == "bf16" || precision == "amp") return gpu.half;
  if (precision == "tf32") return gpu.tf32;
  return precision == "fp32" ? gpu.fp32 : 0;
}

}  // namespace scaling
