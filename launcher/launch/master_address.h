// SPDX-License-Identifier: Apache-2.0
//
// MASTER_ADDR, where it is the user's: whether ranks of this job can meet there.  Pure.

#pragma once

#include <string>
#include <vector>

namespace launcher {

// What is odd about `address`, and what ranks would be told without it: "MASTER_ADDR=node9 is no
// host of this job: ...".  "" where nothing is, and for addresses in numbers, which only a resolver
// could tell from those of `hosts`, but for the loopback of each node where there are several.
// `hosts`: where ranks are, rank 0 on the first.  REQUIRES: hosts is not empty.
std::string MasterAddressProblem(const std::string& address, const std::vector<std::string>& hosts);

}  // namespace launcher
