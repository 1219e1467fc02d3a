// SPDX-License-Identifier: Apache-2.0

#include "tests/trainer/backend/cuda_emulator/tensor_cores.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

#include "tests/trainer/backend/cuda_emulator/runtime_api.h"

namespace cuda_emulator {
namespace {

constexpr unsigned kLanes = 32;

std::atomic<std::chrono::steady_clock::duration> time_of_product{};
void PassTimeOfProduct() {
  if (time_of_product.load().count() > 0) PassTime(time_of_product);
}

float Value(__half value) { return __half2float(value); }
float Value(__nv_bfloat16 value) { return __bfloat162float(value); }

// Element i of those that a lane has in its words.
template <typename T>
float Element(const unsigned* words, unsigned i) {
  return Value(T{static_cast<unsigned short>(words[i / 2] >> i % 2 * 16)});
}

struct Loading {
  bool transposed;
  const unsigned short* row;
  unsigned* words;
};

void LoadAll(void* const* lanes) {
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const Loading& own = *static_cast<const Loading*>(lanes[lane]);
    for (unsigned matrix = 0; matrix < 4; ++matrix) {
      unsigned word = 0;
      for (unsigned i = 0; i < 2; ++i) {
        // Row lane / 4 and columns 2 * (lane % 4) + i of the matrix or of its transpose.
        const unsigned row = lane / 4;
        const unsigned column = lane % 4 * 2 + i;
        const auto* from =
            static_cast<const Loading*>(lanes[matrix * 8 + (own.transposed ? column : row)]);
        word |= unsigned{from->row[own.transposed ? row : column]} << 16 * i;
      }
      own.words[matrix] = word;
    }
  }
}

struct Multiplying {
  const unsigned* a;
  const unsigned* b;
  float* sum;
  bool a_by_column, b_by_column;
};
const Multiplying& Of(void* lane) { return *static_cast<const Multiplying*>(lane); }

template <typename T>
void MultiplyOne(void* const* lanes) {
  PassTimeOfProduct();
  float a[16][16];
  float b[16][8];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const Multiplying& own = Of(lanes[lane]);
    const unsigned group = lane / 4;
    const unsigned pair = lane % 4 * 2;
    for (unsigned i = 0; i < 8; ++i) {
      const bool is_upper = i < 2 || (i >= 4 && i < 6);
      a[is_upper ? group : group + 8][pair + i % 2 + (i < 4 ? 0 : 8)] = Element<T>(own.a, i);
    }
    for (unsigned i = 0; i < 4; ++i)
      b[pair + i % 2 + (i < 2 ? 0 : 8)][group] = Element<T>(own.b, i);
  }
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned row = lane / 4 + (i < 2 ? 0 : 8);
      const unsigned column = lane % 4 * 2 + i % 2;
      float sum = Of(lanes[lane]).sum[i];
      for (unsigned k = 0; k < 16; ++k) sum += a[row][k] * b[k][column];
      Of(lanes[lane]).sum[i] = sum;
    }
  }
}

void MultiplyFour(void* const* lanes) {
  PassTimeOfProduct();
  float a[4][8][4];
  float b[4][4][8];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const Multiplying& own = Of(lanes[lane]);
    const unsigned product = lane / 4 % 4;
    const unsigned half = lane < 16 ? 0 : 4;
    for (unsigned i = 0; i < 4; ++i) {
      const float of_a = Element<__half>(own.a, i);
      const float of_b = Element<__half>(own.b, i);
      (own.a_by_column ? a[product][i + half][lane % 4] : a[product][lane % 4 + half][i]) = of_a;
      (own.b_by_column ? b[product][i][lane % 4 + half] : b[product][lane % 4][i + half]) = of_b;
    }
  }
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const unsigned product = lane / 4 % 4;
    for (unsigned i = 0; i < 8; ++i) {
      const unsigned row = (lane & 1U) + (i & 2U) + (lane < 16 ? 0 : 4);
      const unsigned column = (i & 4U) + (lane & 2U) + (i & 1U);
      float sum = Of(lanes[lane]).sum[i];
      for (unsigned k = 0; k < 4; ++k) sum += a[product][row][k] * b[product][k][column];
      Of(lanes[lane]).sum[i] = sum;
    }
  }
}

}  // namespace

void PretendProductsTake(std::chrono::steady_clock::duration time) { time_of_product = time; }

void LoadMatrices(bool transposed, const void* row, unsigned (&words)[4], Place place) {
  if (reinterpret_cast<std::uintptr_t>(row) % 16 != 0) {
    throw std::runtime_error(std::string("emulated kernel: a row of a matrix at ") + place.file +
                             ":" + std::to_string(place.line) + " is not aligned to 16 bytes");
  }
  Loading own = {transposed, static_cast<const unsigned short*>(row), words};
  Together(&own, LoadAll, place);
}

template <typename T>
void MultiplyM16N8K16(const unsigned (&a)[4], const unsigned (&b)[2], float* sum, Place place) {
  Multiplying own = {a, b, sum, false, true};
  Together(&own, MultiplyOne<T>, place);
}
template void MultiplyM16N8K16<__half>(const unsigned (&)[4], const unsigned (&)[2], float*, Place);
template void MultiplyM16N8K16<__nv_bfloat16>(const unsigned (&)[4], const unsigned (&)[2], float*,
                                              Place);

void MultiplyM8N8K4(bool a_by_column, bool b_by_column, const unsigned (&a)[2],
                    const unsigned (&b)[2], float* sum, Place place) {
  Multiplying own = {a, b, sum, a_by_column, b_by_column};
  Together(&own, MultiplyFour, place);
}

}  // namespace cuda_emulator
