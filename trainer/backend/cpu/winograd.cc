// SPDX-License-Identifier: Apache-2.0

#include <omp.h>

#include <algorithm>

#include "trainer/backend/cpu/channel_blocks.h"
#include "trainer/backend/cpu/cpu_ops.h"
#include "trainer/backend/cpu/winograd_loops.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

using detail::kPlaces;
using detail::kTile;
using detail::TileWindow;
using detail::WinogradLoops;
using dnnl::memory;

// Floats of one place, so that places do not all fall on the same sets of a cache.
std::int64_t PlaceStride(std::int64_t floats) { return floats + 16; }

std::size_t Bytes(std::int64_t floats) {
  return AlignedBytes(static_cast<std::size_t>(floats) * sizeof(float));
}

// The filter as the loops read it: rows of neighbouring outputs for the forward pass and for its
// gradient, of neighbouring inputs for that of src.
memory::format_tag OutputsTogether(std::int64_t block) {
  return block == 16 ? memory::format_tag::OIhw16i16o : memory::format_tag::OIhw8i8o;
}
memory::format_tag InputsTogether(std::int64_t block) {
  return block == 16 ? memory::format_tag::OIhw16o16i : memory::format_tag::OIhw8o8i;
}

// The tiles of all images, as many at a time as stay in a cache.
struct Tiles {
  std::int64_t height = 0, width = 0;  // of an image, in values
  std::int64_t down = 0, across = 0;   // of an image, in tiles
  std::int64_t count = 0;

  explicit Tiles(const Shape& image)
      : height(image[2]),
        width(image[3]),
        down((height + kTile - 1) / kTile),
        across((width + kTile - 1) / kTile),
        count(image[0] * down * across) {}

  std::int64_t ImageOf(std::int64_t tile) const { return tile / (down * across); }
  TileWindow WindowOf(std::int64_t tile) const {
    const std::int64_t within = tile % (down * across);
    return {height, width, within / across * kTile, within % across * kTile};
  }
};

// The products are of 2 blocks of results each, for one place.
class CpuWinograd final : public Convolution {
 public:
  CpuWinograd(const OneDnn& onednn, const ConvolutionSpec& spec, const WinogradLoops& loops)
      : loops_(loops),
        block_(loops.block),
        in_channels_(spec.src.shape[1]),
        out_channels_(spec.out_channels),
        adds_diff_src_(spec.adds_diff_src),
        tiles_(spec.src.shape),
        threads_(omp_get_max_threads()),
        filter_(ToTensorDesc(FilterShape(), MemoryDesc(FilterShape(), OutputsTogether(block_)))),
        dst_(ToTensorDesc(DstShape(spec), MemoryDesc(DstShape(spec), onednn.activations))),
        filter_change_(onednn, ToMemoryDesc(filter_),
                       MemoryDesc(FilterShape(), InputsTogether(block_))) {
    // Every thread has as many portions as any other.
    const std::int64_t portions = (tiles_.count + kPortion - 1) / kPortion;
    portions_ = (portions + threads_ - 1) / threads_ * threads_;
    portion_ = (tiles_.count + portions_ - 1) / portions_;
    gradient_portion_ = std::min(tiles_.count, kGradientPortion);

    filter_places_ = Bytes(kPlaces * PlaceStride(in_channels_ * out_channels_));
    portion_bytes_ = Bytes(kPlaces * PlaceStride(portion_ * in_channels_)) +
                     Bytes(kPlaces * PlaceStride(portion_ * out_channels_));
    const std::size_t gradient_bytes =
        Bytes(kPlaces * PlaceStride(gradient_portion_ * in_channels_)) +
        Bytes(kPlaces * PlaceStride(gradient_portion_ * out_channels_));
    filter_copy_ = std::max(filter_change_.copy_bytes(), AlignedBytes(filter_.bytes)) +
                   AlignedBytes(filter_change_.scratchpad_bytes());
    workspace_bytes_ = filter_places_ +
                       std::max(filter_copy_ + static_cast<std::size_t>(threads_) * portion_bytes_,
                                gradient_bytes);
  }

  const TensorDesc& filter() const override { return filter_; }
  const TensorDesc& dst() const override { return dst_; }
  std::size_t workspace_bytes() const override { return workspace_bytes_; }

  void Forward(const Tensor& src, const Tensor& filter, const Tensor& dst, void* workspace,
               Stream& /*stream*/) override {
    TransformFilter(filter.As<float>(), in_channels_, out_channels_, false, workspace);
    Convolve(src.As<float>(), in_channels_, dst.As<float>(), out_channels_, false, workspace);
  }

  // The convolution of diff_dst with the filter turned round, inputs and outputs exchanged.
  void BackwardData(const Tensor& diff_dst, const Tensor& filter, const Tensor& diff_src,
                    void* workspace, Stream& /*stream*/) override {
    std::byte* copy = static_cast<std::byte*>(workspace) + filter_places_;
    std::byte* scratchpad = copy + filter_copy_ - AlignedBytes(filter_change_.scratchpad_bytes());
    const void* turned = filter_change_.Read(filter.data, copy, scratchpad);
    TransformFilter(static_cast<const float*>(turned), out_channels_, in_channels_, true,
                    workspace);
    Convolve(diff_dst.As<float>(), out_channels_, diff_src.As<float>(), in_channels_,
             adds_diff_src_, workspace);
  }

  void BackwardFilter(const Tensor& src, const Tensor& diff_dst, const Tensor& diff_filter,
                      void* workspace, Stream& /*stream*/) override {
    auto* sums = static_cast<float*>(workspace);
    auto* src_places =
        reinterpret_cast<float*>(static_cast<std::byte*>(workspace) + filter_places_);
    const std::int64_t src_stride = PlaceStride(gradient_portion_ * in_channels_);
    const std::int64_t dst_stride = PlaceStride(gradient_portion_ * out_channels_);
    const std::int64_t sum_stride = PlaceStride(in_channels_ * out_channels_);
    float* dst_places = src_places + Bytes(kPlaces * src_stride) / sizeof(float);
    const std::int64_t panel = 2 * block_;
    const std::int64_t panels = out_channels_ / panel;
    for (std::int64_t first = 0; first < tiles_.count; first += gradient_portion_) {
      const std::int64_t count = std::min(gradient_portion_, tiles_.count - first);
#pragma omp parallel num_threads(threads_)
      {
#pragma omp for schedule(static)
        for (std::int64_t t = 0; t < count; ++t) {
          ToPlaces(loops_.src_to_places, src.As<float>(), in_channels_, first + t,
                   src_places + t * in_channels_, src_stride);
          ToPlaces(loops_.diff_dst_to_places, diff_dst.As<float>(), out_channels_, first + t,
                   dst_places + t * out_channels_, dst_stride);
        }
#pragma omp for collapse(2) schedule(static)
        for (std::int64_t p = 0; p < kPlaces; ++p) {
          for (std::int64_t k = 0; k < panels; ++k) {
            loops_.multiply({.rows = in_channels_,
                             .depth = count,
                             .a = src_places + p * src_stride,
                             .a_row = 1,
                             .a_depth = in_channels_,
                             .b = dst_places + p * dst_stride + k * panel,
                             .b_depth = out_channels_,
                             .c = sums + p * sum_stride + k * panel * in_channels_,
                             .c_row = panel,
                             .adds = first > 0});
          }
        }
      }
    }
    ForFilterRows(in_channels_, out_channels_, false, diff_filter.As<float>(),
                  [&](float* row, std::int64_t at) {
                    loops_.places_to_diff_filter(sums + at, sum_stride, row, TapStride());
                  });
  }

 private:
  // Of tiles, transformed: half a megabyte for 64 channels, as the second-level caches of the day.
  static constexpr std::int64_t kPortion = 64;
  // The sum over tiles goes to memory once for each portion.
  static constexpr std::int64_t kGradientPortion = 512;

  using IntoPlaces = decltype(WinogradLoops::src_to_places);

  Shape FilterShape() const { return {out_channels_, in_channels_, 3, 3}; }
  static Shape DstShape(const ConvolutionSpec& spec) {
    return {spec.src.shape[0], spec.out_channels, spec.src.shape[2], spec.src.shape[3]};
  }
  std::int64_t TapStride() const { return block_ * block_; }

  // Block `b` of the channels of the image that `tile` is in.
  template <typename Float>
  Float* ImageBlock(Float* images, std::int64_t channels, std::int64_t tile, std::int64_t b) const {
    return images + (tiles_.ImageOf(tile) * channels + b * block_) * tiles_.height * tiles_.width;
  }

  void ToPlaces(IntoPlaces transform, const float* images, std::int64_t channels, std::int64_t tile,
                float* places, std::int64_t stride) const {
    const TileWindow window = tiles_.WindowOf(tile);
    for (std::int64_t b = 0; b < channels / block_; ++b) {
      transform(window, ImageBlock(images, channels, tile, b), places + b * block_, stride);
    }
  }

  // body(row, at) for each channel that a product sums over and each block of its results: `row` is
  // the first tap of that part of the filter, `at` its index in a place, where 2 blocks of results
  // are together for all channels. `turned`: the filter has its outputs summed over.
  template <typename Float, typename Body>
  void ForFilterRows(std::int64_t depth, std::int64_t results, bool turned, Float* filter,
                     const Body& body) const {
    const std::int64_t block_floats = 9 * block_ * block_;
    const std::int64_t depth_blocks = depth / block_;
    const std::int64_t result_blocks = results / block_;
#pragma omp parallel for collapse(2) schedule(static) num_threads(threads_)
    for (std::int64_t r = 0; r < result_blocks; ++r) {
      for (std::int64_t d = 0; d < depth_blocks; ++d) {
        const std::int64_t blocks = turned ? d * result_blocks + r : r * depth_blocks + d;
        for (std::int64_t i = 0; i < block_; ++i) {
          body(filter + blocks * block_floats + i * block_,
               (r / 2 * depth + d * block_ + i) * 2 * block_ + r % 2 * block_);
        }
      }
    }
  }

  void TransformFilter(const float* filter, std::int64_t depth, std::int64_t results, bool turned,
                       void* workspace) const {
    auto* places = static_cast<float*>(workspace);
    const std::int64_t stride = PlaceStride(in_channels_ * out_channels_);
    ForFilterRows(depth, results, turned, filter, [&](const float* row, std::int64_t at) {
      const float* first = turned ? row + 8 * TapStride() : row;
      loops_.filter_to_places(first, turned ? -TapStride() : TapStride(), places + at, stride);
    });
  }

  // Each thread takes portions of tiles from beginning to end; what it holds stays in its caches.
  void Convolve(const float* src, std::int64_t depth, float* dst, std::int64_t results, bool adds,
                void* workspace) const {
    const auto* filter = static_cast<const float*>(workspace);
    std::byte* portions = static_cast<std::byte*>(workspace) + filter_places_ + filter_copy_;
    const std::int64_t filter_stride = PlaceStride(in_channels_ * out_channels_);
    const std::int64_t src_stride = PlaceStride(portion_ * depth);
    const std::int64_t dst_stride = PlaceStride(portion_ * results);
    const std::int64_t panel = 2 * block_;
#pragma omp parallel for schedule(static) num_threads(threads_)
    for (std::int64_t portion = 0; portion < portions_; ++portion) {
      const auto thread = static_cast<std::size_t>(omp_get_thread_num());
      auto* src_places = reinterpret_cast<float*>(portions + thread * portion_bytes_);
      float* dst_places = src_places + Bytes(kPlaces * src_stride) / sizeof(float);
      const std::int64_t first = portion * portion_;
      const std::int64_t count = std::min(portion_, tiles_.count - first);
      for (std::int64_t t = 0; t < count; ++t) {
        ToPlaces(loops_.src_to_places, src, depth, first + t, src_places + t * depth, src_stride);
      }
      for (std::int64_t p = 0; p < kPlaces && count > 0; ++p) {
        for (std::int64_t k = 0; k < results / panel; ++k) {
          loops_.multiply({.rows = count,
                           .depth = depth,
                           .a = src_places + p * src_stride,
                           .a_row = depth,
                           .a_depth = 1,
                           .b = filter + p * filter_stride + k * panel * depth,
                           .b_depth = panel,
                           .c = dst_places + p * dst_stride + k * panel,
                           .c_row = results});
        }
      }
      for (std::int64_t t = 0; t < count; ++t) {
        const TileWindow window = tiles_.WindowOf(first + t);
        for (std::int64_t b = 0; b < results / block_; ++b) {
          loops_.places_to_dst(window, dst_places + t * results + b * block_, dst_stride, adds,
                               ImageBlock(dst, results, first + t, b));
        }
      }
    }
  }

  const WinogradLoops& loops_;
  std::int64_t block_;
  std::int64_t in_channels_;
  std::int64_t out_channels_;
  bool adds_diff_src_;
  Tiles tiles_;
  int threads_;
  TensorDesc filter_;
  TensorDesc dst_;
  LayoutChange filter_change_;
  std::int64_t portions_ = 0;
  std::int64_t portion_ = 0;           // tiles
  std::int64_t gradient_portion_ = 0;  // tiles
  // The workspace: the filter's places, then a copy of the filter and its scratchpad and one
  // portion for each thread, or a portion of the gradient's.
  std::size_t filter_places_ = 0;
  std::size_t filter_copy_ = 0;
  std::size_t portion_bytes_ = 0;
  std::size_t workspace_bytes_ = 0;
};

}  // namespace

// Few tiles do not pay for transforming the filter, nor do tiles that stick out of tiny images:
// with oneDNN's kernels of this kind on AVX-512, 64 tiles gained 1.2 times with any number of
// channels, 16 lost.  The error stays that of fp32: 1e-6 of the result.
std::unique_ptr<Convolution> MakeCpuWinograd(const OneDnn& onednn, const ConvolutionSpec& spec) {
  if (spec.kernel != 3 || spec.stride != 1 || spec.padding != 1) return nullptr;
  const Tiles tiles(spec.src.shape);
  if (tiles.count < 64 || 6 * tiles.count > spec.src.shape.elements() / spec.src.shape[1]) {
    return nullptr;
  }
  const memory::desc src = ToMemoryDesc(spec.src);
  const WinogradLoops* loops = nullptr;
  if (src == MemoryDesc(spec.src.shape, memory::format_tag::nChw16c)) {
    loops = detail::WinogradLoopsFor(16);
  } else if (src == MemoryDesc(spec.src.shape, memory::format_tag::nChw8c)) {
    loops = detail::WinogradLoopsFor(8);
  }
  if (loops == nullptr || src != MemoryDesc(spec.src.shape, onednn.activations)) return nullptr;
  const std::int64_t panel = 2 * loops->block;
  if (spec.src.shape[1] % panel != 0 || spec.out_channels % panel != 0) return nullptr;
  return std::make_unique<CpuWinograd>(onednn, spec, *loops);
}

}  // namespace trainer
