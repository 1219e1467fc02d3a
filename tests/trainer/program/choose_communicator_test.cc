// SPDX-License-Identifier: Apache-2.0

#include <cstdlib>

#include "tests/support/test.h"
#include "tests/trainer/train/deferred_backend.h"
#include "tests/trainer/train/thread_ranks.h"
#include "trainer/comm/nccl_obstacle.h"
#include "trainer/core/error.h"
#include "trainer/program/startup.h"

namespace trainer {
namespace {

class Gpu final : public DeferredBackend {
 public:
  std::string device_id() const override { return "0000:1B:00.0"; }
};

// What rank 0 of two on one GPU is told, as an error or in its log.
std::string ToldOnOneGpu(const Options& options) {
  std::string logged;
  RunRanks(2, [&](Communicator& host) {
    std::ostringstream own;
    Gpu gpu;
    try {
      const Logger log = MakeLogger(own, host.rank(), "info");
      EXPECT_EQ(MakeGradientCommunicator(options, gpu, host, log), nullptr);
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), EX_CONFIG);
      own << error.what();
    }
    if (host.rank() == 0) logged = own.str();
  });
  return logged;
}

class SharedGpu : public testing::Test {
 protected:
  SharedGpu() { ::unsetenv(kMultiRankVariable); }
  ~SharedGpu() override { ::unsetenv(kMultiRankVariable); }
};

TEST_F(SharedGpu, SumsInHostMemoryWithAWarningOrIsRejected) {
  const std::string reason =
      "ranks 0 and 1 share a GPU; NCCL_MULTI_RANK_GPU_ENABLE=1 lets them, from NCCL 2.30 on; this "
      "is 2.0.0 (emulated)";
  Options options;
  options.mode = RunMode::kTrain;
  EXPECT_THAT(ToldOnOneGpu(options),
              HasSubstr("gradients are summed in host memory, not by NCCL: " + reason));
  options.reduce_precision = ReducePrecision::k16Bit;
  EXPECT_EQ(ToldOnOneGpu(options),
            "--reduce_precision=16bit needs NCCL, which cannot be: " + reason);
  options.comm = "nccl";
  EXPECT_EQ(ToldOnOneGpu(options), "--comm=nccl cannot be: " + reason);
  options.comm = "mpi";
  EXPECT_EQ(ToldOnOneGpu(options), "");
}

TEST_F(SharedGpu, IsNotAskedForAVariableThatIsSet) {
  ::setenv(kMultiRankVariable, "1", 1);
  Options options;
  options.mode = RunMode::kTrain;
  options.comm = "nccl";
  EXPECT_EQ(ToldOnOneGpu(options),
            "--comm=nccl cannot be: ranks 0 and 1 share a GPU; NCCL lets them from 2.30 on; this "
            "is 2.0.0 (emulated)");
}

}  // namespace
}  // namespace trainer
