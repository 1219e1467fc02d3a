// SPDX-License-Identifier: Apache-2.0
//
// Reads what Open MPI's mpirun says on standard error.  Each function takes one line without its
// end.  Pure.

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "launcher/protocol/rank_exit.h"

namespace launcher {

// The node whose daemon mpirun has lost: "  Remote daemon: [[54533,0],1] on node n2" of Open MPI 4
// and "  Remote daemon: [prterun-n1-321@0,1] on node n2" of later ones, the last line of its
// message "... has lost communication with a remote daemon".  nullopt for any other line.
std::optional<std::string> ParseLostDaemon(std::string_view line);

// Whether mpirun says that the srun of its daemons has failed: "srun returned non-zero exit status
// (9) from launching".
bool IsFailureOfDaemons(std::string_view line);

// Whether mpirun says that a daemon ended before it had reached mpirun, for which it blames the
// network: "An ORTE daemon has unexpectedly failed after launch and before".  One that may not
// write its directory in /tmp ends so too (4.1.4).
bool IsFailedStartOfDaemon(std::string_view line);

// Whether mpirun says that it passes kPeerFailedSignal on, which is ddlrun's own doing: "mpirun:
// Forwarding signal 23 to job".
bool IsRemarkOnForwarding(std::string_view line);

// The end of a rank by a signal of which mpirun tells, "mpirun noticed that process rank 2 with PID
// 77 on node n2 exited on signal 9 (Killed).", where its shim was killed too; nullopt for any other
// line.  The pid is left out: it is that of the shim.  The first word is what mpirun calls itself.
std::optional<RankExit> ParseMpirunNotice(std::string_view line);

// The rank of MPICH and its exit code where it has called MPI_Abort: "Abort(3) on node 1 (rank 1 in
// comm 0): application called MPI_Abort(MPI_COMM_WORLD, 3) - process 1".  mpiexec then kills
// all ranks and their shims, so that no shim reports an end.  nullopt for any other line.
std::optional<RankExit> ParseMpichAbort(std::string_view line);

}  // namespace launcher
