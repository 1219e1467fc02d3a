// SPDX-License-Identifier: Apache-2.0
//
// What the kernel tells of this node: processors, memory, InfiniBand, limits, directories.  Nothing
// here throws: what cannot be read stays as NodeFacts has it.

#pragma once

#include <chrono>
#include <string>

#include "launcher/health/node_facts.h"

namespace launcher {

// Reads /proc, /sys and /etc below `root` ("" for the machine itself) and fills what of `facts`
// they tell.
void ReadSystemFacts(const std::string& root, NodeFacts& facts);

// The limit of this process and the state of /dev/shm.
void ReadLimits(NodeFacts& facts);

// Looks at the working directory: whether `probe` (a file name, "" for none) is seen in it within
// `patience`, since NFS takes time to show a new file, and whether a file can be made and
// written.  Leaves no file behind.
DirectoryFacts ReadDirectory(const std::string& probe, std::chrono::milliseconds patience);

// "" when a file can be made in `path` and written, else why not.  Leaves no file behind.
std::string WriteError(const std::string& path);

}  // namespace launcher
