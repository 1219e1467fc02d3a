// SPDX-License-Identifier: Apache-2.0
//
// The communicator on the real NCCL.  Most of it needs a GPU; one is enough.

#include <cuda_runtime.h>

#include <iostream>
#include <numeric>

#include "tests/support/refusal.h"
#include "tests/support/test.h"
#include "tests/trainer/train/thread_ranks.h"
#include "trainer/backend/registry.h"
#include "trainer/comm/communicator.h"
#include "trainer/comm/nccl_communicator.h"
#include "trainer/comm/nccl_obstacle.h"
#include "trainer/train/step/gradients.h"

namespace trainer {
namespace {

constexpr std::size_t kCount = 10'000'000;

class NcclOnAGpu : public testing::Test {
 protected:
  void SetUp() override {
    const std::string problem = BackendProblem("cuda");
    if (!problem.empty()) GTEST_SKIP() << problem;
    ASSERT_EQ(NcclProblem(), "");
    std::cout << "NCCL " << NcclVersion() << '\n';
  }
};

std::unique_ptr<Communicator> MakeNccl(Communicator& host, Backend& backend,
                                       const NcclOptions& options = {}) {
  return MakeNcclCommunicator(host, MakeNcclDeps(backend), options);
}

// 0, 1, 2, ... on the device, and what there is of it afterwards.
class Values {
 public:
  Values(Backend& backend, Stream& stream)
      : backend_(backend), host_(kCount), device_(backend.AllocateDevice(kCount * sizeof(float))) {
    std::iota(host_.begin(), host_.end(), 0.0F);
    backend.CopyToDevice(device_.data(), host_.data(), device_.bytes(), stream);
  }
  float* device() const { return reinterpret_cast<float*>(device_.data()); }
  void ExpectUnchanged(Stream& stream) {
    std::vector<float> seen(kCount);
    backend_.CopyToHost(seen.data(), device_.data(), device_.bytes(), stream);
    stream.Synchronize();
    EXPECT_EQ(seen, host_);
  }

 private:
  Backend& backend_;
  std::vector<float> host_;
  Buffer device_;
};

TEST_F(NcclOnAGpu, SumsOfOneRankAreWhatTheyWere) {
  const auto backend = MakeBackend("cuda", {});
  const auto host = MakeSingleCommunicator();
  EXPECT_EQ(NcclObstacle(*host, {.gpu = backend->device_id(), .multi_rank = {}}), "");
  const auto stream = backend->MakeStream();
  const auto comm = MakeNccl(*host, *backend, {.max_ctas = 4});
  std::cout << comm->description() << " on " << backend->device_id() << '\n';
  Values values(*backend, *stream);
  for (int bucket = 0; bucket < 4; ++bucket) {
    const std::size_t quarter = kCount / 4;
    comm->StartAllReduce(values.device() + bucket * quarter, quarter, DType::kFloat32,
                         Reduction::kSum, *stream);
  }
  comm->Finish(*stream);
  comm->Synchronize(*stream);
  values.ExpectUnchanged(*stream);
}

TEST_F(NcclOnAGpu, MeansOfOneRankAreWhatTheyWereInEachType) {
  const auto backend = MakeBackend("cuda", {});
  const auto host = MakeSingleCommunicator();
  const auto stream = backend->MakeStream();
  const auto comm = MakeNccl(*host, *backend);
  Values values(*backend, *stream);
  comm->StartAllReduce(values.device(), kCount, DType::kFloat32, Reduction::kMean, *stream);
  comm->Finish(*stream);
  comm->Synchronize(*stream);
  values.ExpectUnchanged(*stream);

  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    const std::vector<std::uint16_t> numbers(kCount, 0x3C01);  // 1.0009766 and 0.0078735
    std::vector<std::uint16_t> seen(kCount);
    const Buffer memory = backend->AllocateDevice(kCount * sizeof(std::uint16_t));
    backend->CopyToDevice(memory.data(), numbers.data(), memory.bytes(), *stream);
    comm->StartAllReduce(memory.data(), kCount, dtype, Reduction::kMean, *stream);
    comm->Finish(*stream);
    backend->CopyToHost(seen.data(), memory.data(), memory.bytes(), *stream);
    comm->Synchronize(*stream);
    EXPECT_EQ(seen, numbers) << NameOf(dtype);
  }
}

TEST_F(NcclOnAGpu, SumsMayBePartOfAGraph) {
  const auto backend = MakeBackend("cuda", {});
  const auto host = MakeSingleCommunicator();
  const auto stream = backend->MakeStream();
  const auto comm = MakeNccl(*host, *backend);
  Values values(*backend, *stream);
  stream->Synchronize();

  auto* queue = static_cast<cudaStream_t>(stream->handle());
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t step = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(queue, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  comm->StartAllReduce(values.device() + kCount / 2, kCount / 2, DType::kFloat32, Reduction::kSum,
                       *stream);
  comm->StartAllReduce(values.device(), kCount / 2, DType::kFloat32, Reduction::kSum, *stream);
  comm->Finish(*stream);
  ASSERT_EQ(cudaStreamEndCapture(queue, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&step, graph, 0), cudaSuccess);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(cudaGraphLaunch(step, queue), cudaSuccess);
    comm->Synchronize(*stream);
  }
  values.ExpectUnchanged(*stream);
  EXPECT_EQ(cudaGraphExecDestroy(step), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(NcclOnAGpu, DoesNotWaitForeverForARankThatDoesNotStart) {
  RunRanks(2, [](Communicator& host) {
    if (host.rank() == 0) {
      const auto backend = MakeBackend("cuda", {});
      EXPECT_THAT(tests::Rejection<Error>(EX_UNAVAILABLE,
                                          [&] { MakeNccl(host, *backend, {.start_seconds = 3}); }),
                  HasSubstr("the others have not answered in time"));
    } else {
      std::array<std::byte, 128> id = {};
      host.Broadcast(id.data(), id.size(), 0);
    }
  });
}

TEST_F(NcclOnAGpu, RejectsTwoRanksOnIt) {
  std::vector<std::string> obstacles(2);
  std::vector<std::string> errors(2);
  RunRanks(2, [&](Communicator& host) {
    const auto rank = static_cast<std::size_t>(host.rank());
    const auto backend = MakeBackend("cuda", {});
    obstacles[rank] = NcclObstacle(host, {.gpu = backend->device_id(), .multi_rank = {}});
    try {
      MakeNccl(host, *backend, {.start_seconds = 30});
    } catch (const Error& error) {
      errors[rank] = error.what();
    }
  });
  EXPECT_THAT(obstacles,
              Each(HasSubstr("ranks 0 and 1 share a GPU; NCCL_MULTI_RANK_GPU_ENABLE=1 lets them")));
  EXPECT_THAT(errors, Each(HasSubstr("cannot start NCCL: ")));
  std::cout << errors[0] << '\n' << errors[1] << '\n';
}

TEST(NcclWithoutAGpu, SaysThatCudaFailed) {
  if (BackendProblem("cuda").empty()) GTEST_SKIP() << "there is one";
  ASSERT_EQ(NcclProblem(), "");
  const auto host = MakeSingleCommunicator();
  EXPECT_THAT(tests::Rejection<Error>(EX_SOFTWARE, [&] { MakeNcclCommunicator(*host, {}, {}); }),
              AllOf(HasSubstr("rank 0 cannot start NCCL: unhandled cuda error"),
                    HasSubstr("CUDA driver version is insufficient")));
}

}  // namespace
}  // namespace trainer
