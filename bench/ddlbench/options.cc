// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/options.h"

#include <CLI/CLI.hpp>

namespace bench {
namespace {

CLI::App* AddCommand(CLI::App& app, BenchOptions& options, BenchCommand command,
                     const std::string& name, const std::string& description) {
  CLI::App* subcommand = app.add_subcommand(name, description);
  subcommand->parse_complete_callback([&options, command] { options.command = command; });
  return subcommand;
}

template <typename Number>
void AddNumber(CLI::App* subcommand, const std::string& name, Number& number,
               const std::string& help) {
  subcommand->add_option(name, number, help)->capture_default_str()->type_name("N");
}

// Words with commas between them.
template <typename Word>
CLI::Option* AddList(CLI::App* subcommand, const std::string& name, std::vector<Word>& words,
                     const std::string& shape, const std::string& help) {
  std::string given;
  for (const Word& word : words) {
    if (!given.empty()) given += ",";
    if constexpr (std::is_integral_v<Word>) {
      given += std::to_string(word);
    } else {
      given += word;
    }
  }
  return subcommand->add_option(name, words, help)
      ->delimiter(',')
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->default_str(given)
      ->type_name(shape);
}

// One argument each time it is given, whatever it looks like.
void AddArguments(CLI::App* subcommand, const std::string& name, std::vector<std::string>& words,
                  const std::string& help) {
  subcommand->add_option(name, words, help)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("ARG");
}

void AddSweep(CLI::App& app, BenchOptions& options) {
  CLI::App* sweep = AddCommand(
      app, options, BenchCommand::kSweep, "sweep",
      "Measure images/s over nodes, GPUs per node, precisions and kinds of images, as DLPerf does: "
      "in the job at hand, on this machine, or as one array of jobs. Options of ddltraind follow "
      "behind --");
  SweepOptions& values = options.sweep;
  sweep
      ->add_option("DIR", values.folder,
                   "Folder for logs and tables; made if need be. What it has already is not "
                   "measured again")
      ->required();
  AddList(sweep, "--cases", values.cases, "CASE,...", "Nodes and GPUs on each: 2n8g, ...");
  AddList(sweep, "--precision", values.precisions, "TYPE,...",
          "fp32, tf32, fp16, bf16, amp, as ddltraind knows them");
  AddList(sweep, "--batch_size", values.batches, "N,...",
          "Images per GPU in a step: one number, or one for each precision");
  AddList(sweep, "--data", values.data, "KIND,...",
          "synthetic, real; without it synthetic, and real where --data_dir is given")
      ->check(CLI::IsMember({"synthetic", "real"}));
  sweep->add_option("--data_dir", values.data_dir, "Folder of the real images' TFRecord files")
      ->type_name("DIR");
  sweep->add_option("--arch", values.arch, "Network")->capture_default_str()->type_name("NAME");
  AddNumber(sweep, "--repeats", values.repeats, "Runs of each");
  AddNumber(sweep, "--steps", values.steps, "Steps of a run; the first 20 are not measured");
  sweep->add_flag(
      "--submit", values.submit,
      "Submit all of it as one array of jobs by sbatch, each with the nodes and GPUs of "
      "the largest case");
  AddNumber(sweep, "--at_once", values.at_once, "Tasks of the array that may run at a time");
  AddArguments(sweep, "--sbatch", values.sbatch,
               "An option for sbatch, as in --sbatch=--time=1:00:00; may be repeated");
  AddArguments(sweep, "--ddlrun", values.ddlrun,
               "An option for ddlrun, as in --ddlrun=--tcp; may be repeated");
  AddNumber(sweep, "--only", values.only,
            "Make this one of the measurements, counted from 1, as a task of the array does; 0: "
            "all");
  sweep->add_flag("--dry_run", values.dry_run, "Print what would be run, and start nothing");
}

void AddExtract(CLI::App& app, BenchOptions& options) {
  CLI::App* extract =
      AddCommand(app, options, BenchCommand::kExtract, "extract",
                 "Print speeds and speed-ups of logs by the rules of DLPerf, and write its JSON "
                 "files; exit code 65 if a log cannot be used");
  ExtractOptions& values = options.extract;
  extract
      ->add_option("LOG_DIR", values.folders,
                   "Folder with logs such as 1n1g/r50_b128_fp32_1.log, or a folder of such")
      ->required();
  extract
      ->add_option("--output_dir", values.output_dir,
                   "Folder of the JSON files; without it: result in each LOG_DIR")
      ->type_name("DIR");
  extract
      ->add_option("--by", values.rule,
                   "rate: the mean of the speeds in the log; time: the times of its first and last "
                   "line that count")
      ->capture_default_str()
      ->check(CLI::IsMember({"rate", "time"}));
  AddNumber(extract, "--warmup_batches", values.warmup_batches,
            "Steps at the start that do not count, 20 or more");
  AddNumber(extract, "--train_batches", values.train_batches, "Steps up to the last that counts");
}

void AddRepeat(CLI::App& app, BenchOptions& options) {
  CLI::App* repeat = AddCommand(app, options, BenchCommand::kRepeat, "repeat",
                                "Time a training and report it as a benchmark of Mila's suite: "
                                "observations of several steps, "
                                "their mean, sd, min and max, and a JSON file that mlbench-report "
                                "finds. The defaults are those "
                                "of Mila's convnet. Options of ddltraind follow behind --");
  RepeatOptions& values = options.repeat;
  repeat->add_option("DIR", values.folder, "Folder for the report and the log; made if need be")
      ->required();
  AddNumber(repeat, "--repeat", values.repeat, "Observations; the first 10 are warm-up");
  AddNumber(repeat, "--number", values.number, "Steps of an observation");
  AddNumber(repeat, "--batch_size", values.batch_size, "Images in a step, of all ranks together");
  AddNumber(repeat, "--devices", values.devices, "Ranks");
  repeat->add_option("--arch", values.arch, "Network")->capture_default_str()->type_name("NAME");
  repeat->add_option("--lr", values.learning_rate, "--lr_init of ddltraind")
      ->capture_default_str()
      ->type_name("X");
  repeat->add_flag("--half", values.half, "fp16 in place of fp32");
  repeat->add_option("--data_dir", values.data_dir, "TFRecord files; without it: synthetic images")
      ->type_name("DIR");
  repeat
      ->add_option("--suite", values.suite,
                   "First part of the report's name: what mlbench-report --jobs names")
      ->capture_default_str()
      ->type_name("NAME");
  repeat->add_option("--name", values.name, "Benchmark: its row in the table of targets")
      ->capture_default_str()
      ->type_name("NAME");
  AddNumber(repeat, "--run_id", values.run_id, "Number of the run, a part of the report's name");
  AddArguments(repeat, "--ddlrun", values.ddlrun,
               "An option for ddlrun, as in --ddlrun=--tcp; may be repeated");
}

void AddCompare(CLI::App& app, BenchOptions& options) {
  CLI::App* compare =
      AddCommand(app, options, BenchCommand::kCompare, "compare",
                 "Print the items/s of reports in Mila's form beside a table of targets: mean, sd "
                 "over reports, "
                 "difference, and whether they pass; exit code 65 if a file cannot be used");
  CompareOptions& values = options.compare;
  compare
      ->add_option("REPORT", values.reports,
                   "Reports, and folders in which they are looked for by name")
      ->required();
  compare
      ->add_option("--targets", values.targets,
                   "CSV table with the columns bench and target, and, where passing is to be said, "
                   "perf_target and sd_target, such as Mila's target_v100.csv")
      ->required()
      ->type_name("FILE");
}

}  // namespace

void DescribeOptions(CLI::App& app, BenchOptions& options) {
  app.set_version_flag("--version", DDLRUN_VERSION);
  AddSweep(app, options);
  AddExtract(app, options);
  AddRepeat(app, options);
  AddCompare(app, options);
}

}  // namespace bench
