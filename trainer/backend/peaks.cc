// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/peaks.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "trainer/backend/op_work.h"

namespace trainer {
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
