// SPDX-License-Identifier: Apache-2.0

#include "launcher/advice/training_request.h"

#include <sysexits.h>

#include <cstddef>
#include <functional>
#include <map>
#include <optional>

#include "launcher/base/error.h"
#include "support/number.h"

namespace launcher {
namespace {

template <typename Number>
Number Positive(const std::string& name, const std::string& value) {
  const std::optional<Number> number = support::WholeNumber<Number>(value);
  if (!number || !(*number > 0) || !(*number < static_cast<Number>(1000000000))) {
    throw LaunchError(EX_USAGE,
                      "--advise: ddltraind --" + name + "=" + value + " must be a number above 0");
  }
  return *number;
}

bool IsOn(const std::string& value) {
  return value.empty() || value == "1" || value == "true" || value == "True";
}

using Setter = std::function<void(TrainingRequest&, const std::string& name, const std::string&)>;

const std::map<std::string, Setter>& Setters() {
  using Name = const std::string&;
  static const std::map<std::string, Setter> setters = {
      {"mode", [](TrainingRequest& requested, Name, Name value) { requested.mode = value; }},
      {"arch", [](TrainingRequest& requested, Name, Name value) { requested.arch = value; }},
      {"precision",
       [](TrainingRequest& requested, Name, Name value) { requested.precision = value; }},
      {"data_dir",
       [](TrainingRequest& requested, Name, Name value) { requested.has_data = !value.empty(); }},
      {"reduce_precision", [](TrainingRequest& requested, Name,
                              Name value) { requested.half_sums = value == "16bit"; }},
      {"iter_unit", [](TrainingRequest& requested, Name,
                       Name value) { requested.counts_epochs = value != "batch"; }},
      {"batch_size", [](TrainingRequest& requested, Name name,
                        Name value) { requested.batch = Positive<std::int64_t>(name, value); }},
      {"accumulate",
       [](TrainingRequest& requested, Name name, Name value) {
         requested.accumulate = Positive<std::int64_t>(name, value);
       }},
      {"global_batch_size",
       [](TrainingRequest&, Name, Name) {
         throw LaunchError(
             EX_USAGE,
             "--advise shows what more nodes make of a --batch_size of each rank: give "
             "that instead of --global_batch_size");
       }},
      {"num_iter", [](TrainingRequest& requested, Name name,
                      Name value) { requested.num_iter = Positive<double>(name, value); }},
      {"lr_init", [](TrainingRequest& requested, Name name,
                     Name value) { requested.lr_init = Positive<double>(name, value); }},
      {"lr_scaling",
       [](TrainingRequest& requested, Name, Name value) { requested.lr_scaling = value; }},
      {"lr_schedule",
       [](TrainingRequest& requested, Name, Name value) { requested.lr_schedule = value; }},
      {"recipe", [](TrainingRequest& requested, Name, Name value) { requested.recipe = value; }},
      {"lr_warmup_epochs",
       [](TrainingRequest& requested, Name name, Name value) {
         requested.warmup_epochs = value == "0" ? 0 : Positive<double>(name, value);
       }},
  };
  return setters;
}

// Switches take no word behind them.
bool SetSwitch(TrainingRequest& requested, const std::string& name, const std::string& value) {
  if (name == "use_cosine_lr" || name == "cosine_lr") {
    requested.cosine = IsOn(value);
  } else if (name == "nouse_cosine_lr") {
    requested.cosine = false;
  } else if (name == "use_tf_amp") {
    if (IsOn(value)) requested.precision = "fp16";
  } else {
    return false;
  }
  return true;
}

}  // namespace

TrainingRequest ParseTrainingRequest(const std::vector<std::string>& arguments) {
  TrainingRequest requested;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (!word.starts_with("--")) continue;
    const std::size_t equals = word.find('=');
    const bool has_value = equals != std::string::npos;
    const std::string name = word.substr(2, has_value ? equals - 2 : std::string::npos);
    if (SetSwitch(requested, name, has_value ? word.substr(equals + 1) : "")) continue;
    const auto setter = Setters().find(name);
    if (setter == Setters().end()) continue;
    if (!has_value && i + 1 == arguments.size()) continue;
    setter->second(requested, name, has_value ? word.substr(equals + 1) : arguments[++i]);
  }
  return requested;
}

}  // namespace launcher
