// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/images/resize.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <vector>

#include "trainer/core/error.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

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

namespace {

// For each of `size` output places along one axis, indices into the piece, which begins at `origin`
// and has `extent` pixels; only those in [low, high] may be read.
std::vector<Tap> MakeTaps(double begin, double length, int size, int low, int high, int origin,
                          int extent) {
  std::vector<Tap> taps(static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) {
    const double centre = begin + (i + 0.5) * length / size - 0.5;
    const double floor = std::floor(centre);
    const int left = static_cast<int>(floor);
    Tap& tap = taps[static_cast<std::size_t>(i)];
    tap.first = std::clamp(left, low, high) - origin;
    tap.second = std::clamp(left + 1, low, high) - origin;
    tap.weight = static_cast<int>(std::lrint((centre - floor) * kOneWeight));
    DDL_CHECK(tap.first >= 0 && tap.second < extent);
  }
  return taps;
}

// row[i] = the rows `top` and `bottom` blended, as BlendColumns wants it.
void BlendRows(const std::uint8_t* top, const std::uint8_t* bottom, int weight, std::size_t length,
               std::int16_t* row) {
  for (std::size_t i = 0; i < length; ++i) {
    row[i] =
        static_cast<std::int16_t>(top[i] * (kOneWeight - weight) + bottom[i] * weight - kRowBias);
  }
}

}  // namespace

void Resize(const ImagePiece& piece, const View& view, int size, std::span<std::uint8_t> out) {
  const auto stride = static_cast<std::size_t>(piece.box.width) * 3;
  DDL_CHECK(out.size() == static_cast<std::size_t>(size) * static_cast<std::size_t>(size) * 3);
  const PixelBox& readable = view.readable;
  const auto columns = MakeTaps(view.x, view.width, size, readable.x,
                                readable.x + readable.width - 1, piece.box.x, piece.box.width);
  const auto rows = MakeTaps(view.y, view.height, size, readable.y,
                             readable.y + readable.height - 1, piece.box.y, piece.box.height);
  std::vector<std::int16_t> blended(stride + 1);
  std::uint8_t* destination = out.data();
  for (const Tap& row : rows) {
    const std::uint8_t* pixels = piece.pixels.data();
    BlendRows(pixels + static_cast<std::size_t>(row.first) * stride,
              pixels + static_cast<std::size_t>(row.second) * stride, row.weight, stride,
              blended.data());
    BlendColumns(blended.data(), columns, destination);
    destination += columns.size() * 3;
  }
}

}  // namespace trainer
