// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstddef>
#include <utility>

#include "support/build.h"
#include "trainer/backend/cuda/bottleneck/bottleneck.h"
#include "trainer/backend/cuda/cuda_backend.h"
#include "trainer/backend/cuda/cuda_ops.h"
#include "trainer/backend/cuda/libraries/cuda_libraries.h"
#include "trainer/backend/cuda/runtime/copy_kernels.h"
#include "trainer/backend/cuda/runtime/graph.h"
#include "trainer/backend/cuda/runtime/layout.h"
#include "trainer/backend/cuda/runtime/ranges.h"
#include "trainer/backend/cuda/runtime/runtime.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

// "123456789 bytes (118 MiB)".
std::string Amount(std::size_t bytes) {
  return std::to_string(bytes) + " bytes (" + std::to_string(bytes >> 20) + " MiB)";
}

// "fp32 (TF32)", "fp16".
std::string NameOfPrecision(const CudaPrecision& precision) {
  if (precision.storage == DType::kFloat16) return "fp16";
  if (precision.storage == DType::kBFloat16) return "bf16";
  return precision.tf32 ? "fp32 (TF32)" : "fp32";
}

cudaDeviceProp PropertiesOf(int device) {
  cudaDeviceProp properties = {};
  CheckCuda(cudaGetDeviceProperties(&properties, device), "asking for the GPU's properties");
  return properties;
}

// "12.4" of 12040.
std::string TextOfCudaVersion(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// What the fastest algorithm depends on beside the libraries: the model of the GPU, and its driver.
std::string NameForPlans(const cudaDeviceProp& properties) {
  int driver = 0;
  CheckCuda(cudaDriverGetVersion(&driver), "asking for the driver's version");
  return std::string(properties.name) + ", compute capability " + std::to_string(properties.major) +
         "." + std::to_string(properties.minor) + ", " +
         std::to_string(properties.multiProcessorCount) + " multiprocessors, driver for CUDA " +
         TextOfCudaVersion(driver);
}

// The device that this process uses from now on.
int ChooseDevice(int local_rank) {
  const std::string problem = CudaProblem();
  if (!problem.empty()) {
    throw Error(EX_UNAVAILABLE, problem + "; --backend=cpu computes without one");
  }
  int count = 0;
  CheckCuda(cudaGetDeviceCount(&count), "counting the GPUs");
  const int device = local_rank % count;
  TakeDevice(device);
  return device;
}

// "Tesla T4 (GPU 0, compute capability 7.5)".
std::string TextOf(const cudaDeviceProp& properties, int device) {
  return std::string(properties.name) + " (GPU " + std::to_string(device) +
         ", compute capability " + std::to_string(properties.major) + "." +
         std::to_string(properties.minor) + ")";
}

// A GPU may be older than all that this build was made for, or so new that it needs the PTX.
void RejectWithoutCode(int device) {
  const auto result = static_cast<cudaError_t>(LookForCode().error);
  if (result == cudaSuccess) return;
  cudaGetLastError();  // forget it
  const bool has_none =
      result == cudaErrorNoKernelImageForDevice || result == cudaErrorInvalidDeviceFunction;
  if (!has_none && result != cudaErrorUnsupportedPtxVersion) {
    CheckCuda(result, "looking for the code of kernels");
  }
  const cudaDeviceProp properties = PropertiesOf(device);
  throw Error(EX_UNAVAILABLE,
              "this build of the back end cuda has no code for " + TextOf(properties, device) +
                  (has_none ? "" : " that its driver can translate") + ": it was built for " +
                  support::GpusOfBuild() + "; " + (has_none ? "" : "a newer driver, or ") +
                  "a build with -D CMAKE_CUDA_ARCHITECTURES=" + std::to_string(properties.major) +
                  std::to_string(properties.minor) +
                  "-real has; --backend=cpu computes without one");
}

// bf16 and TF32 came with Ampere.
void RejectWhatDeviceLacks(int device, const CudaPrecision& precision) {
  const bool bf16 = precision.storage == DType::kBFloat16;
  if (!bf16 && !precision.tf32) return;
  const cudaDeviceProp properties = PropertiesOf(device);
  if (properties.major >= 8) return;
  throw Error(EX_UNAVAILABLE,
              TextOf(properties, device) + " has no " + (bf16 ? "bf16" : "TF32") +
                  ", which came with 8.0; give --precision=" + (bf16 ? "fp16" : "fp32 or fp16"));
}

// What kernels wait by came with Hopper; graphs have it from CUDA 12.3 on.
void RejectProgrammaticLaunch(int device) {
  constexpr int kFirst = 12030;
  int driver = 0;
  int runtime = 0;
  CheckCuda(cudaDriverGetVersion(&driver), "asking for the driver's version");
  CheckCuda(cudaRuntimeGetVersion(&runtime), "asking for the runtime's version");
  const cudaDeviceProp properties = PropertiesOf(device);
  std::string problem;
  if (properties.major < 9) {
    problem = "a GPU of compute capability 9.0 or later, and this is " + TextOf(properties, device);
  } else if (LookForCode().compiled_for < 90) {
    problem = "code for compute capability 9.0 or later, and this build has that for " +
              support::GpusOfBuild();
  } else if (std::min(driver, runtime) < kFirst) {
    problem = std::string("CUDA 12.3 or later, and the ") +
              (driver < runtime ? "driver" : "runtime") + " is of " +
              TextOfCudaVersion(std::min(driver, runtime));
  }
  if (problem.empty()) return;
  throw Error(EX_UNAVAILABLE, "--programmatic_launch needs " + problem + "; train without it");
}

// Of gradients that were computed twice, where engines are allowed that add in an order of their
// own (atomically).  Two sources, by parameter and relative to the norm of its gradient:
//   sums in fp32   n terms of either sign in any order: about sqrt(n / 2) roundings of 2^-24.  The
//                  longest are of the first layers' filters, n = batch * height * width: 3.2
//                  million of 256 images make 8e-5, here 1e-3 for cancellation and for larger
//                  batches.
//   stored values  such a sum may be rounded to the next value of the compute type, by one unit
//                  (fp16 and TF32: 2^-10, bf16: 2^-7), in each of the layers behind it: random, so
//                  that some 50 layers make about 7 of it, here 32.
// A flipped bit of an exponent, a wrong block of a matrix product or a lost one are far above.
double RepeatError(const CudaPrecision& precision) {
  constexpr double kOfSums = 1e-3;
  constexpr double kUnits = 32;
  const bool is_short = precision.storage == DType::kFloat16 || precision.tf32;
  if (precision.storage == DType::kBFloat16) return kUnits / 128;
  return is_short ? kUnits / 1024 : kOfSums;
}

class CudaBackend final : public Backend {
 public:
  CudaBackend(int device, const CudaPrecision& precision, const BackendOptions& options)
      : device_(device),
        precision_(precision),
        repeat_error_(options.deterministic ? 0 : RepeatError(precision)),
        libraries_(MakeCudaLibraries(precision, options.deterministic, options.plans,
                                     NameForPlans(PropertiesOf(device)))) {}

  std::string name() const override { return "cuda"; }
  std::string description() const override {
    return "cuda: " + std::string(PropertiesOf(device_).name) + " (GPU " + std::to_string(device_) +
           "), " + libraries_->versions() + ", " + NameOfPrecision(precision_);
  }
  std::string arithmetic() const override {
    const cudaDeviceProp properties = PropertiesOf(device_);
    return "compute capability " + std::to_string(properties.major) + "." +
           std::to_string(properties.minor) + ", " + libraries_->versions() + ", " +
           NameOfPrecision(precision_);
  }
  DType compute_type() const override { return precision_.storage; }
  double repeat_error() const override { return repeat_error_; }

  bool is_host() const override { return false; }
  std::string device_id() const override {
    char id[32] = "";
    CheckCuda(cudaDeviceGetPCIBusId(id, sizeof id, device_), "asking for the GPU's PCI bus id");
    return id;
  }

  std::size_t free_bytes() const override {
    std::size_t free = 0;
    std::size_t total = 0;
    CheckCuda(cudaMemGetInfo(&free, &total), "asking for the GPU's free memory");
    return free;
  }

  Buffer AllocateDevice(std::size_t bytes) override {
    if (bytes == 0) return {};
    void* data = nullptr;
    const cudaError_t result = cudaMalloc(&data, bytes);
    if (result == cudaErrorMemoryAllocation) throw ShortOfMemory(bytes);
    CheckCuda(result, ("allocating " + Amount(bytes) + " on the GPU").c_str());
    Buffer buffer(data, bytes, [](void* memory) { cudaFree(memory); });
    CheckCuda(cudaMemset(data, 0, bytes), "clearing memory of the GPU");
    // The null stream does not wait for the others, nor they for it.
    CheckCuda(cudaDeviceSynchronize(), "clearing memory of the GPU");
    return buffer;
  }

  Buffer AllocateHost(std::size_t bytes) override {
    if (bytes == 0) return {};
    void* data = nullptr;
    CheckCuda(cudaMallocHost(&data, bytes),
              ("allocating " + Amount(bytes) + " of pinned memory on the host").c_str());
    Buffer buffer(data, bytes, [](void* memory) { cudaFreeHost(memory); });
    std::fill_n(buffer.data(), bytes, std::byte{0});
    return buffer;
  }

  void CopyToDevice(void* dst, const void* src, std::size_t bytes, Stream& stream) override {
    CheckCuda(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyHostToDevice, HandleOf(stream)),
              "copying to the GPU");
  }
  void CopyToHost(void* dst, const void* src, std::size_t bytes, Stream& stream) override {
    CheckCuda(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToHost, HandleOf(stream)),
              "copying from the GPU");
  }
  void CopyOnDevice(void* dst, const void* src, std::size_t bytes, Stream& stream) override {
    CheckCuda(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToDevice, HandleOf(stream)),
              "copying on the GPU");
  }
  void Zero(void* dst, std::size_t bytes, Stream& stream) override {
    CheckCuda(cudaMemsetAsync(dst, 0, bytes, HandleOf(stream)), "clearing memory of the GPU");
  }

  void Import(const float* src, const Tensor& dst, Stream& stream) override {
    std::byte* values = Scratch(ValueBytes(dst));
    CopyToDevice(values, src, ValueBytes(dst), stream);
    ImportValues(reinterpret_cast<const float*>(values), PlacesOf(dst.desc), dst.desc.dtype,
                 dst.data, HandleOf(stream));
    stream.Synchronize();
  }
  void Export(const Tensor& src, float* dst, Stream& stream) override {
    std::byte* values = Scratch(ValueBytes(src));
    ExportValues(src.data, PlacesOf(src.desc), src.desc.dtype, reinterpret_cast<float*>(values),
                 HandleOf(stream));
    CopyToHost(dst, values, ValueBytes(src), stream);
    stream.Synchronize();
  }

  void Widen(const void* src, float* dst, std::size_t count, Stream& stream) override {
    ConvertToFloat(src, precision_.storage, dst, static_cast<std::int64_t>(count),
                   HandleOf(stream));
  }

  void Add(const void* src, DType type, float* dst, std::size_t count, Stream& stream) override {
    DDL_CHECK(type == DType::kFloat32 || type == precision_.storage);
    AddAsFloat(src, type, dst, static_cast<std::int64_t>(count), HandleOf(stream));
  }

  void MoveAverage(const float* values, float share, const UpdateSums* sums, float* average,
                   std::size_t count, Stream& stream) override {
    trainer::MoveAverage(values, share, sums, average, static_cast<std::int64_t>(count),
                         HandleOf(stream));
  }

  std::unique_ptr<Stream> MakeStream() override { return MakeCudaStream(); }
  std::unique_ptr<Stream> MakeHighPriorityStream() override { return MakeHighPriorityCudaStream(); }
  std::unique_ptr<Event> MakeEvent() override { return MakeCudaEvent(); }

  bool can_capture() const override { return true; }
  void BeginRange(const char* name) override { BeginProfilerRange(name); }
  void EndRange() override { EndProfilerRange(); }

  std::unique_ptr<CapturedGraph> Capture(Stream& stream,
                                         const std::function<void()>& queue) override {
    return CaptureCudaGraph(stream, queue);
  }

  std::unique_ptr<InputTransform> MakeInputTransform(const Shape& images) override {
    return MakeCudaInputTransform(images, precision_.storage);
  }
  std::unique_ptr<Convolution> MakeConvolution(const ConvolutionSpec& spec) override {
    return libraries_->MakeConvolution(spec);
  }
  std::unique_ptr<BatchNorm> MakeBatchNorm(const BatchNormSpec& spec) override {
    return MakeCudaBatchNorm(spec, libraries_->autotuner());
  }
  std::unique_ptr<MaxPool> MakeMaxPool(const MaxPoolSpec& spec) override {
    return MakeCudaMaxPool(spec);
  }
  std::unique_ptr<GlobalAveragePool> MakeGlobalAveragePool(const TensorDesc& src) override {
    return MakeCudaGlobalAveragePool(src);
  }
  std::unique_ptr<Linear> MakeLinear(const LinearSpec& spec) override {
    return libraries_->MakeLinear(spec);
  }
  std::unique_ptr<SoftmaxCrossEntropy> MakeSoftmaxCrossEntropy(
      const SoftmaxCrossEntropySpec& spec) override {
    return MakeCudaSoftmaxCrossEntropy(*this, spec);
  }
  std::unique_ptr<Optimizer> MakeOptimizer(OptimizerKind kind,
                                           std::vector<ParameterSegment> segments) override {
    return MakeCudaOptimizer(kind, *this, std::move(segments), precision_.storage);
  }

  bool has_own_blocks() const override { return true; }
  std::unique_ptr<Stem> MakeStem(const StemSpec& spec) override {
    return MakeCudaStem(*this, *libraries_, spec);
  }
  std::unique_ptr<Bottleneck> MakeBottleneck(const BottleneckSpec& spec) override {
    return MakeCudaBottleneck(*libraries_, spec);
  }

 private:
  static std::size_t ValueBytes(const Tensor& tensor) {
    return static_cast<std::size_t>(tensor.desc.shape.elements()) * sizeof(float);
  }

  // For the values of one tensor on their way, of which no call leaves anything there.  Kept: a
  // checkpoint is hundreds of tensors, and to allocate takes longer than to copy.
  std::byte* Scratch(std::size_t bytes) {
    if (scratch_.bytes() < bytes) {
      scratch_ = {};
      scratch_ = AllocateDevice(bytes);
    }
    return scratch_.data();
  }

  static OutOfMemory ShortOfMemory(std::size_t bytes) {
    cudaGetLastError();  // forget it
    std::size_t free = 0;
    std::size_t total = 0;
    cudaMemGetInfo(&free, &total);
    return OutOfMemory("the GPU is short of memory: " + Amount(bytes) + " were asked for, " +
                       Amount(free) + " of " + Amount(total) +
                       " are free; use a smaller --batch_size (--dry_run shows what one needs)");
  }

  const int device_;
  const CudaPrecision precision_;
  const double repeat_error_;
  const std::unique_ptr<CudaLibraries> libraries_;
  Buffer scratch_;
};

}  // namespace

std::string CudaProblem() {
  int count = 0;  // not touched where there is no driver
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result == cudaSuccess && count > 0) return "";
  cudaGetLastError();  // forget it
  if (result == cudaErrorInsufficientDriver) {
    int driver = 0;
    int runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    if (driver == 0) return "no GPU: there is no NVIDIA driver";
    return "the GPU driver is too old: it knows CUDA " + TextOfCudaVersion(driver) +
           ", this program was built with CUDA " + TextOfCudaVersion(runtime);
  }
  return "no GPU: " + std::string(result == cudaSuccess ? "none is visible to this process"
                                                        : cudaGetErrorString(result));
}

std::string CudaModuleFile() { return ""; }  // loader.cc has that of programs

std::unique_ptr<Backend> MakeCudaBackend(const BackendOptions& options) {
  const int device = ChooseDevice(options.local_rank);
  const CudaPrecision precision = {options.compute_type, options.tf32};
  RejectWithoutCode(device);
  RejectWhatDeviceLacks(device, precision);
  if (options.programmatic_launch) RejectProgrammaticLaunch(device);
  AllowProgrammaticLaunch(options.programmatic_launch);
  return std::make_unique<CudaBackend>(device, precision, options);
}

}  // namespace trainer
