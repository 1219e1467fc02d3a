// SPDX-License-Identifier: Apache-2.0
//
// ddlrun-rank-energy, which the first shim of a node starts beside its rank, and ddlrun beside
// ranks of its own (launcher/shim/energy_meter.h): sums up NVML's counters of energy over the GPUs
// of the job on this node.
//
//   ddlrun-rank-energy GPUS [VISIBLE]
//
// The job has the first GPUS of the node, or of VISIBLE, CUDA_VISIBLE_DEVICES.  It prints
// kEnergyIsReady once the counters were read, and when its standard input ends the millijoules
// since then, with a line end.  It prints no sum where any of the GPUs has no counter (before
// Volta), or is divided into slices (MIG), which may be those of other jobs.

#include <sysexits.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "launcher/allocation/visible_gpus.h"
#include "launcher/health/node/nvml.h"
#include "launcher/shim/energy_meter.h"
#include "support/number.h"

namespace launcher {
namespace {

// As nvml.h has them.
constexpr std::size_t kUuidBytes = 96;
constexpr unsigned kMigIsEnabled = 1;

// All GPUs that NVML lists; none where one of them does not answer, since CUDA's numbers of those
// after it are not known then.
std::vector<NvmlDevice> AllGpus(const NvmlLibrary& nvml) {
  unsigned count = 0;
  if (!nvml.Call("nvmlDeviceGetCount_v2", &count)) return {};
  std::vector<NvmlDevice> gpus(count);
  for (unsigned index = 0; index < count; ++index) {
    if (!nvml.Call("nvmlDeviceGetHandleByIndex_v2", index, &gpus[index])) return {};
  }
  return gpus;
}

std::vector<std::string> UuidsOf(const NvmlLibrary& nvml, const std::vector<NvmlDevice>& gpus) {
  std::vector<std::string> uuids;
  for (NvmlDevice gpu : gpus) {
    std::array<char, kUuidBytes> uuid = {};
    nvml.Call("nvmlDeviceGetUUID", gpu, uuid.data(), static_cast<unsigned>(uuid.size()));
    uuids.emplace_back(uuid.data());
  }
  return uuids;
}

// None where it is not known which they are.
std::vector<NvmlDevice> GpusOfJob(const NvmlLibrary& nvml, std::size_t count, const char* visible) {
  const std::vector<NvmlDevice> all = AllGpus(nvml);
  std::vector<NvmlDevice> gpus = visible == nullptr ? all : std::vector<NvmlDevice>();
  if (visible != nullptr && !HasGpuSlices(visible)) {
    for (const int index : VisibleGpus(visible, UuidsOf(nvml, all))) {
      if (index < 0) return {};
      gpus.push_back(all[static_cast<std::size_t>(index)]);
    }
  }
  gpus.resize(std::min(gpus.size(), count));
  return gpus;
}

bool HasSlices(const NvmlLibrary& nvml, NvmlDevice gpu) {
  unsigned mode = 0;
  unsigned pending = 0;
  return nvml.Call("nvmlDeviceGetMigMode", gpu, &mode, &pending) && mode == kMigIsEnabled;
}

// nullopt where one has no counter.
std::optional<unsigned long long> Millijoules(const NvmlLibrary& nvml,
                                              const std::vector<NvmlDevice>& gpus) {
  unsigned long long sum = 0;
  for (NvmlDevice gpu : gpus) {
    unsigned long long millijoules = 0;
    if (!nvml.Call("nvmlDeviceGetTotalEnergyConsumption", gpu, &millijoules)) return std::nullopt;
    sum += millijoules;
  }
  return sum;
}

void WaitForEnd() {
  std::array<char, 16> ignored = {};
  for (;;) {
    const ssize_t got = read(STDIN_FILENO, ignored.data(), ignored.size());
    if (got == 0 || (got < 0 && errno != EINTR)) return;
  }
}

void Measure(std::size_t count, const char* visible) {
  const NvmlLibrary nvml("libnvidia-ml.so.1");
  if (!nvml.is_open() || !nvml.Call("nvmlInit_v2")) return;
  const std::vector<NvmlDevice> gpus = GpusOfJob(nvml, count, visible);
  const bool has_slices =
      std::ranges::any_of(gpus, [&nvml](NvmlDevice gpu) { return HasSlices(nvml, gpu); });
  const auto before = Millijoules(nvml, gpus);
  if (gpus.empty() || has_slices || !before) return;
  std::putchar(kEnergyIsReady);
  std::fflush(stdout);
  WaitForEnd();
  const auto after = Millijoules(nvml, gpus);
  // A driver that was loaded again counts from 0.
  if (after && *after > *before) std::printf("%llu\n", *after - *before);
}

}  // namespace
}  // namespace launcher

int main(int argc, char** argv) {
  const int gpus = argc > 1 ? support::WholeNumber<int>(argv[1]).value_or(0) : 0;
  if (argc > 3 || gpus < 1) {
    std::fprintf(stderr,
                 "usage: ddlrun-rank-energy GPUS [VISIBLE]; it is started by ddlrun-rank, not by "
                 "hand\n");
    return EX_USAGE;
  }
  launcher::Measure(static_cast<std::size_t>(gpus), argv[2]);
  // The driver's destructors are left out: they would wait for a GPU that does not answer.
  std::fflush(stdout);
  _exit(0);
}
