// SPDX-License-Identifier: Apache-2.0

//
// DDL_LOOPS names the set that this file is compiled to.  Nothing here has external linkage but
// that: a shared inline function might be taken from a set that the machine cannot run.

#include "trainer/backend/cpu/loops.h"

#include <cstring>
#include <type_traits>

#define DDL_INLINE __attribute__((always_inline))

namespace trainer::detail {
namespace {

using Index = std::int64_t;

// Neighbouring channels that are worked on together, in one register where the machine has one so
// wide.  The same code serves single floats, for layouts without blocks.
typedef float Lanes16 __attribute__((vector_size(64)));
typedef float Lanes8 __attribute__((vector_size(32)));

template <typename Lanes>
DDL_INLINE inline void Load(const float* from, Lanes& to) {
  std::memcpy(&to, from, sizeof(Lanes));
}
template <typename Lanes>
DDL_INLINE inline void Store(const Lanes& from, float* to) {
  std::memcpy(to, &from, sizeof(Lanes));
}

// Runs body(zero, c) for the channels c, c+1, ... that fit one `zero`, over the whole block.
template <typename Body>
DDL_INLINE inline void ForLanes(Index block, const Body& body) {
  if (block % 16 == 0) {
    for (Index c = 0; c < block; c += 16) body(Lanes16{}, c);
  } else if (block % 8 == 0) {
    for (Index c = 0; c < block; c += 8) body(Lanes8{}, c);
  } else {
    for (Index c = 0; c < block; ++c) body(0.0F, c);
  }
}

template <typename Lanes>
struct Constants {
  Lanes mean, factor, shift;

  DDL_INLINE inline Constants(const ChunkNorm& norm, Index c) {
    Load(norm.mean + c, mean);
    Load(norm.factor + c, factor);
    Load(norm.shift + c, shift);
  }
  DDL_INLINE inline void Normalise(const Lanes& x, Lanes& y) const {
    y = (x - mean) * factor + shift;
  }
};

// The gradient of one row behind the gate.
template <ReluMask kReluMask, typename Lanes>
DDL_INLINE inline void LoadMasked(const ChunkGradient& in, Index at, const Constants<Lanes>& k,
                                  const Lanes& x, Lanes& dy) {
  Load(in.diff_dst + at, dy);
  Lanes y;
  if constexpr (kReluMask == ReluMask::kSrc) k.Normalise(x, y);
  if constexpr (kReluMask == ReluMask::kDst) Load(in.dst + at, y);
  if constexpr (kReluMask != ReluMask::kOpen) dy = y > 0 ? dy : Lanes{};
}

template <ReluMask kReluMask, typename Lanes>
DDL_INLINE inline void AddRow(const ChunkGradient& in, Index at, const Constants<Lanes>& k,
                              float* masked, Lanes& sum, Lanes& dot) {
  Lanes x;
  Lanes dy;
  Load(in.src + at, x);
  LoadMasked<kReluMask>(in, at, k, x, dy);
  if (masked != nullptr) Store(dy, masked + at);
  sum += dy;
  dot += dy * (x - k.mean);
}

template <ReluMask kReluMask>
DDL_INLINE inline void GradientSumsOf(const ChunkShape& shape, const ChunkGradient& in,
                                      float* masked, float* sum, float* dot) {
  ForLanes(shape.block, [&](const auto& zero, Index c) DDL_INLINE {
    using Lanes = std::decay_t<decltype(zero)>;
    const Constants<Lanes> k(in.norm, c);
    // Two of each, so that an addition need not wait for the one before it.
    Lanes sum0 = zero;
    Lanes sum1 = zero;
    Lanes dot0 = zero;
    Lanes dot1 = zero;
    Index r = 0;
    for (; r + 2 <= shape.rows; r += 2) {
      AddRow<kReluMask>(in, r * shape.block + c, k, masked, sum0, dot0);
      AddRow<kReluMask>(in, (r + 1) * shape.block + c, k, masked, sum1, dot1);
    }
    if (r < shape.rows) AddRow<kReluMask>(in, r * shape.block + c, k, masked, sum0, dot0);
    sum0 += sum1;
    dot0 += dot1;
    Store(sum0, sum + c);
    Store(dot0, dot + c);
  });
}

template <ReluMask kReluMask>
DDL_INLINE inline void GradientApplyOf(const ChunkShape& shape, const ChunkGradient& in,
                                       const float* offset, const float* slope, float* diff_src) {
  ForLanes(shape.block, [&](const auto& zero, Index c) DDL_INLINE {
    using Lanes = std::decay_t<decltype(zero)>;
    const Constants<Lanes> k(in.norm, c);
    Lanes offset_lanes;
    Lanes slope_lanes;
    Load(offset + c, offset_lanes);
    Load(slope + c, slope_lanes);
    for (Index at = c; at < shape.rows * shape.block; at += shape.block) {
      Lanes x;
      Lanes dy;
      Load(in.src + at, x);
      LoadMasked<kReluMask>(in, at, k, x, dy);
      dy = k.factor * (dy - offset_lanes - (x - k.mean) * slope_lanes);
      Store(dy, diff_src + at);
    }
  });
}

template <bool kAdd, bool kRelu>
DDL_INLINE inline void NormaliseRows(const ChunkShape& shape, const ChunkNorm& norm,
                                     const float* src, const float* residual, float* dst) {
  ForLanes(shape.block, [&](const auto& zero, Index c) DDL_INLINE {
    using Lanes = std::decay_t<decltype(zero)>;
    const Constants<Lanes> k(norm, c);
    for (Index at = c; at < shape.rows * shape.block; at += shape.block) {
      Lanes x;
      Lanes y;
      Load(src + at, x);
      k.Normalise(x, y);
      if constexpr (kAdd) {
        Load(residual + at, x);
        y += x;
      }
      if constexpr (kRelu) y = y > 0 ? y : zero;
      Store(y, dst + at);
    }
  });
}

void Moments(const ChunkShape& shape, const float* src, float* mean, float* deviation) {
  ForLanes(shape.block, [&](const auto& zero, Index c) DDL_INLINE {
    using Lanes = std::decay_t<decltype(zero)>;
    const auto load = [&](Index r, Lanes& x) DDL_INLINE { Load(src + r * shape.block + c, x); };
    Lanes x0;
    Lanes x1;
    Lanes sum0 = zero;
    Lanes sum1 = zero;
    Index r = 0;
    for (; r + 2 <= shape.rows; r += 2) {
      load(r, x0);
      load(r + 1, x1);
      sum0 += x0;
      sum1 += x1;
    }
    if (r < shape.rows) {
      load(r, x0);
      sum0 += x0;
    }
    const Lanes center = (sum0 + sum1) / static_cast<float>(shape.rows);
    sum0 = zero;
    sum1 = zero;
    for (r = 0; r + 2 <= shape.rows; r += 2) {
      load(r, x0);
      load(r + 1, x1);
      sum0 += (x0 - center) * (x0 - center);
      sum1 += (x1 - center) * (x1 - center);
    }
    if (r < shape.rows) {
      load(r, x0);
      sum0 += (x0 - center) * (x0 - center);
    }
    sum0 += sum1;
    Store(center, mean + c);
    Store(sum0, deviation + c);
  });
}

void Normalise(const ChunkShape& shape, const ChunkNorm& norm, const float* src,
               const float* residual, bool relu, float* dst) {
  if (residual != nullptr) {
    if (relu) return NormaliseRows<true, true>(shape, norm, src, residual, dst);
    return NormaliseRows<true, false>(shape, norm, src, residual, dst);
  }
  if (relu) return NormaliseRows<false, true>(shape, norm, src, residual, dst);
  return NormaliseRows<false, false>(shape, norm, src, residual, dst);
}

void GradientSums(const ChunkShape& shape, ReluMask relu_mask, const ChunkGradient& in,
                  float* masked, float* sum, float* dot) {
  switch (relu_mask) {
    case ReluMask::kOpen:
      return GradientSumsOf<ReluMask::kOpen>(shape, in, masked, sum, dot);
    case ReluMask::kSrc:
      return GradientSumsOf<ReluMask::kSrc>(shape, in, masked, sum, dot);
    case ReluMask::kDst:
      return GradientSumsOf<ReluMask::kDst>(shape, in, masked, sum, dot);
  }
}

void GradientApply(const ChunkShape& shape, ReluMask relu_mask, const ChunkGradient& in,
                   const float* offset, const float* slope, float* diff_src) {
  if (relu_mask == ReluMask::kSrc)
    return GradientApplyOf<ReluMask::kSrc>(shape, in, offset, slope, diff_src);
  return GradientApplyOf<ReluMask::kOpen>(shape, in, offset, slope, diff_src);
}

void Add(const float* __restrict src, float* __restrict dst, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) dst[i] += src[i];
}

bool AllFinite(const float* values, std::size_t count) {
  constexpr std::uint32_t kExponent = 0x7F800000;  // all ones for infinities and not-a-numbers
  std::uint32_t bad = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t bits;
    std::memcpy(&bits, values + i, sizeof bits);
    bad |= (bits & kExponent) == kExponent ? 1U : 0U;
  }
  return bad == 0;
}

float SumOfSquares(const float* values, std::size_t count) {
  constexpr std::size_t kSums = 64;  // independent, so that they can be vectors
  float sums[kSums] = {};
  std::size_t i = 0;
  for (; i + kSums <= count; i += kSums) {
    for (std::size_t j = 0; j < kSums; ++j) sums[j] += values[i + j] * values[i + j];
  }
  for (std::size_t j = 0; i < count; ++i, ++j) sums[j] += values[i] * values[i];
  double total = 0;
  for (const float sum : sums) total += sum;
  return static_cast<float>(total);
}

template <bool has_rated_momentum>
void Update(const UpdateParameters& call, std::size_t count, const float* __restrict gradient,
            float* __restrict weight, float* __restrict momentum) {
  const float scale = call.gradient_scale;
  const float decay = call.weight_decay;
  const float factor = call.momentum_factor;
  const float rate = call.learning_rate;
  for (std::size_t i = 0; i < count; ++i) {
    const float g = scale * gradient[i] + decay * weight[i];
    momentum[i] = factor * momentum[i] + (has_rated_momentum ? rate * g : g);
    weight[i] -= has_rated_momentum ? momentum[i] : rate * momentum[i];
  }
}

}  // namespace

const Loops DDL_LOOPS = {Moments,   Normalise,    GradientSums,  GradientApply, Add,
                         AllFinite, SumOfSquares, Update<false>, Update<true>};

}  // namespace trainer::detail
