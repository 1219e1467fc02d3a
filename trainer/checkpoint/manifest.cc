// SPDX-License-Identifier: Apache-2.0

#include "trainer/checkpoint/manifest.h"

#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "support/format_version.h"
#include "trainer/core/crc32c.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

using Json = nlohmann::json;

constexpr int kFormatOfSgd = 1;
constexpr char kSgdName[] = "sgd";

std::string Hex(std::uint32_t value) {
  char text[9];
  std::snprintf(text, sizeof text, "%08x", value);
  return text;
}

std::uint32_t ParseHex(const std::string& text) {
  std::uint32_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, 16);
  if (text.size() != 8 || error != std::errc() || stop != end) {
    throw std::invalid_argument("'" + text + "' is not a checksum of eight hex digits");
  }
  return value;
}

int FormatOf(const CheckpointState& state) {
  return state.optimizer == kSgdName ? kFormatOfSgd : kCheckpointFormat;
}

Json StateToJson(const CheckpointState& state) {
  Json json = {{"format", FormatOf(state)},
               {"step", state.step},
               {"epoch", state.epoch},
               {"epoch_samples", state.epoch_samples},
               {"world_size", state.world_size},
               {"global_batch", state.global_batch},
               {"seed", state.seed},
               {"architecture", state.architecture},
               {"classes", state.classes},
               {"loss_scale", state.loss_scale},
               {"loss_scale_good_steps", state.loss_scale_good_steps},
               {"program_version", state.program_version},
               {"precision", state.precision},
               {"settings", state.settings}};
  if (state.skipped_images > 0) json["skipped_images"] = state.skipped_images;
  if (state.top1) json["top1"] = *state.top1;
  if (state.optimizer != kSgdName) json["optimizer"] = state.optimizer;
  return json;
}

CheckpointState StateFromJson(const Json& json) {
  CheckpointState state;
  json.at("step").get_to(state.step);
  json.at("epoch").get_to(state.epoch);
  json.at("epoch_samples").get_to(state.epoch_samples);
  json.at("world_size").get_to(state.world_size);
  json.at("global_batch").get_to(state.global_batch);
  json.at("seed").get_to(state.seed);
  json.at("architecture").get_to(state.architecture);
  json.at("classes").get_to(state.classes);
  json.at("loss_scale").get_to(state.loss_scale);
  json.at("loss_scale_good_steps").get_to(state.loss_scale_good_steps);
  json.at("program_version").get_to(state.program_version);
  // Not in the manifests of older versions.
  state.precision = json.value("precision", "");
  state.optimizer = json.value("optimizer", kSgdName);
  state.settings = json.value("settings", std::map<std::string, std::string>());
  state.skipped_images = json.value("skipped_images", std::int64_t{0});
  if (json.contains("top1")) state.top1 = json.at("top1").get<double>();
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
  json.at("bytes").get_to(file.bytes);
  file.header_crc32c = ParseHex(json.at("header_crc32c").get<std::string>());
  for (const Json& item : json.at("tensors")) {
    file.tensors.push_back({.name = item.at("name").get<std::string>(),
                            .bytes = item.at("bytes").get<std::uint64_t>(),
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
  const int format = body.at("format").get<int>();
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

}  // namespace trainer
