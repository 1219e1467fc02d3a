// SPDX-License-Identifier: Apache-2.0

#include "trainer/checkpoint/manifest.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "support/format_version.h"
#include "support/json.h"
#include "support/number.h"
#include "trainer/core/crc32c.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

using Json = nlohmann::json;

constexpr int kFormatOfSgd = 1;
constexpr int kFormatOfOptimizers = 2;
constexpr char kSgdName[] = "sgd";
constexpr char kClassNames[] = "class_names";
constexpr char kTrainingData[] = "training_data";
constexpr char kValidationData[] = "validation_data";
constexpr char kTrainingManifest[] = "training_manifest";
constexpr char kValidationManifest[] = "validation_manifest";

std::string Hex(std::uint32_t value) {
  char text[9];
  std::snprintf(text, sizeof text, "%08x", value);
  return text;
}

std::uint32_t ParseHex(const std::string& text) {
  const auto value = support::WholeNumber<std::uint32_t>(text, 16);
  if (text.size() == 8 && value) return *value;
  throw std::invalid_argument("'" + text + "' is not a checksum of eight hex digits");
}

int FormatOf(const CheckpointState& state) {
  const DataIdentity& data = state.data;
  const bool knows_data = !data.class_names.empty() || !data.training.manifest.empty() ||
                          data.validation != SplitIdentity();
  if (knows_data) return kCheckpointFormat;
  return state.optimizer == kSgdName ? kFormatOfSgd : kFormatOfOptimizers;
}

// What every manifest has.
template <typename State, typename Visit>
void VisitFields(State& state, const Visit& visit) {
  visit("step", state.step);
  visit("epoch", state.epoch);
  visit("epoch_samples", state.epoch_samples);
  visit("world_size", state.world_size);
  visit("global_batch", state.global_batch);
  visit("seed", state.seed);
  visit("architecture", state.architecture);
  visit("classes", state.classes);
  visit("loss_scale", state.loss_scale);
  visit("loss_scale_good_steps", state.loss_scale_good_steps);
  visit("program_version", state.program_version);
}

void SplitToJson(const char* name, const SplitIdentity& split, Json& json) {
  if (split == SplitIdentity()) return;
  json[name] = {{"files", split.files}, {"manifest", split.manifest}};
}

SplitIdentity SplitFromJson(const char* name, const Json& json) {
  if (!json.contains(name)) return {};
  const Json& split = json.at(name);
  return {split.at("files").get<std::string>(), split.at("manifest").get<std::string>()};
}

void DataToJson(const DataIdentity& data, Json& json) {
  if (!data.class_names.empty()) json[kClassNames] = data.class_names;
  SplitToJson(kTrainingData, data.training, json);
  SplitToJson(kValidationData, data.validation, json);
}

DataIdentity DataFromJson(const Json& json, std::map<std::string, std::string>& settings) {
  DataIdentity data = {json.value(kClassNames, std::vector<std::string>()),
                       SplitFromJson(kTrainingData, json), SplitFromJson(kValidationData, json)};
  // Older versions have it among the settings.
  const auto old = settings.extract("data");
  if (old && data.training.files.empty()) data.training.files = old.mapped();
  return data;
}

Json StateToJson(const CheckpointState& state) {
  Json json = {
      {"format", FormatOf(state)}, {"precision", state.precision}, {"settings", state.settings}};
  VisitFields(state, [&](const char* name, const auto& value) { json[name] = value; });
  if (state.skipped_images > 0) json["skipped_images"] = state.skipped_images;
  if (state.top1) json["top1"] = *state.top1;
  DataToJson(state.data, json);
  if (state.optimizer != kSgdName) json["optimizer"] = state.optimizer;
  return json;
}

// Of a checkpoint's manifest, which has about five values for each tensor.
constexpr support::JsonLimits kManifestLimits = {
    .bytes = std::size_t{64} << 20, .depth = 8, .values = 1'000'000};

template <typename Int>
Int WholeIn(const Json& json, const char* name, Int min, Int max) {
  const auto value = support::IntegerOf<Int>(json.at(name), min, max);
  if (value) return *value;
  throw std::invalid_argument(std::string(name) + " is " + json.at(name).dump() +
                              ", not a whole number from " + std::to_string(min) + " to " +
                              std::to_string(max));
}

double PositiveIn(const Json& json, const char* name) {
  const auto value = json.at(name).get<double>();
  if (std::isfinite(value) && value > 0) return value;
  throw std::invalid_argument(std::string(name) + " is " + json.at(name).dump() +
                              ", not a number above 0");
}

// Within these no product of two overflows that a run computes of them.
struct Range {
  std::string_view name;
  std::int64_t min, max;
};
constexpr std::int64_t kMaxCount = std::int64_t{1} << 40;
constexpr Range kRanges[] = {
    {"step", 0, kMaxCount},          {"epoch", 0, kMaxCount},
    {"epoch_samples", 0, kMaxCount}, {"skipped_images", 0, std::int64_t{1} << 62},
    {"world_size", 1, 1 << 20},      {"global_batch", 1, kMaxCount},
    {"classes", 1, 1 << 30},         {"loss_scale_good_steps", 0, kMaxCount}};

void TakeField(const Json& json, const char* name, std::string& value) {
  json.at(name).get_to(value);
}
void TakeField(const Json& json, const char* name, double& value) {
  value = PositiveIn(json, name);
}
void TakeField(const Json& json, const char* name, std::uint64_t& value) {
  value = WholeIn<std::uint64_t>(json, name, 0, std::numeric_limits<std::uint64_t>::max());
}
void TakeField(const Json& json, const char* name, std::int64_t& value) {
  const auto* const range = std::ranges::find(kRanges, name, &Range::name);
  DDL_CHECK(range != std::end(kRanges));
  value = WholeIn(json, name, range->min, range->max);
}
void TakeField(const Json& json, const char* name, int& value) {
  std::int64_t whole = 0;
  TakeField(json, name, whole);
  value = static_cast<int>(whole);
}

CheckpointState StateFromJson(const Json& json) {
  CheckpointState state;
  VisitFields(state, [&](const char* name, auto& value) { TakeField(json, name, value); });
  // Not in the manifests of older versions.
  state.precision = json.value("precision", "");
  state.optimizer = json.value("optimizer", kSgdName);
  state.settings = json.value("settings", std::map<std::string, std::string>());
  state.data = DataFromJson(json, state.settings);
  if (json.contains("skipped_images")) TakeField(json, "skipped_images", state.skipped_images);
  if (json.contains("top1")) {
    state.top1 = json.at("top1").get<double>();
    if (!(*state.top1 >= 0 && *state.top1 <= 1)) {
      throw std::invalid_argument("top1 is " + json.at("top1").dump() + ", not a fraction of 1");
    }
  }
  return state;
}

Json FileToJson(const ManifestFile& file) {
  Json tensors = Json::array();
  for (const ManifestTensor& tensor : file.tensors) {
    tensors.push_back(
        {{"name", tensor.name}, {"bytes", tensor.bytes}, {"crc32c", Hex(tensor.crc32c)}});
  }
  return {{"name", file.name},
          {"bytes", file.bytes},
          {"header_crc32c", Hex(file.header_crc32c)},
          {"tensors", tensors}};
}

ManifestFile FileFromJson(const Json& json) {
  ManifestFile file;
  json.at("name").get_to(file.name);
  if (file.name != kModelFile && file.name != kOptimizerFile && file.name != kAverageFile) {
    throw std::invalid_argument("a checkpoint has no file '" + file.name + "'");
  }
  TakeField(json, "bytes", file.bytes);
  file.header_crc32c = ParseHex(json.at("header_crc32c").get<std::string>());
  for (const Json& item : json.at("tensors")) {
    file.tensors.push_back({.name = item.at("name").get<std::string>(),
                            .bytes = WholeIn<std::uint64_t>(
                                item, "bytes", 0, std::numeric_limits<std::uint64_t>::max()),
                            .crc32c = ParseHex(item.at("crc32c").get<std::string>())});
  }
  return file;
}

std::uint32_t ChecksumOf(const Json& body) {
  const std::string text = body.dump();
  return Crc32c(std::as_bytes(std::span(text)));
}

// Throws Error(EX_CONFIG) where it is above the one that is known here.
void RequireKnownFormat(const Json& body, std::string_view path) {
  const int format = WholeIn<int>(body, "format", std::numeric_limits<int>::min(),
                                  std::numeric_limits<int>::max());
  if (format > kCheckpointFormat) {
    throw Error(EX_CONFIG, std::string(path) + ": " +
                               support::DescribeNewerFormat(
                                   "a checkpoint of ddltraind " +
                                       body.at("program_version").get<std::string>() + ",",
                                   format, kCheckpointFormat));
  }
  if (format < kFormatOfSgd) {
    throw std::invalid_argument("there is no format " + std::to_string(format));
  }
}

Manifest BodyFromJson(const Json& body) {
  Manifest manifest;
  manifest.state = StateFromJson(body);
  for (const Json& item : body.at("files")) manifest.files.push_back(FileFromJson(item));
  return manifest;
}

}  // namespace

std::string ToJson(const Manifest& manifest) {
  Json body = StateToJson(manifest.state);
  Json files = Json::array();
  for (const ManifestFile& file : manifest.files) files.push_back(FileToJson(file));
  body["files"] = files;
  return Json{{"crc32c", Hex(ChecksumOf(body))}, {"manifest", body}}.dump(1) + "\n";
}

Manifest ParseManifest(std::string_view text, std::string_view path) {
  try {
    if (const std::string over = support::JsonOverLimit(text, kManifestLimits); !over.empty()) {
      throw std::invalid_argument("it is " + over);
    }
    const Json json = Json::parse(text);
    const Json& body = json.at("manifest");
    if (ParseHex(json.at("crc32c").get<std::string>()) != ChecksumOf(body)) {
      throw std::invalid_argument("its checksum does not fit its content");
    }
    RequireKnownFormat(body, path);
    return BodyFromJson(body);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& problem) {  // Json's own exceptions among them
    throw Error(EX_DATAERR,
                std::string(path) + ": not the manifest of a checkpoint: " + problem.what());
  }
}

std::map<std::string, std::string> MetadataOfWeights(const std::string& architecture,
                                                     const DataIdentity& data) {
  std::map<std::string, std::string> metadata = {{"architecture", architecture}};
  if (!data.class_names.empty()) metadata[kClassNames] = Json(data.class_names).dump();
  if (!data.training.manifest.empty()) metadata[kTrainingManifest] = data.training.manifest;
  if (!data.validation.manifest.empty()) metadata[kValidationManifest] = data.validation.manifest;
  return metadata;
}

DataIdentity DataOfWeights(const std::map<std::string, std::string>& metadata) {
  const auto text = [&](const char* name) {
    const auto found = metadata.find(name);
    return found == metadata.end() ? std::string() : found->second;
  };
  DataIdentity data;
  data.training.manifest = text(kTrainingManifest);
  data.validation.manifest = text(kValidationManifest);
  const auto names = support::ParseJson<Json>(text(kClassNames), kManifestLimits);
  const auto is_text = [](const Json& name) { return name.is_string(); };
  if (names.is_array() && std::ranges::all_of(names, is_text)) {
    data.class_names = names.get<std::vector<std::string>>();
  }
  return data;
}

namespace {

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kTemporaryPrefix = ".tmp-step-";
constexpr std::string_view kUnusable = ".unusable";
constexpr std::size_t kDigits = 10;

std::optional<std::int64_t> ParseNumber(std::string_view text) {
  const auto value = support::WholeNumber<std::int64_t>(text);
  return value && *value >= 0 ? value : std::nullopt;
}

}  // namespace

std::filesystem::path CheckpointsDirectory(const std::filesystem::path& model_dir) {
  return model_dir / "checkpoints";
}

std::string CheckpointName(std::int64_t step) {
  char text[32];
  std::snprintf(text, sizeof text, "step-%010lld", static_cast<long long>(step));
  return text;
}

std::optional<std::int64_t> ParseCheckpointName(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const std::string_view digits = name.substr(kPrefix.size());
  if (digits.size() < kDigits) return std::nullopt;
  return ParseNumber(digits);
}

std::string UnusableName(std::int64_t step, int count) {
  std::string name = CheckpointName(step).append(kUnusable);
  if (count > 1) name.append("-").append(std::to_string(count));
  return name;
}

std::optional<std::int64_t> ParseUnusableName(std::string_view name) {
  const std::size_t end = name.find(kUnusable);
  return end == std::string_view::npos ? std::nullopt : ParseCheckpointName(name.substr(0, end));
}

std::string HostName() {
  utsname names{};
  return ::uname(&names) == 0 ? names.nodename : "localhost";
}

std::string TemporaryName(std::int64_t step) {
  std::string name(".tmp-");
  name.append(CheckpointName(step)).append("-").append(HostName()).append("-");
  return name.append(std::to_string(::getpid()));
}

std::optional<TemporaryOwner> ParseTemporaryName(std::string_view name) {
  if (!name.starts_with(kTemporaryPrefix)) return std::nullopt;
  const std::string_view rest = name.substr(kTemporaryPrefix.size());
  const std::size_t first = rest.find('-');
  return first == std::string_view::npos ? std::nullopt : ParseOwner(rest.substr(first + 1));
}

std::optional<TemporaryOwner> ParseOwner(std::string_view text) {
  const std::size_t last = text.rfind('-');
  if (last == std::string_view::npos) return std::nullopt;
  const auto pid = ParseNumber(text.substr(last + 1));
  if (!pid) return std::nullopt;
  return TemporaryOwner{std::string(text.substr(0, last)), *pid};
}

}  // namespace trainer
