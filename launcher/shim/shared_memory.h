// SPDX-License-Identifier: Apache-2.0
//
// The directory for Open MPI's segments of shared memory, and for what PyTorch's flight recorder
// makes (protocol/rank_variables.h).  The names of the segments can be guessed, and Open MPI
// opens one that exists already, whoever owns it: in /dev/shm itself, where all may create files,
// another user could have the ranks work in memory of theirs.

#pragma once

namespace launcher {

// Makes /dev/shm/NAME, NAME being that of the run directory, which is random, for all ranks of a
// node.  "" where it cannot be made: Open MPI then uses /dev/shm itself, which is no reason to stop
// the job.
const char* MakeSharedMemoryDirectory(const char* run_directory);

// Makes the directory of one rank for its flight recorder in there; its path ends with a slash. The
// rank has its own, since PyTorch ends the program where the directory is gone.  "" as above.
const char* MakeRecorderDirectory(const char* run_directory, int rank);

// Removes what a rank that has ended has left in them, and the directory after the last one.
void RemoveSharedMemory(int rank);

}  // namespace launcher
