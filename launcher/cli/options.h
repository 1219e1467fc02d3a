// SPDX-License-Identifier: Apache-2.0
//
// The command line of ddlrun: every spelling of IBM's ddlrun, and our own options.  The parser,
// --help and the man page are made from one table (doc/decisions/0002-ddlrun-option-table.md),
// which launcher/features puts together.
// Pure.
//
// Every name may be written with one dash or two, and with '_' for '-' within; a value follows as
// the next argument or after '='.  The program is the first argument that is not an option; what
// follows is the program's.

#pragma once

#include <optional>
#include <string>
#include <vector>

namespace launcher {

enum class DryRun { kNo, kText, kJson };
enum class OutputFormat { kNone, kText, kJson };

// A command that some ranks are started under.
struct Wrap {
  std::string ranks;  // "0,3-5" or "all"
  std::vector<std::string> words;
};

// An empty string or an empty optional means that the option was not given; the site file or a
// default decides then.
struct Options {
  // What is started and where.
  std::vector<std::string> program;  // and its arguments, verbatim
  std::optional<int> ranks;          // in total
  std::optional<int> ranks_per_node;
  std::optional<int> cpus_per_rank;  // in hardware threads
  std::optional<int> accelerators;   // GPUs per node
  std::string hosts;                 // "h1,h2:2"
  std::string hostfile;              // path
  std::string rankfile;              // path of the user's own Open MPI rankfile
  std::vector<std::string> exports;  // "VAR" or "VAR=value"
  std::string rank_order;            // "auto", "topology", "node" or "cyclic"
  bool oversubscribe = false;
  // How ranks are started.
  std::string launcher;                     // of LauncherNames()
  std::string pmi;                          // "auto", "pmix", "pmi2", "none"
  std::string bind;                         // "auto", "none"
  std::string gpu_visibility;               // "auto", "all", "rank"
  std::vector<std::string> mpi_arguments;   // each split at blanks like a shell would
  std::vector<std::string> srun_arguments;  // the same
  bool tcp = false;
  std::string site;           // path, or name of an installed site file
  std::string run_directory;  // where the private run directory is made, and kept
  std::string tag_format;     // of each line of output (supervise/rank_console.h); "": no tag
  std::string shown_ranks;    // whose output is seen, "0,3-5" or "all"; "": of all
  std::string fold_output;    // "equal", "numbers"; "": lines are not folded
  std::vector<Wrap> wraps;
  std::string log_directory;       // for a log file of each rank
  std::string metrics_directory;   // for Prometheus
  std::string check;               // "auto", "full", "off"
  std::string heartbeat;           // path; "%r" in it is the rank
  std::optional<int> hang_after;   // seconds without a heartbeat
  std::optional<int> stop_before;  // seconds before the end of the job
  bool stop_by_usr2 = false;       // ranks get SIGUSR2 then, not SIGUSR1
  std::optional<int> end_limit;    // seconds for the other ranks once one has ended; 0: no limit
  // Going on after a failure.
  int max_restarts = 0;          // how often the ranks may be started again in this allocation
  int spare_nodes = 0;           // how many nodes of the job get no ranks until another one is lost
  std::optional<int> min_nodes;  // so many are enough for a restart; empty: all but the spare ones
  std::optional<int> requeue;    // how often the job may be put into the queue again; empty: never
  std::string progress_file;     // path of a file or directory
  // DDL.
  std::string mode = "p";
  std::vector<std::string> ddl_options;
  bool no_ddl_options = false;
  bool no_ddl_host_list = false;
  std::optional<int> nodes;  // per rack
  std::optional<int> racks;  // per aisle
  std::optional<int> aisles;
  // Instead of running.
  DryRun dry_run = DryRun::kNo;
  bool advise = false;
  std::optional<double> advised_speed;  // images/s of one GPU
  std::string topology;                 // hwloc XML that stands for every node
  bool show_config = false;
  bool check_only = false;
  OutputFormat site_report = OutputFormat::kNone;
  std::optional<std::string> tune;  // path of the site file to write
  bool verbose = false;
  bool version = false;
  bool help = false;
};

struct OptionSpec {
  const char* section = "";            // heading in --help
  std::vector<std::string> names;      // without dashes, the documented one first
  std::vector<std::string> also = {};  // what other launchers call it, which is accepted
  const char* argument = "";           // "" for a switch; "[A|B]" when only "=value" may give one
  const char* unit = "";               // of the argument, "" for none
  const char* default_value = "";      // as shown in --help, "" for none
  const char* source = "ddlrun";       // "IBM" for an option of IBM's ddlrun
  const char* help = "";
  // Stores `value` ("" for a switch); returns "" or what was expected instead.
  std::string (*set)(Options& options, const std::string& value) = nullptr;
};

// The section for what concerns running ranks (launcher/features).
inline constexpr char kHowSection[] = "How ranks are started";

// All options but those of the features.
std::vector<OptionSpec> BaseOptions();

// `arguments` without the program's own name, read by `table`.  Throws LaunchError(EX_USAGE):
// unknown option (with the nearest spelling), missing or wrong value.  A missing program is not an
// error here.
Options ParseOptions(const std::vector<OptionSpec>& table,
                     const std::vector<std::string>& arguments);

// What --help and the manual page say of it, with its default and the names that other launchers
// have for it.
std::string HelpOf(const OptionSpec& option);

// What --help prints.
std::string HelpText(const std::vector<OptionSpec>& table);

}  // namespace launcher
