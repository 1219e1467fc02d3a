// SPDX-License-Identifier: Apache-2.0
//
// Any text: what is taken is written and read back the same.

#include <stdexcept>

#include "rankfile/cpu_list.h"
#include "rankfile/ddl.h"
#include "rankfile/hostfile.h"
#include "rankfile/hostlist.h"
#include "rankfile/openmpi_rankfile.h"
#include "rankfile/scanner.h"
#include "tests/fuzz/fuzz.h"

namespace {

// Whether `parse` of what `format` makes of what it has taken from `text` is the same.
template <class Parse, class Format>
void RequireReadBack(std::string_view text, Parse parse, Format format) {
  const auto taken = fuzz::IfTaken<rankfile::ParseError>([&] { return parse(text); });
  if (taken) fuzz::Require(parse(format(*taken)) == *taken);
}

}  // namespace

FUZZ(hostlist) {
  RequireReadBack(
      text, [](std::string_view list) { return rankfile::ExpandHostlist(list); },
      rankfile::CompressHostlist);
}

FUZZ(cpu_list) {
  RequireReadBack(
      text, [](std::string_view list) { return rankfile::ParseCpuList(list); },
      rankfile::FormatCpuList);
}

FUZZ(hostfile) {
  RequireReadBack(
      text, [](std::string_view list) { return rankfile::ParseHostfile(list); },
      rankfile::FormatHostfile);
}

FUZZ(ddl) {
  RequireReadBack(
      text, [](std::string_view list) { return rankfile::ParseDdlHostList(list); },
      rankfile::FormatDdlHostList);
  RequireReadBack(
      text, [](std::string_view list) { return rankfile::ParseDdlOptions(list); },
      rankfile::FormatDdlOptions);
}

FUZZ(openmpi_rankfile) {
  const auto taken = fuzz::IfTaken<rankfile::ParseError>([&] {
    return rankfile::ParseRankfile(text, "rankfile", {"n1", "n2", "n3.x.org"});
  });
  if (!taken) return;
  rankfile::RequireValid(*taken);
  std::string written;
  try {
    written = rankfile::FormatRankfile(*taken);
  } catch (const std::invalid_argument&) {
    return;  // cores too scattered for Open MPI
  }
  fuzz::Require(rankfile::ParseRankfile(written) == *taken);
}
