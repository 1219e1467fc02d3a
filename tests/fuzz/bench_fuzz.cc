// SPDX-License-Identifier: Apache-2.0
//
// The logs of runs.

#include <algorithm>

#include "bench/ddlbench/log_analysis/dlperf.h"
#include "bench/report/charts/printable.h"
#include "bench/report/charts/svg_chart.h"
#include "bench/report/readers/log_reader.h"
#include "bench/run_log/log_entry.h"
#include "bench/run_log/log_lines.h"
#include "tests/fuzz/fuzz.h"
#include "trainer/core/error.h"

namespace {

using fuzz::Require;
using trainer::Error;

[[maybe_unused]] void RequireInside(std::string_view part, std::string_view whole) {
  Require(part.empty() || (part.data() >= whole.data() &&
                           part.data() + part.size() <= whole.data() + whole.size()));
}

}  // namespace

// A line of DLLogger's: what is shown of it is text that moves no cursor and ends no element.
FUZZ(logger_line) {
  const std::string line(text);
  fuzz::MayReject<Error>([&] {
    const auto parsed = bench::ParseLoggerLine(line);
    if (!parsed) return;
    for (const bench::LoggerField& field : parsed->fields) Require(bench::IsUtf8(field.name));
  });
  const std::string printable = bench::Printable(line);
  Require(bench::IsUtf8(printable));
  Require(std::ranges::none_of(printable, [](unsigned char byte) { return byte < 0x20; }));
  constexpr std::size_t kMax = 12;
  const std::string shortened = bench::Shortened(printable, kMax);
  Require(bench::IsUtf8(shortened) && bench::CountChars(shortened) <= kMax);
  Require(bench::Escaped(line).find_first_of("<>\"'") == std::string::npos);
}

// A run's log: what is found lies in the line.
FUZZ(run_log) {
  bench::SpeedMeter by_rate({bench::SpeedRule::kRate, 20, 23}, 8);
  bench::SpeedMeter by_time({bench::SpeedRule::kTime, 20, 23}, 8);
  bench::RunSteps steps;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() < text.size() ? line.size() + 1 : line.size());
    const bench::LogEntry entry = bench::ParseLogEntry(line);
    for (const auto& [key, value] : entry.values) {
      RequireInside(key, line);
      RequireInside(value, line);
      bench::NumberOf(value);
    }
    bench::IsUtf8(line);
    bench::MicrosecondsOf(line);
    fuzz::MayReject<Error>([&] { by_rate.Add(line); });
    fuzz::MayReject<Error>([&] { by_time.Add(line); });
    fuzz::MayReject<Error>([&] { steps.Add(line); });
    if (const auto name = bench::ParseRunName(line)) Require(!bench::FileNameOf(*name).empty());
    // A name that is read is written in one way.
    if (const auto at = bench::ParseCase(line)) Require(bench::ParseCase(bench::NameOf(*at)) == at);
  }
  steps.global_batch();
  if (by_rate.is_full()) by_rate.Speed();
  if (by_time.is_full()) by_time.Speed();
}
