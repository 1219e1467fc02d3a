// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/step/non_finite_guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "trainer/core/error.h"

namespace trainer {

bool LossScale::Update(bool overflow) {
  if (!dynamic_) return !overflow;
  if (overflow) {
    if (scale_ <= 1) return false;
    scale_ = std::max(scale_ / 2, 1.0);
    good_steps_ = 0;
  } else if (++good_steps_ == kGrowthSteps) {
    scale_ = std::min(scale_ * 2, kLargest);
    good_steps_ = 0;
  }
  return true;
}

void LossScale::Restore(double scale, std::int64_t good_steps) {
  if (!dynamic_) return;
  scale_ = scale;
  good_steps_ = good_steps;
}

namespace {

constexpr char kRestart[] =
    "start again from the last checkpoint with a smaller --lr_init or more --lr_warmup_epochs, or, "
    "where that has diverged too, from an older one: --resume_from=STEP (ddlctl checkpoint list "
    "DIR "
    "names them)";

std::string AtStep(const StepResult& record) { return fmt::format("step {}: ", record.step); }

std::string WithRate(const std::string& found, const StepResult& record) {
  return fmt::format("{} (learning rate {:g})", found, record.learning_rate);
}

std::string LossText(const StepResult& record) {
  const double loss = record.cross_entropy;
  return WithRate(fmt::format("the loss is {}", std::isnan(loss) ? NAN : loss),
                  record);  // without the sign that NaN may have
}

// `what` must be the same on all ranks.
[[noreturn]] void ThrowOfSome(const StepResult& record, int found, int ranks, const char* what) {
  throw Error(EX_OSERR,
              AtStep(record) + fmt::format("{} of {} ranks find NaN or infinite values in {} that "
                                           "are the same on all: a GPU or memory is failing; the "
                                           "same command with --paranoid=1 names the rank",
                                           found, ranks, what));
}

}  // namespace

Verdict NonFiniteGuard::Check(const StepResult& record, const StepExchange& all,
                              LossScale& loss_scale) {
  if (all.bad_weights == ranks_) {
    found_ = AtStep(record) + fmt::format(
                                  "the weights are too large or NaN (learning "
                                  "rate {:g})",
                                  record.learning_rate);
    if (on_nan_ == OnNan::kRollback) return Verdict::kRollback;
    throw Error(EX_SOFTWARE, found_ + ": training has diverged; " + kRestart);
  }
  if (all.bad_weights > 0) ThrowOfSome(record, all.bad_weights, ranks_, "weights");
  if (!std::isfinite(record.cross_entropy)) {
    if (on_nan_ == OnNan::kSkip && all.bad_gradients < ranks_) {
      throw Error(EX_SOFTWARE,
                  AtStep(record) + LossText(record) +
                      ", but its gradient was used, so that --on_nan=skip cannot leave it out; " +
                      kRestart);
    }
    return LeaveOut(record, LossText(record));
  }
  if (all.bad_gradients > 0 && all.bad_gradients < ranks_) {
    ThrowOfSome(record, all.bad_gradients, ranks_, "gradients");
  }
  const bool overflow = all.bad_gradients > 0;
  if (!loss_scale.Update(overflow))
    return LeaveOut(record, WithRate("the gradient is nan", record));
  if (overflow) return Verdict::kOverflowed;
  in_a_row_ = 0;
  return Verdict::kUpdated;
}

Verdict NonFiniteGuard::LeaveOut(const StepResult& record, const std::string& found) {
  if (on_nan_ == OnNan::kSkip && ++in_a_row_ <= kMaxInARow) return Verdict::kLeftOut;
  found_ = AtStep(record) + found;
  if (on_nan_ == OnNan::kRollback) return Verdict::kRollback;
  if (on_nan_ == OnNan::kSkip) {
    throw Error(EX_SOFTWARE,
                found_ + fmt::format(", after {} steps in a row whose updates were left out: "
                                     "training has diverged; {}",
                                     kMaxInARow, kRestart));
  }
  throw Error(EX_SOFTWARE, found_ + ": training has diverged; " + kRestart +
                               ", or with --on_nan=skip, which leaves out single steps like this");
}

}  // namespace trainer
