// SPDX-License-Identifier: Apache-2.0
//
// NCCL's functions.  The library is loaded when they are first asked for, so that programs start
// quickly, and also where it is not installed.  Inside of comm/nccl*.

#pragma once

#include <nccl.h>

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
};

// The same for the whole process; any thread.
const NcclLibrary& TheNcclLibrary();

}  // namespace trainer
