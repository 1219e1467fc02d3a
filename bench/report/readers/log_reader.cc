// SPDX-License-Identifier: Apache-2.0

#include "bench/report/readers/log_reader.h"

#include <array>
#include <cmath>
#include <string>
#include <system_error>
#include <utility>

#include "bench/base/diagnostics.h"
#include "bench/run_log/log_entry.h"
#include "bench/run_log/log_lines.h"
#include "support/file.h"
#include "support/json.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

using trainer::Error;

// Beyond what a run has of anything that is counted here.
constexpr double kMaxCount = 1e15;

// A step as either form of line has it; a loss that is there and no finite number is NaN.
struct StepValues {
  std::int64_t step = 0;
  std::optional<double> images_per_second;
  std::optional<double> cross_entropy;
};

std::optional<double> ValueIn(const LoggerLine& line, std::string_view name) {
  const LoggerField* field = FieldOf(line, name);
  if (field == nullptr) return std::nullopt;
  return field->number ? *field->number : std::nan("");
}

std::optional<double> ValueIn(const LogEntry& entry, std::string_view name) {
  const auto text = ValueOf(entry, name);
  if (!text) return std::nullopt;
  const auto number = NumberOf(*text);
  return number ? *number : std::nan("");
}

// The later of two, where it is there and finite.
void Replace(std::optional<double>& value, const std::optional<double>& newer) {
  if (newer && std::isfinite(*newer)) value = newer;
}

Settings SettingsOf(const LoggerLine& line) {
  Settings settings;
  for (const LoggerField& field : line.fields) settings.emplace_back(field.name, field.text);
  return settings;
}

// Batches of a rank in a step: 1 where a program does not know the option.
std::string BatchesIn(const Settings& settings) {
  const std::string batches = SettingOf(settings, "accumulate");
  return batches.empty() ? "1" : batches;
}

class Reader {
 public:
  Reader(const std::string& path, int skip_steps, RunRecord& run, Diagnostics& diagnostics)
      : path_(path), skip_steps_(skip_steps), run_(run), diagnostics_(diagnostics) {}

  // Throws Error(EX_DATAERR) for a line that cannot be used.
  void Add(const LogLine& line) {
    if (const auto logged = ParseLoggerLine(line.text)) {
      AddLogged(*logged, line.number);
      return;
    }
    const LogEntry entry = ParseLogEntry(line.text);
    if (entry.kind != EntryKind::kNone) AddPrinted(entry, line);
  }

  // Lines that said something.
  std::int64_t used() const { return used_; }

 private:
  void AddLogged(const LoggerLine& line, std::int64_t number) {
    ++used_;
    AddTime(line);
    switch (line.kind) {
      case LoggerLineKind::kParameters:
        BeginLaunch(SettingsOf(line), number);
        break;
      case LoggerLineKind::kMetadata:
        if (line.metric == "run") AddEnvironment(SettingsOf(line), number);
        break;
      case LoggerLineKind::kStep:
        AddStep({line.step, ValueIn(line, "imgs_per_sec"), ValueIn(line, "cross_entropy")});
        break;
      case LoggerLineKind::kRun:
        AddResults(line);
        break;
      case LoggerLineKind::kOther:
        break;
    }
  }

  void AddPrinted(const LogEntry& entry, const LogLine& line) {
    ++used_;
    if (entry.kind == EntryKind::kDllOptions) {
      BeginLaunch({}, line.number);
      if (const auto mode = ValueOf(entry, "mode")) AddSetting("mode", std::string(*mode));
      if (const auto images = ValueOf(entry, "global_batch_size")) {
        AddSetting("global_batch_size", std::string(*images));
      }
      const std::string batches(ValueOf(entry, "accumulate").value_or("1"));
      if (batches != BatchesIn(run_.settings)) {
        BeginAnewIfOther("accumulate", BatchesIn(run_.settings), batches, line.number);
        AddSetting("accumulate", batches);
      }
    } else if (entry.kind == EntryKind::kNvlog) {
      const auto& [key, value] = entry.values.front();
      const auto number = NumberOf(value);
      if (key == "Num GPUs" && number && *number >= 1 && *number <= kMaxCount) {
        AddEnvironment({{"ranks", std::string(value)}}, line.number);
      }
      if (key == "Per-GPU Batch Size") {
        const std::string batch(value);
        BeginAnewIfOther("batch_size", SettingOf(run_.settings, "batch_size"), batch, line.number);
        AddSetting("batch_size", batch);
      }
    } else if (entry.step.size() == 2) {
      AddStep({entry.step[1], ValueIn(entry, "imgs_per_sec"), ValueIn(entry, "cross_entropy")});
    } else if (entry.step.empty()) {
      AddResults(entry);
    }
  }

  void AddTime(const LoggerLine& line) {
    if (!line.timestamp) return;
    if (run_.began.empty()) {
      run_.began = line.datetime.substr(0, line.datetime.find('.'));
      first_time_ = *line.timestamp;
    }
    run_.seconds = *line.timestamp - first_time_;
  }

  void AddSetting(const std::string& name, const std::string& value) {
    for (auto& [known, old] : run_.settings) {
      if (known == name) {
        old = value;
        return;
      }
    }
    run_.settings.emplace_back(name, value);
  }

  void BeginLaunch(Settings settings, std::int64_t number) {
    ++run_.launches;
    steps_to_skip_ = skip_steps_;
    if (settings.empty()) return;
    BeginAnewIfOther("batch_size", SettingOf(run_.settings, "batch_size"),
                     SettingOf(settings, "batch_size"), number);
    BeginAnewIfOther("accumulate", BatchesIn(run_.settings), BatchesIn(settings), number);
    run_.settings = std::move(settings);
  }

  void AddEnvironment(Settings environment, std::int64_t number) {
    const auto ranks = NumberOf(SettingOf(environment, "ranks"));
    if (ranks && *ranks >= 1 && *ranks <= kMaxCount) {
      const auto whole = static_cast<std::int64_t>(*ranks);
      if (run_.ranks != 0 && run_.ranks != whole) {
        BeginAnew(support::Counted(whole, "rank") + " instead of " + std::to_string(run_.ranks),
                  number);
      }
      run_.ranks = whole;
    }
    run_.environment = std::move(environment);
  }

  // Steps of another size have other times; "" is what a launch has not said.
  void BeginAnewIfOther(const std::string& name, const std::string& old, const std::string& value,
                        std::int64_t number) {
    if (old.empty() || value.empty() || old == value) return;
    BeginAnew(name + "=" + value + " instead of " + old, number);
  }

  void BeginAnew(const std::string& why, std::int64_t number) {
    if (run_.measures.last_step < 0) return;
    diagnostics_.Note(path_ + ":" + std::to_string(number) + ": a launch with " + why +
                      " begins; the steps before it are left out");
    run_.measures = RunMeasures();
  }

  void AddStep(const StepValues& values) {
    if (!values.images_per_second) return;
    if (!IsSpeed(*values.images_per_second)) {
      throw Error(EX_DATAERR, "imgs_per_sec is no speed above 0; the step is left out");
    }
    if (values.step < 0) throw Error(EX_DATAERR, "the number of the step is below 0");
    if (run_.launches == 0) BeginLaunch({}, 0);
    if (steps_to_skip_ > 0) {
      --steps_to_skip_;
      return;
    }
    bench::AddStep(run_.measures, values.step, *values.images_per_second);
    if (values.cross_entropy) AddLoss(run_.measures, *values.cross_entropy);
  }

  template <typename Line>
  void AddResults(const Line& line) {
    Replace(run_.train_throughput, ValueIn(line, "train_throughput"));
    Replace(run_.evaluation.top1, ValueIn(line, "top1_accuracy"));
    Replace(run_.evaluation.top5, ValueIn(line, "top5_accuracy"));
    Replace(run_.evaluation.loss, ValueIn(line, "eval_loss"));
    Replace(run_.evaluation.images_per_second, ValueIn(line, "eval_throughput"));
  }

  const std::string path_;
  const int skip_steps_;
  RunRecord& run_;
  Diagnostics& diagnostics_;
  double first_time_ = 0;
  int steps_to_skip_ = 0;
  std::int64_t used_ = 0;
};

}  // namespace

void ReadRunLog(const std::filesystem::path& path, int skip_steps, RunRecord& run,
                Diagnostics& diagnostics) {
  run.log = path.string();
  LogLines lines(path);
  FileDiagnostics file(path, diagnostics);
  Reader reader(run.log, skip_steps, run, diagnostics);
  for (LogLine line; lines.Next(line);) {
    // What a launch was killed in says nothing.
    if (!line.is_whole) {
      run.is_torn = true;
      diagnostics.Note(
          run.log + ":" + std::to_string(line.number) +
          ": the log ends within this line: the run was killed, or is still running; the lines  "
          "before it are used");
      break;
    }
    try {
      if (line.is_cut) throw Error(EX_DATAERR, "it has more than 64 KiB");
      reader.Add(line);
    } catch (const Error& error) {
      file.Problem(line.number, error.what());
    }
  }
  file.End();
  if (reader.used() == 0) {
    diagnostics.Problem(
        run.log +
        ": it has no line of DLLogger's; give a directory that ddltraind had as its "
        "--results_dir, or a log.json of it");
  }
}

namespace {

// Python's words for what is no finite number, outside of texts, become null.
std::string WithoutStrangeNumbers(std::string_view text) {
  constexpr std::array<std::string_view, 3> kWords = {"NaN", "-Infinity", "Infinity"};
  std::string clean;
  bool is_in_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    if (letter == '"') is_in_text = !is_in_text;
    if (is_in_text && letter == '\\' && i + 1 < text.size()) clean += text[i++];
    std::size_t length = 0;
    for (const std::string_view word : kWords) {
      if (!is_in_text && length == 0 && text.substr(i).starts_with(word)) length = word.size();
    }
    if (length == 0) {
      clean += text[i];
    } else {
      clean += "null";
      i += length - 1;
    }
  }
  return clean;
}

bool HasStrangeNumbers(std::string_view text) {
  return text.find("NaN") != std::string_view::npos ||
         text.find("Infinity") != std::string_view::npos;
}

}  // namespace

nlohmann::ordered_json ParsePythonJson(std::string_view text) {
  constexpr support::JsonLimits kLimits = {
      .bytes = std::size_t{1} << 30, .depth = 64, .values = 100'000'000};
  const auto parse = [&](std::string_view clean) {
    return support::ParseJson<nlohmann::ordered_json>(clean, kLimits);
  };
  return HasStrangeNumbers(text) ? parse(WithoutStrangeNumbers(text)) : parse(text);
}

namespace {

using json = nlohmann::ordered_json;

constexpr std::string_view kStart = "DLLL ";

// Also a negative one, which is told as such.
std::optional<std::int64_t> StepOf(const json& number) {
  using Limits = std::numeric_limits<std::int64_t>;
  return support::IntegerOf<std::int64_t>(number, Limits::min(), Limits::max());
}

std::string TextOf(const json& value) {
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::vector<LoggerField> FieldsOf(const json& object) {
  std::vector<LoggerField> fields;
  for (const auto& [name, value] : object.items()) {
    LoggerField field = {name, TextOf(value), std::nullopt};
    if (value.is_number() && std::isfinite(value.get<double>())) field.number = value.get<double>();
    fields.push_back(std::move(field));
  }
  return fields;
}

// The member, or null where there is none.
const json& Member(const json& object, const char* name) {
  static const json kNone;
  const auto found = object.find(name);
  return found == object.end() ? kNone : *found;
}

void ReadLog(const json& object, LoggerLine& line) {
  const json& data = Member(object, "data");
  if (!data.is_object()) throw Error(EX_DATAERR, "data is missing, which a LOG line has");
  const json& step = Member(object, "step");
  if (step == "PARAMETER") {
    line.kind = LoggerLineKind::kParameters;
  } else if (step.is_array() && step.empty()) {
    line.kind = LoggerLineKind::kRun;
  } else if (step.is_array() && step.size() == 2 && StepOf(step[1])) {
    line.kind = LoggerLineKind::kStep;
    line.step = *StepOf(step[1]);
  }
  line.fields = FieldsOf(data);
}

}  // namespace

const LoggerField* FieldOf(const LoggerLine& line, std::string_view name) {
  for (const LoggerField& field : line.fields) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

std::optional<LoggerLine> ParseLoggerLine(std::string_view text) {
  const std::size_t at = text.find(kStart);
  if (at == std::string_view::npos) return std::nullopt;
  if (!IsUtf8(text)) throw Error(EX_DATAERR, "it has bytes that are no UTF-8");
  const std::string_view body = text.substr(at + kStart.size());
  const json object = ParsePythonJson(body);
  if (object.is_discarded() || !object.is_object()) {
    throw Error(EX_DATAERR, "what stands behind DLLL is no JSON object");
  }
  LoggerLine line;
  const json& datetime = Member(object, "datetime");
  if (datetime.is_string()) line.datetime = datetime.get<std::string>();
  const json& timestamp = Member(object, "timestamp");
  if (timestamp.is_string()) line.timestamp = NumberOf(timestamp.get<std::string>());
  const json& type = Member(object, "type");
  if (type == "LOG") {
    ReadLog(object, line);
  } else if (type == "METADATA") {
    const json& metric = Member(object, "metric");
    const json& metadata = Member(object, "metadata");
    if (metric.is_string() && metadata.is_object()) {
      line.kind = LoggerLineKind::kMetadata;
      line.metric = metric.get<std::string>();
      line.fields = FieldsOf(metadata);
    }
  }
  return line;
}

namespace {

constexpr std::uintmax_t kMaxBytes = std::uintmax_t{64} * 1024 * 1024;

// The lists of a key in one row: [[1, 2], [3]] is [1, 2, 3].  What is not a number becomes NaN.
std::vector<double> RowOf(const json& iterations, const char* key) {
  std::vector<double> row;
  const auto lists = iterations.find(key);
  if (lists == iterations.end() || !lists->is_array()) return row;
  for (const json& list : *lists) {
    if (!list.is_array()) continue;
    for (const json& value : list) {
      row.push_back(value.is_number() ? value.get<double>() : std::nan(""));
    }
  }
  return row;
}

}  // namespace

void ReadTrainingJson(const std::filesystem::path& path, RunRecord& run, Diagnostics& diagnostics) {
  const support::WholeFile file = support::ReadWholeFile(path, kMaxBytes);
  using support::ReadProblem;
  if (file.problem == ReadProblem::kTooLong) {
    diagnostics.Problem(path.string() + ": more than 64 MiB are left out");
    return;
  }
  if (file.problem != ReadProblem::kNone) {
    const std::string why = file.problem == ReadProblem::kNotRegular
                                ? "it is no regular file"
                                : std::generic_category().message(file.error);
    diagnostics.Problem(path.string() + ": cannot be read: " + why, EX_NOINPUT);
    return;
  }
  const json whole = ParsePythonJson(file.content);
  const auto iterations = whole.is_object() ? whole.find("iter") : whole.end();
  if (!whole.is_object() || iterations == whole.end() || !iterations->is_object()) {
    diagnostics.Problem(path.string() + ": it is no training.json; it is left out");
    return;
  }
  const std::vector<double> steps = RowOf(*iterations, "iteration");
  const std::vector<double> speeds = RowOf(*iterations, "imgs_per_sec");
  const std::vector<double> losses = RowOf(*iterations, "cross_entropy");
  if (steps.size() != speeds.size() || steps.size() != losses.size()) {
    diagnostics.Problem(path.string() + ": its rows are of different lengths; it is left out");
    return;
  }
  RunMeasures& measures = run.measures;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    constexpr double kMaxStep = 1e15;
    if (!(steps[i] >= 0 && steps[i] <= kMaxStep) || !IsSpeed(speeds[i])) continue;
    AddStep(measures, static_cast<std::int64_t>(steps[i]), speeds[i]);
    AddLoss(measures, losses[i]);
  }
}

}  // namespace bench
