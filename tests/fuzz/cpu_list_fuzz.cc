// SPDX-License-Identifier: Apache-2.0
//
// Any text: CPU lists that are taken are written and read back the same.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "rankfile/cpu_list.h"
#include "tests/fuzz/rankfile_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto taken = rankfile::IfTaken([&] { return rankfile::ParseCpuList(text); })) {
    rankfile::RequireSame(rankfile::ParseCpuList(rankfile::FormatCpuList(*taken)), *taken);
  }
  return 0;
}
