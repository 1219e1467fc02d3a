// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/state/initial_weights.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/number.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/reader.h"
#include "trainer/checkpoint/retention.h"
#include "trainer/core/error.h"
#include "trainer/model/network_definition.h"
#include "trainer/train/state/network_state.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHead = "fc.";  // the last layer, of which the classes are

// A directory without checkpoints may be one of files of weights.
std::string AdviceFor(const fs::path& directory) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == ".safetensors") files.push_back(entry->path().string());
  }
  if (files.empty()) return "there is no checkpoint in it";
  return "give a file in it, such as " + *std::ranges::min_element(files);
}

struct InitialWeights {
  SafetensorsFile file;
  DataIdentity data;  // that they were trained with
};

// A file of a checkpoint has its manifest beside it.
DataIdentity DataOfFile(const SafetensorsFile& file) {
  const fs::path directory = fs::path(file.path()).parent_path();
  std::error_code ignored;
  const bool is_of_checkpoint = ParseCheckpointName(directory.filename().string()) &&
                                fs::exists(directory / kManifestFile, ignored);
  return is_of_checkpoint ? ReadManifest(directory).state.data : DataOfWeights(file.metadata());
}

// A directory is that of a run.
InitialWeights ReadBestOf(const fs::path& model_dir) {
  const std::string directory = model_dir.string();
  const EvaluatedCheckpoints evaluated = ListEvaluated(model_dir);
  if (!evaluated.unreadable.empty()) {
    throw Error(EX_OSERR, directory + ": which of its checkpoints is the best is unknown, since " +
                              evaluated.unreadable.front().string() +
                              " cannot be read: mend that, or give a file");
  }
  if (const auto best = BestOf(evaluated.known)) {
    Checkpoint checkpoint = ReadCheckpoint(best->directory);
    return {checkpoint.average ? std::move(*checkpoint.average) : std::move(checkpoint.model),
            checkpoint.manifest.state.data};
  }
  const std::vector<CheckpointPath> found = ListCheckpoints(model_dir);
  if (found.empty()) {
    throw Error(EX_USAGE, "'" + directory +
                              "' is neither a file of weights nor the directory of a run: " +
                              AdviceFor(model_dir));
  }
  throw Error(EX_USAGE,
              "no checkpoint in '" + directory +
                  "' was evaluated, so none is the best: give a file, such as the newest: " +
                  (found.front().directory / kModelFile).string());
}

InitialWeights ReadWeights(const fs::path& from) {
  std::error_code ignored;
  if (fs::is_directory(from, ignored)) return ReadBestOf(from);
  if (!fs::exists(from, ignored) && fs::exists(from.string() + ".index", ignored)) {
    throw Error(EX_DATAERR, from.string() +
                                ": not a safetensors file but a TensorFlow checkpoint: make a "
                                "safetensors file of it, with torchvision's names");
  }
  SafetensorsFile file = SafetensorsFile::Read(from.string());
  DataIdentity data = DataOfFile(file);
  return {std::move(file), std::move(data)};
}

// Counters that other programs keep beside the values.
bool IsCounter(std::string_view name) {
  return name.ends_with("num_batches_tracked") || name == "n_averaged";
}

// Layers that wrappers put into names: torch.compile, FSDP, activation checkpointing.
constexpr std::string_view kWrappers[] = {"_orig_mod.", "_fsdp_wrapped_module.",
                                          "_checkpoint_wrapped_module."};

std::string WithoutWrappers(std::string name) {
  for (const std::string_view wrapper : kWrappers) {
    for (std::size_t at = name.find(wrapper); at != std::string::npos; at = name.find(wrapper)) {
      name.erase(at, wrapper.size());
    }
  }
  return name;
}

// What stands before torchvision's names in `file`, often nothing.  Throws Error(EX_DATAERR) if
// there are several such prefixes, or no such name.
std::string PrefixOf(const SafetensorsFile& file) {
  constexpr std::string_view kOfAnyResNet = "layer1.0.conv1.weight";
  std::vector<std::string> prefixes;
  for (const TensorEntry& entry : file.tensors()) {
    if (!entry.name.ends_with(kOfAnyResNet)) continue;
    prefixes.push_back(entry.name.substr(0, entry.name.size() - kOfAnyResNet.size()));
  }
  if (prefixes.size() == 1) return prefixes.front();
  if (prefixes.empty()) {
    const bool is_empty = file.tensors().empty();
    throw Error(EX_DATAERR,
                file.path() + ": tensor '" + std::string(kOfAnyResNet) +
                    "' is missing, with any prefix" +
                    (is_empty ? "" : "; the first is '" + file.tensors()[0].name + "'") +
                    ": give weights of a ResNet with torchvision's names");
  }
  std::ranges::sort(prefixes);
  throw Error(EX_DATAERR, file.path() + ": it holds several networks, with '" + prefixes[0] +
                              "' and '" + prefixes[1] +
                              "' before torchvision's names: give a file of one of them");
}

// Takes the names of `file` for the network's.
void TakeNames(SafetensorsFile& file, const SnapshotDeps& deps) {
  bool has_wrappers = false;
  file.Rename([&](const std::string& name) {
    std::string plain = WithoutWrappers(name);
    has_wrappers |= plain != name;
    return IsCounter(plain) ? std::nullopt : std::optional(std::move(plain));
  });
  if (has_wrappers) {
    deps.log->info("initial weights: what torch.compile or FSDP has put into names is taken out");
  }
  const std::string prefix = PrefixOf(file);
  if (prefix.empty()) return;
  std::vector<std::string> others;
  for (const TensorEntry& entry : file.tensors()) {
    if (!entry.name.starts_with(prefix)) others.push_back(entry.name);
  }
  if (!others.empty() && !deps.config.new_head) {
    throw Error(EX_DATAERR, file.path() + ": tensor '" + others.front() + "' has not the prefix '" +
                                prefix + "' that the names of this network have there" +
                                (KeepsWeights(deps.config.mode)
                                     ? "; give --new_head to leave out such tensors, and to train "
                                       "a last layer of its own"
                                     : ": it is of another network"));
  }
  file.Rename([&](const std::string& name) {
    return name.starts_with(prefix) ? std::optional(name.substr(prefix.size())) : std::nullopt;
  });
  deps.log->info("initial weights: the prefix '{}' of the names in {} is taken off", prefix,
                 file.path());
  if (others.empty()) return;
  deps.log->info("initial weights: {} without it left out, the first is {}",
                 support::Counted(static_cast<std::int64_t>(others.size()), "tensor"),
                 others.front());
}

// What `file` must hold to begin with; with --new_head it may have a head of any kind.
std::vector<ExpectedTensor> ExpectedToBegin(const SafetensorsFile& file, const SnapshotDeps& deps) {
  std::vector<ExpectedTensor> expected = ExpectedTensors(
      deps.network, Network::Part::kValue, deps.config.new_head ? kHead : std::string_view());
  for (const TensorEntry& entry : file.tensors()) {
    if (deps.config.new_head && entry.name.starts_with(kHead)) {
      expected.push_back({entry.name, entry.dtype, entry.shape});
    }
  }
  std::map<DType, std::int64_t> widened;
  for (ExpectedTensor& want : expected) {
    const TensorEntry* have = file.Find(want.name);
    if (have == nullptr || want.dtype != DType::kFloat32) continue;
    if (have->dtype != DType::kFloat16 && have->dtype != DType::kBFloat16) continue;
    want.dtype = have->dtype;
    ++widened[have->dtype];
  }
  for (const auto& [dtype, count] : widened) {
    deps.log->info("initial weights: {} of {} in {} widened to fp32",
                   support::Counted(count, "tensor"), NameOf(dtype), file.path());
  }
  return expected;
}

// The one that differs from --classes gets a message of its own: it is the common mistake.
void RejectOtherClasses(const SafetensorsFile& file, const TrainConfig& config) {
  if (config.new_head) return;
  const bool may_have_new_head = KeepsWeights(config.mode);
  const TensorEntry* fc = file.Find("fc.weight");
  if (fc == nullptr) {
    throw Error(EX_DATAERR, file.path() + ": it has no last layer (tensor 'fc.weight' is missing)" +
                                (may_have_new_head ? ": give --new_head to train one"
                                                   : ", so that it tells no classes"));
  }
  if (fc->shape.rank() != 2 || fc->shape[0] == config.classes) return;
  throw Error(EX_DATAERR,
              file.path() + ": fc.weight has " + std::to_string(fc->shape[0]) +
                  " classes, this run has " + std::to_string(config.classes) +
                  ": give --classes=" + std::to_string(fc->shape[0]) +
                  (may_have_new_head ? ", or --new_head to train a last layer of its own" : ""));
}

using Depths = std::array<int, 4>;  // blocks of layer1 to layer4

Depths DepthsOf(const SafetensorsFile& file) {
  Depths depths{};
  const auto has = [&](std::size_t layer, int block) {
    return file.Find("layer" + std::to_string(layer + 1) + "." + std::to_string(block) +
                     ".conv3.weight") != nullptr;
  };
  for (std::size_t i = 0; i < depths.size(); ++i) {
    while (has(i, depths[i])) ++depths[i];
  }
  return depths;
}

Depths DepthsOf(const Architecture& architecture) {
  Depths depths{};
  for (std::size_t i = 0; i < depths.size(); ++i) depths[i] = architecture.stages[i].blocks;
  return depths;
}

// What to give instead of a file of another network.
std::string AdviceFor(const SafetensorsFile& file, const TrainConfig& config) {
  const Depths depths = DepthsOf(file);
  if (depths != DepthsOf(FindArchitecture(config.arch))) {
    for (const std::string& name : ArchitectureNames()) {
      const Architecture& architecture = FindArchitecture(name);
      if (!architecture.test_only && depths == DepthsOf(architecture)) return "give --arch=" + name;
    }
  }
  return "give weights of a " + config.arch + " of torchvision's, or of this program";
}

}  // namespace

void InitializeFromFile(const SnapshotDeps& deps) {
  if (deps.communicator.rank() == 0) {
    const TrainConfig& config = deps.config;
    auto [file, data] = ReadWeights(config.init_from);
    TakeNames(file, deps);
    RejectOtherClasses(file, config);
    CheckTensors(file, ExpectedToBegin(file, deps), AdviceFor(file, config));
    if (!config.new_head) {
      TakeDataOfWeights(
          deps, data, file.path(),
          KeepsWeights(config.mode) ? "give --new_head to train a last layer for them, " : "");
    }
    const std::string_view left_out = config.new_head ? kHead : std::string_view();
    RejectUnusable(file, deps.network, left_out);
    ImportPart(deps.network, Network::Part::kValue, file, deps.stream, left_out);
    deps.log->info("initial weights{}: {}", config.new_head ? " of all but the last layer" : "",
                   file.path());
  }
  BroadcastPart(deps.network, Network::Part::kValue, deps.communicator, deps.stream);
  deps.network.InitEma(deps.stream);
}

}  // namespace trainer
