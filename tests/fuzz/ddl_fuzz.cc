// SPDX-License-Identifier: Apache-2.0
//
// Any text, as DDL_HOST_LIST and as DDL_OPTIONS: what is taken is written and read back the same.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "rankfile/ddl.h"
#include "tests/fuzz/rankfile_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto taken = rankfile::IfTaken([&] { return rankfile::ParseDdlHostList(text); })) {
    const auto written = rankfile::FormatDdlHostList(*taken);
    rankfile::RequireSame(rankfile::ParseDdlHostList(written), *taken);
  }
  if (const auto taken = rankfile::IfTaken([&] { return rankfile::ParseDdlOptions(text); })) {
    const auto written = rankfile::FormatDdlOptions(*taken);
    rankfile::RequireSame(rankfile::ParseDdlOptions(written), *taken);
  }
  return 0;
}
