// SPDX-License-Identifier: Apache-2.0
//
// What other trainers call an option of ddltraind: torchvision's references, timm, Lightning, the
// Trainer of Hugging Face, DeepSpeed.  Each is accepted as it stands, not abbreviated, and comes
// before an abbreviation: --model is --arch, and no longer --model_dir.

#pragma once

#include <array>
#include <string_view>

namespace trainer {

struct OtherName {
  std::string_view name;    // without dashes, with '_'
  std::string_view option;  // ours
  std::string_view unit;    // "": its value is that of ours; else what --iter_unit is as well
};

inline constexpr std::array<OtherName, 24> kOtherNames = {{
    {"model", "arch", ""},
    {"lr", "lr_init", ""},
    {"lr_scheduler", "lr_schedule", ""},
    {"sched", "lr_schedule", ""},
    {"warmup_epochs", "lr_warmup_epochs", ""},
    {"opt", "optimizer", ""},
    {"wd", "weight_decay", ""},
    {"epochs", "num_iter", "epoch"},
    {"max_steps", "num_iter", "batch"},
    {"workers", "data_threads", ""},
    {"num_workers", "data_threads", ""},
    {"data_path", "data_dir", ""},
    {"output_dir", "results_dir", ""},
    {"grad_accum_steps", "accumulate", ""},
    {"gradient_accumulation_steps", "accumulate", ""},
    {"model_ema_decay", "ema", ""},
    {"checkpoint_hist", "keep_checkpoints", ""},
    {"save_total_limit", "keep_checkpoints", ""},
    {"save_steps", "checkpoint_every", ""},
    {"print_freq", "display_every", ""},
    {"log_interval", "display_every", ""},
    {"dist_backend", "comm", ""},
    {"cuda_graph", "graph", ""},
    {"hang_timeout", "hang_floor_seconds", ""},
}};

}  // namespace trainer
