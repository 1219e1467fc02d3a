// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/state/checkpoints.h"

#include <filesystem>
#include <utility>

#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/retention.h"
#include "trainer/core/error.h"
#include "trainer/core/thread.h"

namespace trainer {

BackgroundThread::BackgroundThread(const std::string& what)
    : thread_(StartThread(what, [this] { Run(); })) {}

BackgroundThread::~BackgroundThread() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void BackgroundThread::Start(std::function<void()> work) {
  DDL_CHECK(!has_work_);
  has_work_ = true;
  {
    const std::lock_guard lock(mutex_);
    work_ = std::move(work);
  }
  changed_.notify_all();
}

bool BackgroundThread::Done() {
  DDL_CHECK(has_work_);
  {
    const std::lock_guard lock(mutex_);
    if (!is_done_) return false;
  }
  TakeBack();
  return true;
}

void BackgroundThread::Wait() {
  DDL_CHECK(has_work_);
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_done_; });
  }
  TakeBack();
}

// The thread waits for more by now, so nothing is shared.
void BackgroundThread::TakeBack() {
  has_work_ = false;
  is_done_ = false;
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void BackgroundThread::Run() {
  LowerOwnPriority();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_stopping_ || work_; });
    if (!work_) return;
    const std::function<void()> work = std::exchange(work_, nullptr);
    lock.unlock();
    std::exception_ptr failure;
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    failure_ = std::move(failure);
    is_done_ = true;
    changed_.notify_all();
  }
}

namespace {

// Shorter waits are not worth a line.
constexpr double kLongWait = 0.1;  // seconds

}  // namespace

Checkpoints::Checkpoints(const CheckpointManagerDeps& deps)
    : deps_(deps), is_root_(deps.snapshot.communicator.rank() == 0) {
  if (!is_root_) return;
  copy_.emplace(deps.backend, deps.snapshot.network);
  if (deps.snapshot.config.checkpoint_in_background) {
    thread_.emplace("the thread that writes checkpoints");
  }
}

Checkpoints::~Checkpoints() {
  try {
    FinishLast();
  } catch (const std::exception& error) {
    deps_.snapshot.log->error("{}", error.what());
  }
}

void Checkpoints::Save(const Position& position, const LossScale& loss_scale, Wait wait,
                       std::optional<double> top1) {
  const SnapshotDeps& deps = deps_.snapshot;
  if (is_root_) WaitForLast(position.step, wait);
  begun_ = Clock::now();
  if (deps_.requests != nullptr) deps_.requests->BeginSave();
  CopySnapshot(deps, position, loss_scale, deps_.samples, is_root_ ? &*copy_ : nullptr, top1);
  if (wait == Wait::kForCopy && deps.config.checkpoint_in_background) {
    if (is_root_) thread_->Start([this] { Write(); });
    return;
  }
  const auto write = [this] {
    Write();
    Tell();
    WarnOfLastFailure();
  };
  if (is_root_ && wait == Wait::kForFile) write();
  if (is_root_ && wait == Wait::kForCopy) LeaveOutBad(write);
  // No rank goes on, or ends well, before the checkpoint is durable.
  deps.communicator.Barrier();
}

void Checkpoints::NoteTop1(std::int64_t step, double top1) {
  Finish();
  if (is_root_) Note(step, top1);
  deps_.snapshot.communicator.Barrier();
}

void Checkpoints::Note(std::int64_t step, double top1) {
  const std::filesystem::path parent = CheckpointsDirectory(ModelDirectory(deps_.snapshot.config));
  try {
    trainer::NoteTop1(parent / CheckpointName(step), top1, deps_.hook,
                      deps_.snapshot.config.data.validation);
  } catch (const Error& error) {
    deps_.snapshot.log->warn(
        "that the checkpoint of step {} was evaluated may not be noted in it, and then it does not "
        "count for the best: {}",
        step, error.what());
  }
}

void Checkpoints::ThrowLastFailure() {
  if (last_failure_) std::rethrow_exception(std::exchange(last_failure_, nullptr));
}

void Checkpoints::WarnOfLastFailure() {
  try {
    ThrowLastFailure();
  } catch (const Error& error) {
    deps_.snapshot.log->warn("{}; a newer checkpoint was written", error.what());
  }
}

void Checkpoints::Look() {
  ThrowLastFailure();
  LeaveOutBad([this] {
    if (thread_ && thread_->has_work() && thread_->Done()) Tell();
  });
}

void Checkpoints::Finish() {
  LeaveOutBad([this] { FinishLast(); });
  deps_.snapshot.communicator.Barrier();
}

void Checkpoints::FinishForRollback() {
  has_left_out_ = false;
  Finish();
  has_left_out_ = false;
}

void Checkpoints::FinishLast() {
  ThrowLastFailure();
  if (!thread_ || !thread_->has_work()) return;
  thread_->Wait();
  Tell();
}

void Checkpoints::LeaveOutBad(const std::function<void()>& finish) {
  try {
    finish();
  } catch (const NotFinite& error) {
    const bool can_roll_back = deps_.snapshot.config.on_nan == OnNan::kRollback;
    if (!can_roll_back || has_left_out_) throw;
    has_left_out_ = true;
    deps_.snapshot.log->warn("{}", error.what());
  }
}

void Checkpoints::WaitForLast(std::int64_t next_step, Wait wait) {
  const auto begun = Clock::now();
  try {
    Look();
    if (!thread_ || !thread_->has_work()) return;
    LeaveOutBad([this] { FinishLast(); });
  } catch (const NotFinite&) {
    throw;
  } catch (const Error&) {
    last_failure_ = std::current_exception();
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  // Of a run that ends nobody wonders why it waits.
  if (wait == Wait::kForFile || seconds < kLongWait || has_logged_waiting_) return;
  has_logged_waiting_ = true;
  deps_.snapshot.log->warn(
      "the checkpoint of step {} was still being written when that of step {} was due: training "
      "waited {:.1f} s for it (said once); a larger --checkpoint_every avoids that",
      copy_->state().step, next_step, seconds);
}

// On the thread that writes, or on that of the loop while the other has no work.
void Checkpoints::Write() {
  written_ = WriteSnapshot(*copy_, deps_.snapshot.config, deps_.hook);
  seconds_ = std::chrono::duration<double>(Clock::now() - begun_).count();
}

void Checkpoints::Tell() {
  for (const std::string& line : written_.warnings) deps_.snapshot.log->warn("{}", line);
  deps_.snapshot.log->info("checkpoint of step {} written: {}", copy_->state().step,
                           written_.directory.string());
  if (deps_.requests != nullptr) deps_.requests->OnCheckpointSaved(copy_->state().step, seconds_);
}

}  // namespace trainer
