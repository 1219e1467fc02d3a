// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/files/scan_file.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "trainer/core/crc32c.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

constexpr std::string_view kFirstBytes = "ddltraind scan 1\n";
constexpr std::size_t kScanChecksumBytes = 4;
constexpr std::uint64_t kMaxOfFourBytes = std::numeric_limits<std::uint32_t>::max();

template <typename T>
void AppendNumber(T value, std::string& out) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    out += static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i) & 255U);
  }
}

void AppendText(std::string_view text, std::string& out) {
  DDL_CHECK(text.size() <= kMaxOfFourBytes);
  AppendNumber(static_cast<std::uint32_t>(text.size()), out);
  out += text;
}

// Takes what it is asked for from the front, and notes when that is not there.
class ScanReader {
 public:
  explicit ScanReader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  bool ok() const { return ok_; }
  std::size_t left() const { return bytes_.size(); }

  std::span<const std::uint8_t> Take(std::size_t count) {
    ok_ = ok_ && count <= bytes_.size();
    if (!ok_) return {};
    const auto taken = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return taken;
  }

  template <typename T>
  T Number() {
    std::uint64_t value = 0;
    const auto taken = Take(sizeof(T));
    for (std::size_t i = taken.size(); i > 0; --i) value = value << 8 | taken[i - 1];
    return static_cast<T>(value);
  }

  std::string_view Text() {
    const auto taken = Take(Number<std::uint32_t>());
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }

 private:
  std::span<const std::uint8_t> bytes_;
  bool ok_ = true;
};

// False if the records do not fill the file.
bool ReadPlaces(ScanReader& reader, std::uint64_t file_bytes, std::vector<RecordPlace>& places) {
  const auto records = reader.Number<std::uint32_t>();
  if (!reader.ok() || records > reader.left() / sizeof(std::uint32_t)) return false;
  places.reserve(records);
  std::uint64_t offset = 0;
  for (std::uint32_t i = 0; i < records; ++i) {
    const std::uint64_t size = reader.Number<std::uint32_t>();
    if (size < kRecordFramingBytes || size > file_bytes - offset) return false;
    places.push_back({offset, size});
    offset += size;
  }
  return offset == file_bytes;
}

bool ReadScannedFile(ScanReader& reader, ScannedFile& file) {
  file.name = reader.Text();
  file.identity.device = reader.Number<std::uint64_t>();
  file.identity.inode = reader.Number<std::uint64_t>();
  file.identity.bytes = reader.Number<std::uint64_t>();
  file.identity.modified = reader.Number<std::int64_t>();
  file.identity.changed = reader.Number<std::int64_t>();
  file.scan.checksum = reader.Number<std::uint32_t>();
  return ReadPlaces(reader, file.identity.bytes, file.scan.places);
}

std::uint32_t TrailingChecksum(std::span<const std::uint8_t> bytes) {
  return Crc32c(std::as_bytes(bytes.subspan(kFirstBytes.size() + kScanChecksumBytes)));
}

}  // namespace

bool KeepsScan(const RecordScan& scan) {
  return scan.places.size() <= kMaxOfFourBytes &&
         std::ranges::all_of(
             scan.places, [](const RecordPlace& place) { return place.size <= kMaxOfFourBytes; });
}

std::string FormatScans(std::string_view set, std::span<const ScannedFile> files) {
  std::string behind;
  AppendText(set, behind);
  AppendNumber(static_cast<std::uint32_t>(files.size()), behind);
  for (const ScannedFile& file : files) {
    DDL_CHECK(KeepsScan(file.scan));
    AppendText(file.name, behind);
    AppendNumber(file.identity.device, behind);
    AppendNumber(file.identity.inode, behind);
    AppendNumber(file.identity.bytes, behind);
    AppendNumber(file.identity.modified, behind);
    AppendNumber(file.identity.changed, behind);
    AppendNumber(file.scan.checksum, behind);
    AppendNumber(static_cast<std::uint32_t>(file.scan.places.size()), behind);
    for (const RecordPlace& place : file.scan.places) {
      AppendNumber(static_cast<std::uint32_t>(place.size), behind);
    }
  }
  std::string bytes(kFirstBytes);
  AppendNumber(Crc32c(std::as_bytes(std::span(behind))), bytes);
  return bytes + behind;
}

std::optional<std::vector<ScannedFile>> ParseScans(std::span<const std::uint8_t> bytes,
                                                   std::string_view set) {
  ScanReader reader(bytes);
  const auto first = reader.Take(kFirstBytes.size());
  const auto checksum = reader.Number<std::uint32_t>();
  if (!reader.ok() || !std::ranges::equal(first, kFirstBytes) ||
      checksum != TrailingChecksum(bytes) || reader.Text() != set) {
    return std::nullopt;
  }
  std::vector<ScannedFile> files;
  const auto count = reader.Number<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && reader.ok(); ++i) {
    ScannedFile file;
    if (!ReadScannedFile(reader, file)) return std::nullopt;
    if (!files.empty() && files.back().name >= file.name) return std::nullopt;
    files.push_back(std::move(file));
  }
  if (!reader.ok() || reader.left() > 0) return std::nullopt;
  return files;
}

}  // namespace trainer
