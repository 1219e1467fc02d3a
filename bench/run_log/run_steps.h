// SPDX-License-Identifier: Apache-2.0
//
// The steps of a training, out of the NVLOG lines of its log (ddltraind --display_every=1 has every
// step) and the options in it.  Pure.

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace bench {

struct RunStep {
  std::int64_t iteration = 0;    // from 0 at the start of the process
  double images_per_second = 0;  // of all ranks together
  double cross_entropy = 0;
};

// Takes the lines of one log.
class RunSteps {
 public:
  // Lines of other kinds are passed over.  A step is known when its cross_entropy has come.
  // Throws trainer::Error(EX_DATAERR) for a value that is not numeric, a speed that is not above 0,
  // or an iteration that is not the next one.
  void Add(std::string_view line);

  const std::vector<RunStep>& steps() const { return steps_; }
  // Images of all ranks in a step, of all its batches (--accumulate); nothing when the log has not
  // said it.
  std::optional<std::int64_t> global_batch() const;
  int ranks() const { return static_cast<int>(ranks_); }  // 0: not said

 private:
  std::vector<RunStep> steps_;
  std::optional<RunStep> open_;  // its speed is not known yet, or its loss
  double ranks_ = 0;
  double batch_ = 0;
  double batches_ = 1;                 // of a rank in a step
  std::optional<std::int64_t> fixed_;  // images of a step (--global_batch_size)
};

}  // namespace bench
