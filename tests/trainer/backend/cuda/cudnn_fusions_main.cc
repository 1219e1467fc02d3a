// SPDX-License-Identifier: Apache-2.0
//
// cudnn_fusions BATCH_SIZE...: how long cuDNN's fused engines for a bottleneck's 1x1 convolutions
// take on the current GPU, the fastest of its plans, for each convolution of ResNet-50.  Beside it
// belong the same steps of `ddltraind --profile`.

#include <cudnn.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <exception>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>

#include "support/number.h"
#include "tests/trainer/backend/cuda/cudnn_fusions.h"
#include "trainer/backend/cuda/runtime/runtime.h"
#include "trainer/backend/cuda/runtime/timing.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

constexpr std::size_t kMaxPlans = 8;  // of one graph

struct DestroyCudnn {
  void operator()(cudnnHandle_t handle) const { cudnnDestroy(handle); }
};
using CudnnHandle = std::unique_ptr<std::remove_pointer_t<cudnnHandle_t>, DestroyCudnn>;

CudnnHandle MakeHandle() {
  cudnnHandle_t handle = nullptr;
  CheckCudnn(cudnnCreate(&handle), "starting cuDNN");
  return CudnnHandle(handle);
}

struct Fastest {
  std::size_t plans = 0;
  double seconds = std::numeric_limits<double>::infinity();
  std::size_t workspace_bytes = 0;
};

Fastest Time(cudnnHandle_t handle, const FusionGraph& graph) {
  const CudnnDescriptor operations = MakeGraph(graph.operations(), handle);
  std::deque<ScratchMemory> memory;
  TensorPointers tensors;
  for (const std::size_t bytes : graph.tensor_bytes()) {
    tensors.pointers.push_back(memory.emplace_back(bytes).data());
    tensors.ids.push_back(static_cast<std::int64_t>(tensors.pointers.size()));
  }
  const CudnnTarget target = {handle, nullptr};
  Fastest fastest;
  for (const CudnnDescriptor& config : RecommendedConfigs(target, operations, CUDNN_HEUR_MODE_A)) {
    if (fastest.plans == kMaxPlans) break;
    const auto plan = MakePlan(target, config);
    if (!plan) continue;
    const ScratchMemory workspace(WorkspaceBytes(*plan));
    const double seconds = MedianSeconds([&](cudaStream_t stream) {
      CheckCudnn(cudnnSetStream(handle, stream), "cuDNN: setting a stream");
      Execute(handle, *plan, tensors, workspace.data());
    });
    ++fastest.plans;
    if (seconds >= fastest.seconds) continue;
    fastest.seconds = seconds;
    fastest.workspace_bytes = WorkspaceBytes(*plan);
  }
  return fastest;
}

std::string LineOf(const FusedConvolution& convolution, cudnnHandle_t handle) {
  char text[200];
  std::snprintf(text, sizeof text, "%-46s %4ld images, %2ld x %2ld, %4ld to %4ld channels: ",
                NameOf(convolution.fusion).c_str(), static_cast<long>(convolution.images),
                static_cast<long>(convolution.size), static_cast<long>(convolution.size),
                static_cast<long>(convolution.channels), static_cast<long>(convolution.filters));
  std::string line = text;
  try {
    const FusionGraph graph(convolution);
    const Fastest fastest = Time(handle, graph);
    if (fastest.plans == 0) return line + "no plan";
    std::snprintf(text, sizeof text, "%7.1f us, %6.1f MB, %4.2f TB/s, %zu plans, %.1f MB workspace",
                  1e6 * fastest.seconds, static_cast<double>(graph.bytes()) / 1e6,
                  static_cast<double>(graph.bytes()) / fastest.seconds / 1e12, fastest.plans,
                  static_cast<double>(fastest.workspace_bytes) / 1e6);
    return line + text;
  } catch (const Error& error) {
    if (error.exit_code() != EX_UNAVAILABLE) throw;
    return line + error.what();
  }
}

void Run(const std::vector<std::int64_t>& batch_sizes) {
  TakeDevice(0);
  const CudnnHandle handle = MakeHandle();
  for (const std::int64_t batch_size : batch_sizes) {
    for (const Fusion fusion : kFusions) {
      for (const FusedConvolution& convolution : ConvolutionsOfResNet50(fusion, batch_size)) {
        std::cout << LineOf(convolution, handle.get()) << std::endl;
      }
    }
  }
}

}  // namespace
}  // namespace trainer

int main(int argc, char** argv) {
  std::vector<std::int64_t> batch_sizes;
  for (int i = 1; i < argc; ++i) {
    const auto size = support::WholeNumber<std::int64_t>(argv[i]);
    if (!size || *size < 1) {
      std::cerr << "cudnn_fusions: '" << argv[i] << "' is no batch size: give it as 256\n";
      return EX_USAGE;
    }
    batch_sizes.push_back(*size);
  }
  if (batch_sizes.empty()) {
    std::cerr << "usage: cudnn_fusions BATCH_SIZE...\n";
    return EX_USAGE;
  }
  try {
    trainer::Run(batch_sizes);
  } catch (const trainer::Error& error) {
    std::cerr << "cudnn_fusions: " << error.what() << '\n';
    return error.exit_code();
  }
  return 0;
}
