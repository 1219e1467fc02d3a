// SPDX-License-Identifier: Apache-2.0
//
// The log of a run: RESULTS_DIR/log.json, or what the run printed on standard output, where DLL and
// NVLOG lines stand among others.  Read line by line, in memory that does not grow with the file.

#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/base/diagnostics.h"
#include "bench/report/readers/run.h"

namespace bench {

// Adds what the log says to `run`, and leaves out the first `skip_steps` of its steps in each
// launch.  Launches with other options that a step depends on (ranks, images of a rank, batches)
// begin the measures anew, which is noted.  Lines that cannot be used are problems, and so is a log
// without any line that can. Throws trainer::Error(EX_NOINPUT) when the file cannot be opened or
// read.
void ReadRunLog(const std::filesystem::path& path, int skip_steps, RunRecord& run,
                Diagnostics& diagnostics);

// A line of DLLogger's JSON file (trainer/telemetry/formats/dllogger.h):
//   DLLL {"timestamp": "1593597600.1", "datetime": "2020-07-01 10:00:00.1", "elapsedtime": "0.5",
//         "type": "LOG", "step": [0, 21], "data": {"imgs_per_sec": 365.1, ...}}
//   DLLL {..., "type": "METADATA", "metric": "imgs_per_sec", "metadata": {"unit": "images/s"}}
// What a launcher has put in front of DLLL does not matter.  Numbers that Python writes as NaN or
// Infinity, which are no JSON, are read as null.  Pure.

// JSON as Python's json.dumps writes it: the words NaN, Infinity and -Infinity, which are no JSON,
// become null.  Pure.

// Members in the order of the text.  is_discarded() where it is no JSON, or no UTF-8.
nlohmann::ordered_json ParsePythonJson(std::string_view text);

enum class LoggerLineKind : std::uint8_t {
  kOther,       // has nothing that is used here
  kParameters,  // options of a run, which begins here
  kMetadata,    // of `metric`
  kStep,        // step has an epoch and a step
  kRun,         // of the whole run
};

struct LoggerField {
  std::string name;
  std::string text;              // a text as it is, other values as JSON
  std::optional<double> number;  // finite
};

struct LoggerLine {
  LoggerLineKind kind = LoggerLineKind::kOther;
  std::int64_t step = 0;
  std::string metric;
  std::string datetime;
  std::optional<double> timestamp;  // seconds since 1970
  std::vector<LoggerField> fields;
};

// Null when there is none.
const LoggerField* FieldOf(const LoggerLine& line, std::string_view name);

// Nothing for a line without "DLLL ".  Throws trainer::Error(EX_DATAERR) that says what is wrong.
std::optional<LoggerLine> ParseLoggerLine(std::string_view text);

// The iterations in training.json (trainer/telemetry/formats/training_json.h): for runs whose log
// has no step, since log.json begins with the 21st.

// Adds them to the measures of `run`.  A file that is none of this kind, or larger than 64 MiB, is
// a problem.
void ReadTrainingJson(const std::filesystem::path& path, RunRecord& run, Diagnostics& diagnostics);

}  // namespace bench
