// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/images/blend_columns.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <cstddef>
#include <cstring>

namespace trainer {
namespace {

constexpr std::size_t kChannels = 3;
constexpr int kShift = 16;                       // bits after the point of a sum
constexpr int kSumBias = kRowBias * kOneWeight;  // of a sum: its weights add up to one
constexpr int kOffset = kSumBias + kOneWeight * kOneWeight / 2;  // and half, to round

const std::int16_t* PixelOf(const std::int16_t* row, int number) {
  return row + static_cast<std::size_t>(number) * kChannels;
}

#ifdef __SSE2__

__m128i LoadPixel(const std::int16_t* row, int number) {
  return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(PixelOf(row, number)));
}

// Four channels, of which the last is none, in 32 bits each.
__m128i BlendPixel(const std::int16_t* row, const Tap& tap) {
  const __m128i weights = _mm_set1_epi32((kOneWeight - tap.weight) | tap.weight << 16);
  const __m128i pairs = _mm_unpacklo_epi16(LoadPixel(row, tap.first), LoadPixel(row, tap.second));
  const __m128i sum = _mm_madd_epi16(pairs, weights);
  return _mm_srli_epi32(_mm_add_epi32(sum, _mm_set1_epi32(kOffset)), kShift);
}

void StoreFour(std::uint8_t* out, __m128i bytes) {
  const int four = _mm_cvtsi128_si32(bytes);
  std::memcpy(out, &four, sizeof four);
}

#endif

}  // namespace

void BlendColumnsOneByOne(const std::int16_t* row, std::span<const Tap> columns,
                          std::uint8_t* out) {
  for (const Tap& tap : columns) {
    const std::int16_t* left = PixelOf(row, tap.first);
    const std::int16_t* right = PixelOf(row, tap.second);
    for (std::size_t channel = 0; channel < kChannels; ++channel) {
      const int sum = left[channel] * (kOneWeight - tap.weight) + right[channel] * tap.weight;
      *out++ = static_cast<std::uint8_t>((sum + kOffset) >> kShift);
    }
  }
}

void BlendColumns(const std::int16_t* row, std::span<const Tap> columns, std::uint8_t* out) {
#ifdef __SSE2__
  // Each pixel is stored with one byte more, which the next one overwrites: the last is left over.
  constexpr std::size_t kGroup = 4;
  while (columns.size() > kGroup) {
    const __m128i a = BlendPixel(row, columns[0]);
    const __m128i b = BlendPixel(row, columns[1]);
    const __m128i c = BlendPixel(row, columns[2]);
    const __m128i d = BlendPixel(row, columns[3]);
    const __m128i bytes = _mm_packus_epi16(_mm_packs_epi32(a, b), _mm_packs_epi32(c, d));
    StoreFour(out, bytes);
    StoreFour(out + kChannels, _mm_srli_si128(bytes, 4));
    StoreFour(out + 2 * kChannels, _mm_srli_si128(bytes, 8));
    StoreFour(out + 3 * kChannels, _mm_srli_si128(bytes, 12));
    out += kGroup * kChannels;
    columns = columns.subspan(kGroup);
  }
#endif
  BlendColumnsOneByOne(row, columns, out);
}

}  // namespace trainer
