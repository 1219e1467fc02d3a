// SPDX-License-Identifier: Apache-2.0

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>

#include "trainer/checkpoint/manifest.h"
#include "trainer/core/crc32c.h"
#include "trainer/core/error.h"

namespace {

// What is accepted reads back the same from its own text.
void Parse(const std::string& text) {
  try {
    const trainer::Manifest manifest = trainer::ParseManifest(text, "fuzz");
    if (!(trainer::ParseManifest(trainer::ToJson(manifest), "again") == manifest)) std::abort();
  } catch (const trainer::Error&) {
  }
}

}  // namespace

// The input as a whole file, and as the body behind a checksum that fits.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  Parse(text);
  char checksum[16];
  std::snprintf(checksum, sizeof checksum, "%08x",
                trainer::Crc32c(std::as_bytes(std::span(data, size))));
  Parse(std::string(R"({"crc32c":")") + checksum + R"(","manifest":)" + text + "}");
  return 0;
}
