// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/state/rollbacks.h"

#include <fmt/format.h>

#include "trainer/core/error.h"

namespace trainer {

Position Rollbacks::Resume(const Position& checkpoint, std::int64_t behind,
                           const std::string& found) {
  DDL_CHECK(behind > checkpoint.sample);
  if (checkpoint.step > step_) {
    step_ = checkpoint.step;
    in_a_row_ = 0;
  }
  if (++in_a_row_ > kMaxInARow) {
    throw Error(EX_SOFTWARE,
                fmt::format("{}, after {} rollbacks to the checkpoint of step {} from which none "
                            "newer came: training has diverged; start again from an earlier "
                            "checkpoint, or from the last with a smaller --lr_init or more "
                            "--lr_warmup_epochs",
                            found, kMaxInARow, step_));
  }
  return {checkpoint.step, behind, checkpoint.skipped + behind - checkpoint.sample};
}

}  // namespace trainer
