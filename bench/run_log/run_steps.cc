// SPDX-License-Identifier: Apache-2.0

#include "bench/run_log/run_steps.h"

#include <cmath>
#include <string>

#include "bench/run_log/log_entry.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

// Beyond what a run has of anything that is counted here.
constexpr double kMaxCount = 1e12;

trainer::Error Wrong(std::string_view key, std::string_view value, const std::string& why) {
  return {EX_DATAERR, std::string(key) + " is '" + std::string(value) + "', " + why};
}

double NumberIn(std::string_view key, std::string_view value) {
  const auto number = NumberOf(value);
  if (!number) throw Wrong(key, value, "which is not numeric");
  return *number;
}

double CountIn(std::string_view key, std::string_view value, double min) {
  const double number = NumberIn(key, value);
  if (number < min || number > kMaxCount || number != std::floor(number)) {
    throw Wrong(key, value, "which is not numeric of this kind");
  }
  return number;
}

}  // namespace

void RunSteps::Add(std::string_view line) {
  const LogEntry entry = ParseLogEntry(line);
  if (entry.kind == EntryKind::kDllOptions) {
    const auto batches = BatchesOfStep(entry);
    if (!batches) {
      throw Wrong("accumulate", ValueOf(entry, "accumulate").value_or(""),
                  "which is not numeric of this kind");
    }
    batches_ = static_cast<double>(*batches);
    fixed_ = FixedGlobalBatch(entry);
    return;
  }
  if (entry.kind != EntryKind::kNvlog) return;
  const auto& [key, value] = entry.values.front();
  if (key == "Num GPUs") {
    ranks_ = CountIn(key, value, 1);
  } else if (key == "Per-GPU Batch Size") {
    batch_ = CountIn(key, value, 1);
  } else if (key == "iteration") {
    RunStep step;
    step.iteration = static_cast<std::int64_t>(CountIn(key, value, 0));
    if (step.iteration != static_cast<std::int64_t>(steps_.size())) {
      throw Wrong(key, value, "and the one before it is missing; --display_every must be 1");
    }
    open_ = step;
  } else if (key == "imgs_per_sec" && open_) {
    open_->images_per_second = NumberIn(key, value);
    if (open_->images_per_second <= 0) throw Wrong(key, value, "which is no speed");
  } else if (key == "cross_entropy" && open_) {
    open_->cross_entropy = NumberIn(key, value);
    if (open_->images_per_second == 0) {
      throw Wrong("imgs_per_sec", "", "which is missing before cross_entropy");
    }
    steps_.push_back(*open_);
    open_.reset();
  }
}

std::optional<std::int64_t> RunSteps::global_batch() const {
  if (fixed_) return fixed_;
  if (ranks_ == 0 || batch_ == 0) return std::nullopt;
  const double batch = ranks_ * batch_ * batches_;
  if (batch > kMaxCount) return std::nullopt;
  return static_cast<std::int64_t>(batch);
}

}  // namespace bench
