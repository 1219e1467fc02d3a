// SPDX-License-Identifier: Apache-2.0
//
// Words of the program as mpirun and srun pass them on to the shim.  Pure.

#pragma once

#include <string>
#include <vector>

namespace launcher {

// `program` with a colon more for each word of colons alone (protocol/launchers.h), which the shim
// takes away.
std::vector<std::string> WithMoreColons(std::vector<std::string> program);

}  // namespace launcher
