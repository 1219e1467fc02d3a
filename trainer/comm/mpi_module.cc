// SPDX-License-Identifier: Apache-2.0
//
// The module: the only file that sees mpi.h.  Nothing of the C++ library is used, which the program
// has a copy of.

#include "trainer/comm/mpi_module.h"

#include <mpi.h>

#include <cstdio>

namespace {

using trainer::MpiWorld;

MPI_Comm ranks = MPI_COMM_NULL;

const char* Failure(int result, const char* call) {
  static char text[MPI_MAX_ERROR_STRING + 64];
  if (result == MPI_SUCCESS) return nullptr;
  char why[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(result, why, &length);
  std::snprintf(text, sizeof(text), "%s failed: %s", call, why);
  return text;
}

const char* Library() {
  static char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  return text;
}

const char* Initialize(MpiWorld* world) {
  const char* failure =
      Failure(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &world->thread_level),
              "MPI_Init_thread");
  if (failure != nullptr) return failure;
  world->is_thread_multiple = world->thread_level >= MPI_THREAD_MULTIPLE ? 1 : 0;
  MPI_Comm_size(MPI_COMM_WORLD, &world->size);
  MPI_Comm_rank(MPI_COMM_WORLD, &world->rank);
  return nullptr;
}

void Leave() { MPI_Finalize(); }

const char* Open() {
  const char* failure = Failure(MPI_Comm_dup(MPI_COMM_WORLD, &ranks), "MPI_Comm_dup");
  if (failure != nullptr) return failure;
  return Failure(MPI_Comm_set_errhandler(ranks, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
}

void Close() {
  MPI_Comm_free(&ranks);
  MPI_Finalize();
}

const char* AllReduce(void* values, int count, int reduction) {
  MPI_Datatype type = reduction == trainer::kMpiSumOfFloats ? MPI_FLOAT : MPI_DOUBLE;
  MPI_Op operation = reduction == trainer::kMpiMaxOfDoubles ? MPI_MAX : MPI_SUM;
  return Failure(MPI_Allreduce(MPI_IN_PLACE, values, count, type, operation, ranks),
                 "MPI_Allreduce");
}

const char* Broadcast(void* data, int bytes, int root) {
  return Failure(MPI_Bcast(data, bytes, MPI_BYTE, root, ranks), "MPI_Bcast");
}

const char* Barrier() { return Failure(MPI_Barrier(ranks), "MPI_Barrier"); }

const char* PassOn(const void* sent, void* received, int bytes, double* seconds) {
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(ranks, &rank);
  MPI_Comm_size(ranks, &size);
  MPI_Request receive = MPI_REQUEST_NULL;
  MPI_Request send = MPI_REQUEST_NULL;
  const char* failure =
      Failure(MPI_Irecv(received, bytes, MPI_BYTE, (rank + size - 1) % size, 0, ranks, &receive),
              "MPI_Irecv");
  if (failure == nullptr) failure = Barrier();
  const double begun = MPI_Wtime();
  if (failure == nullptr) {
    failure =
        Failure(MPI_Isend(sent, bytes, MPI_BYTE, (rank + 1) % size, 0, ranks, &send), "MPI_Isend");
  }
  if (failure == nullptr) failure = Failure(MPI_Wait(&receive, MPI_STATUS_IGNORE), "MPI_Wait");
  *seconds = MPI_Wtime() - begun;
  if (failure == nullptr) failure = Failure(MPI_Wait(&send, MPI_STATUS_IGNORE), "MPI_Wait");
  return failure;
}

void Abort(int exit_code) { MPI_Abort(MPI_COMM_WORLD, exit_code); }

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): a C name
extern "C" const trainer::MpiModule* ddltrain_mpi_module() {
  static constexpr trainer::MpiModule module = {trainer::kMpiModuleLayout,
                                                Library,
                                                Initialize,
                                                Leave,
                                                Open,
                                                Close,
                                                AllReduce,
                                                Broadcast,
                                                Barrier,
                                                PassOn,
                                                Abort};
  return &module;
}
