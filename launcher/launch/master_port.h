// SPDX-License-Identifier: Apache-2.0
//
// MASTER_PORT: the port on which rank 0 of a program such as torch listens for the other ranks.
// ddlrun itself opens no port.

#pragma once

namespace launcher {

// How many ports there are to choose from: 61000 to 65535, above the range from which Linux itself
// gives ports to programs (NVIDIA/enroot#243 is what happens within it).
inline constexpr int kMasterPorts = 4536;

// The first port that is free on this machine now, from 61000 + seed % kMasterPorts on.
int ChooseMasterPort(unsigned long seed);

}  // namespace launcher
