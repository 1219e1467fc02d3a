// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a JPEG image: a complaint, or the pixels that were asked for, at every reduction;
// and whoever reads the Huffman codes, the same.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "trainer/core/error.h"
#include "trainer/data/images/jpeg.h"

namespace {

// Larger images are decoded alike and only slow the search.
constexpr int kMaxSide = 1024;

struct Outcome {
  trainer::ImagePiece piece;
  std::string complaint;

  bool operator==(const Outcome& other) const {
    return piece.box == other.piece.box && piece.pixels == other.piece.pixels &&
           complaint == other.complaint;
  }
};

void DecodeMiddle(trainer::JpegDecoder& decoder, trainer::ImageSize size, int reduction,
                  trainer::ImagePiece& piece) {
  const int width = (size.width + reduction - 1) / reduction;
  const int height = (size.height + reduction - 1) / reduction;
  const trainer::PixelBox box{width / 3, height / 3, std::max(1, width / 2),
                              std::max(1, height / 2)};
  decoder.Decode(reduction, box, piece);
  const auto pixels =
      static_cast<std::size_t>(piece.box.width) * static_cast<std::size_t>(piece.box.height);
  if (piece.box.x > box.x || piece.box.y > box.y ||
      piece.box.x + piece.box.width < box.x + box.width ||
      piece.box.y + piece.box.height < box.y + box.height || piece.pixels.size() != pixels * 3) {
    std::abort();
  }
}

Outcome Decode(trainer::JpegDecoder& decoder, std::span<const std::uint8_t> data, int reduction) {
  Outcome outcome;
  try {
    const trainer::ImageSize image = decoder.ReadHeader(data);
    if (std::max(image.width, image.height) > kMaxSide) return {};
    DecodeMiddle(decoder, image, reduction, outcome.piece);
  } catch (const trainer::Error& error) {
    if (error.exit_code() != EX_DATAERR) std::abort();
    outcome = {{}, error.what()};
  }
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static trainer::JpegDecoder decoder;
  static trainer::JpegDecoder library(trainer::EntropyDecoder::kLibrary);
  for (const int reduction : {1, 2, 4, 8}) {
    const Outcome outcome = Decode(decoder, {data, size}, reduction);
    if (!(outcome == Decode(library, {data, size}, reduction))) std::abort();
  }
  return 0;
}
