// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as what is kept of a scan: nothing, or files whose records fill them, written as the
// very same bytes.  A second pass writes a good checksum over the bytes first, so that the other
// fields reach the code behind the check.

#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "trainer/core/crc32c.h"
#include "trainer/data/files/scan_file.h"

namespace {

constexpr char kSet[] = "set";
constexpr std::size_t kChecksumAt = 17;
constexpr std::size_t kBehindChecksum = 21;

void Check(const std::vector<std::uint8_t>& bytes) {
  const auto files = trainer::ParseScans(bytes, kSet);
  if (!files) return;
  for (const trainer::ScannedFile& file : *files) {
    std::uint64_t end = 0;
    for (const trainer::RecordPlace& place : file.scan.places) {
      if (place.offset != end || place.size < trainer::kRecordFramingBytes) std::abort();
      end += place.size;
    }
    if (end != file.identity.bytes) std::abort();
  }
  const std::string again = trainer::FormatScans(kSet, *files);
  if (again != std::string(bytes.begin(), bytes.end())) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::uint8_t> bytes(data, data + size);
  Check(bytes);
  if (size < kBehindChecksum) return 0;
  const auto behind = std::span(bytes).subspan(kBehindChecksum);
  const std::uint32_t checksum = trainer::Crc32c(std::as_bytes(behind));
  for (std::size_t i = 0; i < 4; ++i) {
    bytes[kChecksumAt + i] = static_cast<std::uint8_t>(checksum >> (8 * i));
  }
  Check(bytes);
  return 0;
}
