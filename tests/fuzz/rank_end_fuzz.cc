// SPDX-License-Identifier: Apache-2.0
//
// What comes out of standard error of srun or mpirun: any lines, one by one and all of a job.

#include <sys/wait.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "launcher/launch/mpirun_lines.h"
#include "launcher/protocol/rank_event.h"
#include "launcher/protocol/rank_exit.h"
#include "launcher/slurm/srun_lines.h"
#include "launcher/supervise/job_result.h"
#include "launcher/supervise/rank_event_parser.h"

namespace {

constexpr char kKey[] = "0123456789abcdef";

// All lines of `text`, as ddlrun reads them.
void ReadJob(std::string_view text) {
  launcher::RankEventParser reports(kKey);
  for (double seconds = 0; !text.empty(); ++seconds) {
    const std::size_t size = std::min(text.find('\n'), text.size());
    reports.Read(text.substr(0, size), seconds);
    text.remove_prefix(std::min(size + 1, text.size()));
  }
  reports.failure();
  reports.cancelled();
  launcher::SilentNodes({"n1", "n2"}, reports.hosts_with_ends());
}

// A line that the shim has marked means nothing, and is shown as it is.
void ReadMarked(const std::string& line, const std::string& head) {
  if (line.find(head) != std::string::npos) return;
  launcher::RankEventParser reports(kKey);
  const auto reading = reports.Read(launcher::EmitOutputMark(kKey).text + line, 1);
  if (reading.instead != line + "\n" || reading.event != launcher::RankEventParser::Event::kNone ||
      reports.failure() || reports.cancelled() || !reports.lost_nodes().empty()) {
    std::abort();
  }
}

// Whether ddlrun reads the line as one of srun or mpirun, for which the shim would have marked it.
// Behind an unfinished line of a rank that of slurmstepd is read, too, and so is not asked of here.
bool IsOfLauncher(std::string_view line) {
  return launcher::ParseSrunError(line) || launcher::ParseLostNode(line) ||
         launcher::ParseStepCreation(line) || launcher::ParseLostDaemon(line) ||
         launcher::ParseMpirunNotice(line) || launcher::IsFailureOfDaemons(line) ||
         launcher::IsStepLeft(line);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  static const std::string head = launcher::EventHead(kKey);
  const auto found = launcher::FindEvent(line, head);
  if (found && found->before.size() + head.size() + found->report.size() != size) std::abort();
  if (found) launcher::IsLabel(found->before);
  const std::string_view text = found ? found->report : line;
  const auto end = launcher::ParseRankExit(text);
  // What is read can be written and read again.
  if (end) {
    const int status = end->signal > 0 ? end->signal : W_EXITCODE(end->exit_code, 0);
    std::string report =
        launcher::EmitRankExit(kKey, end->rank, end->host.c_str(), end->pid, status, {}).text;
    report.pop_back();
    const auto written = launcher::FindEvent(report, head);
    if (!written || (end->signal < 65 && !launcher::ParseRankExit(written->report))) std::abort();
  }
  const auto tasks = launcher::ParseSrunTasks(line);
  int last_task = -1;
  for (const launcher::RankRange& range : tasks) {
    if (range.first <= last_task || range.last < range.first) std::abort();
    last_task = range.last;
  }
  if (launcher::ParseSrunError(line) && tasks.empty()) std::abort();
  if (IsOfLauncher(line) && !launcher::MayBeLineOfLauncher(line.data(), size)) std::abort();
  launcher::ParseCancelled(line);
  ReadMarked(std::string(line.substr(0, line.find('\n'))), head);
  ReadJob(line);
  const auto last = launcher::ParseRankLine(text);
  if (last) {
    const std::string report = launcher::EmitRankLine(kKey, last->rank, last->text.c_str()).text;
    if (!launcher::ParseRankLine(launcher::FindEvent(report, head)->report)) std::abort();
  }
  launcher::ParseRankStart(text);
  launcher::ParseRankSuccess(text);
  launcher::ParseAttachment(text);
  launcher::ParseOutputFrame(text);
  launcher::ParseKilledAlone(text);
  const auto step = launcher::ParseStep(text);
  if (step && *step != *launcher::ParseStep("step " + *step)) std::abort();
  return 0;
}
