// SPDX-License-Identifier: Apache-2.0
//
// manifest.json of a checkpoint: what the tensors do not say, and the checksums of everything.
// Form: {"crc32c": "<8 hex digits of the compact text of the manifest>", "manifest": {...}}.  That
// form, and "format" and "program_version" in the manifest, stay in every format: by them an older
// program can tell a newer checkpoint from a damaged one.  Pure functions, safe from any thread.

#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/core/data_identity.h"

namespace trainer {

// doc/formats.md says when it is raised.  A checkpoint of SGD is still written as format 1, which
// older programs read; what another optimizer keeps they would take for momentum of SGD (2), and
// what labels stand for they would lose (3).  Who raises it says in manifest.cc (FormatOf) which
// checkpoints get which number.
inline constexpr int kCheckpointFormat = 3;

// The state of a run besides its tensors.  Random numbers are a function of seed and position
// (core/philox.h), so no generator state is needed.
struct CheckpointState {
  std::int64_t step = 0;           // updates done
  std::int64_t epoch = 0;          // epochs completed
  std::int64_t epoch_samples = 0;  // sampler position: samples taken by all ranks in this epoch
  // Images of the run, up to here, from which nothing was learnt (--on_nan=rollback).
  std::int64_t skipped_images = 0;
  int world_size = 1;
  std::int64_t global_batch = 1;  // samples per update, all ranks together
  std::uint64_t seed = 0;
  std::string architecture;  // "resnet50"
  int classes = 1;
  double loss_scale = 1;
  std::int64_t loss_scale_good_steps = 0;  // finite steps since the scale last changed
  std::string program_version;             // "0.1.0"
  // In which gradients were computed: "fp32", "fp16" or "bf16"; "": not known (an older version).
  std::string precision;
  std::string optimizer = "sgd";  // as --optimizer has it: what the momentum is of
  // What an evaluation of these weights has found, a fraction of 1; nothing: there was none.
  std::optional<double> top1;
  // What it was trained with; `validation` is of top1, where there is one.
  DataIdentity data;
  // What else the run was made with, by name, as a person would write it: told where it has
  // changed.
  std::map<std::string, std::string> settings;

  bool operator==(const CheckpointState&) const = default;
};

struct ManifestTensor {
  std::string name;
  std::uint64_t bytes = 0;
  std::uint32_t crc32c = 0;

  bool operator==(const ManifestTensor&) const = default;
};

struct ManifestFile {
  std::string name;                 // "model.safetensors"
  std::uint64_t bytes = 0;          // of the whole file
  std::uint32_t header_crc32c = 0;  // of the bytes before the first tensor
  std::vector<ManifestTensor> tensors;

  bool operator==(const ManifestFile&) const = default;
};

struct Manifest {
  CheckpointState state;
  std::vector<ManifestFile> files;

  bool operator==(const Manifest&) const = default;
};

// Ends with a newline.
std::string ToJson(const Manifest& manifest);

// The inverse.  Throws Error(EX_DATAERR) that begins with `path`: not JSON, wrong checksum, a key
// missing or of the wrong type; Error(EX_CONFIG), too, for a whole one of a format above
// kCheckpointFormat, which is no damage: to go on from an older checkpoint would lose work.
Manifest ParseManifest(std::string_view text, std::string_view path);

// What exported weights have as metadata of their safetensors file: "architecture", and, as far as
// they are known, "class_names" (a JSON list), "training_manifest" and "validation_manifest".
std::map<std::string, std::string> MetadataOfWeights(const std::string& architecture,
                                                     const DataIdentity& data);
// The inverse, of a file of any program: what has another form there is not known.
DataIdentity DataOfWeights(const std::map<std::string, std::string>& metadata);

// The names in <model_dir>/checkpoints:
//   step-0000001234                    a checkpoint
//   .tmp-step-0000001234-<host>-<pid>  one that a process is making or removing
//   step-0000001234.unusable           one that a run has passed over, which it keeps for people
// Pure, but for TemporaryName and HostName.

inline constexpr const char* kModelFile = "model.safetensors";
inline constexpr const char* kOptimizerFile = "optimizer.safetensors";
inline constexpr const char* kAverageFile = "average.safetensors";  // where averages are kept
inline constexpr const char* kManifestFile = "manifest.json";

std::filesystem::path CheckpointsDirectory(const std::filesystem::path& model_dir);

std::string CheckpointName(std::int64_t step);
// nullopt for any other name.
std::optional<std::int64_t> ParseCheckpointName(std::string_view name);

// The `count`-th name for one that was passed over, from 1.
std::string UnusableName(std::int64_t step, int count);
// The step; nullopt for any other name.
std::optional<std::int64_t> ParseUnusableName(std::string_view name);

// Of this process.
std::string TemporaryName(std::int64_t step);
struct TemporaryOwner {
  std::string host;
  std::int64_t pid = 0;
};
// nullopt for any other name.
std::optional<TemporaryOwner> ParseTemporaryName(std::string_view name);
// Of "<host>-<pid>", which ends such names.
std::optional<TemporaryOwner> ParseOwner(std::string_view text);
std::string HostName();

}  // namespace trainer
