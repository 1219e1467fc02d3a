// SPDX-License-Identifier: Apache-2.0
//
// Stands in for NVIDIA's header of this name: what trainer/comm/nccl* uses of it, with its values.

#pragma once

#include <climits>
#include <cstddef>

// NOLINTBEGIN(readability-identifier-naming): NCCL's names
struct CUstream_st;
using cudaStream_t = CUstream_st*;

struct ncclComm;
using ncclComm_t = ncclComm*;
struct ncclUniqueId {
  char internal[128];
};
enum ncclResult_t {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7,
};
enum ncclRedOp_t { ncclSum = 0, ncclAvg = 4 };
enum ncclDataType_t { ncclFloat16 = 6, ncclFloat32 = 7, ncclBfloat16 = 9 };
struct ncclConfig_t {
  int blocking;
  int maxCTAs;
};
#define NCCL_CONFIG_INITIALIZER \
  { INT_MIN, INT_MIN }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id);
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state);
ncclResult_t ncclAllReduce(const void* src, void* dst, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclMemAlloc(void** memory, std::size_t bytes);
ncclResult_t ncclMemFree(void* memory);
ncclResult_t ncclCommRegister(ncclComm_t comm, void* memory, std::size_t bytes, void** handle);
ncclResult_t ncclCommDeregister(ncclComm_t comm, void* handle);
ncclResult_t ncclCommFinalize(ncclComm_t comm);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t ncclCommAbort(ncclComm_t comm);
const char* ncclGetErrorString(ncclResult_t result);
const char* ncclGetLastError(ncclComm_t comm);
// NOLINTEND(readability-identifier-naming)
