// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/meters/gpu_meter.h"

#include <dlfcn.h>

#include <array>
#include <chrono>

namespace trainer {
namespace {

// From nvml.h of CUDA 11.8; these have the same layout and values in every later version.
using Return = int;
constexpr Return kSuccess = 0;

struct Memory {  // nvmlMemory_t
  unsigned long long total, free, used;
};

struct Utilization {  // nvmlUtilization_t, in percent
  unsigned gpu, memory;
};

template <typename... Arguments>
bool Call(void* library, const char* name, Arguments... arguments) {
  using Function = Return (*)(Arguments...);
  const auto function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr && function(arguments...) == kSuccess;
}

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

template <typename... Arguments>
bool GpuMeter::Ask(const char* function, Arguments... arguments) const {
  return device_ != nullptr && Call(library_, function, device_, arguments...);
}

GpuMeter::GpuMeter(const std::string& library, const std::string& pci_bus_id)
    : library_(dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (library_ == nullptr || !Call(library_, "nvmlInit_v2")) return;
  void* device = nullptr;
  if (Call(library_, "nvmlDeviceGetHandleByPciBusId_v2", pci_bus_id.c_str(), &device)) {
    device_ = device;
  }
  Restart();
}

void GpuMeter::Restart() {
  energy_ = Energy();
  began_ = Now();
}

std::optional<GpuStats> GpuMeter::Read() const {
  GpuStats figures;
  Memory memory = {};
  std::array<char, 96> name = {};
  if (!Ask("nvmlDeviceGetMemoryInfo", &memory)) return std::nullopt;
  if (Ask("nvmlDeviceGetName", name.data(), static_cast<unsigned>(name.size()))) {
    figures.model = name.data();
  }
  figures.used_bytes = memory.used;
  figures.total_bytes = memory.total;
  const std::optional<double> energy = Energy();
  const double seconds = Now() - began_;
  if (energy && energy_ && seconds > 0) figures.watts = (*energy - *energy_) / seconds;
  return figures;
}

DeviceState GpuMeter::State() const {
  // nvml.h: nvmlClockType_t, nvmlTemperatureSensors_t.
  constexpr int kSms = 1;
  constexpr int kMemory = 2;
  constexpr int kTemperatureOfGpu = 0;
  DeviceState state;
  unsigned value = 0;
  if (Ask("nvmlDeviceGetClockInfo", kSms, &value)) {
    state.compute_mhz = static_cast<int>(value);
  }
  if (Ask("nvmlDeviceGetClockInfo", kMemory, &value)) state.memory_mhz = static_cast<int>(value);
  if (Ask("nvmlDeviceGetTemperature", kTemperatureOfGpu, &value)) {
    state.celsius = static_cast<int>(value);
  }
  Utilization busy = {};
  if (Ask("nvmlDeviceGetUtilizationRates", &busy)) state.busy_percent = static_cast<int>(busy.gpu);
  if (Ask("nvmlDeviceGetPowerUsage", &value)) state.milliwatts = value;
  if (Ask("nvmlDeviceGetEnforcedPowerLimit", &value)) state.limit_milliwatts = value;
  return state;
}

std::optional<double> GpuMeter::Energy() const {
  unsigned long long millijoules = 0;
  if (!Ask("nvmlDeviceGetTotalEnergyConsumption", &millijoules)) return std::nullopt;
  return static_cast<double>(millijoules) / 1e3;
}

}  // namespace trainer
