// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a TFRecord file: a complaint, or records that fill it.  A second pass writes good
// checksums over the bytes first, so that lengths reach the code behind the checks.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "tests/fuzz/memory_file.h"
#include "trainer/core/crc32c.h"
#include "trainer/core/error.h"
#include "trainer/data/files/tfrecord.h"

namespace {

using trainer::kRecordFramingBytes;

void Check(const std::vector<std::uint8_t>& bytes) {
  const trainer::RecordFile file(fuzz::MemoryFile(bytes), true);
  std::vector<std::uint8_t> buffer;
  try {
    std::uint64_t end = 0;
    for (const trainer::RecordPlace& place : file.Scan()) {
      if (place.offset != end) std::abort();
      end += place.size;
      if (file.Read(place, buffer).size() != place.size - kRecordFramingBytes) std::abort();
    }
    if (end != bytes.size()) std::abort();
  } catch (const trainer::Error& error) {
    if (error.exit_code() != EX_DATAERR) std::abort();
  }
}

void StoreChecksum(std::span<const std::uint8_t> data, std::uint8_t* target) {
  const std::uint32_t checksum = trainer::MaskedCrc32c(std::as_bytes(data));
  std::memcpy(target, &checksum, sizeof(checksum));
}

void MendChecksums(std::vector<std::uint8_t>& bytes) {
  for (std::uint64_t offset = 0; bytes.size() - offset >= kRecordFramingBytes;) {
    std::uint8_t* record = bytes.data() + offset;
    StoreChecksum({record, 8}, record + 8);
    std::uint64_t length = 0;
    std::memcpy(&length, record, sizeof(length));
    if (length > bytes.size() - offset - kRecordFramingBytes) return;
    StoreChecksum({record + 12, length}, record + 12 + length);
    offset += length + kRecordFramingBytes;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::uint8_t> bytes(data, data + size);
  Check(bytes);
  MendChecksums(bytes);
  Check(bytes);
  return 0;
}
