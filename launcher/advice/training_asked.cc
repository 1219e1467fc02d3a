// SPDX-License-Identifier: Apache-2.0

#include "launcher/advice/training_asked.h"

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

using Setter = std::function<void(TrainingAsked&, const std::string& name, const std::string&)>;

const std::map<std::string, Setter>& Setters() {
  using Name = const std::string&;
  static const std::map<std::string, Setter> setters = {
      {"mode", [](TrainingAsked& asked, Name, Name value) { asked.mode = value; }},
      {"arch", [](TrainingAsked& asked, Name, Name value) { asked.arch = value; }},
      {"precision", [](TrainingAsked& asked, Name, Name value) { asked.precision = value; }},
      {"data_dir", [](TrainingAsked& asked, Name, Name value) { asked.has_data = !value.empty(); }},
      {"reduce_precision",
       [](TrainingAsked& asked, Name, Name value) { asked.half_sums = value == "16bit"; }},
      {"iter_unit",
       [](TrainingAsked& asked, Name, Name value) { asked.counts_epochs = value != "batch"; }},
      {"batch_size", [](TrainingAsked& asked, Name name,
                        Name value) { asked.batch = Positive<std::int64_t>(name, value); }},
      {"accumulate", [](TrainingAsked& asked, Name name,
                        Name value) { asked.accumulate = Positive<std::int64_t>(name, value); }},
      {"global_batch_size",
       [](TrainingAsked&, Name, Name) {
         throw LaunchError(
             EX_USAGE,
             "--advise shows what more nodes make of a --batch_size of each rank: give "
             "that in place of --global_batch_size");
       }},
      {"num_iter", [](TrainingAsked& asked, Name name,
                      Name value) { asked.num_iter = Positive<double>(name, value); }},
      {"lr_init", [](TrainingAsked& asked, Name name,
                     Name value) { asked.lr_init = Positive<double>(name, value); }},
      {"lr_scaling", [](TrainingAsked& asked, Name, Name value) { asked.lr_scaling = value; }},
      {"lr_schedule", [](TrainingAsked& asked, Name, Name value) { asked.lr_schedule = value; }},
      {"recipe", [](TrainingAsked& asked, Name, Name value) { asked.recipe = value; }},
      {"lr_warmup_epochs",
       [](TrainingAsked& asked, Name name, Name value) {
         asked.warmup_epochs = value == "0" ? 0 : Positive<double>(name, value);
       }},
  };
  return setters;
}

// Switches take no word behind them.
bool SetSwitch(TrainingAsked& asked, const std::string& name, const std::string& value) {
  if (name == "use_cosine_lr" || name == "cosine_lr") {
    asked.cosine = IsOn(value);
  } else if (name == "nouse_cosine_lr") {
    asked.cosine = false;
  } else if (name == "use_tf_amp") {
    if (IsOn(value)) asked.precision = "fp16";
  } else {
    return false;
  }
  return true;
}

}  // namespace

TrainingAsked ReadTrainingAsked(const std::vector<std::string>& arguments) {
  TrainingAsked asked;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (!word.starts_with("--")) continue;
    const std::size_t equals = word.find('=');
    const bool has_value = equals != std::string::npos;
    const std::string name = word.substr(2, has_value ? equals - 2 : std::string::npos);
    if (SetSwitch(asked, name, has_value ? word.substr(equals + 1) : "")) continue;
    const auto setter = Setters().find(name);
    if (setter == Setters().end()) continue;
    if (!has_value && i + 1 == arguments.size()) continue;
    setter->second(asked, name, has_value ? word.substr(equals + 1) : arguments[++i]);
  }
  return asked;
}

}  // namespace launcher
