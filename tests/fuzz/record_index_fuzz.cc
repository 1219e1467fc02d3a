// SPDX-License-Identifier: Apache-2.0
//
// Any text as an index file of a data file of 1000 bytes: a complaint, or records that are read
// back the same.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "trainer/core/error.h"
#include "trainer/data/files/record_index.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const auto places = trainer::ParseIndex(text, "index", 1000);
    if (trainer::ParseIndex(trainer::FormatIndex(places), "index", 1000) != places) std::abort();
  } catch (const trainer::Error& error) {
    if (error.exit_code() != EX_DATAERR) std::abort();
  }
  return 0;
}
