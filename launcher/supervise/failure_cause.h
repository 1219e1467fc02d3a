// SPDX-License-Identifier: Apache-2.0
//
// Which of several ranks that have failed is why the job failed. Pure.

#pragma once

#include <set>

#include "launcher/protocol/rank_exit.h"

namespace launcher {

// Whether the end of a rank, `end`, rather than `known`, which was reported before, is the cause.
// It was seen `later` seconds later, which may be negative.  The peer of a dead rank ends within a
// millisecond, and may be seen first.  It may even end first: the kernel closes the sockets of a
// killed process, of which the peers learn, and then frees its memory and its GPU, of which its
// parent learns.  More than a second apart, or on clocks that differ so much, only the report
// counts. `killed_alone`: ranks whose SIGKILL is known to be none of the whole step.
bool IsEarlierCause(const RankExit& end, const RankExit& known, double later,
                    const std::set<int>& killed_alone);

}  // namespace launcher
