// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/state/resume.h"

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

namespace {

// Of another --precision, whatever the option was: a CPU computes in fp32.
std::string OfPrecision(const CheckpointState& now) {
  return now.precision == "fp32" ? "there is no loss scale any more"
                                 : "a loss scale that adapts itself starts afresh";
}

// What comes of another `name`; "" where that is plain.
std::string ConsequenceOf(const std::string& name, const CheckpointState& now) {
  if (name == "--backend") return "it computes the same but for rounding";
  const bool is_order = name == "data" || name == "--seed" || name == "--shuffle";
  if (is_order && now.epoch_samples > 0) {
    return fmt::format(
        "the order is another one, so in epoch {} images may come twice or be left "
        "out",
        now.epoch + 1);
  }
  return "";
}

}  // namespace

std::vector<std::string> ChangesSince(const CheckpointState& then, const CheckpointState& now) {
  std::vector<std::string> changes;
  const auto add = [&](const std::string& name, const auto& before, const auto& after,
                       const std::string& consequence) {
    if (before == after) return;
    changes.push_back(fmt::format("{} {} (now {}){}{}", name, before, after,
                                  consequence.empty() ? "" : "; ", consequence));
  };
  add("ranks", then.world_size, now.world_size,
      "all continue with the mean of the running statistics of batch norm");
  add("images in a step", then.global_batch, now.global_batch,
      "the learning rate is that of the new number, at the same place of the epoch");
  const bool other_precision = !then.precision.empty() && then.precision != now.precision;
  if (other_precision) add("computed in", then.precision, now.precision, OfPrecision(now));
  add("--seed", then.seed, now.seed, ConsequenceOf("--seed", now));
  add("version", then.program_version, now.program_version, "");
  for (const auto& [name, after] : now.settings) {
    const auto before = then.settings.find(name);
    if (before == then.settings.end() || (name == "--precision" && other_precision)) continue;
    add(name, before->second, after, ConsequenceOf(name, now));
  }
  return changes;
}

}  // namespace trainer
