// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/options.h"

#include <CLI/CLI.hpp>

#include "bench/ddlbench/option_kinds.h"
#include "bench/ddlbench/part_options.h"
#include "bench/ddlbench/predict_options.h"
#include "support/option_values.h"
#include "support/reference.h"

namespace bench {
namespace {

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
  CLI::App* repeat =
      AddCommand(app, options, BenchCommand::kRepeat, "repeat",
                 "Time a training and report it as a benchmark of Mila's suite: "
                 "observations of several steps, their mean, sd, min and max, and a "
                 "JSON file that mlbench-report finds. The defaults are those of the "
                 "benchmark --name. Options of ddltraind follow behind --");
  RepeatOptions& values = options.repeat;
  repeat->add_option("DIR", values.folder, "Folder for the report and the log; made if need be")
      ->required();
  AddNumber(repeat, "--repeat", values.repeat, "Observations; the first 10 are warm-up");
  AddNumber(repeat, "--number", values.number, "Steps of an observation");
  repeat
      ->add_option(
          "--batch_size", values.batch_size,
          "Images in a step, of all ranks together; without it those of the benchmark: 64, "
          "128 of fp16, 256 of loader")
      ->type_name("N");
  repeat
      ->add_option("--devices", values.devices,
                   "Ranks; without it one, or one for each GPU in CUDA_VISIBLE_DEVICES of "
                   "convnet_distributed")
      ->type_name("N");
  AddNumber(
      repeat, "--copies", values.copies,
      "Trainings of one rank at once, each with a GPU and its share of the cores, as of so many "
      "users of one node; a report of each. They are started without ddlrun");
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
  repeat
      ->add_option(
          "--name", values.name,
          "Benchmark, its row in the table of targets: convnet, convnet_fp16, one training "
          "on one GPU; convnet_distributed, convnet_distributed_fp16, on all; loader, the "
          "input alone; or a name of your own, with the defaults of convnet")
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

void AddReport(CLI::App& app, BenchOptions& options) {
  CLI::App* report = AddCommand(
      app, options, BenchCommand::kReport, "report",
      "Make one page of runs, with plots, for any browser, offline: throughput, loss, phases of a "
      "step, scaling, GPUs, accuracy, energy, environment, and how the runs differ; exit code 65 "
      "if "
      "a file cannot be used");
  ReportOptions& values = options.report;
  report
      ->add_option(
          "RUN", values.runs,
          "Folders that ddltraind had as --results_dir, folders of such, as ddlbench sweep "
          "makes them, and logs")
      ->required();
  report
      ->add_option("--output", values.output,
                   "The page; without it report.html, and none with --text or --json")
      ->type_name("FILE");
  report->add_option("--title", values.title, "Heading of the page")->type_name("TEXT");
  report
      ->add_option("--baseline", values.baseline,
                   "Run that the others are compared with; without it the first")
      ->type_name("DIR");
  AddNumber(report, "--skip_steps", values.skip_steps,
            "Leave out so many steps at the start of each launch; the first 20 are in no log");
  report->add_flag("--text", values.text, "Print the tables");
  report->add_flag("--json", values.json, "Print all numbers as one JSON object");
}

void AddVariability(CLI::App& app, BenchOptions& options) {
  CLI::App* variability = AddCommand(
      app, options, BenchCommand::kVariability, "variability",
      "Print how far the durations of iterations are apart over GPUs and over repeats, by the "
      "rules "
      "of the SC22 study of variability, with the clock, temperature and power of each GPU; exit "
      "code 65 if a file cannot be used");
  VariabilityOptions& values = options.variability;
  variability
      ->add_option("LOG", values.logs,
                   "Folders of ddltraind --variability_dir, or files in them: "
                   "resnet_iterdur_SECONDS_HOST.txt, resnet_PID_SECONDS_HOST.csv")
      ->required();
  variability->add_option("--json", values.json, "File for the same as JSON")->type_name("FILE");
}

}  // namespace

void DescribeOptions(CLI::App& app, BenchOptions& options) {
  app.set_version_flag("--version", DDLRUN_VERSION);
  app.footer(support::kReferenceLine);
  AddSweep(app, options);
  AddExtract(app, options);
  AddRepeat(app, options);
  AddCompare(app, options);
  AddReport(app, options);
  AddVariability(app, options);
  AddPartCommands(app, options);
  AddPredictCommand(app, options);
  support::RefuseSlips(app);
}

}  // namespace bench
