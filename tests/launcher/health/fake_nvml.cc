// SPDX-License-Identifier: Apache-2.0
//
// A libnvidia-ml.so.1 with two GPUs, for nvml.cc to load: the first in trouble, the second healthy.
// FAKE_NVML=broken: it cannot be started.  FAKE_NVML=fabric: the second GPU is in an NVLink domain,
// which the first has not joined yet.  FAKE_NVML=hgx: both are, within their node.
// FAKE_NVML=energy: they have counters, of which each reading is higher than the one before, by 0.5
// kWh on the first and 1 kWh on the second GPU; FAKE_NVML=mig: and the second is sliced.
// FAKE_NVML=old: the second has no counter.  FAKE_NVML=stuck: the second reading does not end.

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

// NOLINTBEGIN(readability-identifier-naming): NVIDIA's names.
extern "C" {

struct PciInfo {
  char legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
struct ProcessInfo {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
};

static bool IsWish(const char* name) {
  const char* wish = std::getenv("FAKE_NVML");
  return wish != nullptr && std::strcmp(wish, name) == 0;
}
int nvmlInit_v2() { return IsWish("broken") ? 9 : 0; }
int nvmlDeviceGetTotalEnergyConsumption(const char* device, unsigned long long* millijoules) {
  static unsigned long long readings[2] = {1000, 5};
  const int gpu = *device - '0';
  const bool has_counter = IsWish("energy") || IsWish("mig") || IsWish("stuck") || IsWish("old");
  if (!has_counter || (gpu == 1 && IsWish("old"))) return 3;  // NVML_ERROR_NOT_SUPPORTED
  while (IsWish("stuck") && readings[0] > 1'800'000'000) pause();
  *millijoules = readings[gpu] += (gpu == 0 ? 1'800'000'000ULL : 3'600'000'000ULL);
  return 0;
}
int nvmlDeviceGetMigMode(const char* device, unsigned* mode, unsigned* pending) {
  if (!IsWish("mig")) return 3;
  *pending = *mode = *device == '1' ? 1 : 0;
  return 0;
}
int nvmlShutdown() { return 0; }
const char* nvmlErrorString(int) { return "Driver Not Loaded"; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, const char** device) {
  static const char gpus[] = "01";
  *device = gpus + index;
  return 0;
}
int nvmlDeviceGetName(const char*, char* name, unsigned length) {
  std::strncpy(name, "Tesla V100-SXM2-16GB", length);
  return 0;
}
int nvmlDeviceGetUUID(const char* device, char* uuid, unsigned length) {
  std::strncpy(uuid, (std::string("GPU-") + (*device == '0' ? "aaaa" : "bbbb")).c_str(), length);
  return 0;
}
int nvmlDeviceGetPciInfo_v3(const char* device, PciInfo* pci) {
  std::strncpy(pci->bus_id, *device == '0' ? "0004:04:00.0" : "0004:05:00.0", 32);
  return 0;
}
int nvmlDeviceGetCurrPcieLinkWidth(const char* device, unsigned* lanes) {
  *lanes = *device == '0' ? 8 : 16;
  return 0;
}
int nvmlDeviceGetMaxPcieLinkWidth(const char*, unsigned* lanes) {
  *lanes = 16;
  return 0;
}
int nvmlSystemGetDriverVersion(char* version, unsigned length) {
  std::strncpy(version, "535.104.05", length);
  return 0;
}
int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = 12020;
  return 0;
}
struct MemoryInfo {
  unsigned long long total, free, used;
};
int nvmlDeviceGetMemoryInfo(const char*, MemoryInfo* memory) {
  memory->total = 16384ULL << 20;
  return 0;
}
int nvmlDeviceGetEnforcedPowerLimit(const char*, unsigned* milliwatts) {
  *milliwatts = 300000;
  return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(const char* device, unsigned long long* reasons) {
  *reasons = *device == '0' ? 0x48 : 0x1;  // by its heat, which the hardware does; idle
  return 0;
}
int nvmlDeviceGetP2PStatus(const char*, const char*, int capability, int* status) {
  const char* wish = std::getenv("FAKE_NVML");
  *status = capability == 2 && wish != nullptr && std::string(wish) == "nvlink" ? 0 : 1;
  return 0;
}
int nvmlDeviceGetTopologyCommonAncestor(const char*, const char*, int* level) {
  *level = 50;
  return 0;
}
int nvmlDeviceGetNvLinkState(const char* device, unsigned link, int* is_active) {
  if (link >= 6) return 2;  // invalid argument: the GPU has six
  *is_active = *device == '0' && link == 3 ? 0 : 1;
  return 0;
}
struct FabricInfo {
  unsigned version;
  unsigned char cluster_uuid[16];
  int status;
  unsigned clique;
  unsigned char state;
  unsigned health_mask;
};
int nvmlDeviceGetGpuFabricInfoV(const char* device, FabricInfo* info) {
  const std::string wish = std::getenv("FAKE_NVML") != nullptr ? std::getenv("FAKE_NVML") : "";
  if (info->version != 0x02000024) return 25;       // NVML_ERROR_ARGUMENT_VERSION_MISMATCH
  if (wish != "fabric" && wish != "hgx") return 3;  // NVML_ERROR_NOT_SUPPORTED
  for (int i = 0; i < 16; ++i) {
    info->cluster_uuid[i] = wish == "hgx" ? 0 : static_cast<unsigned char>(16 * i + 15 - i);
  }
  info->status = 0;
  info->clique = 32766;
  info->state = wish == "fabric" && *device == '0' ? 2 : 3;  // in progress, completed
  return 0;
}
int nvmlDeviceGetTotalEccErrors(const char* device, int type, int counter,
                                unsigned long long* errors) {
  if (type != 1 || counter != 0) return 2;
  *errors = *device == '0' ? 7 : 0;
  return 0;
}
// No nvmlDeviceGetRemappedRows and no _v3 of the next: an older driver.
int nvmlDeviceGetRetiredPagesPendingStatus(const char* device, int* is_pending) {
  *is_pending = *device == '0' ? 1 : 0;
  return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v2(const char* device, unsigned* count,
                                            ProcessInfo* processes) {
  if (*device == '1') {
    *count = 0;
    return 0;
  }
  processes[0] = {4711, 1ULL << 30, ~0U, ~0U};
  processes[1] = {4712, ~0ULL, ~0U, ~0U};
  *count = 2;
  return 0;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
