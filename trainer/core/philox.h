// SPDX-License-Identifier: Apache-2.0
//
// Random numbers by counter (Philox4x32-10: Salmon et al., "Parallel random numbers: as easy as 1,
// 2, 3", SC'11). A number is a pure function of (seed, stream, index, position), so that no
// generator state has to be saved, and a sample is augmented alike whichever rank or thread meets
// it.

#pragma once

#include <array>
#include <cstdint>

namespace trainer {

// The ten-round block function.  Test vectors: Random123's kat_vectors.
std::array<std::uint32_t, 4> Philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key);

// What the numbers are for: different purposes never share numbers.  The values are part of
// reproducibility: never renumber.
enum class RandomPurpose : std::uint32_t {
  kInit = 1,
  kShuffle = 2,
  kAugment = 3,
  kSynthetic = 4,
  kMixup = 5,
  kGenerate = 6,
  kArrange = 7
};

// The sequence of numbers of one (seed, purpose, index).  Counter layout: {position, purpose, index
// low, index high}; key: the seed, low word first.  Block b of four words serves draws 4b..4b+3.
// Not thread-safe; make one where it is needed.
class Random {
 public:
  Random(std::uint64_t seed, RandomPurpose purpose, std::uint64_t index);

  std::uint32_t Next();  // uniform over all 32-bit values
  double Uniform();      // [0, 1): Next() / 2^32
  std::uint32_t Below(
      std::uint32_t bound);  // [0, bound): (Next() * bound) >> 32.  REQUIRES: bound > 0
  double Normal();  // mean 0, variance 1: Box-Muller over two Uniform()s, cosine branch only
  double TruncatedNormal();         // Normal(), drawn again while |x| > 2
  double Gamma(double shape);       // Marsaglia-Tsang; REQUIRES: shape > 0
  double Beta(double a, double b);  // from two Gammas

 private:
  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_;
  std::array<std::uint32_t, 4> block_{};
  int used_ = 4;
};

}  // namespace trainer
