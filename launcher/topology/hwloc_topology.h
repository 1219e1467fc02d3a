// SPDX-License-Identifier: Apache-2.0
//
// Reads a NodeTopology with hwloc; only hwloc_topology.cc sees hwloc's headers.  Safe from any
// thread.
//
// GPUs are the display and 3D controllers of NVIDIA on the PCI bus (classes 0300 and 0302), in the
// order of their PCI bus ids.  Where a file has no PCI devices they are hwloc's operating-system
// devices cuda0, cuda1, ..., with an empty pci_bus_id.  A GPU is nearest to the NUMA node that
// hwloc has it under.  NUMA nodes without CPUs are left out, such as the GPU memory of an AC922
// (os_index 255 downwards).

#pragma once

#include <string>

#include "launcher/topology/node_topology.h"

namespace launcher {

// This machine, with the CPUs that this process may use (by a cpuset cgroup, taskset or the binding
// of srun).  hwloc reads another machine where HWLOC_XMLFILE and the like say so; of that one all
// CPUs count.  No GPU driver is started, so the models of GPUs stay empty.  Throws
// LaunchError(EX_OSERR).
NodeTopology ReadLiveTopology();

// This machine, with its GPUs in the order by which the job numbers them.  `granted_by_slurm` is
// what GrantedBySlurm (base/environment.h) says: those numbers are of device files, which need not
// be in PCI order (PrincetonUniversity/jobstats#34).  Where it is "" GPUs are in PCI order, as CUDA
// is told to number them.  Throws as ReadLiveTopology does.
NodeTopology ReadTopologyOfJob(const std::string& granted_by_slurm);

// The machine of an XML file of hwloc 2.x, as `lstopo --of xml` writes it.  The second function
// takes the text of such a file, whose `name` is for messages.  Throws LaunchError(EX_DATAERR) when
// it cannot be read or has no core.
NodeTopology ReadTopologyFile(const std::string& path);
NodeTopology ReadTopologyXml(const std::string& xml, const std::string& name);

}  // namespace launcher
