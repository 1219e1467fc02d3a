// SPDX-License-Identifier: Apache-2.0

#include "ddlctl/options.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <string_view>

namespace ddlctl {
namespace {

using trainer::ControlOrder;

constexpr std::string_view kDisplayEvery = "display_every=";

// Nothing but "display_every=N".
std::optional<std::int64_t> DisplayEvery(std::string_view setting) {
  if (!setting.starts_with(kDisplayEvery)) return std::nullopt;
  setting.remove_prefix(kDisplayEvery.size());
  std::int64_t steps = 0;
  const char* const end = setting.data() + setting.size();
  const auto result = std::from_chars(setting.data(), end, steps);
  const bool fits = result.ec == std::errc() && result.ptr == end && steps >= 1 &&
                    steps <= trainer::kMaxDisplayEvery;
  return fits ? std::optional(steps) : std::nullopt;
}

CLI::App* AddCommand(CLI::App& app, Options& options, Command command, const std::string& name,
                     const std::string& description) {
  CLI::App* subcommand = app.add_subcommand(name, description);
  subcommand->parse_complete_callback([&options, command] { options.command = command; });
  return subcommand;
}

// What every command has.
void AddWhere(CLI::App* subcommand, Options& options) {
  subcommand->add_option("RESULTS_DIR", options.results_dir, "The --results_dir of the training")
      ->required();
  subcommand
      ->add_option("--job", options.job,
                   "Slurm's number of the job that the training is in, where the training does not "
                   "know it itself")
      ->type_name("N")
      ->check(CLI::Validator(
          [](const std::string& text) {
            const bool is_id =
                !text.empty() && text.find_first_not_of("0123456789_+") == std::string::npos;
            return is_id ? std::string() : "needs the number of a job, not '" + text + "'";
          },
          ""));
  subcommand
      ->add_option("--srun", options.srun,
                   "Where the training runs on another node: run there by srun --overlap, or never")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "never"}))
      ->take_last();
}

void AddOrder(CLI::App& app, Options& options, ControlOrder order, const std::string& description) {
  CLI::App* subcommand =
      AddCommand(app, options, Command::kOrder, std::string(trainer::NameOf(order)), description);
  if (order == ControlOrder::kSet) {
    subcommand->add_option("SETTING", options.setting, "display_every=N: steps, from 1")
        ->required()
        ->check(CLI::Validator(
            [](const std::string& text) {
              return DisplayEvery(text) ? std::string()
                                        : "needs display_every=N, N from 1, not '" + text + "'";
            },
            ""));
  }
  AddWhere(subcommand, options);
  if (order != ControlOrder::kSet) {
    subcommand->add_flag("--no-wait", options.no_wait,
                         "End as soon as the training has taken the order, not when it is obeyed");
  }
  subcommand->callback([&options, order] {
    options.request.order = order;
    options.request.display_every = DisplayEvery(options.setting).value_or(0);
  });
}

}  // namespace

void DescribeOptions(CLI::App& app, Options& options) {
  app.set_version_flag("--version", DDLRUN_VERSION);

  CLI::App* status = AddCommand(app, options, Command::kStatus, "status",
                                "Say what the training does, or how it has ended");
  AddWhere(status, options);
  status->add_flag("--json", options.as_json, "As JSON, in one line");

  CLI::App* watch = AddCommand(app, options, Command::kWatch, "watch",
                               "Show what the training does until it ends: on a terminal a view, "
                               "redrawn in place, else a line from time to time");
  AddWhere(watch, options);
  watch->add_option("--interval", options.interval, "Between two looks; 1 on a terminal, else 10")
      ->type_name("SECONDS")
      ->check(CLI::Validator(
          [](const std::string& text) {
            double value = 0;
            const bool fits = CLI::detail::lexical_cast(text, value) && value >= 0.1 &&
                              value <= 3600 && std::isfinite(value);
            return fits ? std::string() : "needs 0.1 to 3600 seconds, not '" + text + "'";
          },
          ""));

  AddOrder(app, options, ControlOrder::kPause,
           "Let all ranks rest after the step under way; they keep their memory");
  AddOrder(app, options, ControlOrder::kResume, "Let a training that is paused go on");
  AddOrder(app, options, ControlOrder::kCheckpoint,
           "Have a checkpoint written after the step under way");
  AddOrder(app, options, ControlOrder::kStop,
           "Have a checkpoint written and the training end, with 75");
  AddOrder(app, options, ControlOrder::kSet, "Change a setting from the next step on");
}

}  // namespace ddlctl
