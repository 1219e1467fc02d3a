// SPDX-License-Identifier: Apache-2.0
//
// MASTER_ADDR and MASTER_PORT, by which programs such as torch meet at rank 0.

#pragma once

#include <string>
#include <vector>

namespace launcher {

// MASTER_ADDR, where it is the user's: whether ranks of this job can meet there.  Pure.

// What is odd about `address`, and what ranks would be told without it: "MASTER_ADDR=node9 is no
// host of this job: ...".  "" where nothing is, and for addresses in numbers, which only a resolver
// could tell from those of `hosts`, but for the loopback of each node where there are several.
// `hosts`: where ranks are, rank 0 on the first.  REQUIRES: hosts is not empty.
std::string MasterAddressProblem(const std::string& address, const std::vector<std::string>& hosts);

// MASTER_PORT: the port on which rank 0 of a program such as torch listens for the other ranks.
// ddlrun itself opens no port.

// How many ports there are to choose from: 61000 to 65535, above the range from which Linux itself
// gives ports to programs (NVIDIA/enroot#243 is what happens within it).
inline constexpr int kMasterPorts = 4536;

// The first port that is free on this machine now, from 61000 + seed % kMasterPorts on.
int ChooseMasterPort(unsigned long seed);

}  // namespace launcher
