// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/formats/trace_file.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/trainer/temporary_folder.h"

namespace trainer {
namespace {

const std::array<Span, 4> kSpans = {{
    {.begin = 0.25, .end = 0.5, .number = 7, .kind = SpanKind::kForward},
    {.begin = 0.0000125, .end = 0.0000925, .number = 7, .kind = SpanKind::kStep},
    {.begin = 0.3, .end = 0.4, .number = 4096, .kind = SpanKind::kAllReduce},
    {.begin = 0.1, .end = 0.2, .number = 8, .thread = 2, .kind = SpanKind::kImage},
}};

TEST(TraceLines, AreTheEventsInTheirOrderAndTheNamesOfProcessAndThreads) {
  EXPECT_EQ(
      TraceLines(3, "gpu025", kSpans),
      R"({"name": "process_name", "ph": "M", "pid": 3, "tid": 0, "args": {"name": "rank 3 on gpu025"}},
{"name": "thread_name", "ph": "M", "pid": 3, "tid": 0, "args": {"name": "steps"}},
{"name": "step", "cat": "step", "ph": "X", "ts": 12.500, "dur": 80.000, "pid": 3, "tid": 0, "args": {"step": 7}},
{"name": "thread_name", "ph": "M", "pid": 3, "tid": 5, "args": {"name": "input thread 3"}},
{"name": "image", "cat": "input", "ph": "X", "ts": 100000.000, "dur": 100000.000, "pid": 3, "tid": 5, "args": {"step": 8}},
{"name": "thread_name", "ph": "M", "pid": 3, "tid": 1, "args": {"name": "phases"}},
{"name": "forward", "cat": "phase", "ph": "X", "ts": 250000.000, "dur": 250000.000, "pid": 3, "tid": 1, "args": {"step": 7}},
{"name": "thread_name", "ph": "M", "pid": 3, "tid": 2, "args": {"name": "all-reduces"}},
{"name": "all-reduce", "cat": "communication", "ph": "X", "ts": 300000.000, "dur": 100000.000, "pid": 3, "tid": 2, "args": {"bytes": 4096}})");
}

nlohmann::json Parsed(const std::filesystem::path& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

TEST(TraceFile, HasAllRanksInOneObject) {
  TemporaryFolder folder;
  const auto path = folder.path() / "trace.json";
  TraceFile file(path);
  file.Add(0, "a\"b", kSpans);
  file.Add(1, "c", {});
  EXPECT_FALSE(std::filesystem::exists(path));
  ASSERT_EQ(file.Finish(), 0);
  const auto events = Parsed(path).at("traceEvents");
  EXPECT_EQ(events.size(), 10U);
  EXPECT_EQ(events[0]["args"]["name"], "rank 0 on a\"b");
  EXPECT_EQ(events[9]["args"]["name"], "rank 1 on c");
}

TEST(TraceFile, ThatIsNotFinishedIsNotThere) {
  TemporaryFolder folder;
  { TraceFile(folder.path() / "trace.json").Add(0, "a", kSpans); }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(TraceFile, TellsWhyItCannotBeWritten) {
  TemporaryFolder folder;
  EXPECT_EQ(TraceFile(folder.path() / "x" / "trace.json").Finish(), ENOENT);
  std::filesystem::create_directory(folder.path() / "trace.json");
  EXPECT_EQ(TraceFile(folder.path() / "trace.json").Finish(), EISDIR);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / ".trace.json.tmp"));
}

}  // namespace
}  // namespace trainer
