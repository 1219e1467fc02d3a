// SPDX-License-Identifier: Apache-2.0
//
// The stem's convolution by tiles: 16 pixels of a row, and 16 channels.  Its depth is 192: four
// rows of four blocks with 12 channels each, of which a row is 48 neighbours, three steps of 16.

#pragma once

#include <type_traits>

#include "trainer/backend/cuda/runtime/element.cuh"
#include "trainer/backend/cuda/runtime/tile_mma.cuh"
#include "trainer/backend/cuda/stem/stem_passes.h"

namespace trainer {
namespace stem {

constexpr int kChannels = 64;
constexpr int kTileColumns = 16;
constexpr int kStepsOfRow = kBlockKernel * kBlockChannels / 16;
constexpr int kSteps = kBlockKernel * kStepsOfRow;
static_assert(kSteps * 16 == kFilterLine);

// The images as the passes go over them.  In 32 bits, since dividing 64 takes long.
struct Plane {
  int samples, height, width;    // of the convolution's result
  int tile_rows, tile_columns;   // pixels from one tile to the next
  int tiles_down, tiles_across;  // of an image
  int first;                     // row and column of the first tile of an image

  int tiles() const { return samples * tiles_down * tiles_across; }
};
inline Plane PlaneOf(const StemImages& images, int tile_rows, int tile_columns, int first) {
  const auto times = [](std::int64_t extent, int tile) {
    return static_cast<int>((extent + tile - 1) / tile);
  };
  return {.samples = static_cast<int>(images.samples),
          .height = static_cast<int>(images.height),
          .width = static_cast<int>(images.width),
          .tile_rows = tile_rows,
          .tile_columns = tile_columns,
          .tiles_down = times(images.height, tile_rows),
          .tiles_across = times(images.width, tile_columns),
          .first = first};
}

struct TilePlace {
  int n, top, left;  // of the first pixel
};
__device__ inline TilePlace PlaceOf(int tile, const Plane& plane) {
  const int across = tile % plane.tiles_across;
  const int down = tile / plane.tiles_across % plane.tiles_down;
  return {tile / (plane.tiles_across * plane.tiles_down), down * plane.tile_rows + plane.first,
          across * plane.tile_columns + plane.first};
}

// The blocks that `rows` rows of 16 pixels are computed from, in shared memory: 12 channels each,
// without their padding, so that what a pixel needs of a row are 96 bytes on end.  There are two
// copies, the second one 8 bytes further: in the one or the other each pixel begins at a multiple
// of 16 bytes, and eight pixels in a row are in eight different groups of four banks.
template <typename T, int rows>
struct Patch {
  static constexpr int kRows = rows + kBlockKernel - 1;
  static constexpr int kColumns = kTileColumns + kBlockKernel - 1;
  static constexpr int kRowElements = (kColumns + 1) * kBlockChannels;
  static constexpr int kParts = kRows * kRowElements / 8;  // of 16 bytes
  static constexpr int kSecond = (kParts + (10 - kParts % 8) % 8) * 8 + 4;
  static constexpr int kElements = kSecond + kRows * kRowElements + 4;
  static_assert(kRowElements % 8 == 0 && kElements % 8 == 0);

  T* memory;

  // By all threads of the block; those outside of the image are zero.
  template <int threads>
  __device__ __forceinline__ void Load(const T* blocks, const TilePlace& place,
                                       const Plane& plane) const {
    constexpr int kBlocks = kRows * kColumns;
    constexpr int kTimes = (kBlocks + threads - 1) / threads;
    const int down = plane.height + kBlockKernel - 1;
    const int across = plane.width + kBlockKernel - 1;
    uint4 first[kTimes] = {};
    uint2 last[kTimes] = {};
#pragma unroll
    for (int time = 0; time < kTimes; ++time) {  // all loads are under way together
      const int i = time * threads + static_cast<int>(threadIdx.x);
      const int h = place.top + i / kColumns;
      const int w = place.left + i % kColumns;
      if (i >= kBlocks || h < 0 || h >= down || w < 0 || w >= across) continue;
      const T* block = blocks + ((std::int64_t{place.n} * down + h) * across + w) * 16;
      first[time] = *reinterpret_cast<const uint4*>(block);
      last[time] = *reinterpret_cast<const uint2*>(block + 8);
    }
#pragma unroll
    for (int time = 0; time < kTimes; ++time) {
      const int i = time * threads + static_cast<int>(threadIdx.x);
      if (i >= kBlocks) continue;
      for (int copy = 0; copy < 2; ++copy) {
        auto* to = reinterpret_cast<uint2*>(memory + copy * kSecond + i / kColumns * kRowElements +
                                            i % kColumns * kBlockChannels);
        to[0] = make_uint2(first[time].x, first[time].y);
        to[1] = make_uint2(first[time].z, first[time].w);
        to[2] = last[time];
      }
    }
  }

  // What pixel (row, column) needs of the row of blocks `row`.
  __device__ const T* Line(int row, int column) const {
    return memory + column % 2 * kSecond + row * kRowElements + column * kBlockChannels;
  }
  // Of a step of the depth, from Line on.
  static __device__ constexpr int Step(int step) {
    return step / kStepsOfRow * kRowElements + step % kStepsOfRow * 16;
  }
};

template <typename T, TensorCores cores>
using Pixels = Operand<T, cores, Side::kA, Major::kK>;
template <typename T, TensorCores cores>
using Filters = Operand<T, cores, Side::kB, Major::kK>;

template <typename T, TensorCores cores, int rows>
__device__ __forceinline__ void LoadPixels(const Patch<T, rows>& patch, int row, int step,
                                           Pixels<T, cores>& to) {
  LoadOperand(
      [&](int line, int part) {
        return patch.Line(row, line) + Patch<T, rows>::Step(step) + part * 8;
      },
      to);
}

// A lane's values of a sum are in four columns, two of each in different rows: ColumnSlot(i) is
// which of them values[i] is in.
__device__ constexpr int ColumnSlot(int i) { return i / 4 * 2 + i % 2; }
__device__ constexpr int FirstOfSlot(int slot) { return slot / 2 * 4 + slot % 2; }
// Eight lanes have the same columns: which of them this is.
template <TensorCores cores>
__device__ inline int ColumnShare() {
  const int lane = TileLane();
  if constexpr (cores == TensorCores::kWholeWarp) return lane / 4;
  return QuadPair() % 2 * 4 + lane / 16 * 2 + lane % 2;
}

// Calls call(T{}, an integral_constant of TensorCores).  REQUIRES: HasStemPasses.
template <typename Call>
void WithTensorCores(const StemSize& size, const Call& call) {
  using Whole = std::integral_constant<TensorCores, TensorCores::kWholeWarp>;
  using Quads = std::integral_constant<TensorCores, TensorCores::kQuadPairs>;
  DDL_CHECK(HasStemPasses(size));
  if (size.norm.dtype == DType::kBFloat16) return call(__nv_bfloat16{}, Whole());
  if (size.cores == TensorCores::kWholeWarp) return call(__half{}, Whole());
  return call(__half{}, Quads());
}

// Blocks of a kernel that goes over all tiles, if a multiprocessor has so many at once.
inline int BlocksOver(const Plane& plane, const StemSize& size, int at_once) {
  return std::min(plane.tiles(), size.norm.sms * at_once);
}

// What StemScratchFloats is the larger one of.
std::int64_t ForwardScratchFloats(const StemSize& size);
std::int64_t BackwardScratchFloats(const StemSize& size);

}  // namespace stem
}  // namespace trainer
