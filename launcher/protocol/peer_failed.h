// SPDX-License-Identifier: Apache-2.0
//
// How ranks are told that one of their peers has failed, so that no collective call completes any
// more: by a signal.  SIGTERM alone could as well be an order to stop, after which a training may
// write its checkpoint together with its peers.

#pragma once

#include <signal.h>

namespace launcher {

// ddlrun sends it to all shims and ranks at once, through Slurm or mpirun.  It is one that the
// kernel ignores unless a program handles it.  ddltraind then ends at once (early_stop.h); for
// any other program the shim adds SIGTERM, and SIGKILL after the grace (shim/run_program.h).
inline constexpr int kPeerFailedSignal = SIGURG;

}  // namespace launcher
