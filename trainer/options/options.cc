// SPDX-License-Identifier: Apache-2.0

#include "trainer/options/options.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "support/build.h"
#include "support/command_line.h"
#include "support/number.h"
#include "support/quoting.h"
#include "support/spelling.h"
#include "trainer/core/error.h"
#include "trainer/options/option_names.h"

namespace trainer {
namespace {

constexpr char kSeeHelp[] = "; ddltraind --help lists all options";

Error UsageError(const std::string& message) {
  return {EX_USAGE, "ddltraind: " + message + kSeeHelp};
}

// "--data-dir" as "--data_dir".
std::string WithUnderscores(std::string name) {
  std::replace(name.begin() + 2, name.end(), '-', '_');
  return name;
}

const OtherName* FindOtherName(const std::string& given) {
  const std::string name = WithUnderscores(given).substr(2);
  const auto* found = std::find_if(kOtherNames.begin(), kOtherNames.end(),
                                   [&](const OtherName& other) { return other.name == name; });
  return found == kOtherNames.end() ? nullptr : found;
}

// "; also --epochs (with --iter_unit=epoch), --max_steps (with --iter_unit=batch)"; "" for none.
std::string OtherNamesOf(const std::string& option) {
  std::string text;
  for (const OtherName& other : kOtherNames) {
    if (other.option != option) continue;
    text.append(text.empty() ? "; also --" : ", --").append(other.name);
    if (!other.unit.empty()) text.append(" (with --iter_unit=").append(other.unit).append(")");
  }
  return text;
}

struct Spelling {
  std::string name;  // with its dashes
  bool nvidia;
};

std::vector<Spelling> AllSpellings() {
  std::vector<Spelling> spellings = {{"--help", true}, {"--version", true}};
  for (const OptionRow& row : OptionTable()) {
    spellings.push_back({"--" + row.name, row.nvidia});
    if (row.access.is_switch) spellings.push_back({"--no" + row.name, row.nvidia});
  }
  return spellings;
}

std::vector<std::string> WithPrefix(const std::vector<Spelling>& spellings,
                                    const std::string& prefix, bool nvidia_only) {
  std::vector<std::string> found;
  for (const Spelling& spelling : spellings) {
    if (spelling.name == prefix) return {prefix};
    if (spelling.name.starts_with(prefix) && (spelling.nvidia || !nvidia_only))
      found.push_back(spelling.name);
  }
  return found;
}

// The full name of the option that `given` (dashes inside allowed for underscores) spells or
// abbreviates.
std::string FullName(const std::vector<Spelling>& spellings, const std::string& given) {
  const std::string name = WithUnderscores(given);
  // NVIDIA's options first: what was unambiguous for main.py stays so, whatever we add.
  std::vector<std::string> found = WithPrefix(spellings, name, true);
  if (found.empty()) found = WithPrefix(spellings, name, false);
  if (found.size() == 1) return found[0];
  if (found.empty()) {
    std::vector<std::string> names;
    for (const Spelling& spelling : spellings) names.push_back(spelling.name);
    const std::string nearest = support::NearestSpelling(name, names);
    throw UsageError("unknown option '" + given + "'" +
                     (nearest.empty() ? "" : "; did you mean '" + nearest + "'?"));
  }
  std::string list;
  for (const std::string& candidate : found) list += (list.empty() ? "" : ", ") + candidate;
  throw UsageError("ambiguous option '" + given + "': it could be " + list);
}

// The option that has `value` among its values, "" for none.
std::string OptionWithValue(const std::vector<support::Option>& rows, const std::string& value) {
  const auto has_value = [&](const support::Option& row) {
    return ("|" + row.shape + "|").find("|" + value + "|") != std::string::npos &&
           row.shape.find('|') != std::string::npos;
  };
  const auto row = std::find_if(rows.begin(), rows.end(), has_value);
  return row == rows.end() || value.empty() ? "" : row->names;
}

// What a command line has become: the names of our options in place of other names of them and of
// abbreviations.
struct FullCommandLine {
  std::vector<std::string> arguments;
  std::vector<std::string> notes;
  std::string name_of_unit;  // "--epochs=50", which says what --iter_unit is
  std::string unit;
};

// A value that is a word of another option was meant for that one: a file of that name is better
// written with a directory.
void RejectMisledAbbreviation(const std::string& given, const std::string& name,
                              const std::string& value, const std::vector<support::Option>& rows) {
  const std::string meant = OptionWithValue(rows, value);
  const auto is_named = [&](const support::Option& row) { return row.names == name; };
  const auto row = std::find_if(rows.begin(), rows.end(), is_named);
  // Any text is a value of the option.
  const bool takes_text = row != rows.end() && (row->shape == "DIR" || row->shape == "FILE");
  if (meant.empty() || !takes_text) return;
  throw UsageError("'" + given + "' abbreviates " + name + ", but '" + value + "' is a value of " +
                   meant + ": write the whole name of the option");
}

FullCommandLine Complete(const std::vector<std::string>& arguments,
                         const std::vector<support::Option>& rows) {
  const std::vector<Spelling> spellings = AllSpellings();
  FullCommandLine line;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "-h") {
      line.arguments.emplace_back("--help");
    } else if (argument.starts_with("--") && argument.size() > 2) {
      const std::size_t equals = argument.find('=');
      // CLI11 would take the next argument for the value.
      if (equals + 1 == argument.size())
        throw UsageError("'" + argument + "' has no value: is a variable of your script empty?");
      const std::string given = argument.substr(0, equals);
      const std::string rest = equals == std::string::npos ? "" : argument.substr(equals);
      const OtherName* other = FindOtherName(given);
      const std::string name =
          other != nullptr ? "--" + std::string(other->option) : FullName(spellings, given);
      if (other != nullptr && !other->unit.empty()) {
        line.name_of_unit = given;
        line.unit = other->unit;
      }
      if (other == nullptr && WithUnderscores(given) != name) {
        const std::string next = i + 1 < arguments.size() ? arguments[i + 1] : "";
        RejectMisledAbbreviation(given, name, rest.empty() ? next : rest.substr(1), rows);
        line.notes.push_back(given + " is taken for " + name);
      }
      line.arguments.push_back(name + rest);
    } else {
      line.arguments.push_back(argument);
    }
  }
  if (!line.unit.empty()) line.arguments.insert(line.arguments.begin(), "--iter_unit=" + line.unit);
  return line;
}

// Options that say what others say too.
void Translate(const std::set<std::string>& given, Options& options) {
  if (options.static_loss_scale > 0) options.loss_scale = options.static_loss_scale;
  if (given.contains("--static_loss_scale")) {
    options.use_static_loss_scaling = options.static_loss_scale > 0;
  }
  if (options.use_tf_amp && (options.precision == "fp32" || options.precision == "tf32")) {
    options.precision = "fp16";
  }
  if (options.use_dali && !given.contains("--augmentation")) {
    options.augmentation = Augmentation::kDali;
  }
  if (options.use_cosine_lr && !given.contains("--lr_schedule")) {
    options.schedule.lr_schedule = RateDecay::kCosine;
  }
  if (given.contains("--synthetic_data_size") && options.data_dir.empty()) {
    options.image_size = options.synthetic_data_size;
  }
  if (options.mode == RunMode::kPredict) options.batch_size = 1;
}

Contradictions OfModes(const std::set<std::string>& given, const Options& options) {
  const bool predicts = options.mode == RunMode::kPredict;
  const std::string mode = NameOf(kModes, options.mode);
  const std::string about_predictions = " is about what --mode=predict prints, not --mode=" + mode;
  const bool is_16bit = options.reduce_precision == ReducePrecision::k16Bit;
  const bool has_global_batch = options.global_batch_size != 0;
  return {
      {options.batch_size == 0 && !has_global_batch && !predicts,
       "--batch_size is required: images that each rank computes together, for example "
       "--batch_size=256"},
      {has_global_batch && given.contains("--accumulate"),
       "--accumulate follows from --global_batch_size and the number of ranks: leave out one of "
       "the two"},
      {has_global_batch && is_16bit,
       "--reduce_precision=16bit cannot take what several batches add up, which is in fp32, and "
       "--global_batch_size makes several of a step where the ranks become fewer: leave out one "
       "of the two"},
      {predicts && options.to_predict.empty(), "--mode=predict needs an image: --to_predict=FILE"},
      {!predicts && options.json, "--json" + about_predictions},
      {!predicts && !options.labels.empty(), "--labels" + about_predictions},
      {predicts && !options.dry_run.empty(), "--dry_run has nothing to show of --mode=predict"},
      {is_16bit && options.precision != "fp16" && options.precision != "bf16",
       "--reduce_precision=16bit needs --precision=fp16 or bf16, not " + options.precision},
      {is_16bit && options.accumulate > 1,
       "--reduce_precision=16bit cannot take what --accumulate adds up, which is in fp32: leave "
       "out one of the two"},
      {is_16bit && options.comm == "mpi",
       "--reduce_precision=16bit needs NCCL: leave out --comm=mpi"}};
}

Contradictions OfTraining(const std::set<std::string>& given, const Options& options) {
  const std::string mode = NameOf(kModes, options.mode);
  const bool keeps_weights = KeepsWeights(options.mode);
  const bool is_benchmark =
      options.mode == RunMode::kTrainingBenchmark || options.mode == RunMode::kInferenceBenchmark;
  const bool has_recipe = options.recipe != "none";
  const ScheduleConfig& schedule = options.schedule;
  const std::string decay = NameOf(kRateDecays, schedule.lr_schedule);
  // A recipe says which schedule it is.
  const bool is_not_polynomial = schedule.lr_schedule != RateDecay::kPolynomial && !has_recipe;
  const auto of_polynomial = [&](const std::string& option) {
    return option + " is of --lr_schedule=polynomial, not " + decay + ": give that, or leave " +
           option + " out";
  };
  const bool rolls_back = options.on_nan == OnNan::kRollback;
  const bool in_epochs = schedule.iter_unit == IterationUnit::kEpoch;
  return {
      {given.contains("--augmentation") && options.augment == Augment::kNone,
       "--augmentation says whose random crops a training takes, but --augment=none takes none: "
       "leave out one of the two"},
      {has_recipe && !IsTraining(options.mode),
       "--recipe is for training: --mode=" + mode + " learns nothing"},
      {options.use_cosine_lr && schedule.lr_schedule != RateDecay::kCosine,
       "--use_cosine_lr is --lr_schedule=cosine, but --lr_schedule=" + decay +
           " is given: leave out one of the two"},
      {is_not_polynomial && given.contains("--lr_end"), of_polynomial("--lr_end")},
      {is_not_polynomial && given.contains("--lr_decay_steps"), of_polynomial("--lr_decay_steps")},
      {options.record_cache_gb > 0 && options.record_cache.empty(),
       "--record_cache_gb needs --record_cache, the directory that it limits"},
      {options.new_head && options.init_from.empty(),
       "--new_head leaves out the last layer of the file of --init_from, which is not given; "
       "without it every layer starts afresh"},
      {options.new_head && !keeps_weights, "--new_head is for training: --mode=" + mode +
                                               " would use a last layer that has learnt nothing"},
      {options.ignore_mismatched_classes && is_benchmark,
       "--ignore_mismatched_classes is about weights that were trained before: --mode=" + mode +
           " takes none"},
      {options.resume_from >= 0 && !keeps_weights,
       "--resume_from is for training: --mode=" + mode +
           " takes the weights of a checkpoint by --init_from=DIR/model.safetensors, with DIR its "
           "directory"},
      {options.resume_from >= 0 && !options.resume,
       "--resume_from names a checkpoint, and --resume=never wants none: leave out one of the two"},
      {options.replay_check > 0 && !IsTraining(options.mode),
       "--replay_check computes steps of a training twice: --mode=" + mode +
           " has none, leave it out"},
      {options.replay_check == 1 && options.graph == StepGraph::kOn,
       "--replay_check=1 computes every step twice, kernel by kernel, so that none is left for "
       "--graph=on: give a larger --replay_check, or --graph=auto"},
      {options.keep_every > 0 && options.checkpoint_every == 0,
       "--keep_every keeps some of the checkpoints of --checkpoint_every for ever, but "
       "--checkpoint_every=0 takes none: give so many steps, or leave --keep_every out"},
      {rolls_back && options.mode == RunMode::kTrainingBenchmark,
       "--on_nan=rollback needs a checkpoint, but --mode=" + mode +
           " writes none: give --on_nan=stop or skip"},
      {rolls_back && keeps_weights && options.checkpoint_every == 0,
       "--on_nan=rollback needs a newest checkpoint, but --checkpoint_every=0 takes none: give so "
       "many steps, or --on_nan=stop or skip"},
      {options.eval_every > 0 && options.mode != RunMode::kTrainAndEvaluate,
       "--eval_every evaluates while it trains: give --mode=train_and_evaluate, not " + mode +
           ", or leave --eval_every out"},
      {options.stop_at_top1 > 0 && options.eval_every == 0 && !has_recipe,
       "--stop_at_top1 needs evaluations while training: give --eval_every=N as well, in " +
           std::string(in_epochs ? "epochs" : "steps")}};
}

// Logs that would stay empty, and what belongs to one that was not asked for.
Contradictions OfLogs(const Options& options) {
  const bool is_profiled = options.profile.count > 0;
  const bool is_studied = !options.variability_dir.empty();
  const auto of_steps = [&](const std::string& option, bool is_given) {
    return Contradiction{is_given && !IsTraining(options.mode),
                         option + " shows the steps of a training: --mode=" +
                             NameOf(kModes, options.mode) + " has none"};
  };
  return {of_steps("--trace", options.trace.count > 0),
          of_steps("--profile", is_profiled),
          of_steps("--variability_dir", is_studied),
          {!options.roofline.empty() && !is_profiled,
           "--roofline is for --profile, which is not asked for"},
          {(is_profiled || is_studied) && options.graph == StepGraph::kOn,
           std::string(is_profiled ? "--profile" : "--variability_dir") +
               " times each op, which one graph of them all does not show: leave out --graph=on"},
          {is_profiled && is_studied,
           "--profile and --variability_dir both time each op, of other steps: give one of them"}};
}

void Reject(const Contradictions& contradictions) {
  for (const Contradiction& contradiction : contradictions) {
    if (contradiction.is_there) throw UsageError(contradiction.text);
  }
}

void RejectContradictions(const std::set<std::string>& given, const Options& options) {
  Reject(OfModes(given, options));
  Reject(OfTraining(given, options));
  for (const LogFormat* format : LogFormats()) {
    if (format->contradictions != nullptr) Reject(format->contradictions(given, options));
    for (const OptionRow& row : format->options) {
      const std::string name = "--" + row.name;
      Reject({{given.contains(name) && options.mode == RunMode::kPredict,
               name + " has nothing to show of --mode=predict"}});
    }
  }
  Reject(OfLogs(options));
}

}  // namespace

support::Program DescribeOptions(Options& options) {
  support::Program program = {
      .root =
          {.name = "ddltraind",
           .help = "Trains ResNet on images, one process per rank; started by ddlrun, or by hand "
                   "for one rank.",
           .options = {{"--version", {}, "", "version, back ends and libraries of this build"}}},
      .footer = support::HelpFooter(),
      .help = {"--help", {}, "", "this text"},
      .adds_hints = false};
  for (const OptionRow& row : OptionTable()) {
    support::Option& option = program.root.options.emplace_back(row.access.describe(row, options));
    option.group = row.group;
    option.help += OtherNamesOf(row.name);
    option.last_counts = true;  // as in argparse: scripts append to fixed arguments
  }
  return program;
}

std::vector<ConsistencyItem> SharedOptions(const Options& options) {
  std::vector<ConsistencyItem> items;
  for (const OptionRow& row : OptionTable()) {
    if (row.rank_rule == RankRule::kOwn || row.rank_rule == RankRule::kOtherName) continue;
    const std::string name = "--" + row.name;
    const std::string value = row.access.value(options);
    const bool needs_no_value = row.rank_rule == RankRule::kMustMatch || row.access.is_on_or_off;
    std::string text = needs_no_value ? name : name + "=" + value;
    if (value.empty()) text = "no " + name;
    items.push_back({name, std::move(text)});
  }
  return items;
}

std::optional<double> StopMarginSeconds(const std::string& text) {
  const auto seconds = support::WholeNumber<double>(text);
  return seconds && *seconds >= 0 && std::isfinite(*seconds) ? seconds : std::nullopt;
}

ParsedOptions ParseOptions(const std::vector<std::string>& arguments) {
  ParsedOptions parsed;
  Options& options = parsed.options;
  const support::Program program = DescribeOptions(options);
  const FullCommandLine full = Complete(arguments, program.root.options);
  support::Parsed line;
  try {
    line = support::Parse(program, full.arguments);
  } catch (const support::UnknownArgument& error) {
    throw UsageError("unexpected argument '" + support::Shortened(error.argument) +
                     "': options are written --name=value" + support::DescribeDash(error.argument));
  } catch (const support::UsageError& error) {
    throw UsageError(error.what());
  }
  parsed.notes = full.notes;
  parsed.given = line.given;
  const std::set<std::string>& given = parsed.given;
  parsed.answer = given.contains("--version") ? "version" : line.answer;
  if (!parsed.answer.empty()) return parsed;
  if (!full.unit.empty() && NameOf(kIterUnits, options.schedule.iter_unit) != full.unit) {
    throw UsageError(full.name_of_unit + " is --num_iter with --iter_unit=" + full.unit +
                     ", but another --iter_unit is given: leave out one of the two");
  }
  Translate(given, options);
  RejectContradictions(given, options);
  if (!options.export_dir.empty() && !ExportsWeights(options.mode)) {
    parsed.notes.push_back("--export_dir has no effect here: --mode=" +
                           NameOf(kModes, options.mode) + " writes no weights");
  }
  for (const OptionRow& row : OptionTable()) {
    if (row.group.starts_with("Accepted") && given.contains("--" + row.name)) {
      parsed.notes.push_back("--" + row.name + " has no effect here: " + row.help);
    }
  }
  return parsed;
}

}  // namespace trainer
