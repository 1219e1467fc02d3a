// SPDX-License-Identifier: Apache-2.0
//
// A libnvidia-ml.so.1 for gpu_meter.cc with two GPUs: one that takes 100 W all the time, and one
// without a meter of energy.

#include <chrono>
#include <cstring>
#include <string>

// NOLINTBEGIN(readability-identifier-naming): NVIDIA's names.
extern "C" {

struct Memory {
  unsigned long long total, free, used;
};

int nvmlInit_v2() { return 0; }

int nvmlDeviceGetHandleByPciBusId_v2(const char* id, const char** device) {
  static const char gpus[] = "01";
  const std::string wanted = id;
  if (wanted != "0000:1B:00.0" && wanted != "0000:1C:00.0") return 6;  // not found
  *device = gpus + (wanted == "0000:1C:00.0" ? 1 : 0);
  return 0;
}

int nvmlDeviceGetName(const char* /*device*/, char* name, unsigned length) {
  std::strncpy(name, "NVIDIA H200", length);
  return 0;
}

int nvmlDeviceGetSerial(const char* device, char* serial, unsigned length) {
  if (*device == '1') return 3;  // not supported
  std::strncpy(serial, "1654223001234", length);
  return 0;
}

int nvmlDeviceGetUUID(const char* /*device*/, char* uuid, unsigned length) {
  std::strncpy(uuid, "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", length);
  return 0;
}

int nvmlDeviceGetMemoryInfo(const char* /*device*/, Memory* memory) {
  *memory = {150'000'000'000, 126'600'000'000, 23'400'000'000};
  return 0;
}

int nvmlDeviceGetTotalEnergyConsumption(const char* device, unsigned long long* millijoules) {
  if (*device == '1') return 3;  // not supported
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  *millijoules =
      static_cast<unsigned long long>(std::chrono::duration<double, std::milli>(now).count() * 100);
  return 0;
}

int nvmlDeviceGetClockInfo(const char* /*device*/, int clock, unsigned* mhz) {
  *mhz = clock == 1 ? 1980 : clock == 2 ? 3201 : 0;
  return 0;
}

int nvmlDeviceGetTemperature(const char* /*device*/, int sensor, unsigned* celsius) {
  *celsius = sensor == 0 ? 61 : 0;
  return 0;
}

int nvmlDeviceGetUtilizationRates(const char* /*device*/, unsigned* gpu_and_memory) {
  gpu_and_memory[0] = 97;
  gpu_and_memory[1] = 40;
  return 0;
}

int nvmlDeviceGetPowerUsage(const char* device, unsigned* milliwatts) {
  if (*device == '1') return 3;  // not supported
  *milliwatts = 512'345;
  return 0;
}

int nvmlDeviceGetEnforcedPowerLimit(const char* /*device*/, unsigned* milliwatts) {
  *milliwatts = 700'000;
  return 0;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
