// SPDX-License-Identifier: Apache-2.0
//
// What a line of a run's log says, in the forms of NVIDIA's two loggers:
//   DLL 2020-07-01 10:00:00.123456 - (0, 21) imgs_per_sec : 365.1  learning_rate : 0.0 <blank>
//   :::NVLOGv0.2.3 resnet 1605627653.398838758 (runner.py:373) Num GPUs: 4
// (trainer/telemetry/formats/dllogger.h, nvlog.h).  What a launcher or tee has put in front of them
// does not matter.  Pure.

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace bench {

// Text as it stands in the line.
using KeyValue = std::pair<std::string_view, std::string_view>;

enum class EntryKind : std::uint8_t {
  kNone,        // a line of another kind, or one that is torn
  kDllStep,     // step is (epoch, step), (epoch) or ()
  kDllOptions,  // how the run was started
  kNvlog,       // one value, or a key without one
};

// Points into the line that it was made of.
struct LogEntry {
  EntryKind kind = EntryKind::kNone;
  std::vector<std::int64_t> step;  // of DLL
  std::vector<KeyValue> values;
};

LogEntry ParseLogEntry(std::string_view line);

// The value of `key`, the first one; nothing when there is none.
std::optional<std::string_view> ValueOf(const LogEntry& entry, std::string_view key);

// The number that is all of `text`; nothing when it is none or not finite.
std::optional<double> NumberOf(std::string_view text);

// The batches of a rank in a step, by the options --mode and --accumulate of its run; "" for one
// that it has not said.  Nothing where `accumulate` is no number of batches.
std::optional<std::int64_t> BatchesOfStep(std::string_view mode, std::string_view accumulate);
// By the options in a line of kDllOptions.
std::optional<std::int64_t> BatchesOfStep(const LogEntry& options);

// The images of all ranks in a step of training, by the options --mode and --global_batch_size;
// nothing where that was not given, or is no number of images.
std::optional<std::int64_t> FixedGlobalBatch(std::string_view mode, std::string_view images);
// By the options in a line of kDllOptions.
std::optional<std::int64_t> FixedGlobalBatch(const LogEntry& options);

// The first time of the form 2020-07-01 10:00:00.123456 in `line`, as microseconds since 1970 by a
// clock without time zone; nothing when there is none.  Fractions need not have six digits.
std::optional<std::int64_t> MicrosecondsOf(std::string_view line);

// The steps of a training, out of the NVLOG lines of its log (ddltraind --display_every=1 has every
// step) and the options in it.  Pure.

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
