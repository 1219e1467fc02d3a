// SPDX-License-Identifier: Apache-2.0

#include <sys/wait.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "launcher/rank/rank_end.h"
#include "launcher/shim/rank_report.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  const auto end = launcher::ParseRankEnd(line);
  // What is read can be written and read again.
  if (end) {
    const int status = end->signal > 0 ? end->signal : W_EXITCODE(end->exit_code, 0);
    std::string report =
        launcher::ReportRankEnd(end->rank, end->host.c_str(), end->pid, status, {}).text;
    report.pop_back();
    if (end->signal < 65 && !launcher::ParseRankEnd(report)) std::abort();
  }
  const auto tasks = launcher::ParseSrunTasks(line);
  int last_task = -1;
  for (const launcher::RankRange& range : tasks) {
    if (range.first <= last_task || range.last < range.first) std::abort();
    last_task = range.last;
  }
  if (launcher::ParseSrunError(line) && tasks.empty()) std::abort();
  launcher::ParseLostNode(line);
  const auto last = launcher::ParseRankLine(line);
  if (last &&
      !launcher::ParseRankLine(launcher::ReportRankLine(last->rank, last->text.c_str()).text))
    std::abort();
  const auto step = launcher::ParseStep(line);
  if (step && *step != *launcher::ParseStep("ddlrun-rank: step " + *step)) std::abort();
  return 0;
}
