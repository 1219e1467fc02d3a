// SPDX-License-Identifier: Apache-2.0
//
// The checkpoints of a running training.  All ranks stand still while the state is copied to host
// memory of rank 0.  There a thread of low priority writes it while training continues
// (asynchronous checkpoint, config.checkpoint_in_background), or all wait until it is written.
//
// One is written at a time: where the next is due before that, training waits.  What the thread
// throws is thrown by the next call of rank 0, so that the run ends as if it had waited.  The
// thread makes no collective call, and none of the back end.
//
// With --on_nan=rollback a checkpoint that holds NaN or Inf is left out with a warning: the next
// step finds them as well, and rolls back.  A second one without that is an error, and so
// is one of a Save that waits kForFile.
//
// All calls come from the thread of the training loop.

#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "trainer/backend/backend.h"
#include "trainer/checkpoint/writer.h"
#include "trainer/control/run_control.h"
#include "trainer/train/state/snapshot.h"

namespace trainer {

// A thread of low priority (core/thread.h) that does one piece of work at a time, beside the thread
// that gives it.
//
// All calls come from that thread.  What either has written before it hands over to the other, that
// one sees.
class BackgroundThread {
 public:
  // `what` it is and may throw are as of StartThread.
  explicit BackgroundThread(const std::string& what);
  // Waits for the work under way.  What that throws is lost: Wait first.
  ~BackgroundThread();
  BackgroundThread(const BackgroundThread&) = delete;
  BackgroundThread& operator=(const BackgroundThread&) = delete;

  // Begins `work`, which outlives this call in all that it refers to.
  // REQUIRES: the work before it was taken back, by Done or by Wait.
  void Start(std::function<void()> work);

  // Whether there is work that was not taken back.
  bool has_work() const { return has_work_; }
  // Whether it is done; it is taken back then.  Throws what it threw.  REQUIRES: has_work().
  bool Done();
  // The same, once it is done.
  void Wait();

 private:
  void Run();
  void TakeBack();

  bool has_work_ = false;  // of the caller's thread alone

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> work_;  // empty: none is given, or it is under way or done
  bool is_done_ = false;
  bool is_stopping_ = false;
  std::exception_ptr failure_;
  std::jthread thread_;  // last: starts when all the rest is there
};

struct CheckpointManagerDeps {
  SnapshotDeps snapshot;            // log: of this rank
  Backend& backend;                 // of snapshot.network
  std::int64_t samples = 0;         // of the training set
  RunRequests* requests = nullptr;  // of rank 0, told what was written; null: nobody asks
  WriteHook hook = {};              // seam for tests: as WriteCheckpoint has it
};

class Checkpoints {
 public:
  // When a Save returns.
  enum class Wait : std::uint8_t {
    kForCopy,  // the next step may change the state; durable where nothing goes on in background
    kForFile,  // the checkpoint is durable, and those before it
  };

  // On rank 0, takes memory for the copy and starts the thread.  Throws as StartThread does.  All
  // that the parts refer to outlives it.
  explicit Checkpoints(const CheckpointManagerDeps& deps);
  // Waits for the one that is being written, and logs what becomes of it.
  ~Checkpoints();
  Checkpoints(const Checkpoints&) = delete;
  Checkpoints& operator=(const Checkpoints&) = delete;

  // Collective, between steps: a checkpoint of the state at `position`, with the top-1 of its
  // weights if they were evaluated.  The one before it is durable when this returns; where it could
  // not be written, this one is all the same, and Look and Finish throw the reason, but for
  // kForFile it is a warning, since a newer one is there.  Throws Error as WriteSnapshot.
  void Save(const Position& position, const LossScale& loss_scale, Wait wait,
            std::optional<double> top1 = {});

  // Collective, between steps: the weights of `step`, of which there is a checkpoint, were
  // evaluated since it was begun.  It is durable when this returns; that its top-1 could not be
  // noted is a warning.  Throws Error as Finish.
  void NoteTop1(std::int64_t step, double top1);

  // Between steps, on each rank: logs what was written meanwhile.  Throws Error as WriteSnapshot.
  void Look();
  // Collective: the same, once what was saved is durable.  The other ranks wait, so that none takes
  // rank 0 for hung.
  void Finish();
  // The same, of a run that goes back to a checkpoint.
  void FinishForRollback();

 private:
  using Clock = std::chrono::steady_clock;

  // Of rank 0 alone.
  void WaitForLast(std::int64_t next_step, Wait wait);
  void FinishLast();
  void ThrowLastFailure();
  void WarnOfLastFailure();
  void Note(std::int64_t step, double top1);
  void Write();
  void Tell();
  // Calls `finish`, which may find NaN values.
  void LeaveOutBad(const std::function<void()>& finish);

  const CheckpointManagerDeps deps_;
  const bool is_root_;
  std::optional<SnapshotCopy> copy_;  // of rank 0
  Clock::time_point begun_;           // of the last Save
  bool has_logged_waiting_ = false;
  bool has_left_out_ = false;        // since the run began, or has gone back
  std::exception_ptr last_failure_;  // of the one before, which Save has found
  // By Write, for Tell.
  WrittenSnapshot written_;
  double seconds_ = 0;
  std::optional<BackgroundThread> thread_;  // of rank 0, if any; last: it uses what is above
};

}  // namespace trainer
