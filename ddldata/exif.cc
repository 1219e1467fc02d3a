// SPDX-License-Identifier: Apache-2.0

#include "ddldata/exif.h"

#include <cstddef>
#include <cstring>
#include <string_view>

namespace trainer {
namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr int kAsItIs = 1;
constexpr int kMaxOrientation = 8;

// Of `count` bytes from `at` on; 0 beyond the end.
std::uint32_t Number(Bytes bytes, std::size_t at, std::size_t count, bool is_big_endian) {
  if (at > bytes.size() || bytes.size() - at < count) return 0;
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < count; ++i) {
    value = value << 8U | bytes[at + (is_big_endian ? i : count - 1 - i)];
  }
  return value;
}

bool BeginsWith(Bytes bytes, std::string_view text) {
  return bytes.size() >= text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0;
}

// Of TIFF: a header of 8 bytes with the place of a directory, whose entries have 12.
int OrientationInTiff(Bytes tiff) {
  constexpr std::size_t kEntryBytes = 12;
  constexpr std::uint32_t kOrientation = 0x0112;
  constexpr std::uint32_t kShort = 3;
  const bool is_big_endian = BeginsWith(tiff, "MM");
  if (!is_big_endian && !BeginsWith(tiff, "II")) return kAsItIs;
  const std::size_t directory = Number(tiff, 4, 4, is_big_endian);
  const std::uint32_t entries = Number(tiff, directory, 2, is_big_endian);
  for (std::uint32_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + i * kEntryBytes;
    const bool is_orientation = Number(tiff, entry, 2, is_big_endian) == kOrientation &&
                                Number(tiff, entry + 2, 2, is_big_endian) == kShort;
    if (!is_orientation) continue;
    const auto value = static_cast<int>(Number(tiff, entry + 8, 2, is_big_endian));
    return value >= kAsItIs && value <= kMaxOrientation ? value : kAsItIs;
  }
  return kAsItIs;
}

}  // namespace

int ExifOrientation(Bytes jpeg) {
  constexpr std::uint8_t kMarker = 0xff;
  constexpr std::uint8_t kApp1 = 0xe1;
  constexpr std::uint8_t kStartOfScan = 0xda;
  constexpr std::size_t kHead = 4;  // a segment's marker and length
  constexpr std::string_view kExif("Exif\0\0", 6);
  if (!BeginsWith(jpeg, "\xff\xd8")) return kAsItIs;
  for (std::size_t at = 2; at + kHead <= jpeg.size() && jpeg[at] == kMarker;) {
    if (jpeg[at + 1] == kMarker) {  // a byte to fill
      ++at;
      continue;
    }
    const std::size_t length = Number(jpeg, at + 2, 2, true);
    if (jpeg[at + 1] == kStartOfScan || length < 2 || jpeg.size() - at - 2 < length) break;
    const Bytes content = jpeg.subspan(at + kHead, length - 2);
    if (jpeg[at + 1] == kApp1 && BeginsWith(content, kExif)) {
      return OrientationInTiff(content.subspan(kExif.size()));
    }
    at += 2 + length;
  }
  return kAsItIs;
}

}  // namespace trainer
