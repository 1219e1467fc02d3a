// SPDX-License-Identifier: Apache-2.0
//
// Reads what Open MPI's mpirun says on standard error.  Each function takes one line without its
// end.  Pure.

#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace launcher {

// The node whose daemon mpirun has lost: "  Remote daemon: [[54533,0],1] on node n2" of Open MPI 4
// and "  Remote daemon: [prterun-n1-321@0,1] on node n2" of later ones, the last line of its
// message "... has lost communication with a remote daemon".  nullopt for any other line.
std::optional<std::string> ParseLostDaemon(std::string_view line);

// Whether mpirun says that the srun of its daemons has failed: "srun returned non-zero exit status
// (9) from launching".
bool IsFailureOfDaemons(std::string_view line);

}  // namespace launcher
