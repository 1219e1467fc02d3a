// SPDX-License-Identifier: Apache-2.0
//
// A long training writes thousands of checkpoints: none may leave anything behind but itself.

#include <malloc.h>

#include "tests/support/test.h"
#include "tests/trainer/checkpoint/sample_run.h"
#include "tests/trainer/train/thread_ranks.h"
#include "trainer/backend/registry.h"
#include "trainer/model/network.h"
#include "trainer/train/state/checkpoints.h"

namespace trainer {
namespace {

constexpr std::int64_t kCheckpoints = 2'000;
constexpr std::int64_t kWarmUp = 100;  // after which the heap keeps what it will reuse
constexpr int kKept = 3;

// What a process holds.
struct Holdings {
  std::ptrdiff_t files = 0;  // in the directory, directories included
  std::ptrdiff_t descriptors = 0;
  std::ptrdiff_t heap_bytes = 0;
};

Holdings Count(const fs::path& directory) {
  Holdings holdings;
  holdings.files = std::distance(fs::recursive_directory_iterator(directory), {});
  holdings.descriptors = std::distance(fs::directory_iterator("/proc/self/fd"), {});
#if __GLIBC_PREREQ(2, 33)
  holdings.heap_bytes = static_cast<std::ptrdiff_t>(::mallinfo2().uordblks);
#else
  holdings.heap_bytes = static_cast<std::ptrdiff_t>(::mallinfo().uordblks);
#endif
  return holdings;
}

TEST(ManyCheckpoints, LeaveNoFileDescriptorOrByteBehind) {
  const ScratchDirectory scratch;
  TrainConfig config;
  config.arch = "resnet_tiny";
  config.batch_size = 1;
  config.classes = 4;
  config.model_dir = scratch.path() / "model";
  config.keep_checkpoints = kKept;
  const auto backend = MakeBackend("reference", {.threads = 1});
  Network network(*backend, {config.arch, config.batch_size, 32, 32, config.classes, 0});
  const auto stream = backend->MakeStream();
  Initialize(network, {config.seed, config.weight_init, false}, *stream);
  OneRank communicator;
  std::ofstream nowhere("/dev/null");
  const Logger log = MakeLogger(nowhere, 0, "info");
  const SnapshotDeps deps{config, network, communicator, *stream, log};
  const LossScale scale = LossScale::Static(1);
  Checkpoints checkpoints({.snapshot = deps, .backend = *backend, .samples = 100});

  // Half of them on each thread; the last is on this one, so that the other one rests.
  Position position;
  const auto save_after_a_step = [&] {
    position = position.At(position.step + 1, config.batch_size);
    checkpoints.Save(
        position, scale,
        position.step % 2 == 0 ? Checkpoints::Wait::kForFile : Checkpoints::Wait::kForCopy);
  };
  while (position.step < kWarmUp) save_after_a_step();
  const Holdings before = Count(scratch.path());
  // A directory each for the run, its checkpoints and each of these, with three files in it.
  EXPECT_EQ(before.files, 2 + kKept * 4);
  while (position.step < kCheckpoints) save_after_a_step();
  const Holdings after = Count(scratch.path());
  EXPECT_EQ(after.files, before.files);
  EXPECT_EQ(after.descriptors, before.descriptors);
  // Where a chunk is cut from a free one that is hardly larger it counts as a whole, and whether it
  // is depends on what the other thread did.  The least that can be left behind has 32 bytes.
  EXPECT_LT(after.heap_bytes - before.heap_bytes, kCheckpoints / 2);
  EXPECT_EQ(ReadNewest(config.model_dir)->manifest.state.step, kCheckpoints);
}

}  // namespace
}  // namespace trainer
