// SPDX-License-Identifier: Apache-2.0
//
// Memory and power of one GPU, as NVML tells: the driver's library, loaded at run time.  Where it
// is missing or tells nothing, figures are left out.  Not thread-safe.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trainer/telemetry/meters/device_state.h"

namespace trainer {

struct GpuStats {
  std::string model;  // "NVIDIA H200"
  // Of all processes and the driver.
  std::uint64_t used_bytes = 0;
  std::uint64_t total_bytes = 0;
  // Mean since Restart, from the GPU's own meter of energy; empty before Volta.
  std::optional<double> watts;
};

class GpuMeter {
 public:
  // Of the GPU at `pci_bus_id` ("0000:1B:00.0"); `library` as for dlopen.
  GpuMeter(const std::string& library, const std::string& pci_bus_id);

  // The mean power counts from here.
  void Restart();
  std::optional<GpuStats> Read() const;
  // Clocks, temperature, utilisation and power of now.
  DeviceState State() const;

 private:
  // Joules since the driver was loaded.
  std::optional<double> Energy() const;

  // Calls a function of the library for the GPU; false if it is missing or fails.
  template <typename... Arguments>
  bool Ask(const char* function, Arguments... arguments) const;

  void* library_ = nullptr;  // never unloaded: the driver's threads may be in it
  void* device_ = nullptr;
  std::optional<double> energy_;
  double began_ = 0;  // seconds of the steady clock
};

}  // namespace trainer
