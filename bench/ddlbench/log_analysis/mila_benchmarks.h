// SPDX-License-Identifier: Apache-2.0
//
// The benchmarks of Mila's suite (mila-iqia/training, profiles/fast.json) that train a network on
// images or load them, with its settings.  Pure.

#pragma once

#include <cstdint>
#include <string_view>

namespace bench {

// What one GPU, or all, or none does.
enum class MilaKind : std::uint8_t {
  kOne,          // each GPU a training of its own
  kDistributed,  // one training on all GPUs
  kLoader,       // the input alone
};

struct MilaBenchmark {
  std::string_view name;
  MilaKind kind = MilaKind::kOne;
  std::int64_t batch_size = 64;  // of all ranks in a step
  bool half = false;
};

// That of a name, or convnet for a name that is none of Mila's.
MilaBenchmark MilaBenchmarkOf(std::string_view name);

}  // namespace bench
