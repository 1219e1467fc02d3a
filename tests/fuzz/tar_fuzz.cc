// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a tar archive: a complaint, or members that lie one behind the other within it.  A
// second pass writes good checksums over the bytes first, so that the other fields reach the code
// behind the check.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "ddldata/tar.h"
#include "tests/fuzz/memory_file.h"
#include "trainer/core/error.h"

namespace {

using trainer::kTarBlockBytes;

void Check(const std::vector<std::uint8_t>& bytes) {
  const std::string path = fuzz::MemoryFile(bytes);
  const support::Descriptor file = trainer::OpenForReading(path);
  trainer::TarReader reader(file, path, {0, bytes.size()});
  try {
    std::uint64_t end = 0;
    while (const auto member = reader.Next()) {
      if (member->offset < end + kTarBlockBytes || member->offset > bytes.size()) std::abort();
      if (member->size > bytes.size() - member->offset) std::abort();
      const std::string name = "/" + member->name + "/";
      if (name.find("/../") != std::string::npos || member->name.starts_with('/')) std::abort();
      end = member->offset + member->size;
    }
  } catch (const trainer::Error& error) {
    if (error.exit_code() != EX_DATAERR) std::abort();
  }
}

void MendChecksums(std::vector<std::uint8_t>& bytes) {
  constexpr std::size_t kChecksumAt = 148;
  constexpr std::size_t kChecksumLength = 8;
  for (std::size_t begin = 0; begin + kTarBlockBytes <= bytes.size(); begin += kTarBlockBytes) {
    const auto block = bytes.begin() + static_cast<std::ptrdiff_t>(begin);
    if (std::all_of(block, block + kTarBlockBytes, [](std::uint8_t byte) { return byte == 0; })) {
      continue;
    }
    std::fill_n(block + kChecksumAt, kChecksumLength, ' ');
    unsigned sum = 0;
    for (std::size_t i = 0; i < kTarBlockBytes; ++i) sum += bytes[begin + i];
    char digits[8];
    std::snprintf(digits, sizeof digits, "%06o", sum);
    std::copy_n(digits, 7, block + kChecksumAt);
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
