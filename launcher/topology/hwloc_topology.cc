// SPDX-License-Identifier: Apache-2.0
#include "launcher/topology/hwloc_topology.h"

#include <hwloc.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "launcher/base/error.h"
#include "launcher/topology/driver_gpus.h"
#include "support/number.h"

namespace launcher {
namespace {

constexpr unsigned kNvidia = 0x10de;
constexpr unsigned kVgaController = 0x0300;
constexpr unsigned k3dController = 0x0302;

struct TopologyDeleter {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using TopologyOwner = std::unique_ptr<hwloc_topology, TopologyDeleter>;

struct BitmapDeleter {
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using BitmapOwner = std::unique_ptr<hwloc_bitmap_s, BitmapDeleter>;

// `set_source` tells hwloc where the topology comes from and returns 0, or -1 with errno set.
TopologyOwner Load(int exit_code, const std::string& name,
                   const std::function<int(hwloc_topology_t)>& set_source) {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) throw LaunchError(EX_OSERR, "hwloc: cannot start");
  TopologyOwner topology(raw);
  errno = 0;
  if (set_source(raw) != 0 || hwloc_topology_load(raw) != 0) {
    const std::string reason = errno != 0 ? std::string(": ") + std::strerror(errno) : "";
    throw LaunchError(exit_code, name + ": hwloc cannot read the topology" + reason +
                                     "; write such a file with: lstopo --of xml FILE");
  }
  return topology;
}

// The CPUs that may be used: where the topology is that of this machine, those that this thread may
// run on; otherwise all of it.
BitmapOwner AllowedCpus(hwloc_topology_t topology) {
  BitmapOwner allowed(hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(topology)));
  if (hwloc_topology_is_thissystem(topology) != 0) {
    const BitmapOwner bound(hwloc_bitmap_alloc());
    // We ask for this thread only, since the other threads of an emulator run on other CPUs.  An
    // error means that this system has no binding to ask for.
    if (hwloc_get_cpubind(topology, bound.get(), HWLOC_CPUBIND_THREAD) == 0) {
      hwloc_bitmap_and(allowed.get(), allowed.get(), bound.get());
    }
  }
  return allowed;
}

std::vector<int> ToNumbers(hwloc_const_bitmap_t bitmap) {
  std::vector<int> numbers;
  for (int i = hwloc_bitmap_first(bitmap); i != -1; i = hwloc_bitmap_next(bitmap, i)) {
    numbers.push_back(i);
  }
  return numbers;
}

// Reads the cores and the NUMA nodes they are on.  hwloc may call several NUMA nodes local to a
// core; the lowest is taken, since NUMA nodes without CPUs (the memory of a GPU on POWER9,
// high-bandwidth memory) have higher numbers.
void ReadCores(hwloc_topology_t topology, NodeTopology* result) {
  const BitmapOwner allowed = AllowedCpus(topology);
  // Some virtual machines show hardware threads only, and no cores.
  const hwloc_obj_type_t type =
      hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
  std::map<int, std::vector<int>> cores_of_numa;  // by os_index
  std::map<int, int> cores_seen_in_socket;
  std::vector<int> numa_of_core;
  for (hwloc_obj_t object = nullptr;
       (object = hwloc_get_next_obj_by_type(topology, type, object)) != nullptr;) {
    const hwloc_obj_t package = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, object);
    Core core;
    core.socket = package != nullptr ? static_cast<int>(package->logical_index) : 0;
    core.core_in_socket = cores_seen_in_socket[core.socket]++;
    const BitmapOwner usable(hwloc_bitmap_alloc());
    hwloc_bitmap_and(usable.get(), object->cpuset, allowed.get());
    core.cpus = ToNumbers(usable.get());
    if (core.cpus.empty()) continue;
    const int numa_os_index = std::max(0, hwloc_bitmap_first(object->nodeset));
    cores_of_numa[numa_os_index].push_back(static_cast<int>(result->cores.size()));
    numa_of_core.push_back(numa_os_index);
    result->cores.push_back(std::move(core));
  }

  std::map<int, int> index_of_numa;
  for (auto& [os_index, cores] : cores_of_numa) {
    NumaNode numa;
    numa.os_index = os_index;
    numa.cores = std::move(cores);
    const hwloc_obj_t object =
        hwloc_get_numanode_obj_by_os_index(topology, static_cast<unsigned>(os_index));
    if (object != nullptr) {
      numa.memory_bytes = static_cast<long long>(object->attr->numanode.local_memory);
    }
    index_of_numa[os_index] = static_cast<int>(result->numa_nodes.size());
    result->numa_nodes.push_back(std::move(numa));
  }
  for (std::size_t i = 0; i < numa_of_core.size(); ++i) {
    result->cores[i].numa = index_of_numa[numa_of_core[i]];
  }
}

// The index of the NUMA node that hwloc has `device` under.  -1 where it has the device under
// several of them, or under one none of whose cores may be used.
int NearestNuma(hwloc_topology_t topology, hwloc_obj_t device, const NodeTopology& node) {
  const hwloc_obj_t ancestor = hwloc_get_non_io_ancestor_obj(topology, device);
  int nearest = -1;
  for (std::size_t i = 0; i < node.numa_nodes.size(); ++i) {
    const auto os_index = static_cast<unsigned>(node.numa_nodes[i].os_index);
    if (hwloc_bitmap_isset(ancestor->nodeset, os_index) == 0) continue;
    if (nearest != -1) return -1;
    nearest = static_cast<int>(i);
  }
  const hwloc_obj_t whole = hwloc_get_root_obj(topology);
  // A process limited to one socket sees one NUMA node; the machine may still have more.
  if (ancestor == whole && hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PACKAGE) > 1) return -1;
  return nearest;
}

std::string ModelOf(hwloc_obj_t device) {
  const char* model = hwloc_obj_get_info_by_name(device, "GPUModel");
  return model != nullptr ? model : "";
}

std::vector<Gpu> ReadPciGpus(hwloc_topology_t topology, const NodeTopology& node) {
  using Address = std::tuple<unsigned, unsigned, unsigned, unsigned>;
  std::map<Address, Gpu> by_address;
  for (hwloc_obj_t device = nullptr;
       (device = hwloc_get_next_pcidev(topology, device)) != nullptr;) {
    const auto& pci = device->attr->pcidev;
    const bool display = pci.class_id == kVgaController || pci.class_id == k3dController;
    if (pci.vendor_id != kNvidia || !display) continue;
    char bus_id[32];
    std::snprintf(bus_id, sizeof bus_id, "%04x:%02x:%02x.%x", static_cast<unsigned>(pci.domain),
                  pci.bus, pci.dev, pci.func);
    Gpu gpu{bus_id, NearestNuma(topology, device, node), ""};
    for (hwloc_obj_t child = device->io_first_child; child != nullptr && gpu.model.empty();
         child = child->next_sibling) {
      gpu.model = ModelOf(child);
    }
    by_address[{pci.domain, pci.bus, pci.dev, pci.func}] = gpu;
  }
  std::vector<Gpu> gpus;
  for (auto& [address, gpu] : by_address) gpus.push_back(std::move(gpu));
  return gpus;
}

// cuda0, cuda1, ... of a topology that was written without PCI devices.
std::vector<Gpu> ReadCudaGpus(hwloc_topology_t topology, const NodeTopology& node) {
  constexpr std::string_view kCuda = "cuda";
  std::map<int, Gpu> by_number;
  for (hwloc_obj_t device = nullptr;
       (device = hwloc_get_next_osdev(topology, device)) != nullptr;) {
    const std::string_view name = device->name != nullptr ? device->name : "";
    if (!name.starts_with(kCuda)) continue;
    const std::optional<int> number = support::WholeNumber<int>(name.substr(kCuda.size()));
    if (!number) continue;
    by_number[*number] = Gpu{"", NearestNuma(topology, device, node), ModelOf(device)};
  }
  std::vector<Gpu> gpus;
  for (auto& [number, gpu] : by_number) gpus.push_back(std::move(gpu));
  return gpus;
}

NodeTopology ReadAll(hwloc_topology_t topology, int exit_code, const std::string& name) {
  NodeTopology node;
  ReadCores(topology, &node);
  if (node.cores.empty()) throw LaunchError(exit_code, name + ": no core that this job may use");
  node.gpus = ReadPciGpus(topology, node);
  if (node.gpus.empty()) node.gpus = ReadCudaGpus(topology, node);
  return node;
}

void KeepDevices(hwloc_topology_t raw) {
  hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
}

// Whether this machine has a GPU.  Without one there is no reason to have hwloc read all PCI
// devices, which takes many milliseconds in a virtual machine.
bool HasGpu() {
  std::error_code error;
  std::filesystem::directory_iterator device("/sys/bus/pci/devices", error);
  for (; !error && device != std::filesystem::directory_iterator(); device.increment(error)) {
    unsigned vendor = 0;
    std::ifstream(device->path() / "vendor") >> std::hex >> vendor;
    if (vendor == kNvidia) return true;
  }
  return static_cast<bool>(error);
}

TopologyOwner LoadLive(bool with_devices) {
  return Load(EX_OSERR, "this machine", [with_devices](hwloc_topology_t raw) {
    if (with_devices) KeepDevices(raw);
    // These components of hwloc are left out.  x86 asks every processor what Linux tells anyway.
    // cuda, nvml and the like start a driver, which takes seconds, for devices that are known by
    // their PCI bus ids.  pci loads libpciaccess, which leaks memory; without it hwloc reads /sys
    // itself.  To leave out a component that is not installed is no error.
    for (const char* component :
         {"cuda", "gl", "levelzero", "nvml", "opencl", "pci", "rsmi", "x86"}) {
      hwloc_topology_set_components(raw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, component);
    }
    return 0;
  });
}

}  // namespace

NodeTopology ReadLiveTopology() {
  const bool has_gpu = HasGpu();
  TopologyOwner topology = LoadLive(has_gpu);
  // With HWLOC_XMLFILE hwloc has read another machine, which may have GPUs although this one has
  // none.
  const bool is_other = hwloc_topology_is_thissystem(topology.get()) == 0;
  if (is_other && !has_gpu) topology = LoadLive(true);
  return ReadAll(topology.get(), EX_OSERR, "this machine");
}

NodeTopology ReadTopologyOfJob(const std::string& granted_by_slurm) {
  NodeTopology node = ReadLiveTopology();
  if (!granted_by_slurm.empty()) OrderByDeviceFile(ReadDriverGpus(""), &node);
  return node;
}

NodeTopology ReadTopologyFile(const std::string& path) {
  const TopologyOwner topology = Load(EX_DATAERR, path, [&](hwloc_topology_t raw) {
    KeepDevices(raw);
    return hwloc_topology_set_xml(raw, path.c_str());
  });
  return ReadAll(topology.get(), EX_DATAERR, path);
}

NodeTopology ReadTopologyXml(const std::string& xml, const std::string& name) {
  const TopologyOwner topology = Load(EX_DATAERR, name, [&](hwloc_topology_t raw) {
    KeepDevices(raw);
    // The length counts the terminating NUL.
    return hwloc_topology_set_xmlbuffer(raw, xml.c_str(), static_cast<int>(xml.size() + 1));
  });
  return ReadAll(topology.get(), EX_DATAERR, name);
}

}  // namespace launcher
