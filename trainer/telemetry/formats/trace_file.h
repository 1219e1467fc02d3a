// SPDX-License-Identifier: Apache-2.0
//
// What the ranks did, on one time line, for ui.perfetto.dev and chrome://tracing: the JSON object
// of Chrome's trace event format (a document "Trace Event Format" of the Catapult project), an
// event in each line:
//   {"traceEvents": [
//   {"name": "forward", "cat": "phase", "ph": "X", "ts": 12.5, "dur": 80.25, "pid": 3, "tid": 1,
//    "args": {"step": 7}},
//   ...
//   ], "displayTimeUnit": "ms"}
// A rank is a process, with threads for whole steps, their phases, all-reduces, and one for each of
// its input threads.  ts and dur are microseconds.
//
// The file appears under its name when it is whole (support/file.h), and on the disk.  Not
// thread-safe.

#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "support/file.h"
#include "trainer/core/span_recorder.h"

namespace trainer {

// The lines of one rank, without the comma that separates them from another's.  Pure.
std::string TraceLines(int rank, const std::string& host, std::span<const Span> spans);

class TraceFile {
 public:
  explicit TraceFile(std::filesystem::path path);
  void Add(int rank, const std::string& host, std::span<const Span> spans);
  // To be called once.  Returns 0, or errno of the first thing that failed; then there is no file.
  int Finish();

 private:
  support::AtomicFile file_;
  bool has_lines_ = false;
};

}  // namespace trainer
