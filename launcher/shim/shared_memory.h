// SPDX-License-Identifier: Apache-2.0
//
// The directory for Open MPI's segments of shared memory.  Their names can be guessed, and Open MPI
// opens one that exists already, whoever owns it: in /dev/shm itself, where all may create files,
// another user could have the ranks work in memory of theirs.

#pragma once

namespace launcher {

// Makes /dev/shm/NAME, NAME being that of the run directory, which is random, for all ranks of a
// node.  "" where it cannot be made: Open MPI then uses /dev/shm itself, which is no reason to stop
// the job.
const char* MakeSharedMemoryDirectory(const char* run_directory);

// Removes what a rank that has ended has left in it, and the directory after the last one.
void RemoveSharedMemory(int rank);

}  // namespace launcher
