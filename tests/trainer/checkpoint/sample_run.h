// SPDX-License-Identifier: Apache-2.0
//
// A small run to make checkpoints of: a private directory and tensors whose values tell the step.

#pragma once

#include <unistd.h>

#include <cstring>

#include "tests/support/temporary_directory.h"
#include "tests/support/test.h"
#include "trainer/checkpoint/reader.h"
#include "trainer/checkpoint/writer.h"

namespace trainer {

// A directory that is removed at the end of the test; in memory where that is possible, for the
// tests sync a great deal.
class ScratchDirectory : public TemporaryDirectory {
 public:
  ScratchDirectory()
      : TemporaryDirectory(::access("/dev/shm", W_OK) == 0 ? "/dev/shm"
                                                           : fs::temp_directory_path()) {}
};

struct SampleRun {
  explicit SampleRun(std::int64_t step) : count(step) {
    for (std::size_t i = 0; i < weight.size(); ++i) {
      weight[i] = static_cast<float>(step) + static_cast<float>(i) / 64;
      momentum[i] = -weight[i];
    }
    state.step = step;
    state.epoch = step / 100;
    state.world_size = 2;
    state.global_batch = 64;
    state.seed = 12345678901234567890U;
    state.architecture = "resnet50";
    state.classes = 10;
    state.loss_scale = 1024;
    state.program_version = "0.1.0";
    state.precision = "fp16";
    state.settings = {{"--lr_init", "0.1"}};
    state.data = {{"cat", "dog"}, {"100 images in 2 files", "01234567"}, {"9 images", "89abcdef"}};
    model = {{"conv1.weight", DType::kFloat32, {4, 3, 2, 2}, weight.data()},
             {"bn1.num_batches_tracked", DType::kInt64, {}, &count}};
    optimizer = {{"conv1.weight", DType::kFloat32, {4, 3, 2, 2}, momentum.data()}};
  }
  SampleRun(const SampleRun&) = delete;
  SampleRun& operator=(const SampleRun&) = delete;

  fs::path Write(const fs::path& model_dir, const WriteHook& hook = {}) const {
    return WriteCheckpoint(model_dir, state, {model, optimizer}, hook);
  }

  std::vector<float> weight = std::vector<float>(48);
  std::vector<float> momentum = std::vector<float>(48);
  std::int64_t count = 0;
  CheckpointState state;
  std::vector<TensorReader> model;
  std::vector<TensorReader> optimizer;
};

// Whether all of `checkpoint` is that of SampleRun(step).
inline void ExpectSampleRun(const Checkpoint& checkpoint, std::int64_t step) {
  const SampleRun run(step);
  EXPECT_EQ(checkpoint.manifest.state, run.state);
  const auto same = [](const SafetensorsFile& file, const TensorReader& tensor) {
    const TensorEntry* entry = file.Find(tensor.name);
    ASSERT_NE(entry, nullptr) << tensor.name;
    const auto data = file.Data(*entry);
    EXPECT_EQ(std::memcmp(data.data(), tensor.data, data.size()), 0) << tensor.name;
  };
  for (const TensorReader& tensor : run.model) same(checkpoint.model, tensor);
  for (const TensorReader& tensor : run.optimizer) same(checkpoint.optimizer, tensor);
}

inline std::optional<Checkpoint> ReadNewest(const fs::path& model_dir,
                                            std::vector<std::string>* warnings = nullptr) {
  return ReadNewestCheckpoint(model_dir, [&](const std::string& line) {
    if (warnings != nullptr) warnings->push_back(line);
  });
}

inline void Spill(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// Names in <model_dir>/checkpoints, sorted.
inline std::vector<std::string> Listing(const fs::path& model_dir) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(model_dir / "checkpoints")) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace trainer
