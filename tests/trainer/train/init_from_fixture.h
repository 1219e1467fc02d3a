// SPDX-License-Identifier: Apache-2.0
//
// A file of weights for resnet_tiny, made as a test wants it, and a start from it.

#pragma once

#include <stdexcept>

#include "tests/support/refusal.h"
#include "tests/support/test.h"
#include "tests/trainer/train/training_run.h"
#include "trainer/checkpoint/writer.h"
#include "trainer/core/error.h"
#include "trainer/train/state/initial_weights.h"

namespace trainer {

class InitFromTest : public testing::Test {
 protected:
  InitFromTest() {
    config_.init_from = directory_.path() / "weights.safetensors";
    tensors_ = ExportPart(network_, Network::Part::kValue, "", *stream_);
    for (HostTensor& tensor : tensors_) {
      for (std::size_t i = 0; i < tensor.values.size(); ++i) {
        tensor.values[i] = static_cast<float>(i) / 7;
      }
    }
    sources_ = SourcesOf(tensors_);
  }

  // Writes sources_ and starts from them.
  void Load() {
    const std::string header = MakeSafetensorsHeader(sources_);
    std::vector<std::span<const std::byte>> pieces = {std::as_bytes(std::span(header))};
    for (const std::size_t i : DataOrder(sources_)) {
      const TensorReader& source = sources_[i];
      pieces.emplace_back(static_cast<const std::byte*>(source.data),
                          static_cast<std::size_t>(source.shape.elements()) * SizeOf(source.dtype));
    }
    const WriteHook no_hook;
    WriteNewFile(config_.init_from, pieces, {no_hook, "another file"});
    InitializeFromFile({config_, network_, communicator_, *stream_, log_});
  }

  std::string Rejection() {
    return tests::Rejection<Error>(
        EX_DATAERR, [&] { Load(); }, "not refused");
  }

  TensorReader& Find(const std::string& name) {
    for (TensorReader& source : sources_) {
      if (source.name == name) return source;
    }
    throw std::out_of_range(name);
  }

  const TemporaryDirectory directory_;
  TrainConfig config_ = SmallConfig(directory_.path());
  std::unique_ptr<Backend> backend_ = MakeBackend("reference", {});
  std::unique_ptr<Stream> stream_ = backend_->MakeStream();
  Network network_{*backend_, {"resnet_tiny", 2, 32, 32, 4, 0}};
  OneRank communicator_;
  std::ostringstream log_text_;
  Logger log_ = MakeLogger(log_text_, 0, "info");
  std::vector<HostTensor> tensors_;
  std::vector<TensorReader> sources_;
};

}  // namespace trainer
