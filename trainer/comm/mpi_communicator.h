// SPDX-License-Identifier: Apache-2.0
//
// Ranks that meet through MPI.  One thread of its own makes every MPI call, MPI_Init_thread and
// MPI_Finalize among them, in the order in which the calls were asked for; all-reduces go on there
// while the caller computes.  Only Abort calls MPI from the caller's thread.
//
// The bits are the same on every rank and in every run as far as MPI_Allreduce is: Open MPI's own
// algorithms are, for a fixed number of ranks and elements.
//
// MPI's functions come from a module that is loaded here (mpi_loader.h); mpi_module.cc alone
// includes mpi.h.

#pragma once

#include <memory>

#include "trainer/comm/factory.h"

namespace trainer {

// At most one in the life of a process.  Throws Error as MakeCommunicator does.
std::unique_ptr<Communicator> MakeMpiCommunicator(const CommOptions& options);

}  // namespace trainer
