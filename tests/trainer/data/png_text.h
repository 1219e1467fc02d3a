// SPDX-License-Identifier: Apache-2.0
//
// PNG images as text, chunk by chunk, with pixels that are not compressed.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trainer {

inline std::string BigEndian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xff);
  return bytes;
}

// Length, name, data and CRC-32.
inline std::string PngChunk(const std::string& name, const std::string& data) {
  std::uint32_t crc = 0xffffffff;
  for (const char byte : name + data) {
    crc ^= static_cast<std::uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc % 2 == 1 ? 0xedb88320 : 0);
  }
  return BigEndian(static_cast<std::uint32_t>(data.size())) + name + data + BigEndian(~crc);
}

// A stream of zlib with one block, as it is.
inline std::string ZlibStored(const std::string& data) {
  std::uint32_t a = 1;
  std::uint32_t b = 0;
  for (const char byte : data) {
    a = (a + static_cast<std::uint8_t>(byte)) % 65521;
    b = (b + a) % 65521;
  }
  const auto size = static_cast<std::uint32_t>(data.size());
  std::string stream = {0x78, 0x01, 0x01};
  for (const std::uint32_t length : {size, ~size}) {
    stream += static_cast<char>(length & 0xff);
    stream += static_cast<char>(length >> 8 & 0xff);
  }
  return stream + data + BigEndian(b << 16 | a);
}

enum class PngColors : std::uint8_t {
  kGray = 0,
  kRgb = 2,
  kPalette = 3,
  kGrayAlpha = 4,
  kRgba = 6
};

struct PngPicture {
  std::uint32_t width = 1;
  std::uint32_t height = 1;
  PngColors colors = PngColors::kRgb;
  int bits = 8;
  std::vector<std::string> rows;                              // of all passes
  std::vector<std::pair<std::string, std::string>> chunks{};  // before the pixels
  bool is_interlaced = false;
};

inline std::string PngOf(const PngPicture& picture) {
  std::string header = BigEndian(picture.width) + BigEndian(picture.height);
  header += static_cast<char>(picture.bits);
  header += static_cast<char>(picture.colors);
  header += std::string(2, '\0') + (picture.is_interlaced ? '\1' : '\0');
  std::string file = "\x89PNG\r\n\x1a\n" + PngChunk("IHDR", header);
  for (const auto& [name, data] : picture.chunks) file += PngChunk(name, data);
  std::string pixels;
  for (const std::string& row : picture.rows) pixels += '\0' + row;
  return file + PngChunk("IDAT", ZlibStored(pixels)) + PngChunk("IEND", "");
}

}  // namespace trainer
