// SPDX-License-Identifier: Apache-2.0

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "launcher/rank/rank_end.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  const auto end = launcher::ParseRankEnd(line);
  // What is read can be written and read again.
  if (end && !launcher::ParseRankEnd(launcher::FormatRankEnd(*end))) std::abort();
  launcher::ParseSrunError(line);
  launcher::ParseLostNode(line);
  const auto last = launcher::ParseRankLine(line);
  if (last && !launcher::ParseRankLine(launcher::FormatRankLine(*last))) std::abort();
  const auto step = launcher::ParseStep(line);
  if (step && *step != *launcher::ParseStep("ddlrun-rank: step " + *step)) std::abort();
  return 0;
}
