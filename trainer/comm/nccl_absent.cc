// SPDX-License-Identifier: Apache-2.0
//
// In the place of nccl_communicator.cc in a build without NCCL.

#include "trainer/comm/nccl_communicator.h"
#include "trainer/core/error.h"

namespace trainer {

std::string NcclProblem() { return "this program was built without NCCL"; }

std::string NcclVersion() { return ""; }

std::unique_ptr<Communicator> MakeNcclCommunicator(Communicator& /*host*/, NcclDeps /*parts*/,
                                                   const NcclOptions& /*options*/) {
  throw Error(EX_UNAVAILABLE, NcclProblem());
}

}  // namespace trainer
