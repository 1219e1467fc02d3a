// SPDX-License-Identifier: Apache-2.0

#include "bench/report/readers/logger_line.h"

#include <array>
#include <cmath>

#include "bench/run_log/log_entry.h"
#include "bench/run_log/log_lines.h"
#include "trainer/core/error.h"

namespace bench {
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
  if (!HasStrangeNumbers(text)) return nlohmann::ordered_json::parse(text, nullptr, false);
  return nlohmann::ordered_json::parse(WithoutStrangeNumbers(text), nullptr, false);
}

namespace {

using json = nlohmann::ordered_json;
using trainer::Error;

constexpr std::string_view kStart = "DLLL ";

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
  } else if (step.is_array() && step.size() == 2 && step[1].is_number_integer()) {
    line.kind = LoggerLineKind::kStep;
    line.step = step[1].get<std::int64_t>();
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

}  // namespace bench
