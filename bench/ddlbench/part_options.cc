// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/part_options.h"

#include <CLI/CLI.hpp>

#include "bench/ddlbench/option_kinds.h"

namespace bench {
namespace {

// Bytes, as in 128M: multiples of 1024.
void AddSize(CLI::App* subcommand, const std::string& name, std::int64_t& bytes,
             const std::string& shown, const std::string& help) {
  subcommand->add_option(name, bytes, help)
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false).description(""))
      ->default_str(shown)
      ->type_name("BYTES");
}

void AddLoader(CLI::App& app, BenchOptions& options) {
  CLI::App* loader = AddCommand(
      app, options, BenchCommand::kLoader, "loader",
      "Measure how many images/s the input of a training gives by itself: records read, images "
      "decoded, cropped and laid into batches. Behind ddlrun every rank reads its share");
  LoaderOptions& values = options.loader;
  loader->add_option("DATA_DIR", values.data_dir, "Folder of TFRecord files train-*")->required();
  loader
      ->add_option("--data_idx_dir", values.data_idx_dir,
                   "Folder of DALI's index files; without it record boundaries are found by "
                   "scanning")
      ->type_name("DIR");
  AddNumber(loader, "--batch_size", values.batch_size, "Images of a rank in a step");
  AddNumber(loader, "--image_size", values.image_size, "Height and width in pixels");
  AddList(
      loader, "--threads", values.threads, "N,...",
      "Threads of a rank that decode, one measurement for each number; without it one per core");
  loader
      ->add_option("--augmentation", values.augmentation,
                   "Whose random crops are taken, as of ddltraind: tensorflow, dali, torchvision")
      ->capture_default_str()
      ->check(CLI::IsMember({"tensorflow", "dali", "torchvision"}));
  AddNumber(loader, "--prefetch", values.prefetch, "Batches made ahead");
  AddNumber(loader, "--steps", values.steps, "Batches that are timed");
  AddNumber(loader, "--warmup_steps", values.warmup_steps, "Batches before them");
  AddNumber(loader, "--rounds", values.rounds, "Measurements of each number of threads");
  AddNumber(
      loader, "--take_rate", values.take_rate,
      "Take batches as a device does that trains on so many images/s of a rank, and show what "
      "of that was reached and the time waited for batches; 0: as fast as they come");
  loader->add_option("--bad_records", values.bad_records, "stop, skip")
      ->capture_default_str()
      ->check(CLI::IsMember({"stop", "skip"}));
}

void AddAllReduce(CLI::App& app, BenchOptions& options) {
  CLI::App* all_reduce = AddCommand(
      app, options, BenchCommand::kAllReduce, "allreduce",
      "Measure what summing fp32 numbers over all ranks takes, by size, through what ddltraind "
      "sums "
      "gradients with. To be started by ddlrun: ddlrun -n 4 ddlbench allreduce. Exit code 70 if a "
      "sum is wrong");
  AllReduceOptions& values = options.all_reduce;
  AddSize(all_reduce, "-b,--min_bytes", values.min_bytes, "8", "Smallest size, 4 or more");
  AddSize(all_reduce, "-e,--max_bytes", values.max_bytes, "128M", "Largest size");
  AddNumber(all_reduce, "-f,--factor", values.factor, "From one size to the next");
  AddNumber(all_reduce, "-n,--iterations", values.iterations, "Sums of each size that are timed");
  AddNumber(all_reduce, "-w,--warmup_iterations", values.warmup_iterations, "Sums before them");
  all_reduce
      ->add_option("--form", values.form,
                   "nccl-tests: the table of all_reduce_perf, sums queued one behind the other; "
                   "osu: that of osu_allreduce -f, each sum waited for")
      ->capture_default_str()
      ->check(CLI::IsMember({"nccl-tests", "osu"}));
  all_reduce
      ->add_option("--backend", values.backend,
                   "Whose memory is summed: auto, or a back end of ddltraind")
      ->capture_default_str()
      ->type_name("NAME");
  all_reduce
      ->add_option("--comm", values.comm,
                   "auto: NCCL where every rank has a GPU of its own; nccl; mpi: host memory")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "nccl", "mpi"}));
}

void AddStep(CLI::App& app, BenchOptions& options) {
  CLI::App* step =
      AddCommand(app, options, BenchCommand::kStep, "step",
                 "Measure how long a training step takes, and its phases, by ddltraind "
                 "--mode=training_benchmark. Options of ddltraind follow behind --");
  StepOptions& values = options.step;
  step->add_option("--arch", values.arch, "Network")->capture_default_str()->type_name("NAME");
  AddNumber(step, "--devices", values.devices, "Ranks");
  AddNumber(step, "--batch_size", values.batch_size, "Images of a rank in a step");
  step->add_option("--precision", values.precision, "What a GPU holds activations in")
      ->capture_default_str()
      ->check(CLI::IsMember({"fp32", "tf32", "fp16", "bf16"}));
  AddNumber(step, "--steps", values.steps, "Steps that are timed");
  AddNumber(step, "--warmup_steps", values.warmup_steps, "Steps before them");
  step->add_option("--data_dir", values.data_dir, "TFRecord files; without it: synthetic images")
      ->type_name("DIR");
  AddArguments(step, "--ddlrun", values.ddlrun,
               "An option for ddlrun, as in --ddlrun=--tcp; may be repeated");
}

void AddStartup(CLI::App& app, BenchOptions& options) {
  CLI::App* startup = AddCommand(app, options, BenchCommand::kStartup, "startup",
                                 "Measure how much longer a program takes that ddlrun starts than "
                                 "one that is started bare: by the same srun, by mpirun, or, "
                                 "with --ddlrun=--launcher=local, by nobody");
  StartupOptions& values = options.startup;
  startup->add_option("--ranks", values.ranks, "Ranks; without it as many as ddlrun starts")
      ->type_name("N");
  AddNumber(startup, "--rounds", values.rounds, "Starts of each, which take turns");
  AddArguments(startup, "--ddlrun", values.ddlrun,
               "An option for ddlrun, as in --ddlrun=--tcp; may be repeated");
}

}  // namespace

void AddPartCommands(CLI::App& app, BenchOptions& options) {
  AddLoader(app, options);
  AddAllReduce(app, options);
  AddStep(app, options);
  AddStartup(app, options);
}

}  // namespace bench
