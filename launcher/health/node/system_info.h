// SPDX-License-Identifier: Apache-2.0
//
// What the kernel tells about this node: processors, memory, InfiniBand, limits and directories.
// Nothing here throws: what cannot be read keeps its value in NodeInfo.

#pragma once

#include <chrono>
#include <string>

#include "launcher/health/node_info.h"

namespace launcher {

// Fills in the facts that are in /proc, /sys and /etc.  `root` is put in front of these, for tests;
// "" is the machine itself.
void ReadSystemInfo(const std::string& root, NodeInfo& info);

// Fills in the limit of locked memory of this process, and the state of /dev/shm.
void ReadLimits(NodeInfo& info);

// Looks at the working directory: whether the file `probe` ("" for none) is seen in it, and whether
// a file can be made and written.  NFS takes some time to show a new file, so it looks until
// `patience` is over.  Leaves no file behind.
DirectoryInfo ReadDirectory(const std::string& probe, std::chrono::milliseconds timeout);

// "" when a file can be made in `path` and written, else why not.  Leaves no file behind.
std::string WriteError(const std::string& path);

// Which MPI library a program of this node would find: "Open MPI v4.1.4"; "" when no MPI library
// is found.  Loads the library, but does not start MPI.
std::string FindMpiVersion();

}  // namespace launcher
