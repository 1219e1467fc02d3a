// SPDX-License-Identifier: Apache-2.0
//
// Any text: rankfiles that are taken hold the invariants, and are written and read back the same.

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "rankfile/openmpi_rankfile.h"
#include "tests/fuzz/rankfile_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto taken = rankfile::IfTaken([&] {
        return rankfile::ParseRankfile(text, "rankfile", {"n1", "n2", "n3.x.org"});
      })) {
    rankfile::RequireValid(*taken);
    std::string written;
    try {
      written = rankfile::FormatRankfile(*taken);
    } catch (const std::invalid_argument&) {
      return 0;  // cores too scattered for Open MPI
    }
    rankfile::RequireSame(rankfile::ParseRankfile(written), *taken);
  }
  return 0;
}
