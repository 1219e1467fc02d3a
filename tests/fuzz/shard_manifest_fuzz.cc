// SPDX-License-Identifier: Apache-2.0
//
// Any text as a manifest of data files: a complaint, or the very text that its shards are written
// as.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "trainer/core/error.h"
#include "trainer/data/files/shard_manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const auto shards = trainer::ParseShardManifest(text, "manifest");
    if (trainer::FormatShardManifest(shards) != text) std::abort();
  } catch (const trainer::Error& error) {
    if (error.exit_code() != EX_DATAERR) std::abort();
  }
  return 0;
}
