// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/formats/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "trainer/telemetry/text/python_format.h"

namespace trainer {
namespace {

struct Look {
  const char* name;
  const char* category;
  const char* number;  // what Span::number is
  int thread;          // the first of those of this kind
  const char* threads;
};

constexpr int kFirstInputThread = 3;

Look LookOf(SpanKind kind) {
  switch (kind) {
    case SpanKind::kStep:
      return {"step", "step", "step", 0, "steps"};
    case SpanKind::kInputWait:
      return {"input wait", "phase", "step", 1, "phases"};
    case SpanKind::kForward:
      return {"forward", "phase", "step", 1, "phases"};
    case SpanKind::kBackward:
      return {"backward", "phase", "step", 1, "phases"};
    case SpanKind::kExposedAllReduce:
      return {"exposed all-reduce", "phase", "step", 1, "phases"};
    case SpanKind::kUpdate:
      return {"update", "phase", "step", 1, "phases"};
    case SpanKind::kAllReduce:
      return {"all-reduce", "communication", "bytes", 2, "all-reduces"};
    case SpanKind::kImage:
      break;
  }
  return {"image", "input", "step", kFirstInputThread, "input thread"};
}

std::string ThreadName(const Look& look, int thread) {
  return thread < kFirstInputThread
             ? look.threads
             : fmt::format("{} {}", look.threads, thread - kFirstInputThread + 1);
}

std::string NameLine(const char* what, int rank, int thread, const std::string& name) {
  return fmt::format(R"({{"name": "{}", "ph": "M", "pid": {}, "tid": {}, "args": {{"name": {}}}}})",
                     what, rank, thread, PythonJson(name));
}

}  // namespace

std::string TraceLines(int rank, const std::string& host, std::span<const Span> spans) {
  std::vector<Span> sorted(spans.begin(), spans.end());
  std::ranges::stable_sort(sorted, {}, &Span::begin);
  const std::string process = fmt::format("rank {} on {}", rank, host);
  std::string lines = NameLine("process_name", rank, 0, process);
  std::set<int> named;
  for (const Span& span : sorted) {
    const Look look = LookOf(span.kind);
    const int thread = look.thread + span.thread;
    if (named.insert(thread).second) {
      lines += ",\n" + NameLine("thread_name", rank, thread, ThreadName(look, thread));
    }
    constexpr double kMicroseconds = 1e6;
    fmt::format_to(
        std::back_inserter(lines),
        ",\n"
        R"({{"name": "{}", "cat": "{}", "ph": "X", "ts": {:.3f}, "dur": {:.3f}, "pid": {}, )"
        R"("tid": {}, "args": {{"{}": {}}}}})",
        look.name, look.category, span.begin * kMicroseconds,
        (span.end - span.begin) * kMicroseconds, rank, thread, look.number, span.number);
  }
  return lines;
}

TraceFile::TraceFile(std::filesystem::path path) : file_(std::move(path), {.is_durable = true}) {
  file_.Write("{\"traceEvents\": [\n");
}

void TraceFile::Add(int rank, const std::string& host, std::span<const Span> spans) {
  file_.Write((std::exchange(has_lines_, true) ? ",\n" : "") + TraceLines(rank, host, spans));
}

int TraceFile::Finish() {
  file_.Write("\n], \"displayTimeUnit\": \"ms\"}\n");
  return file_.Commit();
}

}  // namespace trainer
