// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <utility>

#include "launcher/cli/option_values.h"
#include "launcher/cli/options.h"
#include "launcher/cli/quoting.h"
#include "launcher/protocol/rank_list.h"

namespace launcher {
namespace {

std::string SetRequeue(Options& options, const std::string& value) {
  return ParseCount(value.empty() ? "8" : value, 1, &options.requeue);
}

// torchrun's words for one rank per GPU are the default.
std::string SetRanksPerNode(Options& options, const std::string& value) {
  if (value == "gpu" || value == "auto") return "";
  return ParseCount(value, 1, &options.ranks_per_node);
}

std::string SetLauncher(Options& options, const std::string& value) {
  return OneOf(options.launcher, value, LauncherNames());
}

std::string SetPmi(Options& options, const std::string& value) {
  return OneOf(options.pmi, value, {"auto", "pmix", "pmi2", "none"});
}

std::string SetBind(Options& options, const std::string& value) {
  return OneOf(options.bind, value, {"auto", "none"});
}

std::string SetRankOrder(Options& options, const std::string& value) {
  // srun calls it block.
  return OneOf(options.rank_order, value == "block" ? "node" : value,
               {"auto", "topology", "node", "cyclic"});
}

std::string SetCheck(Options& options, const std::string& value) {
  return OneOf(options.check, value, {"auto", "full", "off"});
}

std::string SetGpuVisibility(Options& options, const std::string& value) {
  return OneOf(options.gpu_visibility, value, {"auto", "all", "rank"});
}

std::string SetTune(Options& options, const std::string& value) {
  options.tune = value.empty() ? "ddlrun-tuned.yaml" : value;
  return "";
}

std::string SetMode(Options& options, const std::string& value) {
  const std::string expected = OneOf(options.mode, value, {"p", "b", "n", "r", "m", "c"});
  // The -m of torchrun.
  return expected.empty() || value.size() < 2
             ? expected
             : expected + "; a Python module is started by: ddlrun python3 -m " + value;
}

constexpr char kRankList[] = "a list of ranks, such as 0,3-5, or all";

std::string SetTagFormat(Options& options, const std::string& value) {
  for (std::size_t at = 0; (at = value.find('%', at)) != std::string::npos; at += 2) {
    const std::string what = value.substr(at, 2);
    if (what.size() == 2 && std::string("rlht%").find(what[1]) != std::string::npos) continue;
    return "a format of %r, %l, %h, %t and %%: '" + what + "' is none of these";
  }
  options.tag_format = value.empty() ? "[%r] " : value;
  return "";
}

std::string SetShownRanks(Options& options, const std::string& value) {
  options.shown_ranks = value;
  return LargestRank(value) ? "" : kRankList;
}

std::string SetFold(Options& options, const std::string& value) {
  return OneOf(options.fold_output, value.empty() ? "equal" : value, {"equal", "numbers"});
}

std::string AddWrap(Options& options, const std::string& value) {
  constexpr char kExpected[] =
      "RANKS: COMMAND, such as '0,3-5: valgrind --log-file=%r.log' or 'all: numactl -l'";
  const std::size_t colon = value.find(':');
  Wrap wrap = {.ranks = value.substr(0, colon), .words = {}};
  if (colon == std::string::npos || !LargestRank(wrap.ranks)) return kExpected;
  wrap.words = SplitOnWhitespace(value.substr(colon + 1));
  if (wrap.words.empty()) return kExpected;
  const auto is_long = [](const std::string& word) { return word.size() > kMaxWrapWordBytes; };
  if (std::ranges::any_of(wrap.words, is_long)) {
    return "a command whose words have at most " + std::to_string(kMaxWrapWordBytes) + " bytes";
  }
  options.wraps.push_back(std::move(wrap));
  return "";
}

std::string AddExport(Options& options, const std::string& value) {
  if (!IsExport(value)) return "VAR or VAR=value";
  options.exports.push_back(value);
  return "";
}

constexpr char kWhat[] = "What is started, and where";
constexpr char kAgain[] = "Restarts and time limits";
constexpr char kDdl[] = "DDL";
constexpr char kInstead[] = "Looking instead of running";
constexpr char kIbm[] = "IBM";

}  // namespace

std::vector<OptionSpec> BaseOptions() {
  return {
      {.section = kWhat,
       .names = {"n", "np"},
       .also = {"ntasks", "num-processes"},
       .argument = "N",
       .unit = "ranks",
       .default_value = "one per GPU; without GPUs one per node",
       .help = "ranks in total",
       .set = SetCount<&Options::ranks>},
      {.section = kWhat,
       .names = {"ranks-per-node"},
       .also = {"nproc-per-node", "ntasks-per-node", "ppn"},
       .argument = "N",
       .unit = "ranks",
       .default_value = "one per GPU; without GPUs the tasks of the job, else one",
       .help = "ranks on each node; with -n the most ranks of a node",
       .set = SetRanksPerNode},
      {.section = kWhat,
       .names = {"cpus-per-rank"},
       .also = {"cpus-per-task"},
       .argument = "N",
       .unit = "hardware threads",
       .default_value = "--cpus-per-task of the job, else an even share",
       .help = "CPUs of each rank, in whole cores; refused where a node has too few",
       .set = SetCount<&Options::cpus_per_rank>},
      {.section = kWhat,
       .names = {"accelerators"},
       .also = {"gpus-per-node", "num-gpus"},
       .argument = "N",
       .unit = "GPUs per node",
       .default_value = "those granted or found",
       .source = kIbm,
       .help = "GPUs to use on each node, 0 for none",
       .set = SetCount<&Options::accelerators, 0>},
      {.section = kWhat,
       .names = {"H", "host"},
       .argument = "H1,H2,...",
       .default_value = "the Slurm allocation, else this machine",
       .source = kIbm,
       .help = "hosts to run on; H:2 runs two ranks there",
       .set = SetText<&Options::hosts>},
      {.section = kWhat,
       .names = {"hostfile"},
       .also = {"machinefile"},
       .argument = "FILE",
       .source = kIbm,
       .help = "hosts to run on, one per line ('h slots=2')",
       .set = SetText<&Options::hostfile>},
      {.section = kWhat,
       .names = {"rankfile", "rf"},
       .argument = "FILE",
       .source = kIbm,
       .help = "your own Open MPI rankfile: mpirun places and binds by it",
       .set = SetText<&Options::rankfile>},
      {.section = kWhat,
       .names = {"x"},
       .argument = "VAR[=VALUE]",
       .help = "export VAR to the ranks (may be repeated); most variables are exported anyway",
       .set = AddExport},
      {.section = kWhat,
       .names = {"rank-order"},
       .also = {"distribution"},
       .argument = "auto|topology|node|cyclic",
       .default_value = "auto",
       .help = "auto, topology: fill one node after the other, with nodes that share a switch or "
               "block side by side, as Slurm knows them; topology also asks Slurm for the topology "
               "of a partition; node: in Slurm's order; cyclic: deal ranks out to the nodes in "
               "turn",
       .set = SetRankOrder},
      {.section = kWhat,
       .names = {"oversubscribe"},
       .help = "allow more ranks than GPUs or cores; ranks are then not bound",
       .set = SetTrue<&Options::oversubscribe>},
      {.section = kHowSection,
       .names = {"launcher"},
       .argument = "auto|srun|mpirun|local|hydra",
       .default_value = "auto",
       .help = "auto: srun inside Slurm, else mpirun for more than one rank where it is installed, "
               "else local; mpirun: that of Open MPI; hydra: mpiexec of MPICH, MVAPICH or Intel "
               "MPI, also where auto finds it as mpirun; local: one machine, no MPI",
       .set = SetLauncher},
      {.section = kHowSection,
       .names = {"pmi"},
       .also = {"mpi"},
       .argument = "auto|pmix|pmi2|none",
       .default_value = "auto",
       .help = "how ranks that srun starts find each other: pmix or pmi2: as MPI programs need it; "
               "none: for programs that need neither, such as PyTorch; auto: pmix; where srun "
               "lacks it mpirun starts the ranks, and where that is missing too srun without any",
       .set = SetPmi},
      {.section = kHowSection,
       .names = {"bind"},
       .also = {"bind-to", "cpu-bind"},
       .argument = "auto|none",
       .default_value = "auto",
       .help = "auto: each rank on the cores nearest to its GPU; none: leave ranks unbound",
       .set = SetBind},
      {.section = kHowSection,
       .names = {"gpu-visibility"},
       .argument = "auto|all|rank",
       .default_value = "auto",
       .help =
           "all: every rank sees all GPUs of its node, as NVLink and CUDA IPC need it, and uses "
           "the one with the number LOCAL_RANK; rank: it sees only its own GPU, as device 0; "
           "auto: rank where the GPUs are MIG slices, otherwise all",
       .set = SetGpuVisibility},
      {.section = kHowSection,
       .names = {"mpiarg"},
       .argument = "ARG",
       .source = kIbm,
       .help =
           "pass ARG to mpirun, split at blanks (may be repeated): --mpiarg \"--mca btl tcp,self\"",
       .set = AddText<&Options::mpi_arguments>},
      {.section = kHowSection,
       .names = {"srunarg"},
       .argument = "ARG",
       .help = "pass ARG to srun, like --mpiarg: --srunarg --container-image=train.sqsh",
       .set = AddText<&Options::srun_arguments>},
      {.section = kHowSection,
       .names = {"tcp"},
       .source = kIbm,
       .help = "talk over TCP, not InfiniBand",
       .set = SetTrue<&Options::tcp>},
      {.section = kHowSection,
       .names = {"site"},
       .argument = "FILE|NAME",
       .default_value = "$DDLRUN_SITE, /etc/ddlrun/site.yaml, else generic",
       .help = "settings of this cluster: a YAML file, or the name of an installed one",
       .set = SetText<&Options::site>},
      {.section = kHowSection,
       .names = {"run-dir"},
       .argument = "DIR",
       .default_value = "$SLURM_TMPDIR, $TMPDIR, $XDG_RUNTIME_DIR or /tmp",
       .help = "make the private run directory (log, rankfile, plan) in DIR and keep it",
       .set = SetText<&Options::run_directory>},
      {.section = kHowSection,
       .names = {"tag-output"},
       .also = {"label"},
       .argument = "[FORMAT]",
       .default_value = "'[%r] '",
       .help = "put FORMAT in front of every line of output: %r is the rank, %l the local rank, %h "
               "the host, %t the time (HH:MM:SS.mmm), %% a percent sign",
       .set = SetTagFormat},
      {.section = kHowSection,
       .names = {"show-ranks"},
       .argument = "RANKS",
       .default_value = "all",
       .help = "show the output of these ranks alone: 0,3-5. The last lines of a rank that fails "
               "are shown all the same; --log-dir has the output of all",
       .set = SetShownRanks},
      {.section = kHowSection,
       .names = {"fold-output"},
       .argument = "[equal|numbers]",
       .default_value = "equal",
       .help = "show a line that several ranks print within a second once, with their ranks in "
               "front: [0-63] loading; numbers: also lines that differ in numbers alone, which "
               "are shown as MIN..MAX",
       .set = SetFold},
      {.section = kHowSection,
       .names = {"wrap"},
       .argument = "RANKS:COMMAND",
       .help = "start these ranks under COMMAND, split at blanks, the others as they are (may be "
               "repeated): --wrap '0,8: nsys profile -o rank%r'; %r is the rank, RANKS may be all",
       .set = AddWrap},
      {.section = kHowSection,
       .names = {"log-dir"},
       .argument = "DIR",
       .help = "write all that rank 3 prints to DIR/rank-00003.log as well; DIR is made, and must "
               "be shared by the nodes",
       .set = SetText<&Options::log_directory>},
      {.section = kHowSection,
       .names = {"check"},
       .argument = "auto|full|off",
       .default_value = "auto",
       .help = "look at the nodes before ranks start: auto: each rank counts the GPUs of its node; "
               "full: all checks of --check-only first, exit 78 when one fails; off: nothing",
       .set = SetCheck},
      {.section = kAgain,
       .names = {"max-restarts"},
       .argument = "N",
       .unit = "restarts",
       .default_value = "0",
       .help = "when a rank fails, start all again in this allocation, N times at most; not after "
               "exit codes 64, 65, 78, nor 69 before all ranks had started, not after SIGTERM, "
               "SIGINT or SIGHUP, not after three runs in a row without progress",
       .set = SetCountOrNone<&Options::max_restarts>},
      {.section = kAgain,
       .names = {"spare-nodes"},
       .argument = "N",
       .unit = "nodes",
       .default_value = "0",
       .help =
           "run on all but N nodes of the job; a restart takes one of them instead of a node that "
           "was lost, --check=full instead of one that is bad. Needs #SBATCH --no-kill and srun",
       .set = SetCountOrNone<&Options::spare_nodes>},
      {.section = kAgain,
       .names = {"min-nodes"},
       .argument = "N",
       .unit = "nodes",
       .default_value = "all but the spare nodes",
       .help =
           "when a node was lost and no spare node is left, restart at once with fewer ranks on "
           "the nodes that are left, if these are N or more; --check=full leaves out bad nodes "
           "likewise. Needs #SBATCH --no-kill and srun",
       .set = SetCount<&Options::min_nodes>},
      {.section = kAgain,
       .names = {"requeue"},
       .argument = "[N]",
       .unit = "times",
       .default_value = "8",
       .help = "when ranks stop early with exit code 75, or too few nodes are left, put the job "
               "into Slurm's queue again, N times at most; never after scancel, never after a run "
               "without progress",
       .set = SetRequeue},
      {.section = kAgain,
       .names = {"progress-file"},
       .argument = "FILE|DIR",
       .default_value = "the checkpoints of ddltraind; else a run of 60 s or more",
       .help = "a run has made progress if this file, or the newest entry of this directory (of "
               "checkpoints), became newer",
       .set = SetText<&Options::progress_file>},
      {.section = kDdl,
       .names = {"mode", "m"},
       .argument = "p|b|n|r|m|c",
       .default_value = "p",
       .source = kIbm,
       .help = "DDL mode",
       .set = SetMode},
      {.section = kDdl,
       .names = {"ddlarg", "ddloption"},
       .argument = "ARG",
       .source = kIbm,
       .help = "add ARG to DDL_OPTIONS (may be repeated)",
       .set = AddText<&Options::ddl_options>},
      {.section = kDdl,
       .names = {"no_ddloptions"},
       .source = kIbm,
       .help = "do not set DDL_OPTIONS",
       .set = SetTrue<&Options::no_ddl_options>},
      {.section = kDdl,
       .names = {"no-ddl-host-list"},
       .help = "do not set DDL_HOST_LIST, which names every rank and is long in large jobs",
       .set = SetTrue<&Options::no_ddl_host_list>},
      {.section = kDdl,
       .names = {"nodes"},
       .argument = "N",
       .unit = "nodes per rack",
       .default_value = "all nodes over racks and aisles",
       .source = kIbm,
       .help = "nodes in a rack; nodes x racks x aisles must be the number of nodes",
       .set = SetCount<&Options::nodes>},
      {.section = kDdl,
       .names = {"racks"},
       .argument = "N",
       .unit = "racks per aisle",
       .default_value = "1",
       .source = kIbm,
       .help = "racks in an aisle",
       .set = SetCount<&Options::racks>},
      {.section = kDdl,
       .names = {"aisles"},
       .argument = "N",
       .unit = "aisles",
       .default_value = "1",
       .source = kIbm,
       .help = "aisles",
       .set = SetCount<&Options::aisles>},
      {.section = kInstead,
       .names = {"dry-run"},
       .argument = "[text|json]",
       .default_value = "text",
       .help = "print which rank would run where, and the command; start nothing",
       .set = SetFormat<&Options::dry_run, DryRun>},
      {.section = kInstead,
       .names = {"advise"},
       .argument = "[N]",
       .unit = "images/s of one GPU",
       .default_value = "what is known of the GPU",
       .help = "print what this training of ddltraind would be on 1, 2, 4, 8 and 16 nodes: global "
               "batch, learning rate, images/s, time, GPU-hours, and what of it is assumed; start "
               "nothing",
       .set = SetAdvise},
      {.section = kInstead,
       .names = {"topology"},
       .argument = "FILE",
       .default_value = "this machine",
       .help = "hwloc XML that stands for every node, for dry runs",
       .set = SetText<&Options::topology>},
      {.section = kInstead,
       .names = {"show-config"},
       .help = "print every setting with where it comes from; start nothing",
       .set = SetTrue<&Options::show_config>},
      {.section = kInstead,
       .names = {"check-only"},
       .help = "check all nodes (hardware, GPUs, InfiniBand, connections between them, clocks, "
               "directory, versions), print the table; start no rank; exit 0, or 78 when a check "
               "failed",
       .set = SetTrue<&Options::check_only>},
      {.section = kInstead,
       .names = {"site-report"},
       .argument = "[text|json]",
       .default_value = "text",
       .help = "print what a ticket to the site's support should tell: versions, the nodes of the "
               "job or this machine, limits, settings and where they come from, what is odd; no "
               "secrets; start no rank",
       .set = SetFormat<&Options::site_report, OutputFormat>},
      {.section = kInstead,
       .names = {"tune"},
       .argument = "[FILE]",
       .default_value = "ddlrun-tuned.yaml",
       .help = "measure for minutes, on two nodes or more, which networks, ways of MPI or NCCL, "
               "binding and order of ranks are better for an all-reduce over all ranks than what "
               "the job "
               "has now, and which link is slow; write a site file with what is better by more "
               "than its scatter; start no program of yours",
       .set = SetTune},
      {.section = kInstead,
       .names = {"v", "verbose"},
       .source = kIbm,
       .help = "say what is found and decided",
       .set = SetTrue<&Options::verbose>},
      {.section = kInstead,
       .names = {"version"},
       .help = "print the version, and the libraries that this build has",
       .set = SetTrue<&Options::version>},
      {.section = kInstead,
       .names = {"help", "h"},
       .help = "print this text",
       .set = SetTrue<&Options::help>},
  };
}

}  // namespace launcher
