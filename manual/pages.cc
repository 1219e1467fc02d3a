// SPDX-License-Identifier: Apache-2.0

#include "manual/pages.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "bench/ddlbench/options.h"
#include "ddlctl/options.h"
#include "ddldata/options.h"
#include "launcher/bede/bede_options.h"
#include "launcher/features/features.h"
#include "rankfile/options.h"
#include "trainer/options/options.h"

namespace manual {
namespace {

const std::pair<std::string, std::string> kUsage = {"64", "The command line is wrong."};
const std::pair<std::string, std::string> kInternal = {"70", "A mistake in the program."};
const std::pair<std::string, std::string> kSystem = {
    "71", "The operating system refused something: memory, a full disk, permissions."};
const std::pair<std::string, std::string> kConfiguration = {
    "78", "The allocation or the configuration is wrong; the message says what to write."};

// Of a row of support/command_line.h.
Value ValueOf(const support::Option& row) {
  if (support::IsFlag(row)) return {};
  if (row.choices.empty()) return ValueOfShape(row.shape);
  std::string shape;
  for (const std::string& choice : row.choices) shape += (shape.empty() ? "" : "|") + choice;
  return ValueOfShape(shape);
}

Option OptionOf(const support::Option& row) {
  const std::string standard = support::DefaultOf(row);
  return {support::NamesOf(row), ValueOf(row),
          row.help + (standard.empty() ? "" : " [" + standard + "]")};
}

Operand OperandOf(const support::Option& row) {
  Value value = ValueOf(row);
  value.shape = row.names;  // says what it is; the choices stay
  return {value, row.help, support::IsList(row)};
}

Command CommandOf(const support::Command& rows, std::vector<support::Option> standard) {
  Command command = {rows.name, rows.help, {}, {}};
  standard.insert(standard.end(), rows.options.begin(), rows.options.end());
  for (const support::Option& row : standard) {
    if (support::IsOperand(row)) {
      command.operands.push_back(OperandOf(row));
      continue;
    }
    if (command.groups.empty() || command.groups.back().title != row.group) {
      command.groups.push_back({row.group, {}});
    }
    command.groups.back().options.push_back(OptionOf(row));
  }
  return command;
}

// Those below another one come behind it, as "checkpoint list".
void AddCommands(Page& page, const support::Program& program, const support::Command& above,
                 const std::string& words) {
  for (const support::Command& rows : above.commands) {
    page.commands.push_back(CommandOf(rows, {program.help}));
    page.commands.back().name = words + rows.name;
    AddCommands(page, program, rows, words + rows.name + " ");
  }
}

void AddRows(Page& page, const support::Program& program) {
  std::vector<support::Option> standard = {program.help};
  if (!program.version.empty()) standard.push_back({"--version", {}, "", program.version_help});
  page.program = CommandOf(program.root, standard);
  AddCommands(page, program, program.root, "");
}

Page DdlrunPage() {
  Page page;
  page.names = {"ddlrun", "bede-ddlrun"};
  page.summary = "start one rank of a program per GPU over all nodes of a job";
  page.synopsis = {"ddlrun [options] program [arguments]",
                   "ddlrun --check-only | --show-config | --site-report | --tune"};
  page.description = {
      "Starts one rank of the program per GPU over all nodes of the Slurm job, or on the hosts "
      "given, or on this machine. Each rank is bound to the cores nearest to its GPU and finds in "
      "its environment what PyTorch, Horovod and MPI programs look for.",
      "Every option may be written with one dash or two; a value follows as the next argument or "
      "after '='. The first word that is no option is the program; what follows is the program's. "
      "Options marked (IBM) are those of IBM's ddlrun."};
  for (const launcher::OptionSpec& spec : launcher::OptionTable()) {
    if (page.program.groups.empty() || page.program.groups.back().title != spec.section) {
      page.program.groups.push_back({spec.section, {}});
    }
    Option option;
    for (const std::string& name : spec.names) {
      option.names.push_back((name.size() == 1 ? "-" : "--") + name);
    }
    option.value = ValueOfShape(spec.argument);
    option.help = launcher::HelpOf(spec);
    page.program.groups.back().options.push_back(option);
  }
  page.rest = Rest::kProgram;
  page.one_dash_is_enough = true;
  page.exit_status = {
      {"0", "All ranks ended with 0."},
      {"1-255", "That of the first rank that failed; 128 + n when signal n ended it."},
      kUsage,
      {"65", "A file that was given is wrong or cannot be read."},
      {"69", "A rank, or what starts ranks, could not be started."},
      kInternal,
      kSystem,
      {"75", "The ranks stopped early with a checkpoint written: start the same command again."},
      kConfiguration};
  page.environment = {
      {"DDLRUN_SITE", "The site file, where --site is not given."},
      {"SLURM_*", "The allocation: how many nodes, tasks and GPUs."},
      {"TMPDIR", "Where the private run directory is made, after SLURM_TMPDIR."},
      {"CUDA_VISIBLE_DEVICES",
       "Outside Slurm: the GPUs that there are ranks for, as CUDA reads it."},
      {"OMP_NUM_THREADS",
       "Stays as it is; where it is not set, ranks get the number of their cores."},
      {"RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT",
       "Set for every rank, as torch.distributed's env:// reads them; so are HOROVOD_*, "
       "DDL_HOST_LIST, DDL_HOST_PORT, DDL_OPTIONS and DDLRUN_*."}};
  page.files = {
      {"share/ddlrun/sites/*.yaml", "Settings of clusters, by the name that --site takes."},
      {"share/ddlrun/slurm-templates", "Job scripts to copy."},
      {"ddlrun.XXXXXX",
       "The private run directory (log, plan, rankfile); removed at the end "
       "unless --run-dir is given."}};
  page.signals = {
      {"SIGTERM, SIGINT, SIGHUP",
       "Ask every rank to stop; ddlrun ends with them. A second Ctrl-C kills. Under nohup SIGHUP "
       "is "
       "ignored."},
      {"SIGUSR1, SIGUSR2", "Handed on to every rank; --launcher=hydra hands on SIGUSR1 alone."},
      {"SIGTSTP, SIGCONT",
       "Ctrl-Z stops all ranks, fg or bg continues them; not with --launcher=hydra."}};
  page.examples = {
      {"ddlrun python3 train.py",
       "One rank per GPU of this machine. In a job script of Slurm, or in salloc, the same line "
       "starts one per GPU on all nodes of the job."},
      {"ddlrun --dry-run python3 train.py", "What that would start, and where; starts nothing."},
      {"ddlrun -n 2 --tag-output --log-dir logs python3 train.py",
       "Two ranks; the rank in front of each line, and a file of its own for the output of each."},
      {"ddlrun -n 2 --max-restarts 3 python3 train.py",
       "Starts all ranks again when one fails, three times at most."},
      {"ddlrun --site-report > report.txt", "What the support of a site asks for."}};
  page.see_also = {"bede-mpirun(1)", "ddlctl(1)", "ddltraind(1)", "ddl-rankfile(1)",
                   "sbatch(1)",      "srun(1)",   "mpirun(1)"};
  return page;
}

Page BedeMpirunPage() {
  Page page;
  page.names = {"bede-mpirun"};
  page.summary = "start a program by mpirun with ranks and threads as the nodes are made";
  page.synopsis = {"bede-mpirun [--bede-par RANKS[:THREADS]] [mpirun options] program [arguments]"};
  page.description = {
      "Starts a program by Open MPI's mpirun on all nodes of the Slurm job, or on this machine. "
      "Everything but the options below is handed to mpirun as it is, and counts over what "
      "bede-mpirun sets.",
      "RANKS is 1ppn (one rank per node, not bound), 1ppg (one per GPU, on cores near to it), 1ppc "
      "(one per core) or 1ppt (one per hardware thread). THREADS is the OMP_NUM_THREADS of each "
      "rank: 1tpc (the number of its cores), 1tpt (of its hardware threads) or none (1)."};
  page.program.groups.push_back({"", {}});
  for (const launcher::BedeOptionSpec& spec : launcher::BedeOptionTable()) {
    page.program.groups.back().options.push_back(
        {{spec.name}, {spec.argument, false, spec.choices}, spec.help});
  }
  page.rest = Rest::kOptionsAndProgram;
  page.exit_status = {{"0-255", "That of mpirun, which is that of the first rank that failed."},
                      kUsage,
                      {"69", "There is no mpirun."},
                      kInternal,
                      kSystem,
                      kConfiguration};
  page.environment = {{"OMP_NUM_THREADS", "Stays as it is where --bede-par names no THREADS."},
                      {"SLURM_*", "The nodes of the job."}};
  page.see_also = {"ddlrun(1)", "mpirun(1)"};
  return page;
}

Page DdltraindPage() {
  trainer::Options options;
  const support::Program program = trainer::DescribeOptions(options);
  Page page;
  page.names = {"ddltraind"};
  page.summary = "train ResNet on images, one process per rank";
  page.synopsis = {"ddlrun ddltraind --batch_size=N [options]",
                   "ddltraind --batch_size=N [options]"};
  page.description = {
      "Trains ResNet v1.5 on TFRecords of JPEG images, or on made-up images, and evaluates it. "
      "ddlrun starts one process per rank; one that is started by hand is a rank alone.",
      "The options are those of NVIDIA's TensorFlow benchmark and some more. They may be "
      "abbreviated as long as only one is meant; given twice, the last one counts. A run that was "
      "interrupted resumes from its newest valid checkpoint when the same command is given again."};
  AddRows(page, program);
  page.exit_status = {
      {"0", "Done."},
      kUsage,
      {"65", "Input data: a record, an image or a checkpoint."},
      {"69", "The ranks did not meet, a rank is gone, or the back end does not run here."},
      {"70",
       "A mistake in the program, or training that cannot continue: a NaN loss, a "
       "rank that hangs."},
      {"71", "The operating system refused something, or a GPU failed while it computed."},
      {"75", "Stopped early with a checkpoint written: start the same command again."},
      {"78",
       "Configuration: the ranks' environment, or a directory that another run uses or whose "
       "checkpoints are not of this run."}};
  page.environment = {{"RANK, WORLD_SIZE, LOCAL_RANK, DDLRUN_*", "Set by ddlrun."},
                      {"NCCL_*", "Read by NCCL, as everywhere."}};
  page.files = {{"MODEL_DIR/checkpoints/step-NNNNNNNNNN",
                 "Checkpoints: model.safetensors (torchvision's names), optimizer.safetensors, "
                 "manifest.json."},
                {"MODEL_DIR/.ddltraind.lock",
                 "Who trains here now. The kernel lets go of the lock when that process ends."},
                {"RESULTS_DIR/log.json", "DLLogger's JSON lines."},
                {"RESULTS_DIR/.ddltraind.control",
                 "Where ddlctl reaches the training; once it has ended, its last status."}};
  page.see_also = {"ddlrun(1)", "ddlctl(1)", "ddldata(1)"};
  return page;
}

Page DdlctlPage() {
  ddlctl::Options options;
  const support::Program program = ddlctl::DescribeOptions(options);
  Page page;
  page.names = {"ddlctl"};
  page.summary =
      "see and ask a training of ddltraind that runs, look at its checkpoints, and say why a job "
      "of ddlrun hangs";
  page.synopsis = {"ddlctl status [--json] RESULTS_DIR|RUN_DIR|JOB",
                   "ddlctl watch [--interval=SECONDS] RESULTS_DIR",
                   "ddlctl pause|resume|checkpoint|stop [--no-wait] RESULTS_DIR",
                   "ddlctl set display_every=N RESULTS_DIR",
                   "ddlctl why [-v] [--json] JOB|RUN_DIR",
                   "ddlctl attach JOB|RUN_DIR RANK [COMMAND...]",
                   "ddlctl checkpoint list DIR",
                   "ddlctl checkpoint verify DIR [STEP]",
                   "ddlctl checkpoint export DIR [STEP] FILE.safetensors"};
  page.description = {
      "Asks rank 0 of a training that keeps its weights (--mode=train, train_and_evaluate), "
      "through a socket that only the same user can reach, on the node of rank 0. For a training "
      "on "
      "another node of a Slurm job it runs itself there, by srun --overlap.",
      "Orders are obeyed by all ranks between two steps; ddlctl waits for that and says after "
      "which. A training that was paused, whatever was asked of it then, ends with the same "
      "weights as one that was not.",
      "checkpoint list, verify and export read the files of a training, whether it runs or not. A "
      "directory with the name of a command is written ./list.",
      "status of a job's number, or of the run directory of a ddlrun, tells what ddlrun knows of a "
      "job with any program: its ranks, their ends and heartbeats, restarts, and time. A directory "
      "whose name is a number is written ./12."};
  page.description.emplace_back(
      "why looks at the processes of all ranks of such a job, on all of its nodes by srun "
      "--overlap, and says which rank hangs in what. It stops and changes nothing. With py-spy in "
      "PATH, or in that of the ranks, it knows Python functions.");
  AddRows(page, program);
  page.exit_status = {
      {"0", "Done; of watch: the training has ended in order."},
      kUsage,
      {"65", "The file in RESULTS_DIR, or an answer, cannot be read; a checkpoint is damaged."},
      {"66", "There is no checkpoint, or none of that step."},
      {"69",
       "No training that can be asked: none is there, it has ended or failed, it does not answer, "
       "or it is on another machine and srun cannot be used."},
      kInternal,
      kSystem,
      {"75", "The training cannot do that in its state; the message names it."},
      {"77", "The training is another user's."}};
  page.files = {{"RESULTS_DIR/.ddltraind.control",
                 "On which host and in which job the training runs, and its socket there; once it "
                 "has ended, its last status."}};
  page.environment = {{"SLURM_TMPDIR, TMPDIR, XDG_RUNTIME_DIR",
                       "Where the run directory of a job is looked for, besides /tmp."},
                      {"SHELL, TERM", "Of attach: the shell beside a rank, and its terminal."}};
  page.examples = {
      {"ddlctl status results",
       "How far the training is whose --results_dir is results; also after its end."},
      {"ddlctl checkpoint list results",
       "Its checkpoints: steps, sizes, and what wrote them when."},
      {"ddlctl checkpoint verify results", "Reads them all, and compares their checksums."},
      {"ddlctl why run/ddlrun.*",
       "Which rank holds up the others, in the job that was started with --run-dir run; for a job "
       "of Slurm its number stands there."},
      {"ddlctl history logs",
       "What the launches have cost that were started with --log-dir logs."}};
  page.see_also = {"ddltraind(1)", "ddlrun(1)", "srun(1)"};
  return page;
}

Page DdldataPage() {
  trainer::DataToolOptions options(1);
  const support::Program program = trainer::DescribeOptions(options);
  Page page;
  page.names = {"ddldata"};
  page.summary = "make, convert, split, index, describe and verify TFRecord data sets of images";
  page.synopsis = {"ddldata synth [options] DIR",
                   "ddldata convert DATA_DIR --train PATH... [--validation PATH...] [options]",
                   "ddldata index [options] DATA_DIR INDEX_DIR",
                   "ddldata manifest [options] DATA_DIR",
                   "ddldata verify [options] DATA_DIR",
                   "ddldata stats [options] DATA_DIR",
                   "ddldata split [options] FROM_DIR DATA_DIR"};
  page.description = {
      "Works on directories of TFRecord files train-* and validation-*, each record a JPEG image "
      "and "
      "its label, as the scripts of TensorFlow make them of ImageNet.",
      "convert makes them of images. It counts the classes from 1 in the order of their names, "
      "shuffles the images, and stores each JPEG as it is. It can be stopped at any time: the same "
      "command continues with the files that are missing.",
      "split copies the records of a set into another number of files, or makes some of the "
      "training images the validation part; it resumes in the same way."};
  AddRows(page, program);
  page.exit_status = {
      {"0", "Done."},
      kUsage,
      {"65", "A record, an image or a file is wrong; the message names file and offset."},
      kInternal,
      kSystem,
      {"75", "A conversion or split was stopped by a signal: start the same command again."},
      {"78", "Another ddldata writes to the directory."}};
  page.files = {{"DATA_DIR/ddldata.manifest",
                 "Records, bytes and checksum of every data file; synth, convert, split and "
                 "manifest write it, ddltraind and verify compare the files with it."},
                {"DATA_DIR/ddldata.conversion",
                 "Which conversion or split the directory is of: another one is refused."}};
  page.see_also = {"ddltraind(1)"};
  return page;
}

Page DdlbenchPage() {
  bench::BenchOptions options;
  const support::Program program = bench::DescribeOptions(options);
  Page page;
  page.names = {"ddlbench"};
  page.summary = "measure trainings, and make tables and reports of their logs";
  page.synopsis = {"ddlbench sweep [options] DIR [-- options of ddltraind]",
                   "ddlbench extract [options] LOG_DIR...",
                   "ddlbench repeat [options] DIR [-- options of ddltraind]",
                   "ddlbench compare --targets=FILE REPORT...",
                   "ddlbench report [options] RUN...",
                   "ddlbench variability [options] LOG...",
                   "ddlbench loader [options] DATA_DIR",
                   "ddlrun ... ddlbench allreduce [options]",
                   "ddlrun ... ddlbench copies [options]",
                   "ddlbench step [options] [-- options of ddltraind]",
                   "ddlbench startup [options]",
                   "ddlbench predict [options]"};
  page.description = {
      "Measures how many images per second ddltraind trains on over nodes, GPUs per node, "
      "precisions and kinds of images, as the evaluation DLPerf does, and writes logs of the names "
      "and lines that DLPerf's own scripts read. A run is one case, such as 2n8g: two nodes with "
      "eight GPUs on each. Or times one training, reports it as a benchmark of Mila's suite, and "
      "puts such reports beside a table of targets. Or makes one page with plots of any runs of "
      "ddltraind. Or measures one part by itself: the input, the all-reduce, copies between "
      "hosts and devices, a training step and its phases, the start of ranks.",
      "Input that is wrong is named on standard error, with file and line; what can be read is "
      "still shown."};
  AddRows(page, program);
  page.exit_status = {
      {"0", "Done."},
      {"1-255", "That of the first run that failed; 128 + n when signal n stopped it."},
      kUsage,
      {"65", "A log, a report or a target that cannot be used; the message names file and line."},
      {"66", "A directory or a file that is not there or cannot be read."},
      {"69", "ddlrun or sbatch could not be started, or a start that is timed has failed."},
      {"70", "An all-reduce was wrong, or an internal error."},
      kSystem,
      {"78", "Ranks that cannot meet, or are started in a way that is not measured."}};
  page.files = {
      {"DIR/bz128_fp32_synthetic/2n8g/r50_b128_fp32_1.log",
       "What the first run of this batch, precision, kind of images and case printed; .part while "
       "it runs, .failed when it failed."},
      {"DIR/result/*_result.json", "Speeds and speed-ups in the form of DLPerf."},
      {"DIR/sweep.sbatch", "The job script that --submit has made."},
      {"DIR/fast.convnet.R0.D0.*.json",
       "A report: suite, benchmark, number of the run, GPUs, time; its log beside it."},
      {"DIR/fast.convnet.R0.D0.FAIL.*.json", "The same of a run that has failed."},
      {"RUN/log.json, training.json, trace.json, ddltraind-rank-*.prom, *.csv",
       "What report reads of a run."},
      {"report.html", "What report writes without --output."}};
  page.see_also = {"ddlrun(1)", "ddltraind(1)", "sbatch(1)"};
  return page;
}

Page RankfilePage() {
  rankfile::Options options;
  const support::Program program = rankfile::DescribeOptions(options);
  Page page;
  page.names = {"ddl-rankfile"};
  page.summary = "check, convert, expand and compress host lists and rankfiles";
  page.synopsis = {"ddl-rankfile expand|compress [--cpus] TEXT",
                   "ddl-rankfile check FORMAT [--hosts HOSTLIST] TEXT",
                   "ddl-rankfile convert --from FORMAT --to FORMAT [--hosts HOSTLIST] TEXT"};
  page.description = {
      "TEXT is the text itself; - is the standard input, and --file FILE stands in for it. FORMAT "
      "is hostlist (gpu[025-027,030], of Slurm), cpu-list (0-3,8, of Linux), rankfile (of Open "
      "MPI), hostfile (gpu025 slots=4), ddl-host-list (DDL_HOST_LIST) or ddl-options "
      "(DDL_OPTIONS)."};
  AddRows(page, program);
  page.exit_status = {{"0", "Done."},
                      kUsage,
                      {"65",
                       "Input that is bad or cannot be read, said as "
                       "source:line:column: message."},
                      {"71", "Output that cannot be written."}};
  page.see_also = {"ddlrun(1)", "scontrol(1)", "mpirun(1)"};
  return page;
}

}  // namespace

std::vector<Page> AllPages() {
  return {DdlrunPage(),  BedeMpirunPage(), DdltraindPage(), DdlctlPage(),
          DdldataPage(), DdlbenchPage(),   RankfilePage()};
}

namespace {

// Words of the option tables that stand for something else.
constexpr std::array<std::string_view, 26> kPlaceholders = {
    "FILE",       "DIR",          "NAME",     "N",          "X",         "WORD",
    "TEXT",       "ARG",          "MIN-MAX",  "HOSTLIST",   "H1,H2,...", "VAR[=VALUE]",
    "GFLOPS:GBS", "STEP:COUNT",   "CASE,...", "TYPE,...",   "N,...",     "BYTES",
    "SECONDS",    "PERCENT",      "DECAY",    "N[:SIGNAL]", "JOB",       "FORMAT",
    "RANKS",      "RANKS:COMMAND"};

}  // namespace

Value ValueOfShape(const std::string& shape) {
  Value value;
  value.is_optional = shape.starts_with("[");
  value.shape = value.is_optional ? shape.substr(1, shape.size() - 2) : shape;
  std::size_t start = 0;
  while (start < value.shape.size()) {
    const std::size_t end = std::min(value.shape.find('|', start), value.shape.size());
    value.choices.push_back(value.shape.substr(start, end - start));
    start = end + 1;
  }
  const auto is_placeholder = [](const std::string& part) {
    return std::find(kPlaceholders.begin(), kPlaceholders.end(), part) != kPlaceholders.end();
  };
  if (std::any_of(value.choices.begin(), value.choices.end(), is_placeholder)) {
    value.choices.clear();
  }
  return value;
}

}  // namespace manual
