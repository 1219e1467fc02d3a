// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/meters/device_state.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

namespace trainer {
namespace {

namespace fs = std::filesystem;

// The first word of a file, where that is a number.
std::optional<double> NumberIn(const fs::path& path) {
  std::ifstream file(path);
  double number = 0;
  return file >> number ? std::optional(number) : std::nullopt;
}

// The directories in `directory`, by name.
std::vector<fs::path> DirectoriesIn(const fs::path& directory) {
  std::vector<fs::path> directories;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    directories.push_back(at->path());
  }
  std::ranges::sort(directories);
  return directories;
}

std::optional<int> Rounded(double value) { return static_cast<int>(std::lround(value)); }

// "cpu MHz : 2445.404".
std::optional<int> MhzOfCpuInfo(const fs::path& path) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (!line.starts_with("cpu MHz") || colon == std::string::npos) continue;
    const std::size_t digits = line.find_first_not_of(' ', colon + 1);
    double mhz = 0;
    const char* end = line.data() + line.size();
    if (digits == std::string::npos ||
        std::from_chars(line.data() + digits, end, mhz).ec != std::errc()) {
      return std::nullopt;
    }
    return Rounded(mhz);
  }
  return std::nullopt;
}

std::optional<int> Mhz(const fs::path& root) {
  const auto khz = NumberIn(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq");
  return khz ? Rounded(*khz / 1e3) : MhzOfCpuInfo(root / "proc/cpuinfo");
}

// Of the drivers of processors' sensors: Intel's, AMD's, IBM POWER's.
std::optional<int> Celsius(const fs::path& root) {
  for (const fs::path& sensor : DirectoriesIn(root / "sys/class/hwmon")) {
    std::ifstream file(sensor / "name");
    std::string name;
    file >> name;
    if (name != "coretemp" && name != "k10temp" && name != "ibmpowernv") continue;
    if (const auto thousandths = NumberIn(sensor / "temp1_input")) {
      return Rounded(*thousandths / 1e3);
    }
  }
  return std::nullopt;
}

}  // namespace

std::string InWords(const DeviceState& state) {
  const auto watts = [](std::int64_t milliwatts) {
    return std::to_string(std::llround(static_cast<double>(milliwatts) / 1e3));
  };
  std::string words;
  const auto add = [&](const std::string& part) { words += (words.empty() ? "" : ", ") + part; };
  if (state.compute_mhz) add(std::to_string(*state.compute_mhz) + " MHz");
  if (state.memory_mhz) add("memory " + std::to_string(*state.memory_mhz) + " MHz");
  if (state.celsius) add(std::to_string(*state.celsius) + " C");
  if (state.milliwatts) {
    const bool is_limited = state.limit_milliwatts.has_value();
    add(watts(*state.milliwatts) + (is_limited ? " of " + watts(*state.limit_milliwatts) : "") +
        " W");
  }
  return words;
}

DeviceState HostState::Read(Clock::time_point now) {
  DeviceState state;
  state.compute_mhz = Mhz(root_);
  state.celsius = Celsius(root_);
  const fs::path rapl = root_ / "sys/class/powercap/intel-rapl:0";
  const auto energy = NumberIn(rapl / "energy_uj");
  if (!energy) return state;
  const auto microjoules = static_cast<std::int64_t>(*energy);
  const double seconds = std::chrono::duration<double>(now - read_).count();
  // The counter begins again at times.
  if (microjoules_ && microjoules >= *microjoules_ && seconds > 0) {
    state.milliwatts =
        std::llround(static_cast<double>(microjoules - *microjoules_) / seconds / 1e3);
  }
  microjoules_ = microjoules;
  read_ = now;
  if (const auto limit = NumberIn(rapl / "constraint_0_power_limit_uw")) {
    state.limit_milliwatts = std::llround(*limit / 1e3);
  }
  return state;
}

StateSampler::StateSampler(ReadDeviceState read, std::chrono::milliseconds interval)
    : read_(std::move(read)),
      interval_(interval),
      start_(std::chrono::steady_clock::now()),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

std::vector<TimedState> StateSampler::Take() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(states_, {});
}

void StateSampler::Run(const std::stop_token& stop) {
  std::condition_variable_any never;
  std::mutex waiting;
  std::unique_lock wait(waiting);
  while (!stop.stop_requested()) {
    try {
      const DeviceState state = read_();
      const double seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
      const std::scoped_lock lock(mutex_);
      states_.push_back({seconds, state});
    } catch (const std::exception&) {
      // A training does not end because its device tells nothing.
    }
    never.wait_for(wait, stop, interval_, [] { return false; });
  }
}

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
  if (!Ask("nvmlDeviceGetMemoryInfo", &memory)) return std::nullopt;
  const auto text = [this](const char* function) {
    std::array<char, 97> letters = {};  // NVML fills 96 at most
    const bool is_known = Ask(function, letters.data(), static_cast<unsigned>(letters.size()) - 1);
    return is_known ? std::string(letters.data()) : "";
  };
  figures.model = text("nvmlDeviceGetName");
  figures.serial = text("nvmlDeviceGetSerial");
  figures.uuid = text("nvmlDeviceGetUUID");
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
