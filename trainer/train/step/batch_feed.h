// SPDX-License-Identifier: Apache-2.0
//
// Brings the batches of training or of an evaluation to the device.  While one step runs, the batch
// of the next is taken from the source and copied, so that a step need not wait where the source
// keeps up.  On a back end that computes on the host there is nothing to copy, and the source works
// ahead by itself.

#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "trainer/backend/backend.h"
#include "trainer/backend/calls.h"
#include "trainer/data/data_loader.h"
#include "trainer/model/network.h"

namespace trainer {

// The few numbers that a step is told and those that it finds.  Kernels have them in device memory,
// the training loop in memory of the host; each way is one copy.

struct StepScalars {
  LossParameters loss;
  UpdateParameters update;
  LossSums loss_sums = {};
  UpdateSums update_sums = {};
};

class SharedStepScalars {
 public:
  explicit SharedStepScalars(Backend& backend)
      : backend_(backend),
        host_(backend.AllocateHost(sizeof(StepScalars))),
        device_(backend.AllocateDevice(sizeof(StepScalars))) {}

  // Not to be touched while a copy is queued.
  StepScalars& host() { return *reinterpret_cast<StepScalars*>(host_.data()); }
  StepScalars* device() { return reinterpret_cast<StepScalars*>(device_.data()); }

  // Both queue a copy of all of it on `stream`.
  void ToDevice(Stream& stream) {
    backend_.CopyToDevice(device_.data(), host_.data(), sizeof(StepScalars), stream);
  }
  void ToHost(Stream& stream) {
    backend_.CopyToHost(host_.data(), device_.data(), sizeof(StepScalars), stream);
  }

 private:
  Backend& backend_;
  Buffer host_;
  Buffer device_;
};

// The device's copy of a batch, and of the numbers that belong to its step.  There is room for two,
// and copies run on a stream of their own: one batch can come while another is in use, and two
// steps can be under way.  On a back end that computes on the host nothing is copied: batches are
// used where they are, and there is one place for numbers.
class DeviceBatch {
 public:
  // For batches as large as `spec` says.
  DeviceBatch(Backend& backend, const NetworkSpec& spec);

  // Starts to copy, over the batch before the last one, which must not be in use any more.  `batch`
  // must stay until arrived() is reached; on a host back end, until it has been used.  So must
  // `lambda`, mixup's weight of each of its images, or null for no mixup.
  void StartUpload(const HostBatch& batch, const float* lambda = nullptr);
  // The same of black images, in the place of a batch that could not be read.
  void StartBlank();
  // The batch of the last StartUpload; makes later work of `stream` wait for it.  Starts the step's
  // numbers: told of the loss is what is given here, everything else is fresh.  They still have to
  // go to the device.  REQUIRES: the step that used its place before is done.
  InputBatch Use(float loss_scale, Stream& stream);
  // The next batch comes to the place of the very first one, so that all ranks record graphs in the
  // same steps, also where one of them has lacked a batch.  REQUIRES: no batch is in use.
  void StartOver() { last_ = 0; }
  // Which of the kPlaces that is; the numbers in it.
  static constexpr std::size_t kPlaces = 2;
  std::size_t place() const { return used_; }
  SharedStepScalars& numbers() { return numbers_[used_]; }

  // The end of the last copy.
  Event& arrived() { return *arrived_; }

 private:
  struct Slot {
    Buffer pixels, mirror, labels, lambda;
  };

  struct Blank {
    std::vector<std::uint8_t> pixels, mirror;
    std::vector<std::int32_t> labels;
  };

  Backend& backend_;
  const std::size_t images_;
  const std::size_t image_bytes_;
  Blank blank_;  // empty before StartBlank
  const std::unique_ptr<Stream> copies_;
  const std::unique_ptr<Event> arrived_;
  std::array<Slot, kPlaces> slots_;  // empty on a host back end
  std::size_t last_ = 0;             // of slots_
  std::size_t used_ = 0;             // the same, of the last Use
  InputBatch batch_;
  std::int64_t valid_ = 0;
  std::array<SharedStepScalars, kPlaces> numbers_;
};

// Queues one forward pass of kInference on `input`, which DeviceBatch::Use has given.  Its sums are
// in numbers().host().loss_sums when it is done.
void QueueInference(Network& network, DeviceBatch& device_batch, const InputBatch& input,
                    Stream& stream);

// One forward pass of kInference on `batch`; waits for it.
LossSums Infer(Network& network, DeviceBatch& device_batch, const HostBatch& batch, Stream& stream);

// Each image k of a run is mixed with another one of its batch by a weight that is drawn from
// Random(seed, kMixup, k) by Beta(a, a), as NVIDIA's trainer draws one for each image.
struct Mixup {
  double a = 0;  // 0: there is none
  std::uint64_t seed = 0;
};

class BatchFeed {
 public:
  // No batch from step `end` on is asked for.  All outlive it.
  BatchFeed(Backend& backend, DeviceBatch& device_batch, DataLoader& source, std::int64_t end,
            const Mixup& mixup = {});

  // The source has been sent elsewhere: forgets what was fetched.  No batch from step `end` on is
  // asked for from now on.  REQUIRES: no batch is in use.
  void Restart(std::int64_t end);

  // Whether the source has a batch for `step`, which is fetched; at the end of an evaluation it has
  // none.  REQUIRES: the source has come to it.
  bool Has(std::int64_t step, Stream& stream);

  // The batch of `step`, for later work of `stream`, which waits for it.  REQUIRES: the source has
  // come to it and has it, and DeviceBatch::Use may be called.
  InputBatch Take(std::int64_t step, float loss_scale, Stream& stream);

  // In the place of Take where that has thrown: black images whose gradients are NaN, so that no
  // rank updates its weights.  From here on nothing is asked of the source before a Restart.
  InputBatch TakeBlank(Stream& stream);

  // To be called when all work with the batch of `step` is queued on `stream`, before it is waited
  // for: starts to fetch the next.  What goes wrong with that is thrown by its Has and Take.
  void FetchNext(std::int64_t step, Stream& stream);

  // How long `stream` had nothing to do for lack of the batch last given to FetchNext, in seconds.
  double waited() const { return waited_; }

 private:
  void Fetch(std::int64_t step, Stream& stream);
  const float* DrawLambda(const HostBatch& batch);

  Backend& backend_;
  DeviceBatch& device_batch_;
  DataLoader& source_;
  const bool ahead_;
  std::int64_t end_;
  const Mixup mixup_;
  Buffer lambda_;  // on the host, of the batch last fetched; empty without mixup
  const std::unique_ptr<Event> idle_;  // where the stream had nothing more to do but the next batch
  std::int64_t fetched_ = -1;          // step of the batch last fetched
  std::exception_ptr failure_;         // of fetching it
  bool is_there_ = false;              // it is; the source has not ended
  double waited_ = 0;
};

}  // namespace trainer
