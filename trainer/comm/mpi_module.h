// SPDX-License-Identifier: Apache-2.0
//
// What crosses between a program and the module that is linked with MPI, lib/ddlrun/ddltrain_mpi.so
// (doc/decisions/0084): functions and types of C alone, so that a module of another compiler, or
// for another MPI, fits.
//
// Threads: `initialize` and all that is called after it come from one thread; `abort` may come from
// another, at any time after `initialize`.

#pragma once

namespace trainer {

// Of the table below.  A change of what is there is another layout.
inline constexpr int kMpiModuleLayout = 1;

struct MpiWorld {
  int rank;
  int size;
  int thread_level;        // as MPI numbers them
  int is_thread_multiple;  // whether that is MPI_THREAD_MULTIPLE: 1 or 0
};

enum MpiReduction : int { kMpiSumOfFloats, kMpiSumOfDoubles, kMpiMaxOfDoubles };

// Functions that may fail return null, or "MPI_Bcast failed: MPI_ERR_...", which is there until the
// next call.
struct MpiModule {
  // kMpiModuleLayout of the module; first, so that a program of any layout can read it.
  int layout;
  // "Open MPI v4.1.4, package: ...".  Also before `initialize`.
  const char* (*library)();
  // MPI_Init_thread with MPI_THREAD_MULTIPLE.
  const char* (*initialize)(MpiWorld* world);
  // MPI_Finalize, instead of `open`.
  void (*leave)();
  // Makes the communicator that all below use: of all ranks, and apart from MPI_COMM_WORLD.
  const char* (*open)();
  // The communicator's end, and MPI_Finalize.
  void (*close)();
  // In place.  `count`: of elements.
  const char* (*all_reduce)(void* values, int count, int reduction);
  const char* (*broadcast)(void* data, int bytes, int root);
  const char* (*barrier)();
  // Sends `bytes` to the next rank, the last to the first.  `seconds`: how long it took until those
  // of the one before were in `received`.  MPI may touch both after a failure.
  const char* (*pass_on)(const void* sent, void* received, int bytes, double* seconds);
  // Ends the job; does not return.
  void (*abort)(int exit_code);
};

// What a module exports, and all that it does: extern "C" const MpiModule* ddltrain_mpi_module().
using MpiModuleEntry = const MpiModule* (*)();
inline constexpr const char* kMpiModuleEntry = "ddltrain_mpi_module";

}  // namespace trainer
