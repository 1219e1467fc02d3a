// SPDX-License-Identifier: Apache-2.0
//
// NCCL's functions.  The library is loaded when they are first asked for, so that programs start
// quickly, and also where it is not installed.  Inside of comm/nccl*.

#pragma once

#include <nccl.h>

#include <cstddef>
#include <string>

namespace trainer {

struct NcclLibrary {
  std::string problem;  // why it cannot be used; "" if all below is there
  std::string version;  // "2.28.9"

  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclCommInitRankConfig) comm_init_rank_config = nullptr;
  decltype(&ncclCommGetAsyncError) comm_get_async_error = nullptr;
  decltype(&ncclAllReduce) all_reduce = nullptr;
  decltype(&ncclCommFinalize) comm_finalize = nullptr;
  decltype(&ncclCommDestroy) comm_destroy = nullptr;
  decltype(&ncclCommAbort) comm_abort = nullptr;
  decltype(&ncclGetErrorString) get_error_string = nullptr;
  decltype(&ncclGetLastError) get_last_error = nullptr;

  // NCCL 2.19 and later, all of them or none.  Not by decltype: nccl.h may be older than the
  // library.
  ncclResult_t (*mem_alloc)(void** memory, std::size_t bytes) = nullptr;
  ncclResult_t (*mem_free)(void* memory) = nullptr;
  ncclResult_t (*comm_register)(ncclComm_t comm, void* memory, std::size_t bytes,
                                void** handle) = nullptr;
  ncclResult_t (*comm_deregister)(ncclComm_t comm, void* handle) = nullptr;
};

// The same for the whole process; any thread.
const NcclLibrary& TheNcclLibrary();

}  // namespace trainer
