// SPDX-License-Identifier: Apache-2.0

#include <sys/wait.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "launcher/protocol/rank_end.h"
#include "launcher/protocol/rank_report.h"
#include "launcher/slurm/srun_lines.h"

namespace {

constexpr char kKey[] = "0123456789abcdef";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  static const std::string head = launcher::ReportHead(kKey);
  const auto found = launcher::FindReport(line, head);
  if (found && found->before.size() + head.size() + found->report.size() != size) std::abort();
  if (found) launcher::IsLabel(found->before);
  const std::string_view text = found ? found->report : line;
  const auto end = launcher::ParseRankEnd(text);
  // What is read can be written and read again.
  if (end) {
    const int status = end->signal > 0 ? end->signal : W_EXITCODE(end->exit_code, 0);
    std::string report =
        launcher::ReportRankEnd(kKey, end->rank, end->host.c_str(), end->pid, status, {}).text;
    report.pop_back();
    const auto written = launcher::FindReport(report, head);
    if (!written || (end->signal < 65 && !launcher::ParseRankEnd(written->report))) std::abort();
  }
  const auto tasks = launcher::ParseSrunTasks(line);
  int last_task = -1;
  for (const launcher::RankRange& range : tasks) {
    if (range.first <= last_task || range.last < range.first) std::abort();
    last_task = range.last;
  }
  if (launcher::ParseSrunError(line) && tasks.empty()) std::abort();
  launcher::ParseLostNode(line);
  launcher::ParseCancelled(line);
  launcher::ParseStepCreation(line);
  const auto last = launcher::ParseRankLine(text);
  if (last) {
    const std::string report = launcher::ReportRankLine(kKey, last->rank, last->text.c_str()).text;
    if (!launcher::ParseRankLine(launcher::FindReport(report, head)->report)) std::abort();
  }
  launcher::ParseRankStart(text);
  launcher::ParseRankSuccess(text);
  launcher::ParseKilledAlone(text);
  const auto step = launcher::ParseStep(text);
  if (step && *step != *launcher::ParseStep("step " + *step)) std::abort();
  return 0;
}
