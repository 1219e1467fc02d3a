// SPDX-License-Identifier: Apache-2.0
//
// DDL_LOOPS names the set that this file is compiled to.  Nothing here has external linkage but
// that: a shared inline function might be taken from a set that the machine cannot run.

#include "trainer/backend/cpu/winograd_loops.h"

#include <cstring>

#define DDL_INLINE __attribute__((always_inline)) inline

namespace trainer::detail {
namespace {

using Index = std::int64_t;

#ifdef __AVX512F__
constexpr Index kBlock = 16;
constexpr int kRows = 8;  // of a product at a time: 16 of 32 registers, enough to hide additions
#else
constexpr Index kBlock = 8;
constexpr int kRows = 4;
#endif
typedef float Lanes __attribute__((vector_size(kBlock * sizeof(float))));

DDL_INLINE Lanes Load(const float* from) {
  Lanes to;
  std::memcpy(&to, from, sizeof(Lanes));
  return to;
}
DDL_INLINE void Store(const Lanes& from, float* to) { std::memcpy(to, &from, sizeof(Lanes)); }

// The points of interpolation are 0, kA, -kA, kB, -kB and infinity.
constexpr float kA = 0.625F;
constexpr float kB = 1.5F;
constexpr float kA2 = kA * kA;
constexpr float kB2 = kB * kB;
// Products of a point's distances from the others.
constexpr float kNorm0 = 1 / (kA2 * kB2);
constexpr float kNormA = 1 / (2 * kA2 * (kA2 - kB2));
constexpr float kNormB = 1 / (2 * kB2 * (kB2 - kA2));

// Each transform of one dimension: `in` and `out` are kIn and kOut values, kStep apart.
struct SrcTransform {
  static constexpr int kIn = 6, kOut = 6;
  template <Index kStep>
  static DDL_INLINE void Apply(const Lanes* d, Lanes* v) {
    const Lanes even_a = d[4 * kStep] - kB2 * d[2 * kStep];
    const Lanes odd_a = kA * (d[3 * kStep] - kB2 * d[kStep]);
    const Lanes even_b = d[4 * kStep] - kA2 * d[2 * kStep];
    const Lanes odd_b = kB * (d[3 * kStep] - kA2 * d[kStep]);
    v[0] = kA2 * kB2 * d[0] - (kA2 + kB2) * d[2 * kStep] + d[4 * kStep];
    v[1] = even_a + odd_a;
    v[2] = even_a - odd_a;
    v[3] = even_b + odd_b;
    v[4] = even_b - odd_b;
    v[5] = kA2 * kB2 * d[kStep] - (kA2 + kB2) * d[3 * kStep] + d[5 * kStep];
  }
};

struct DstTransform {
  static constexpr int kIn = 6, kOut = 4;
  template <Index kStep>
  static DDL_INLINE void Apply(const Lanes* m, Lanes* y) {
    const Lanes sum_a = m[kStep] + m[2 * kStep];
    const Lanes difference_a = m[kStep] - m[2 * kStep];
    const Lanes sum_b = m[3 * kStep] + m[4 * kStep];
    const Lanes difference_b = m[3 * kStep] - m[4 * kStep];
    y[0] = m[0] + sum_a + sum_b;
    y[1] = kA * difference_a + kB * difference_b;
    y[2] = kA2 * sum_a + kB2 * sum_b;
    y[3] = kA * kA2 * difference_a + kB * kB2 * difference_b + m[5 * kStep];
  }
};

struct DiffDstTransform {
  static constexpr int kIn = 4, kOut = 6;
  template <Index kStep>
  static DDL_INLINE void Apply(const Lanes* y, Lanes* w) {
    const Lanes even_a = y[0] + kA2 * y[2 * kStep];
    const Lanes odd_a = kA * y[kStep] + kA * kA2 * y[3 * kStep];
    const Lanes even_b = y[0] + kB2 * y[2 * kStep];
    const Lanes odd_b = kB * y[kStep] + kB * kB2 * y[3 * kStep];
    w[0] = y[0];
    w[1] = even_a + odd_a;
    w[2] = even_a - odd_a;
    w[3] = even_b + odd_b;
    w[4] = even_b - odd_b;
    w[5] = y[3 * kStep];
  }
};

struct FilterTransform {
  static constexpr int kIn = 3, kOut = 6;
  template <Index kStep>
  static DDL_INLINE void Apply(const Lanes* g, Lanes* u) {
    const Lanes even_a = kNormA * g[0] + kNormA * kA2 * g[2 * kStep];
    const Lanes odd_a = kNormA * kA * g[kStep];
    const Lanes even_b = kNormB * g[0] + kNormB * kB2 * g[2 * kStep];
    const Lanes odd_b = kNormB * kB * g[kStep];
    u[0] = kNorm0 * g[0];
    u[1] = even_a + odd_a;
    u[2] = even_a - odd_a;
    u[3] = even_b + odd_b;
    u[4] = even_b - odd_b;
    u[5] = g[2 * kStep];
  }
};

struct DiffFilterTransform {
  static constexpr int kIn = 6, kOut = 3;
  template <Index kStep>
  static DDL_INLINE void Apply(const Lanes* u, Lanes* g) {
    const Lanes sum_a = u[kStep] + u[2 * kStep];
    const Lanes sum_b = u[3 * kStep] + u[4 * kStep];
    g[0] = kNorm0 * u[0] + kNormA * sum_a + kNormB * sum_b;
    g[1] = kNormA * kA * (u[kStep] - u[2 * kStep]) + kNormB * kB * (u[3 * kStep] - u[4 * kStep]);
    g[2] = kNormA * kA2 * sum_a + kNormB * kB2 * sum_b + u[5 * kStep];
  }
};

// Both dimensions: out[i][j] of in[i][j].
template <typename Transform>
DDL_INLINE void Apply2(const Lanes (&in)[Transform::kIn][Transform::kIn],
                       Lanes (&out)[Transform::kOut][Transform::kOut]) {
  // turned[j][i]: column j of `in`, transformed.
  Lanes turned[Transform::kIn][Transform::kOut];
  for (int j = 0; j < Transform::kIn; ++j) {
    Transform::template Apply<Transform::kIn>(&in[0][j], turned[j]);
  }
  for (int i = 0; i < Transform::kOut; ++i) {
    Transform::template Apply<Transform::kOut>(&turned[0][i], out[i]);
  }
}

// kSize x kSize values of the image from (y, x) on; zero outside.
template <int kSize>
DDL_INLINE void LoadWindow(const TileWindow& window, Index y, Index x, const float* image,
                           Lanes (&to)[kSize][kSize]) {
  const bool inside = y >= 0 && x >= 0 && y + kSize <= window.height && x + kSize <= window.width;
  const float* first = image + (y * window.width + x) * kBlock;
  for (int i = 0; i < kSize; ++i) {
    for (int j = 0; j < kSize; ++j) {
      const bool here =
          inside || (y + i >= 0 && y + i < window.height && x + j >= 0 && x + j < window.width);
      to[i][j] = here ? Load(first + (i * window.width + j) * kBlock) : Lanes{};
    }
  }
}

template <typename Transform>
DDL_INLINE void StorePlaces(const Lanes (&in)[Transform::kIn][Transform::kIn], float* places,
                            Index stride) {
  Lanes out[6][6];
  Apply2<Transform>(in, out);
  for (int i = 0; i < 6; ++i) {
    for (int j = 0; j < 6; ++j) Store(out[i][j], places + (6 * i + j) * stride);
  }
}

template <typename Transform>
DDL_INLINE void LoadPlaces(const float* places, Index stride,
                           Lanes (&out)[Transform::kOut][Transform::kOut]) {
  Lanes in[6][6];
  for (int i = 0; i < 6; ++i) {
    for (int j = 0; j < 6; ++j) in[i][j] = Load(places + (6 * i + j) * stride);
  }
  Apply2<Transform>(in, out);
}

void SrcToPlaces(const TileWindow& window, const float* image, float* places, Index stride) {
  Lanes in[6][6];
  LoadWindow(window, window.y - 1, window.x - 1, image, in);
  StorePlaces<SrcTransform>(in, places, stride);
}

void PlacesToDst(const TileWindow& window, const float* places, Index stride, bool adds,
                 float* image) {
  Lanes out[4][4];
  LoadPlaces<DstTransform>(places, stride, out);
  for (int i = 0; i < 4 && window.y + i < window.height; ++i) {
    for (int j = 0; j < 4 && window.x + j < window.width; ++j) {
      float* to = image + ((window.y + i) * window.width + window.x + j) * kBlock;
      Store(adds ? Load(to) + out[i][j] : out[i][j], to);
    }
  }
}

void DiffDstToPlaces(const TileWindow& window, const float* image, float* places, Index stride) {
  Lanes in[4][4];
  LoadWindow(window, window.y, window.x, image, in);
  StorePlaces<DiffDstTransform>(in, places, stride);
}

void FilterToPlaces(const float* filter, Index tap_stride, float* places, Index stride) {
  Lanes in[3][3];
  for (int tap = 0; tap < 9; ++tap) in[tap / 3][tap % 3] = Load(filter + tap * tap_stride);
  StorePlaces<FilterTransform>(in, places, stride);
}

void PlacesToDiffFilter(const float* places, Index stride, float* filter, Index tap_stride) {
  Lanes out[3][3];
  LoadPlaces<DiffFilterTransform>(places, stride, out);
  for (int tap = 0; tap < 9; ++tap) Store(out[tap / 3][tap % 3], filter + tap * tap_stride);
}

template <int kCount>
DDL_INLINE void MultiplyRows(const MatrixProduct& product, Index row) {
  const float* a = product.a + row * product.a_row;
  const float* b = product.b;
  float* c = product.c + row * product.c_row;
  Lanes sum[kCount][2];
  for (int r = 0; r < kCount; ++r) {
    sum[r][0] = product.adds ? Load(c + r * product.c_row) : Lanes{};
    sum[r][1] = product.adds ? Load(c + r * product.c_row + kBlock) : Lanes{};
  }
  const Index a_row = product.a_row;
  for (Index d = 0; d < product.depth; ++d) {
    const Lanes left = Load(b);
    const Lanes right = Load(b + kBlock);
    for (int r = 0; r < kCount; ++r) {
      sum[r][0] += a[r * a_row] * left;
      sum[r][1] += a[r * a_row] * right;
    }
    a += product.a_depth;
    b += product.b_depth;
  }
  for (int r = 0; r < kCount; ++r) {
    Store(sum[r][0], c + r * product.c_row);
    Store(sum[r][1], c + r * product.c_row + kBlock);
  }
}

void Multiply(const MatrixProduct& product) {
  Index row = 0;
  for (; row + kRows <= product.rows; row += kRows) MultiplyRows<kRows>(product, row);
  for (; row + 2 <= product.rows; row += 2) MultiplyRows<2>(product, row);
  if (row < product.rows) MultiplyRows<1>(product, row);
}

}  // namespace

const WinogradLoops DDL_WINOGRAD_LOOPS = {kBlock,          SrcToPlaces,    PlacesToDst,
                                          DiffDstToPlaces, FilterToPlaces, PlacesToDiffFilter,
                                          Multiply};

}  // namespace trainer::detail
