// SPDX-License-Identifier: Apache-2.0
//
// Any text: hostlists that are taken are compressed and expand to the same hosts.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "rankfile/hostlist.h"
#include "tests/fuzz/rankfile_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto taken = rankfile::IfTaken([&] { return rankfile::ExpandHostlist(text); })) {
    rankfile::RequireSame(rankfile::ExpandHostlist(rankfile::CompressHostlist(*taken)), *taken);
  }
  return 0;
}
