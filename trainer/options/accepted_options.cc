// SPDX-License-Identifier: Apache-2.0

#include "trainer/options/accepted_options.h"

#include "trainer/options/option_access.h"

namespace trainer {
namespace {

support::Option DataFormat(const OptionRow& row, Options& options) {
  return Choice(Value<&Options::data_format>(row, options), {"NHWC", "NCHW"});
}

}  // namespace

std::vector<OptionRow> AcceptedOptions() {
  constexpr bool kNvidia = true;
  constexpr bool kIsSwitch = true;
  constexpr RankRule kSame = RankRule::kSame;
  constexpr RankRule kOwn = RankRule::kOwn;
  constexpr RankRule kOtherName = RankRule::kOtherName;
  const char* const group = "Accepted for old command lines, without effect";
  return {
      {"use_xla", group, "every step is compiled code already", kNvidia, kIsSwitch, kSame,
       kSwitch<&Options::use_xla>},
      {"xla", group, "every step is compiled code already", kNvidia, false, kOtherName,
       kFlag<&Options::use_xla>},
      {"data_format", group, "NHWC or NCHW: the back end chooses the layout", kNvidia, false, kSame,
       With<&Options::data_format>(DataFormat)},
      {"gpu_memory_fraction", group, "memory is planned before the first step (--dry_run shows it)",
       kNvidia, false, kSame, kFraction<&Options::gpu_memory_fraction>},
      {"gpu_id", group, "the launcher gives every rank its GPU", kNvidia, false, kOwn,
       kNotNegative<&Options::gpu_id>},
      {"cpu", group, "the back end is chosen by --backend", kNvidia, kIsSwitch, kSame,
       kSwitch<&Options::cpu>},
      {"use_final_conv", group, "the last layer is a linear layer, as torchvision stores it",
       kNvidia, kIsSwitch, kSame, kSwitch<&Options::use_final_conv>},
      {"quantize", group, "there is no quantisation", kNvidia, kIsSwitch, kSame,
       kSwitch<&Options::quantize>},
      {"quant_delay", group, "there is no quantisation", kNvidia, false, kSame,
       kNotNegative<&Options::quant_delay>},
      {"use_qdq", group, "there is no quantisation", kNvidia, kIsSwitch, kSame,
       kSwitch<&Options::use_qdq>},
      {"symmetric", group, "there is no quantisation", kNvidia, kIsSwitch, kSame,
       kSwitch<&Options::symmetric>},
  };
}

}  // namespace trainer
