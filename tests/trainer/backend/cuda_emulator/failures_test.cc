// SPDX-License-Identifier: Apache-2.0
//
// What the cuda back end says of a machine or a GPU that lets it down, and that it ends then.

#include "support/build.h"
#include "tests/support/test.h"
#include "tests/trainer/backend/cuda_emulator/runtime_api.h"
#include "tests/trainer/train/training_run.h"
#include "trainer/backend/cuda/runtime/runtime.h"
#include "trainer/core/error.h"
#include "trainer/program/run_memory.h"

namespace trainer {
namespace {

// What `action` throws, with a GPU that fails after so many calls; empty if it throws nothing.
std::optional<Error> ErrorOf(int calls, cudaError_t failure, const std::function<void()>& action) {
  cuda_emulator::FailAfter(calls, failure);
  std::optional<Error> thrown;
  try {
    action();
  } catch (const Error& error) {
    thrown.emplace(error);
  }
  cuda_emulator::Mend();
  return thrown;
}

void Train() {
  TrainConfig config = SmallConfig("");
  config.mode = RunMode::kTrainingBenchmark;
  config.batch_size = 1;
  config.warmup_steps = 0;
  config.schedule.num_iter = 1;
  RunAlone(config, 0, "cuda");
}

TEST(CudaFailures, NoGpuIsUnavailable) {
  const auto error = ErrorOf(0, cudaErrorNoDevice, [] { MakeBackend("cuda", {}); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->exit_code(), EX_UNAVAILABLE);
  EXPECT_STREQ(error->what(),
               "no GPU: no CUDA-capable device is detected; --backend=cpu computes without one");
}

TEST(CudaFailures, ADriverThatIsTooOldIsNamedWithBothVersions) {
  const auto error = ErrorOf(0, cudaErrorInsufficientDriver, [] { MakeBackend("cuda", {}); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->exit_code(), EX_UNAVAILABLE);
  EXPECT_THAT(error->what(), HasSubstr("the GPU driver is too old: it knows CUDA 12.2, this "
                                       "program was built with CUDA 12.4"));
}

TEST(CudaFailures, AGpuThatIsTakenByOthersIsUnavailable) {
  constexpr int kCallsToCount = 2;
  const auto error =
      ErrorOf(kCallsToCount, cudaErrorDevicesUnavailable, [] { MakeBackend("cuda", {}); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->exit_code(), EX_UNAVAILABLE);
  EXPECT_THAT(error->what(),
              AllOf(HasSubstr("GPU 0 cannot be used: "), HasSubstr("cudaErrorDevicesUnavailable"),
                    HasSubstr("nvidia-smi")));
}

TEST(CudaFailures, APrecisionThatTheGpuLacksIsRejectedWithOneThatItHas) {
  const auto error_of = [](const BackendOptions& options) {
    return ErrorOf(0, cudaSuccess, [&] { MakeBackend("cuda", options); });
  };
  cuda_emulator::PretendComputeCapability(7, 0);
  const auto bf16 = error_of({.compute_type = DType::kBFloat16});
  const auto tf32 = error_of({.tf32 = true});
  const auto fp16 = error_of({.compute_type = DType::kFloat16});
  const auto fp32 = error_of({});
  cuda_emulator::PretendComputeCapability(8, 0);
  ASSERT_TRUE(bf16);
  EXPECT_EQ(bf16->exit_code(), EX_UNAVAILABLE);
  EXPECT_STREQ(bf16->what(),
               "CUDA emulated on the CPU (GPU 0, compute capability 7.0) has no bf16, which came "
               "with 8.0; give --precision=fp16");
  ASSERT_TRUE(tf32);
  EXPECT_EQ(tf32->exit_code(), EX_UNAVAILABLE);
  EXPECT_THAT(tf32->what(), AllOf(HasSubstr("7.0) has no TF32, "), HasSubstr("--precision=fp32")));
  EXPECT_FALSE(fp16);
  EXPECT_FALSE(fp32);
  EXPECT_FALSE(error_of({.compute_type = DType::kBFloat16}));
}

TEST(CudaFailures, ProgrammaticLaunchIsRejectedWhereItCannotBeHad) {
  const struct {
    int major, minor, code, driver;
    std::string problem;  // "": there is none
  } kRows[] = {
      {8, 9, 80, 12040,
       "a GPU of compute capability 9.0 or later, and this is CUDA emulated on the CPU (GPU 0, "
       "compute capability 8.9)"},
      {9, 0, 80, 12040,
       "code for compute capability 9.0 or later, and this build has that for " +
           support::GpusOfBuild()},
      {9, 0, 90, 12020, "CUDA 12.3 or later, and the driver is of 12.2"},
      {9, 0, 90, 12030, ""},
      {12, 0, 90, 13000, ""},
  };
  for (const auto& [major, minor, code, driver, problem] : kRows) {
    cuda_emulator::PretendComputeCapability(major, minor);
    cuda_emulator::PretendCodeFor(code);
    cuda_emulator::PretendDriver(driver);
    const auto error =
        ErrorOf(0, cudaSuccess, [] { MakeBackend("cuda", {.programmatic_launch = true}); });
    EXPECT_EQ(AllowsProgrammaticLaunch(), problem.empty());
    EXPECT_EQ(error.has_value(), !problem.empty());
    if (error) {
      EXPECT_EQ(error->exit_code(), EX_UNAVAILABLE);
      EXPECT_EQ(error->what(), "--programmatic_launch needs " + problem + "; train without it");
    }
    EXPECT_FALSE(ErrorOf(0, cudaSuccess, [] { MakeBackend("cuda", {}); }));
    EXPECT_FALSE(AllowsProgrammaticLaunch());  // whoever made one before
  }
  cuda_emulator::PretendComputeCapability(8, 0);
  cuda_emulator::PretendDriver(12020);
}

TEST(CudaFailures, AGpuThatTheBuildHasNoCodeForIsNamedWithWhatToBuild) {
  const struct {
    cudaError_t code;
    const char* what;
    const char* remedy;
  } kRows[] = {
      {cudaErrorNoKernelImageForDevice, "", ""},
      {cudaErrorInvalidDeviceFunction, "", ""},
      {cudaErrorUnsupportedPtxVersion, " that its driver can translate", "a newer driver, or "},
  };
  cuda_emulator::PretendComputeCapability(7, 5);
  for (const auto& [code, what, remedy] : kRows) {
    cuda_emulator::PretendToHaveCode(code);
    const auto error = ErrorOf(0, cudaSuccess, [] { MakeBackend("cuda", {}); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->exit_code(), EX_UNAVAILABLE);
    EXPECT_EQ(error->what(),
              "this build of the back end cuda has no code for CUDA emulated on the "
              "CPU (GPU 0, compute capability 7.5)" +
                  std::string(what) + ": it was built for " + support::GpusOfBuild() + "; " +
                  remedy +
                  "a build with -D CMAKE_CUDA_ARCHITECTURES=75-real has; "
                  "--backend=cpu computes without one");
  }
  cuda_emulator::PretendToHaveCode(cudaErrorECCUncorrectable);
  const auto other = ErrorOf(0, cudaSuccess, [] { MakeBackend("cuda", {}); });
  cuda_emulator::PretendToHaveCode(cudaSuccess);
  cuda_emulator::PretendComputeCapability(8, 0);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->exit_code(), EX_OSERR);
}

// Memory is planned by trying: what fails then is the GPU, or too little memory to try.
TEST(CudaFailures, WhileMemoryIsPlannedAreNoLackOfIt) {
  const auto backend = MakeBackend("cuda", {});
  OneRank communicator;
  const MemoryBudget room = QueryMemoryBudget(*backend, {std::size_t{1} << 34, "left"});
  std::string rejection;
  const auto check = [&] {
    rejection =
        CheckMemory(SmallConfig(""), *backend, {.host_batches = 3}, room, communicator, false)
            .rejection;
  };
  const auto failed = ErrorOf(1, cudaErrorECCUncorrectable, check);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->exit_code(), EX_OSERR);
  EXPECT_THAT(failed->what(), HasSubstr("failed, or a kernel did on it"));
  EXPECT_FALSE(ErrorOf(1, cudaErrorMemoryAllocation, check));
  EXPECT_THAT(rejection, AllOf(HasSubstr("cudaErrorMemoryAllocation"),
                               HasSubstr(": not one image fits: give a smaller --image_size")));
}

// Others may be reading or writing it.
TEST(CudaFailures, AreToldWhileTheMemoryOfTheStepIsThere) {
  TrainConfig config = SmallConfig("");
  const std::size_t allocated = cuda_emulator::AllocatedBytes();
  auto backend = MakeBackend("cuda", {});
  OneRank communicator;
  GeneratedSource source({.batch = config.batch_size, .classes = static_cast<int>(config.classes)});
  std::size_t allocated_then = 0;
  std::string logged;
  std::ostringstream log_text;
  const TrainerDeps parts{.backend = *backend,
                          .communicator = communicator,
                          .training = &source,
                          .outputs = {MakeLogger(log_text, 0, "info")},
                          .entered =
                              [](Activity, std::int64_t step) {
                                constexpr int kCallsIntoStep = 20;
                                if (step == 1)
                                  cuda_emulator::FailAfter(kCallsIntoStep, cudaErrorIllegalAddress);
                              },
                          .failed =
                              [&](const std::exception& error) {
                                logged = error.what();
                                allocated_then = cuda_emulator::AllocatedBytes();
                              }};
  EXPECT_THROW(RunTrainer(config, parts), Error);
  cuda_emulator::Mend();
  EXPECT_THAT(logged, HasSubstr("cudaErrorIllegalAddress"));
  EXPECT_GT(allocated_then, cuda_emulator::AllocatedBytes());
  backend.reset();
  EXPECT_EQ(cuda_emulator::AllocatedBytes(), allocated);
}

// Unless it was asked for.  The error of the recording is forgotten: kernels ask for the last one.
TEST(CudaFailures, AStepThatCannotBeRecordedRunsCallByCall) {
  TrainConfig config = SmallConfig("");
  config.mode = RunMode::kTrainingBenchmark;
  config.warmup_steps = 0;
  config.schedule.num_iter = 3;
  cuda_emulator::RejectToRecord(true);
  OneRank communicator;
  std::ostringstream log;
  EXPECT_EQ(RunRank(config, communicator, log, 0, "cuda").step, 3);
  EXPECT_THAT(log.str(),
              HasSubstr("cannot run as one graph each, so kernels are started one by one"));
  config.graph = StepGraph::kOn;
  EXPECT_THROW(RunAlone(config, 0, "cuda"), Error);
  cuda_emulator::RejectToRecord(false);
}

// An old driver has graphs without priorities: they are still better than none.
TEST(CudaFailures, AGraphThatCannotKeepPrioritiesIsOneAllTheSame) {
  TrainConfig config = SmallConfig("");
  config.mode = RunMode::kTrainingBenchmark;
  config.warmup_steps = 0;
  config.schedule.num_iter = 3;
  config.graph = StepGraph::kOn;
  cuda_emulator::ForgetNodePriorities(true);
  EXPECT_NO_THROW(RunAlone(config, 0, "cuda"));
  cuda_emulator::ForgetNodePriorities(false);
}

class AFailingGpu : public testing::TestWithParam<cudaError_t> {};

// Wherever it happens: everything is given back, and no destructor throws.
TEST_P(AFailingGpu, EndsTrainingWithItsNameAndTheCodeThatIsStartedAgain) {
  constexpr int kCallsToStart = 10;  // before them the GPU cannot be had at all
  for (int calls = kCallsToStart;; calls += calls / 3) {
    const std::size_t allocated = cuda_emulator::AllocatedBytes();
    const auto error = ErrorOf(calls, GetParam(), Train);
    EXPECT_EQ(cuda_emulator::AllocatedBytes(), allocated);
    if (!error) {
      EXPECT_GT(calls, 2 * kCallsToStart) << "nothing was tested";
      return;
    }
    EXPECT_EQ(error->exit_code(), EX_OSERR);
    EXPECT_THAT(
        error->what(),
        AllOf(HasSubstr(cudaGetErrorName(GetParam())), HasSubstr("GPU 0 (PCI 0000:65:00.0) failed"),
              HasSubstr("dmesg | grep Xid"), HasSubstr("ddlrun --max-restarts")));
  }
}

INSTANTIATE_TEST_SUITE_P(Errors, AFailingGpu,
                         testing::Values(cudaErrorIllegalAddress, cudaErrorECCUncorrectable,
                                         cudaErrorDevicesUnavailable, cudaErrorUnknown),
                         [](const testing::TestParamInfo<cudaError_t>& test) {
                           return std::string(cudaGetErrorName(test.param));
                         });

}  // namespace
}  // namespace trainer
