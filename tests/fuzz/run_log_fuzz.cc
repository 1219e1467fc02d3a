// SPDX-License-Identifier: Apache-2.0
//
// A run's log is read without a crash, or its line is refused; what is found lies in the line.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "bench/ddlbench/speeds/dlperf.h"
#include "bench/run_log/log_entry.h"
#include "bench/run_log/log_lines.h"
#include "bench/run_log/run_steps.h"
#include "trainer/core/error.h"

namespace {

void RequireInside(std::string_view part, std::string_view whole) {
  if (!part.empty() &&
      (part.data() < whole.data() || part.data() + part.size() > whole.data() + whole.size())) {
    std::abort();
  }
}

// A SpeedMeter, or the steps of a run.
template <typename Reader>
void Take(Reader& reader, std::string_view line) {
  try {
    reader.Add(line);
  } catch (const trainer::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
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
    Take(by_rate, line);
    Take(by_time, line);
    Take(steps, line);
    if (const auto name = bench::ParseRunName(line); name && bench::FileNameOf(*name).empty()) {
      std::abort();
    }
    // A name that is read is written in one way.
    if (const auto at = bench::ParseCase(line);
        at && !(bench::ParseCase(bench::NameOf(*at)) == at)) {
      std::abort();
    }
  }
  steps.global_batch();
  if (by_rate.is_full()) by_rate.Speed();
  if (by_time.is_full()) by_time.Speed();
  return 0;
}
