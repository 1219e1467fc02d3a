// SPDX-License-Identifier: Apache-2.0
//
// Reads a NodeTopology with hwloc; only hwloc_topology.cc sees hwloc's headers.  Safe from any
// thread.
//
// GPUs are the PCI display and 3D controllers (class 0300, 0302) of NVIDIA, in order of PCI bus id;
// where a file holds no PCI devices, the operating-system devices cuda0, cuda1, ... with an empty
// pci_bus_id.  A GPU is nearest to the NUMA node that hwloc hangs it under.  NUMA nodes without
// CPUs (the GPU memory of an AC922, os_index 255 downwards) are left out.

#pragma once

#include <string>

#include "launcher/topology/node_topology.h"

namespace launcher {

// This machine, without the CPUs that this process may not use (cpuset cgroup, taskset, srun's
// binding).  HWLOC_XMLFILE and the like are obeyed by hwloc; the process's CPUs do not limit such a
// foreign topology.  No GPU driver is started, so models stay empty.  Throws LaunchError(EX_OSERR).
NodeTopology ReadLiveTopology();

// An hwloc 2.x XML file, as written by `lstopo --of xml`; the second takes its text, `name` is for
// messages.  Throws LaunchError(EX_DATAERR) when it cannot be read or holds no core.
NodeTopology ReadTopologyFile(const std::string& path);
NodeTopology ReadTopologyXml(const std::string& xml, const std::string& name);

}  // namespace launcher
