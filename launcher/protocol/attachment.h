// SPDX-License-Identifier: Apache-2.0
//
// Somebody is attached to a rank (ddlctl attach): on the node of the rank they hold a lock on a
// file that its parent, the shim or ddlrun, looks at.  The kernel releases the lock when they are
// gone, however they have ended.  Without the C++ library, for the shim.

#pragma once

#include <sys/types.h>

namespace launcher {

// Attaches to the rank whose process is `rank`, a child of `parent`, as that sees its files.  The
// descriptor that holds the lock until it is closed; -1, with errno, where there can be none.
int AttachToRank(pid_t parent, pid_t rank);

// Ends that, and removes the file unless somebody else is attached: the parent may be gone, which
// would do so.
void DetachFromRank(int descriptor, pid_t parent, pid_t rank);

// Whether somebody is attached to the child `rank` of this process.  Removes a file that nobody
// holds any more.
bool IsAttached(pid_t rank);

}  // namespace launcher
