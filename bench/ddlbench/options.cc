// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/options.h"

#include "support/build.h"

namespace bench {
namespace {

using support::MakeCommand;
using support::OneOf;
using support::Required;
using support::WithDefault;

// That several commands have.
support::Option DdlrunOption(std::vector<std::string>& arguments) {
  return {"--ddlrun", &arguments, "ARG",
          "An option for ddlrun, as in --ddlrun=--tcp; may be repeated"};
}

support::Command SweepCommand(BenchOptions& options) {
  SweepOptions& values = options.sweep;
  return MakeCommand(
      options.command, BenchCommand::kSweep, "sweep",
      "Measure images/s over nodes, GPUs per node, precisions and kinds of images, as DLPerf does: "
      "in the job at hand, on this machine, or as one array of jobs. Options of ddltraind follow "
      "behind --",
      {Required(
           {"DIR", &values.directory, "",
            "Directory for logs and tables; made if need be. What it has already is not measured "
            "again"}),
       {"--cases", &values.cases, "CASE,...", "Nodes and GPUs on each: 2n8g, ..."},
       {"--precision", &values.precisions, "TYPE,...",
        "fp32, tf32, fp16, bf16, amp, as ddltraind knows them"},
       {"--batch_size", &values.batches, "N,...",
        "Images per GPU in a step: one number, or one for each precision"},
       OneOf({"--data", &values.data, "KIND,...",
              "synthetic, real; without it synthetic, and real where --data_dir is given"},
             {"synthetic", "real"}),
       {"--data_dir", &values.data_dir, "DIR", "Directory of the real images' TFRecord files"},
       {"--arch", &values.arch, "NAME", "Network"},
       {"--repeats", &values.repeats, "N", "Runs of each"},
       {"--steps", &values.steps, "N", "Steps of a run; the first 20 are not measured"},
       {"--submit", &values.submit, "",
        "Submit all of it as one array of jobs by sbatch, each with the nodes and GPUs of the "
        "largest case"},
       {"--at_once", &values.at_once, "N", "Tasks of the array that may run at a time"},
       {"--sbatch", &values.sbatch, "ARG",
        "An option for sbatch, as in --sbatch=--time=1:00:00; may be repeated"},
       DdlrunOption(values.ddlrun),
       {"--only", &values.only, "N",
        "Make this one of the measurements, counted from 1, as a task of the array does; 0: all"},
       {"--dry_run", &values.dry_run, "", "Print what would be run, and start nothing"}});
}

support::Command ExtractCommand(BenchOptions& options) {
  ExtractOptions& values = options.extract;
  return MakeCommand(
      options.command, BenchCommand::kExtract, "extract",
      "Print speeds and speed-ups of logs by the rules of DLPerf, and write its JSON files; exit "
      "code 65 if a log cannot be used",
      {Required({"LOG_DIR", &values.directories, "",
                 "Directory with logs such as 1n1g/r50_b128_fp32_1.log, or a directory of such"}),
       {"--output_dir", &values.output_dir, "DIR",
        "Directory of the JSON files; without it: result in each LOG_DIR"},
       OneOf({"--by", &values.rule, "",
              "rate: the mean of the speeds in the log; time: the times of its first and last line "
              "that count"},
             {"rate", "time"}),
       {"--warmup_batches", &values.warmup_batches, "N",
        "Steps at the start that do not count, 20 or more"},
       {"--train_batches", &values.train_batches, "N", "Steps up to the last that counts"}});
}

support::Command RepeatCommand(BenchOptions& options) {
  RepeatOptions& values = options.repeat;
  return MakeCommand(
      options.command, BenchCommand::kRepeat, "repeat",
      "Time a training and report it as a benchmark of Mila's suite: observations of several "
      "steps, their mean, sd, min and max, and a JSON file that mlbench-report finds. The defaults "
      "are those of the benchmark --name. Options of ddltraind follow behind --",
      {Required(
           {"DIR", &values.directory, "", "Directory for the report and the log; made if need be"}),
       {"--repeat", &values.repeat, "N", "Observations; the first 10 are warm-up"},
       {"--number", &values.number, "N", "Steps of an observation"},
       WithDefault({"--batch_size", &values.batch_size, "N",
                    "Images in a step, of all ranks together; without it those of the benchmark: "
                    "64, 128 of fp16, 256 of loader"},
                   ""),
       WithDefault({"--devices", &values.devices, "N",
                    "Ranks; without it one, or one for each GPU in CUDA_VISIBLE_DEVICES of "
                    "convnet_distributed"},
                   ""),
       {"--copies", &values.copies, "N",
        "Trainings of one rank at once, each with a GPU and its share of the cores, as of so many "
        "users of one node; a report of each. They are started without ddlrun"},
       {"--arch", &values.arch, "NAME", "Network"},
       {"--lr", &values.learning_rate, "X", "--lr_init of ddltraind"},
       {"--half", &values.half, "", "fp16 instead of fp32"},
       {"--data_dir", &values.data_dir, "DIR", "TFRecord files; without it: synthetic images"},
       {"--suite", &values.suite, "NAME",
        "First part of the report's name: what mlbench-report --jobs names"},
       {"--name", &values.name, "NAME",
        "Benchmark, its row in the table of targets: convnet, convnet_fp16, one training on one "
        "GPU; convnet_distributed, convnet_distributed_fp16, on all; loader, the input alone; or a "
        "name of your own, with the defaults of convnet"},
       {"--run_id", &values.run_id, "N", "Number of the run, a part of the report's name"},
       DdlrunOption(values.ddlrun)});
}

support::Command CompareCommand(BenchOptions& options) {
  CompareOptions& values = options.compare;
  return MakeCommand(
      options.command, BenchCommand::kCompare, "compare",
      "Print the items/s of reports in Mila's form beside a table of targets: mean, sd over "
      "reports, difference, and whether they pass; exit code 65 if a file cannot be used",
      {Required({"REPORT", &values.reports, "",
                 "Reports, and directories in which they are looked for by name"}),
       Required({"--targets", &values.targets, "FILE",
                 "CSV table with the columns bench and target, and, where passing is to be said, "
                 "perf_target and sd_target, such as Mila's target_v100.csv"})});
}

support::Command ReportCommand(BenchOptions& options) {
  ReportOptions& values = options.report;
  return MakeCommand(
      options.command, BenchCommand::kReport, "report",
      "Make one page of runs, with plots, for any browser, offline: throughput, loss, phases of a "
      "step, scaling, GPUs, accuracy, energy, environment, and how the runs differ; exit code 65 "
      "if a file cannot be used",
      {Required({"RUN", &values.runs, "",
                 "Directories that ddltraind had as --results_dir, directories of such, as "
                 "ddlbench sweep "
                 "makes them, and logs"}),
       {"--output", &values.output, "FILE",
        "The page; without it report.html, and none with --text or --json"},
       {"--title", &values.title, "TEXT", "Heading of the page"},
       {"--baseline", &values.baseline, "DIR",
        "Run that the others are compared with; without it the first"},
       {"--skip_steps", &values.skip_steps, "N",
        "Leave out so many steps at the start of each launch; the first 20 are in no log"},
       {"--site", &values.site, "FILE|NAME",
        "Site file of ddlrun, or the name of an installed one, by whose links speeds are "
        "predicted, "
        "which stand beside the measured ones"},
       {"--text", &values.text, "", "Print the tables"},
       {"--json", &values.json, "", "Print all numbers as one JSON object"}});
}

support::Command VariabilityCommand(BenchOptions& options) {
  VariabilityOptions& values = options.variability;
  return MakeCommand(options.command, BenchCommand::kVariability, "variability",
                     "Print how far the durations of iterations are apart over GPUs and over "
                     "repeats, by the rules of the SC22 study of variability, with the clock, "
                     "temperature and power of each GPU; exit code 65 if a file cannot be used",
                     {Required({"LOG", &values.logs, "",
                                "Directories of ddltraind --variability_dir, or files in them: "
                                "resnet_iterdur_SECONDS_HOST.txt, resnet_PID_SECONDS_HOST.csv"}),
                      {"--json", &values.json, "FILE", "File for the same as JSON"}});
}

support::Command LoaderCommand(BenchOptions& options) {
  LoaderOptions& values = options.loader;
  return MakeCommand(
      options.command, BenchCommand::kLoader, "loader",
      "Measure how many images/s the input of a training gives by itself: records read, images "
      "decoded, cropped and laid into batches. Behind ddlrun every rank reads its share",
      {Required({"DATA_DIR", &values.data_dir, "", "Directory of TFRecord files train-*"}),
       {"--data_idx_dir", &values.data_idx_dir, "DIR",
        "Directory of DALI's index files; without it record boundaries are found by scanning"},
       {"--batch_size", &values.batch_size, "N", "Images of a rank in a step"},
       {"--image_size", &values.image_size, "N", "Height and width in pixels"},
       {"--threads", &values.threads, "N,...",
        "Threads of a rank that decode, one measurement for each number; "
        "without it one per core"},
       OneOf({"--augmentation", &values.augmentation, "",
              "Whose random crops are taken, as of ddltraind: tensorflow, dali, torchvision"},
             {"tensorflow", "dali", "torchvision"}),
       {"--prefetch", &values.prefetch, "N", "Batches made ahead"},
       {"--steps", &values.steps, "N", "Batches that are timed"},
       {"--warmup_steps", &values.warmup_steps, "N", "Batches before them"},
       {"--rounds", &values.rounds, "N", "Measurements of each number of threads"},
       {"--take_rate", &values.take_rate, "N",
        "Take batches as a device does that trains on so many images/s of a rank, and show what of "
        "that was reached and the time waited for batches; 0: as fast as they come"},
       OneOf({"--bad_records", &values.bad_records, "", "stop, skip"}, {"stop", "skip"})});
}

support::Command AllReduceCommand(BenchOptions& options) {
  AllReduceOptions& values = options.all_reduce;
  return MakeCommand(
      options.command, BenchCommand::kAllReduce, "allreduce",
      "Measure what summing fp32 numbers over all ranks takes, by size, through what ddltraind "
      "sums gradients with. To be started by ddlrun: ddlrun -n 4 ddlbench allreduce. Exit code 70 "
      "if a sum is wrong",
      {WithDefault({"-b,--min_bytes", &values.min_bytes, "BYTES", "Smallest size, 4 or more"}, "8"),
       WithDefault({"-e,--max_bytes", &values.max_bytes, "BYTES", "Largest size"}, "128M"),
       {"-f,--factor", &values.factor, "N", "From one size to the next"},
       {"-n,--iterations", &values.iterations, "N", "Sums of each size that are timed"},
       {"-w,--warmup_iterations", &values.warmup_iterations, "N", "Sums before them"},
       OneOf({"--form", &values.form, "",
              "nccl-tests: the table of all_reduce_perf, sums queued one behind the other; osu: "
              "that of osu_allreduce -f, each sum waited for"},
             {"nccl-tests", "osu"}),
       {"--backend", &values.backend, "NAME",
        "Whose memory is summed: auto, or a back end of ddltraind"},
       OneOf({"--comm", &values.comm, "",
              "auto: NCCL where every rank has a GPU of its own; nccl; mpi: host memory"},
             {"auto", "nccl", "mpi"})});
}

support::Command CopiesCommand(BenchOptions& options) {
  MemcpyBenchOptions& values = options.copies;
  return MakeCommand(
      options.command, BenchCommand::kCopies, "copies",
      "Measure how fast ranks copy between the host's memory and their devices: all at once, and "
      "one rank of each host at a time, from where it is bound and from each NUMA node. To be "
      "started by ddlrun: ddlrun ddlbench copies",
      {WithDefault({"--bytes", &values.bytes, "BYTES", "Of one copy"}, "64M"),
       {"--rounds", &values.rounds, "N", "Copies that are timed, each way"},
       {"--backend", &values.backend, "NAME",
        "Whose memory is copied to: auto, or a back end of ddltraind"}});
}

support::Command StepCommand(BenchOptions& options) {
  StepOptions& values = options.step;
  return MakeCommand(
      options.command, BenchCommand::kStep, "step",
      "Measure how long a training step takes, and its phases, by ddltraind "
      "--mode=training_benchmark. Options of ddltraind follow behind --",
      {{"--arch", &values.arch, "NAME", "Network"},
       {"--devices", &values.devices, "N", "Ranks"},
       {"--batch_size", &values.batch_size, "N", "Images of a rank in a step"},
       OneOf({"--precision", &values.precision, "", "What a GPU holds activations in"},
             {"fp32", "tf32", "fp16", "bf16"}),
       {"--steps", &values.steps, "N", "Steps that are timed"},
       {"--warmup_steps", &values.warmup_steps, "N", "Steps before them"},
       {"--data_dir", &values.data_dir, "DIR", "TFRecord files; without it: synthetic images"},
       DdlrunOption(values.ddlrun)});
}

support::Command StartupCommand(BenchOptions& options) {
  StartupOptions& values = options.startup;
  return MakeCommand(
      options.command, BenchCommand::kStartup, "startup",
      "Measure how much longer a program takes that ddlrun starts than one that is started bare: "
      "by the same srun, by mpirun, or, with --ddlrun=--launcher=local, by nobody",
      {WithDefault({"--ranks", &values.ranks, "N", "Ranks; without it as many as ddlrun starts"},
                   ""),
       {"--rounds", &values.rounds, "N", "Starts of each, which take turns"},
       DdlrunOption(values.ddlrun)});
}

// One of the keys of scaling/machine.h.
support::Option MachineOption(PredictOptions& values, const std::string& key,
                              const std::string& shape, const std::string& help) {
  return {"--" + key, &values.machine[key], shape, help};
}

support::Command PredictCommand(BenchOptions& options) {
  PredictOptions& values = options.predict;
  return support::MakeCommand(
      options.command, BenchCommand::kPredict, "predict",
      "Say how fast ResNet-50 will train on how many nodes, what bounds it and what would be "
      "faster, from the speed of one GPU and the links of the machine",
      {WithDefault({"--speed", &values.speed, "X", "Images/s of one GPU by itself"}, ""),
       WithDefault({"--node_speed", &values.node_speed, "X",
                    "Images/s of one node: says how far ranks are apart; without it they are "
                    "alike"},
                   ""),
       WithDefault({"--two_nodes_speed", &values.two_nodes_speed, "X",
                    "Images/s of two nodes: says what is waited for between nodes"},
                   ""),
       {"--from", &values.from, "DIR",
        "Directory of logs of ddlbench sweep, instead of the three speeds: 1n1g, and where it has "
        "them one and two whole nodes; what else it has is shown beside"},
       OneOf({"--precision", &values.precision, "",
              "Of the known speed of --gpu or the site, where no other is given"},
             {"fp32", "tf32", "fp16", "bf16"}),
       {"--batch_size", &values.batch_size, "N", "Images of a GPU in a step"},
       {"--backward_share", &values.backward_share, "X", "Of a step that is backward"},
       {.names = "--profile",
        .place = &values.profile,
        .shape = "FILE",
        .help = "profile.json of one GPU (ddltraind --profile): says how long backward takes in "
                "each block, and of a step, instead of what is typical",
        .excludes = "--backward_share"},
       {"--site", &values.site, "FILE|NAME",
        "Links of this site file of ddlrun, or of an installed one: bede"},
       {"--other_nodes", &values.other_nodes, "N",
        "Nodes of another kind that are in the same job, beside those of each line; 0: none"},
       {"--other_site", &values.other_site, "FILE|NAME", "Site file of these: GPU and links"},
       WithDefault({"--other_speed", &values.other_speed, "X",
                    "Images/s of one of their GPUs by itself; without it that of its kind, where "
                    "it is known"},
                   ""),
       MachineOption(values, "gpu", "NAME",
                     "Kind of GPU, whose speed is known: V100, A100, H100, H200"),
       MachineOption(values, "gpus_per_node", "N",
                     "GPUs of a node; without it those of site or logs, else 4"),
       MachineOption(
           values, "inside", "NAME|GB/s",
           "Links of the GPUs in a node: xbus (AC922), nvlink2, nvlink3, nvlink4, "
           "pcie3, pcie4, or the bus bandwidth of an all-reduce in one node; without it those "
           "of the GPU"),
       MachineOption(values, "adapters", "N",
                     "Network adapters of a node; without it those of the site, else 1"),
       MachineOption(values, "adapter_gbits", "X",
                     "Gbit/s of an adapter; without it those of the site, else 100"),
       MachineOption(values, "file_system_gbs", "X",
                     "GB/s that all nodes together read; without it that of the site, else never "
                     "waited for"),
       {"--delay_us", &values.delay_us, "X", "More microseconds of a hop between nodes"},
       {"--table", &values.table, "FILE",
        "Table of all_reduce_perf or ddlbench allreduce, measured over several nodes: its bus "
        "bandwidth counts between nodes"},
       OneOf({"--sums", &values.sums, "", "Type in which gradients are summed"}, {"fp32", "16bit"}),
       OneOf({"--buckets", &values.buckets, "",
              "Whose buckets of gradients: ddltraind, or pytorch, which sums up to 25 MB when "
              "backward is over"},
             {"ddltraind", "pytorch"}),
       OneOf({"--overlap", &values.overlap, "",
              "Whether sums run beside backward: yes, no, or auto: unless ranks are further apart "
              "on one node than where sums are hidden"},
             {"auto", "yes", "no"}),
       {"--cycle_ms", &values.cycle_ms, "X",
        "Sums start at multiples of so many ms only, as with HOROVOD_CYCLE_TIME; 0: at once"},
       {"--staging_gbs", &values.staging_gbs, "X",
        "GB/s at which gradients go to host memory and back, where they are summed there; 0: they "
        "are summed on the GPUs"},
       {"--node_input", &values.node_input, "X",
        "Images/s that the processors of a node decode (ddlbench loader); 0: never waited for"},
       {"--image_kb", &values.image_kb, "X", "kB of an image's file"},
       {"--nodes", &values.nodes, "N,...", "Numbers of nodes, each from 1 to 4096"},
       {"--ranks", &values.ranks, "N,...",
        "Numbers of GPUs, instead of --nodes; they fill node after node"},
       {"--json", &values.json, "", "Print all numbers as one JSON object"}});
}

}  // namespace

support::Program DescribeOptions(BenchOptions& options) {
  support::Program program = {.version = support::VersionText(support::Part::kTrainer),
                              .version_help = support::kVersionHelp,
                              .footer = support::HelpFooter()};
  program.root = {.name = "ddlbench",
                  .help = "Measures trainings, and makes tables of what their logs say."};
  program.root.commands = {
      SweepCommand(options),   ExtractCommand(options),   RepeatCommand(options),
      CompareCommand(options), ReportCommand(options),    VariabilityCommand(options),
      LoaderCommand(options),  AllReduceCommand(options), CopiesCommand(options),
      StepCommand(options),    StartupCommand(options),   PredictCommand(options)};
  return program;
}

}  // namespace bench
