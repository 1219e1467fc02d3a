// SPDX-License-Identifier: Apache-2.0
//
// The windows of the stem's pool: 3x3 pixels, 2 apart, the first one pixel outside, so that their
// number is that of quads, 2x2 pixels from (0, 0) on.

#pragma once

#include "trainer/backend/cuda/norms/batch_norm_passes.cuh"
#include "trainer/backend/cuda/stem/stem_kernels.h"

namespace trainer {

// In 32 bits, since dividing 64 takes long.
struct Extents {
  int height, width, out_height, out_width;
};
inline Extents ExtentsOf(const StemImages& images) {
  return {static_cast<int>(images.height), static_cast<int>(images.width),
          static_cast<int>(WindowsAcross(images.height)),
          static_cast<int>(WindowsAcross(images.width))};
}

struct Window {
  int n, h, w;
};
__device__ inline Window WindowOf(int index, const Extents& e) {
  return {index / (e.out_height * e.out_width), index / e.out_width % e.out_height,
          index % e.out_width};
}

// What the pool keeps of eight neighbours of a window: of place `winner`, kNobody where the ReLU
// stops it.
struct Kept {
  void* chosen;
  std::uint8_t* winners;
  std::uint8_t* mask;
};
template <typename T>
__device__ inline void KeepChosen(const Kept& kept, std::int64_t at, const float (&input)[8],
                                  const unsigned (&winner)[8]) {
  if (kept.chosen == nullptr) return;
  unsigned passes = 0;
  unsigned bit = 1;
#pragma unroll
  for (const unsigned of : winner) {
    if (of != kNobody) passes |= bit;
    bit *= 2;
  }
  Store8(input, static_cast<T*>(kept.chosen) + at);
  *reinterpret_cast<uint2*>(kept.winners + at) =
      make_uint2(winner[0] | winner[1] << 8 | winner[2] << 16 | winner[3] << 24,
                 winner[4] | winner[5] << 8 | winner[6] << 16 | winner[7] << 24);
  kept.mask[at / 8] = static_cast<std::uint8_t>(passes);
}

// The gradient of a window, and which of its pixels get it.
template <typename T>
struct Choice {
  Eight<T> gradient;
  uint2 winners;
};

// Adds the gradient of a window where it chose `place`.
template <typename T>
__device__ void AddChosen(const Choice<T>& choice, unsigned place, float (&sum)[8]) {
  float gradient[8];
  Widen(choice.gradient, gradient);
  for (int i = 0; i < 8; ++i) {
    const unsigned winner = (i < 4 ? choice.winners.x : choice.winners.y) >> i % 4 * 8 & 0xFFU;
    if (winner == place) sum[i] += gradient[i];
  }
}

// The windows that can have chosen from a quad: the one that starts in it and its neighbours to the
// right and below.
template <typename T>
struct ChoicesOfQuad {
  Choice<T> of[4];

  // That window `i` is not there leaves nobody in it.
  __device__ __forceinline__ void Load(int i, const T* diff_dst, const std::uint8_t* winners,
                                       const Window& quad, const Extents& e, int padded,
                                       int channel) {
    const int down = i / 2;
    const int across = i % 2;
    of[i] = {{}, make_uint2(~0U, ~0U)};
    if (quad.h + down >= e.out_height || quad.w + across >= e.out_width) return;
    const int index = (quad.n * e.out_height + quad.h + down) * e.out_width + quad.w + across;
    const std::int64_t at = batch_norm::ElementOf(index, padded) + channel;
    of[i] = {LoadEight(diff_dst + at), *reinterpret_cast<const uint2*>(winners + at)};
  }

  // Adds the gradient of the quad's pixel i, in the order of windows.
  __device__ __forceinline__ void AddOfPixel(int i, float (&gradient)[8]) const {
    const int down = i / 2;
    const int across = i % 2;
    // Row 2h is row 1 of window h; row 2h + 1 is row 2 of it and row 0 of the next.
#pragma unroll
    for (int below = 0; below < 2; ++below) {
#pragma unroll
      for (int right = 0; right < 2; ++right) {
        if (below > down || right > across) continue;
        const int row = 1 + down - 2 * below;
        const int column = 1 + across - 2 * right;
        AddChosen(of[below * 2 + right], static_cast<unsigned>(row * 3 + column), gradient);
      }
    }
  }
};

}  // namespace trainer
