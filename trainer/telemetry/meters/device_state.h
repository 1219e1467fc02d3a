// SPDX-License-Identifier: Apache-2.0
//
// Clocks, power and temperature of what a rank computes with, now and then, by a thread of its own.

#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace trainer {

// What the device tells; the rest is empty.
struct DeviceState {
  std::optional<int> compute_mhz;  // of a GPU's multiprocessors, of a CPU's cores
  std::optional<int> memory_mhz;
  std::optional<int> celsius;
  std::optional<std::int64_t> milliwatts;
  std::optional<std::int64_t> limit_milliwatts;
  // Of the last moments, of a GPU: its kernels ran.
  std::optional<int> busy_percent = {};
};

// "1980 MHz, memory 3201 MHz, 61 C, 412 of 700 W", without what is not known; "" if nothing is.
// Pure.
std::string InWords(const DeviceState& state);

using ReadDeviceState = std::function<DeviceState()>;

// Of the first processor of this machine, where Linux shows it to this user: cpufreq or
// /proc/cpuinfo (clock), RAPL (power: the mean since the call before, none in the first), hwmon
// (temperature).  `root` stands for / in tests.
class HostState {
 public:
  using Clock = std::chrono::steady_clock;

  explicit HostState(std::filesystem::path root = "/") : root_(std::move(root)) {}

  DeviceState Read(Clock::time_point now = Clock::now());

 private:
  const std::filesystem::path root_;
  std::optional<std::int64_t> microjoules_;  // at the last call
  Clock::time_point read_;
};

struct TimedState {
  double seconds = 0;  // since the sampler was made
  DeviceState state;
};

class StateSampler {
 public:
  // Reads at once, and then every `interval`, in a thread of its own.  What `read` throws is a
  // reading that is left out.
  StateSampler(ReadDeviceState read, std::chrono::milliseconds interval);
  ~StateSampler() = default;
  StateSampler(const StateSampler&) = delete;
  StateSampler& operator=(const StateSampler&) = delete;

  // Those since the last call.
  std::vector<TimedState> Take();

 private:
  void Run(const std::stop_token& stop);

  const ReadDeviceState read_;
  const std::chrono::milliseconds interval_;
  const std::chrono::steady_clock::time_point start_;
  std::mutex mutex_;
  std::vector<TimedState> states_;  // under mutex_
  std::jthread thread_;             // the last member: it uses the others
};

// Memory and power of one GPU, as NVML tells: the driver's library, loaded at run time.  Where it
// is missing or tells nothing, figures are left out.  Not thread-safe.

struct GpuStats {
  std::string model;   // "NVIDIA H200"
  std::string serial;  // of the board, as on its label; "" where it has none
  std::string uuid;    // "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"
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
