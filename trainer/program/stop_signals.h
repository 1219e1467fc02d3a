// SPDX-License-Identifier: Apache-2.0
//
// The signals that end a training in order.  One process has one set of them.

#pragma once

namespace trainer {

// From here on SIGTERM, SIGUSR1, SIGXCPU (a limit of CPU time, before that at which the kernel
// kills) and the first SIGINT only ask for a checkpoint and an orderly end; a second SIGINT ends at
// once.  So does launcher::kPeerFailedSignal (EndProcessSoon): the all-reduce that this rank waits
// in does not complete.  A full disk and a closed pipe become errors to report, not deaths.
void CatchStopSignals();

// The last signal that has asked to stop; 0: none has.
int StopSignal();

}  // namespace trainer
