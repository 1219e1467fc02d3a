// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/op_work.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace trainer {
namespace {

double Values(const TensorDesc& desc) { return static_cast<double>(desc.shape.elements()); }

double ConvolutionFlop(const TensorDesc& filter, const TensorDesc& dst) {
  const double products = Values(filter) / static_cast<double>(filter.shape[0]);
  return 2 * Values(dst) * products;
}

constexpr double kPixelBytes = 1;  // of one channel

// As the stem of a ResNet is (blocks.h).
constexpr std::int64_t kStemKernel = 7;
constexpr std::int64_t kStemChannels = 3;

double StemFlop(const StemSpec& spec) {
  const auto places = [](std::int64_t size) { return (size + 1) / 2; };  // stride 2, padding 3
  const double values = static_cast<double>(spec.batch * spec.out_channels) *
                        static_cast<double>(places(spec.height) * places(spec.width));
  return 2 * values * static_cast<double>(kStemChannels * kStemKernel * kStemKernel);
}

double StemBytes(const StemSpec& spec, const TensorDesc& dst) {
  const auto pixels = static_cast<double>(spec.batch * spec.height * spec.width * kStemChannels);
  const auto filter =
      static_cast<double>(spec.out_channels * kStemChannels * kStemKernel * kStemKernel);
  return pixels * kPixelBytes + filter * static_cast<double>(SizeOf(dst.dtype)) + ValueBytes(dst);
}

}  // namespace

std::string ShapeText(const Shape& shape) {
  std::string text;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    text += (axis > 0 ? "x" : "") + std::to_string(shape[axis]);
  }
  return text;
}

std::string ShapeText(const ConvolutionSpec& spec, const Shape& dst) {
  const std::string kernel = std::to_string(spec.kernel);
  return ShapeText(spec.src.shape) + " > " + ShapeText(dst) + ", " + kernel + "x" + kernel +
         (spec.stride > 1 ? " stride " + std::to_string(spec.stride) : "");
}

std::string ShapeText(const BatchNormSpec& spec) {
  return ShapeText(spec.src.shape) + (spec.add ? ", add" : "") + (spec.relu ? ", ReLU" : "");
}

double ValueBytes(const TensorDesc& desc) {
  return Values(desc) * static_cast<double>(SizeOf(desc.dtype));
}

OpWork ConvolutionForwardWork(const ConvolutionSpec& spec, const TensorDesc& filter,
                              const TensorDesc& dst) {
  return {ConvolutionFlop(filter, dst),
          ValueBytes(spec.src) + ValueBytes(filter) + ValueBytes(dst)};
}

OpWork ConvolutionBackwardDataWork(const ConvolutionSpec& spec, const TensorDesc& filter,
                                   const TensorDesc& dst) {
  OpWork work = ConvolutionForwardWork(spec, filter, dst);
  if (spec.adds_diff_src) work.bytes += ValueBytes(spec.src);
  return work;
}

OpWork ConvolutionBackwardFilterWork(const ConvolutionSpec& spec, const TensorDesc& filter,
                                     const TensorDesc& dst) {
  return ConvolutionForwardWork(spec, filter, dst);
}

OpWork BatchNormForwardWork(const BatchNormSpec& spec, Mode mode) {
  const double of_value =
      (mode == Mode::kTraining ? 5 : 2) + (spec.add ? 1 : 0) + (spec.relu ? 1 : 0);
  return {of_value * Values(spec.src), (spec.add ? 3 : 2) * ValueBytes(spec.src)};
}

OpWork BatchNormBackwardWork(const BatchNormSpec& spec, Mode mode) {
  const double of_value = 4 + (mode == Mode::kTraining ? 4 : 1) + (spec.relu ? 1 : 0);
  // src, diff_dst, diff_src.
  const double tensors = 3 + (spec.relu ? 1 : 0) + (spec.add ? 1 : 0);
  return {of_value * Values(spec.src), tensors * ValueBytes(spec.src)};
}

OpWork MaxPoolForwardWork(const MaxPoolSpec& spec, const TensorDesc& dst) {
  return {Values(dst) * static_cast<double>(spec.kernel * spec.kernel),
          ValueBytes(spec.src) + ValueBytes(dst)};
}

OpWork MaxPoolBackwardWork(const MaxPoolSpec& spec, const TensorDesc& dst) {
  return {Values(dst), ValueBytes(spec.src) + ValueBytes(dst)};
}

OpWork GlobalAveragePoolWork(const TensorDesc& src, const TensorDesc& dst) {
  return {Values(src), ValueBytes(src) + ValueBytes(dst)};
}

OpWork LinearForwardWork(const LinearSpec& spec, const TensorDesc& weight, const TensorDesc& dst) {
  return {2 * Values(spec.src) * static_cast<double>(spec.out_features),
          ValueBytes(spec.src) + ValueBytes(weight) + ValueBytes(dst)};
}

OpWork LinearBackwardWork(const LinearSpec& spec, const TensorDesc& weight, const TensorDesc& dst) {
  // src and diff_src, weight and its gradient, diff_dst.
  return {4 * Values(spec.src) * static_cast<double>(spec.out_features),
          2 * ValueBytes(spec.src) + 2 * ValueBytes(weight) + ValueBytes(dst)};
}

OpWork InputTransformWork(const TensorDesc& dst) {
  return {2 * Values(dst), Values(dst) * kPixelBytes + ValueBytes(dst)};
}

OpWork SoftmaxCrossEntropyWork(const TensorDesc& logits, bool has_gradient) {
  return {(has_gradient ? 5 : 4) * Values(logits), (has_gradient ? 2 : 1) * ValueBytes(logits)};
}

OpWork UpdateWork(OptimizerKind kind, std::span<const ParameterSegment> segments,
                  const FlatGradients& gradients, DType compute_type, bool has_copy) {
  const OptimizerTraits& traits = TraitsOf(kind);
  const double fp32 = sizeof(float);
  const auto narrow = static_cast<double>(SizeOf(compute_type));
  OpWork work;
  for (const ParameterSegment& segment : segments) {
    const std::size_t end = segment.begin + segment.count;
    const std::size_t in_fp32 =
        std::clamp(gradients.compute_from, segment.begin, end) - segment.begin;
    const auto count = static_cast<double>(segment.count);
    const double gradient_bytes =
        fp32 * static_cast<double>(in_fp32) + narrow * static_cast<double>(segment.count - in_fp32);
    work.flop += (segment.decay ? traits.flop_with_decay : 5) * count;
    work.bytes += 4 * fp32 * count + gradient_bytes + (has_copy ? narrow * count : 0) +
                  (traits.reads_twice ? gradient_bytes + fp32 * count : 0);
  }
  return work;
}

OpWork StemForwardWork(const StemSpec& spec, const TensorDesc& dst) {
  return {StemFlop(spec), StemBytes(spec, dst)};
}

OpWork StemBackwardWork(const StemSpec& spec, const TensorDesc& dst) {
  return {StemFlop(spec), StemBytes(spec, dst)};
}

namespace {

constexpr double kRunSeconds = 0.02;          // of one run: long beside what starting it takes
constexpr double kMaxImageBytes = 512 << 20;  // of src

class DeviceTimer {
 public:
  DeviceTimer(Backend& backend, double seconds)
      : seconds_(seconds),
        stream_(backend.MakeStream()),
        begin_(backend.MakeEvent()),
        end_(backend.MakeEvent()) {}

  Stream& stream() { return *stream_; }

  double SecondsOf(const std::function<void()>& queue) {
    begin_->RecordTime(*stream_);
    queue();
    end_->RecordTime(*stream_);
    stream_->Synchronize();
    return end_->SecondsSince(*begin_);
  }

  double BestSecondsOf(const std::function<void()>& queue) {
    SecondsOf(queue);  // the first run finds memory that nobody has touched yet
    double best = SecondsOf(queue);
    for (double sum = best; sum < seconds_;) {
      const double seconds = SecondsOf(queue);
      best = std::min(best, seconds);
      sum += seconds;
    }
    return best;
  }

 private:
  const double seconds_;  // how long to look for the best run
  const std::unique_ptr<Stream> stream_;
  const std::unique_ptr<Event> begin_;
  const std::unique_ptr<Event> end_;
};

// A 1x1 convolution from `channels` to as many, with all it needs.
class Product {
 public:
  Product(Backend& backend, std::int64_t batch, std::int64_t channels, std::int64_t size) {
    const auto input = backend.MakeInputTransform({batch, 3, size, size});
    spec_.src = backend.MakeConvolution({input->dst(), channels})->dst();
    spec_.out_channels = channels;
    op_ = backend.MakeConvolution(spec_);
    src_ = backend.AllocateDevice(spec_.src.bytes);
    dst_ = backend.AllocateDevice(op_->dst().bytes);
    filter_ = backend.AllocateDevice(op_->filter().bytes);
    workspace_ = backend.AllocateDevice(op_->workspace_bytes());
  }

  double flop() const { return ConvolutionForwardWork(spec_, op_->filter(), op_->dst()).flop; }
  double image_bytes() const {
    return ValueBytes(spec_.src) / static_cast<double>(spec_.src.shape[0]);
  }

  // A GPU draws less power for zeros, and may run faster.
  void Fill(Backend& backend, Stream& stream) {
    for (const Tensor& tensor : {Tensor{spec_.src, src_.data()}, filter()}) {
      std::vector<float> values(static_cast<std::size_t>(tensor.desc.shape.elements()));
      std::uint32_t state = 1;
      for (float& value : values) {
        state = state * 1664525 + 1013904223;  // Numerical Recipes' generator
        value = static_cast<float>(state >> 16) / 65536 - 0.5F;
      }
      backend.Import(values.data(), tensor, stream);
    }
  }

  void Queue(Stream& stream) {
    op_->Forward({spec_.src, src_.data()}, filter(), {op_->dst(), dst_.data()}, workspace_.data(),
                 stream);
  }

 private:
  Tensor filter() const { return {op_->filter(), filter_.data()}; }

  ConvolutionSpec spec_;
  std::unique_ptr<Convolution> op_;
  Buffer src_;
  Buffer dst_;
  Buffer filter_;
  Buffer workspace_;
};

double ProductPeak(Backend& backend, DeviceTimer& timer, std::int64_t channels, std::int64_t size) {
  // How many images a run of kRunSeconds has.
  std::int64_t batch = 1;
  {
    Product product(backend, batch, channels, size);
    const auto queue = [&] { product.Queue(timer.stream()); };
    timer.SecondsOf(queue);  // what is loaded at first use
    const double of_one = timer.SecondsOf(queue);
    const double images =
        std::min(kRunSeconds / std::max(of_one, 1e-7), kMaxImageBytes / product.image_bytes());
    batch = std::max<std::int64_t>(1, static_cast<std::int64_t>(images));
  }
  Product product(backend, batch, channels, size);
  product.Fill(backend, timer.stream());
  return product.flop() / timer.BestSecondsOf([&] { product.Queue(timer.stream()); });
}

double CopyPeak(Backend& backend, DeviceTimer& timer, std::size_t bytes) {
  const Buffer src = backend.AllocateDevice(bytes);
  const Buffer dst = backend.AllocateDevice(bytes);
  // Pages of the host are there when they were written once.
  backend.Zero(src.data(), bytes, timer.stream());
  const double seconds = timer.BestSecondsOf(
      [&] { backend.CopyOnDevice(dst.data(), src.data(), bytes, timer.stream()); });
  return 2 * static_cast<double>(bytes) / seconds;
}

}  // namespace

MachinePeaks MeasurePeaks(Backend& backend, const PeakSearch& search) {
  struct Size {
    std::int64_t channels, size;
  };
  DeviceTimer timer(backend, search.seconds);
  MachinePeaks peaks;
  for (const auto& [channels, size] : {Size{256, 28}, Size{512, 14}}) {
    peaks.flops = std::max(peaks.flops, ProductPeak(backend, timer, channels, size));
  }
  peaks.bytes_per_second = CopyPeak(backend, timer, search.copy_bytes);
  return peaks;
}

}  // namespace trainer
