// SPDX-License-Identifier: Apache-2.0

#include "launcher/cli/option_setters.h"
#include "launcher/cli/option_values.h"
#include "launcher/cli/options.h"

namespace launcher {
namespace {

std::string SetRequeue(Options& options, const std::string& value) {
  return ParseCount(value.empty() ? "8" : value, 1, &options.requeue);
}

std::string SetLauncher(Options& options, const std::string& value) {
  return OneOf(options.launcher, value, {"auto", "srun", "mpirun", "local"});
}

std::string SetPmi(Options& options, const std::string& value) {
  return OneOf(options.pmi, value, {"auto", "pmix", "pmi2", "none"});
}

std::string SetBind(Options& options, const std::string& value) {
  return OneOf(options.bind, value, {"auto", "none"});
}

std::string SetRankOrder(Options& options, const std::string& value) {
  return OneOf(options.rank_order, value, {"node", "cyclic"});
}

std::string SetCheck(Options& options, const std::string& value) {
  return OneOf(options.check, value, {"auto", "full", "off"});
}

std::string SetGpuVisibility(Options& options, const std::string& value) {
  return OneOf(options.gpu_visibility, value, {"auto", "all", "rank"});
}

std::string SetDryRun(Options& options, const std::string& value) {
  std::string format;
  const std::string expected = OneOf(format, value.empty() ? "text" : value, {"text", "json"});
  options.dry_run = format == "json" ? DryRun::kJson : DryRun::kText;
  return expected;
}

std::string SetMode(Options& options, const std::string& value) {
  return OneOf(options.mode, value, {"p", "b", "n", "r", "m", "c"});
}

std::string AddExport(Options& options, const std::string& value) {
  if (!IsExport(value)) return "VAR or VAR=value";
  options.exports.push_back(value);
  return "";
}

constexpr char kWhat[] = "What is started, and where";
constexpr char kHow[] = "How ranks are started";
constexpr char kAgain[] = "Going on after a failure";
constexpr char kDdl[] = "DDL";
constexpr char kInstead[] = "Looking instead of running";
constexpr char kIbm[] = "IBM";
constexpr char kOwn[] = "ddlrun";

}  // namespace

const std::vector<OptionSpec>& OptionTable() {
  static const std::vector<OptionSpec> table = {
      {kWhat,
       {"n", "np"},
       "N",
       "ranks",
       "one per GPU; without GPUs one per node",
       kOwn,
       "ranks in total",
       SetCount<&Options::ranks>},
      {kWhat,
       {"ranks-per-node"},
       "N",
       "ranks",
       "one per GPU; without GPUs the tasks of the job, else one",
       kOwn,
       "ranks on each node; with -n no more than so many",
       SetCount<&Options::ranks_per_node>},
      {kWhat,
       {"cpus-per-rank"},
       "N",
       "hardware threads",
       "--cpus-per-task of the job, else an even share",
       kOwn,
       "CPUs of each rank, in whole cores; refused where a node has too few",
       SetCount<&Options::cpus_per_rank>},
      {kWhat,
       {"accelerators"},
       "N",
       "GPUs per node",
       "those granted or found",
       kIbm,
       "GPUs to use on each node, 0 for none",
       SetCount<&Options::accelerators, 0>},
      {kWhat,
       {"H", "host"},
       "H1,H2,...",
       "",
       "the Slurm allocation, else this machine",
       kIbm,
       "hosts to run on; H:2 runs two ranks there",
       SetText<&Options::hosts>},
      {kWhat,
       {"hostfile"},
       "FILE",
       "",
       "",
       kIbm,
       "hosts to run on, one per line ('h slots=2')",
       SetText<&Options::hostfile>},
      {kWhat,
       {"rankfile", "rf"},
       "FILE",
       "",
       "",
       kIbm,
       "your own Open MPI rankfile: mpirun places and binds by it",
       SetText<&Options::rankfile>},
      {kWhat,
       {"x"},
       "VAR[=VALUE]",
       "",
       "",
       kOwn,
       "export VAR to the ranks (may be repeated); most variables are exported anyway",
       AddExport},
      {kWhat,
       {"rank-order"},
       "node|cyclic",
       "",
       "node",
       kOwn,
       "node: fill one node after the other; cyclic: deal ranks out to the nodes in turn",
       SetRankOrder},
      {kWhat,
       {"oversubscribe"},
       "",
       "",
       "",
       kOwn,
       "allow more ranks than GPUs or cores; ranks are then not bound",
       SetTrue<&Options::oversubscribe>},
      {kHow,
       {"launcher"},
       "auto|srun|mpirun|local",
       "",
       "auto",
       kOwn,
       "auto: srun inside Slurm, else mpirun for more than one rank where it is installed, else "
       "local; local: one machine, no MPI",
       SetLauncher},
      {kHow,
       {"pmi"},
       "auto|pmix|pmi2|none",
       "",
       "auto",
       kOwn,
       "how ranks that srun starts find each other: pmix, pmi2: MPI programs do by it; none: those "
       "that need none, such as PyTorch; auto: pmix, where srun has none mpirun, without that none",
       SetPmi},
      {kHow,
       {"bind"},
       "auto|none",
       "",
       "auto",
       kOwn,
       "auto: each rank on the cores nearest to its GPU; none: leave ranks unbound",
       SetBind},
      {kHow,
       {"gpu-visibility"},
       "auto|all|rank",
       "",
       "auto",
       kOwn,
       "all: every rank sees all GPUs of its node (NVLink and CUDA IPC need it) and picks "
       "LOCAL_RANK; rank: it sees its own alone, as device 0; auto: all, where the GPUs are MIG "
       "slices rank",
       SetGpuVisibility},
      {kHow,
       {"mpiarg"},
       "ARG",
       "",
       "",
       kIbm,
       "pass ARG to mpirun, split at blanks (may be repeated): --mpiarg \"--mca btl tcp,self\"",
       AddText<&Options::mpi_arguments>},
      {kHow, {"tcp"}, "", "", "", kIbm, "talk over TCP, not InfiniBand", SetTrue<&Options::tcp>},
      {kHow,
       {"site"},
       "FILE|NAME",
       "",
       "$DDLRUN_SITE, else generic",
       kOwn,
       "settings of this cluster: a YAML file, or the name of an installed one",
       SetText<&Options::site>},
      {kHow,
       {"run-dir"},
       "DIR",
       "",
       "$SLURM_TMPDIR, $TMPDIR, $XDG_RUNTIME_DIR or /tmp",
       kOwn,
       "make the private run directory (log, rankfile, plan) in DIR and keep it",
       SetText<&Options::run_directory>},
      {kHow,
       {"tag-output"},
       "",
       "",
       "",
       kOwn,
       "put the rank in front of every line of output",
       SetTrue<&Options::tag_output>},
      {kHow,
       {"log-dir"},
       "DIR",
       "",
       "",
       kOwn,
       "write all that rank 3 prints to DIR/rank-00003.log as well; DIR is made, and must be "
       "shared by "
       "the nodes",
       SetText<&Options::log_directory>},
      {kHow,
       {"check"},
       "auto|full|off",
       "",
       "auto",
       kOwn,
       "look at the nodes before ranks start: auto: what each rank sees in passing; full: all "
       "checks "
       "of --check-only first, exit 78 when one fails; off: nothing",
       SetCheck},
      {kAgain,
       {"max-restarts"},
       "N",
       "restarts",
       "0",
       kOwn,
       "when a rank fails, start all again in this allocation, N times at most; not after exit "
       "codes 64, 65, 78, nor 69 before all ranks had started, not after SIGTERM, SIGINT or "
       "SIGHUP, not after three runs in a row without progress",
       SetCountOrNone<&Options::max_restarts>},
      {kAgain,
       {"spare-nodes"},
       "N",
       "nodes",
       "0",
       kOwn,
       "run on all but N nodes of the job; a restart takes one of them in place of a node that was "
       "lost, --check=full in place of one that is bad. Needs #SBATCH --no-kill and srun",
       SetCountOrNone<&Options::spare_nodes>},
      {kAgain,
       {"requeue"},
       "[N]",
       "times",
       "8",
       kOwn,
       "when ranks stop early with exit code 75, or too few nodes are left, put the job into "
       "Slurm's queue again, N times at most; never after scancel, never after a run without "
       "progress",
       SetRequeue},
      {kAgain,
       {"progress-file"},
       "FILE|DIR",
       "",
       "of ddltraind its checkpoints; else 60 s or more",
       kOwn,
       "a run has made progress if this file, or the newest entry of this folder (of checkpoints), "
       "became newer",
       SetText<&Options::progress_file>},
      {kDdl, {"mode", "m"}, "p|b|n|r|m|c", "", "p", kIbm, "DDL mode", SetMode},
      {kDdl,
       {"ddlarg", "ddloption"},
       "ARG",
       "",
       "",
       kIbm,
       "add ARG to DDL_OPTIONS (may be repeated)",
       AddText<&Options::ddl_options>},
      {kDdl,
       {"no_ddloptions"},
       "",
       "",
       "",
       kIbm,
       "do not set DDL_OPTIONS",
       SetTrue<&Options::no_ddl_options>},
      {kDdl,
       {"no-ddl-host-list"},
       "",
       "",
       "",
       kOwn,
       "do not set DDL_HOST_LIST, which names every rank and is long in large jobs",
       SetTrue<&Options::no_ddl_host_list>},
      {kDdl,
       {"nodes"},
       "N",
       "nodes per rack",
       "all nodes over racks and aisles",
       kIbm,
       "nodes in a rack; nodes x racks x aisles must be the number of nodes",
       SetCount<&Options::nodes>},
      {kDdl,
       {"racks"},
       "N",
       "racks per aisle",
       "1",
       kIbm,
       "racks in an aisle",
       SetCount<&Options::racks>},
      {kDdl, {"aisles"}, "N", "aisles", "1", kIbm, "aisles", SetCount<&Options::aisles>},
      {kInstead,
       {"dry-run"},
       "[text|json]",
       "",
       "text",
       kOwn,
       "print which rank would run where, and the command; start nothing",
       SetDryRun},
      {kInstead,
       {"topology"},
       "FILE",
       "",
       "this machine",
       kOwn,
       "hwloc XML that stands for every node, for dry runs",
       SetText<&Options::topology>},
      {kInstead,
       {"show-config"},
       "",
       "",
       "",
       kOwn,
       "print every setting with where it comes from; start nothing",
       SetTrue<&Options::show_config>},
      {kInstead,
       {"check-only"},
       "",
       "",
       "",
       kOwn,
       "check all nodes (hardware, GPUs, InfiniBand, connections between them, clocks, directory, "
       "versions), print the table; start no rank; exit 0, or 78 when a check failed",
       SetTrue<&Options::check_only>},
      {kInstead,
       {"v", "verbose"},
       "",
       "",
       "",
       kIbm,
       "say what is found and decided",
       SetTrue<&Options::verbose>},
      {kInstead, {"version"}, "", "", "", kOwn, "print the version", SetTrue<&Options::version>},
      {kInstead, {"help", "h"}, "", "", "", kOwn, "print this text", SetTrue<&Options::help>},
  };
  return table;
}

}  // namespace launcher
