// SPDX-License-Identifier: Apache-2.0

#include "launcher/ddlrun/tune_site.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <utility>

#include "launcher/cli/settings.h"
#include "launcher/cli/site_config.h"
#include "launcher/ddlrun/query_nodes.h"
#include "launcher/ddlrun/run_messages.h"
#include "launcher/features/features.h"
#include "launcher/system/child_process.h"
#include "launcher/system/files.h"
#include "launcher/system/output_queue.h"
#include "launcher/tune/measurements.h"
#include "launcher/tune/tuned_site.h"
#include "support/build.h"
#include "support/descriptor.h"
#include "support/number.h"

namespace launcher {
namespace {

// A run that takes longer hangs, or is of no use.
constexpr std::chrono::seconds kRunLimit{120};
constexpr int kStarts = 3;
constexpr int kRoundsOfPairs = 3;
constexpr int kRunsOfCopies = 3;
// Above this time of a sum of the middle size the largest one is left out: a run is to take
// seconds.
constexpr double kSlowMicroseconds = 50e3;

const std::vector<std::string> kAllSizes = {"-b", "64K", "-e", "16M", "-f",
                                            "16", "-n",  "10", "-w",  "2"};
const std::vector<std::string> kSmallSizes = {"-b", "64K", "-e", "1M", "-f",
                                              "16", "-n",  "4",  "-w", "1"};
const std::vector<std::string> kPairSizes = {"-b", "1M", "-e", "1M", "-f",
                                             "16", "-n", "4",  "-w", "1"};

void RejectWithTune(const Options& options) {
  if (!options.program.empty()) {
    throw LaunchError(EX_USAGE, "--tune measures by programs of its own: leave '" +
                                    options.program.front() +
                                    "' and what follows out; another file is --tune=FILE");
  }
  std::string other;
  if (options.ranks) other = "-n: it measures pairs of nodes, too";
  if (!options.hostfile.empty()) other = "--hostfile: name the hosts by -H";
  if (!options.rankfile.empty()) other = "--rankfile: it tries where ranks are";
  if (!options.heartbeat.empty()) other = "--heartbeat: ddlbench touches no file";
  if (!options.log_directory.empty()) other = "--log-dir: what ranks print is its own";
  if (!options.metrics_directory.empty()) other = "--metrics-dir: it is for a run of a program";
  if (!options.tag_format.empty()) other = "--tag-output: it reads what they print";
  if (!options.shown_ranks.empty()) other = "--show-ranks: it reads what they print";
  if (!options.fold_output.empty()) other = "--fold-output: it reads what they print";
  if (!options.wraps.empty()) other = "--wrap: what is measured would change";
  if (options.max_restarts > 0) other = "--max-restarts: a run that fails is a result";
  if (options.spare_nodes > 0) other = "--spare-nodes: it measures all nodes";
  if (options.min_nodes) other = "--min-nodes: it measures all nodes";
  if (options.requeue) other = "--requeue: a run that fails is a result";
  if (options.dry_run != DryRun::kNo) other = "--dry-run";
  if (options.advise) other = "--advise";
  if (options.show_config) other = "--show-config";
  if (options.check_only) other = "--check-only";
  if (options.site_report != OutputFormat::kNone) other = "--site-report";
  if (!other.empty()) throw LaunchError(EX_USAGE, "--tune does not go with " + other);
}

// The options that every run gets: all but --tune.
std::vector<std::string> OptionsOfRuns(const std::vector<std::string>& arguments) {
  std::vector<std::string> options = arguments;
  std::erase_if(options, [](const std::string& argument) {
    const std::string name = argument.substr(0, argument.find('='));
    return name == "--tune" || name == "-tune";
  });
  return options;
}

class Tuner {
 public:
  Tuner(const NodeQuery& requested, const Settings& settings, TrialRuns& runs)
      : requested_(requested),
        settings_(settings),
        runs_(runs),
        benchmark_(ProgramDirectory() + "/ddlbench") {
    if (access(benchmark_.c_str(), X_OK) != 0) {
      throw LaunchError(EX_UNAVAILABLE,
                        "--tune measures by ddlbench, which is not beside ddlrun: "
                        "install it, " +
                            benchmark_);
    }
    for (const NodePlacement& node : requested.planned.plan.nodes) {
      hosts_.push_back(node.host);
      max_ranks_ = std::max(max_ranks_, static_cast<int>(node.ranks.size()));
    }
  }

  TunedSite Tune() {
    TunedSite tuned;
    const bool by_nccl = LookAtFirstRun();
    const Rails rails = RailsOf(requested_.report.info);
    const bool by_open_mpi = requested_.report.info.front().mpi.starts_with("Open MPI");
    Change chosen;
    for (const Knob& knob : MakeKnobs(rails, {by_nccl, by_open_mpi, max_ranks_}, settings_)) {
      Say("ddlrun: trying " + knob.title + "\n");
      tuned.results.push_back(
          TryKnob(knob, chosen, [this](const Change& change) { return Measure(change); }));
      chosen = ChosenBy(tuned.results);
    }
    tuned.remarks = Starts(chosen);
    for (const std::string& line : Copies(chosen)) tuned.remarks.push_back(line);
    for (const std::string& line : SlowLinksOf(RailChoices(rails, by_nccl), chosen)) {
      tuned.remarks.push_back(line);
    }
    tuned.head = Head(by_nccl);
    return tuned;
  }

 private:
  // All nodes were checked before.
  TrialOutput RunSums(std::vector<std::string> options, const std::vector<std::string>& sizes) {
    options.emplace_back("--check=off");
    std::vector<std::string> program = {benchmark_, "allreduce"};
    program.insert(program.end(), sizes.begin(), sizes.end());
    return runs_.Run(options, program, kRunLimit);
  }

  // Chooses the sizes.  True where the sums are NCCL's.
  bool LookAtFirstRun() {
    Say("ddlrun: measuring what the job has now\n");
    const TrialOutput output = RunSums({}, kSmallSizes);
    const std::vector<SizeTime> times = ParseAllReduce(output.text);
    if (!output.is_ok || times.empty()) {
      // Another network may do.
      first_problem_ = TrialRuns::LastLineOf(output);
      sizes_ = kSmallSizes;
      return false;
    }
    sizes_ = times.back().microseconds > kSlowMicroseconds ? kSmallSizes : kAllSizes;
    return IsOfNccl(output.text);
  }

  std::optional<double> Measure(const Change& change) {
    const TrialOutput output = RunSums(OptionsFor(change), sizes_);
    const std::vector<SizeTime> times = ParseAllReduce(output.text);
    if (!output.is_ok || times.empty()) {
      Say("ddlrun: a run failed, and its choice with it: " + TrialRuns::LastLineOf(output) + "\n");
      return std::nullopt;
    }
    has_measured_ = true;
    return ScoreOf(times);
  }

  std::vector<std::string> Starts(const Change& chosen) {
    if (!has_measured_) {
      throw LaunchError(EX_UNAVAILABLE,
                        "nothing can be tuned, since no all-reduce ran: " + first_problem_);
    }
    Say("ddlrun: measuring starts\n");
    std::vector<double> microseconds;
    for (int start = 0; start < kStarts; ++start) {
      const TrialOutput output = runs_.Run(OptionsFor(chosen), {"true"}, kRunLimit);
      if (output.is_ok) microseconds.push_back(output.seconds * 1e6);
    }
    if (microseconds.empty()) return {};
    return {"start and end of " + support::Counted(CountOfRanks(), "rank") + " of a program by " +
            requested_.launch.choice.name + ": " + SummaryText(Summarize(microseconds))};
  }

  std::vector<std::string> Copies(const Change& chosen) {
    Say("ddlrun: measuring copies between hosts and devices\n");
    std::vector<std::string> options = OptionsFor(chosen);
    options.emplace_back("--check=off");
    std::vector<std::vector<CopyRow>> runs;
    for (int run = 0; run < kRunsOfCopies; ++run) {
      const TrialOutput output = runs_.Run(options, {benchmark_, "copies"}, kRunLimit);
      if (!output.is_ok) return {"copies could not be measured: " + TrialRuns::LastLineOf(output)};
      runs.push_back(ParseCopies(output.text));
    }
    return CopyRemarks(runs);
  }

  long long CountOfRanks() const {
    return static_cast<long long>(requested_.planned.plan.ranks.size());
  }

  // One rank on each of the two nodes, on each way between them.
  std::vector<std::string> SlowLinksOf(const std::vector<Choice>& ways, const Change& chosen) {
    const std::vector<std::pair<int, int>> planned =
        PairsToMeasure(static_cast<int>(hosts_.size()));
    if (planned.size() < 2) return {"two nodes have one link: it cannot be compared with others"};
    std::vector<Choice> tried = ways;
    if (tried.empty()) tried.push_back({"the network", {}});
    std::vector<std::string> lines;
    for (const Choice& way : tried) {
      Say("ddlrun: measuring " + std::to_string(planned.size()) + " pairs of nodes on " +
          way.label + "\n");
      std::vector<PairTime> pairs;
      for (const auto& [one, other] : planned) pairs.push_back({one, other, {}});
      for (int round = 0; round < kRoundsOfPairs; ++round) {
        for (PairTime& pair : pairs) MeasurePair(Together(chosen, way.change), pair);
      }
      const std::vector<std::string> found = SlowLinkReporter(way.label, hosts_, pairs);
      lines.insert(lines.end(), found.begin(), found.end());
      if (found.empty()) lines.push_back("no pair of nodes is slow on " + way.label);
    }
    return lines;
  }

  void MeasurePair(const Change& change, PairTime& pair) {
    std::vector<std::string> options = OptionsFor(change);
    options.insert(options.end(), {"-H",
                                   hosts_[static_cast<std::size_t>(pair.one)] + "," +
                                       hosts_[static_cast<std::size_t>(pair.other)],
                                   "-n", "2", "--ranks-per-node", "1"});
    const TrialOutput output = RunSums(options, kPairSizes);
    const std::vector<SizeTime> times = ParseAllReduce(output.text);
    if (output.is_ok && !times.empty()) pair.microseconds.push_back(ScoreOf(times));
  }

  std::vector<std::string> Head(bool by_nccl) const {
    return {"Made by ddlrun " + support::ProgramVersion() + " --tune on " + UtcNow() + ", on " +
                HostsText(hosts_) + ", " + support::Counted(CountOfRanks(), "rank") + ".",
            std::string("Times are of an all-reduce over all ranks by ") +
                (by_nccl ? "NCCL" : "MPI") + ", ddlbench allreduce " + Words(sizes_) +
                ": of one number for all sizes (their "
                "geometric mean)",
            "the median of " + std::to_string(kTrialRounds) +
                " runs, each of all choices in turn. A "
                "choice is only taken that is better by more than its scatter."};
  }

  static std::string Words(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
    return text;
  }

  const NodeQuery& requested_;
  const Settings& settings_;
  TrialRuns& runs_;
  const std::string benchmark_;
  std::vector<std::string> hosts_;
  int max_ranks_ = 1;
  std::vector<std::string> sizes_;
  std::string first_problem_;
  bool has_measured_ = false;
};

// With the mode of the old file where that is not for everybody: it may have secrets.
void WriteNewFile(const std::string& path, const std::string& text, const std::string& old_path) {
  struct stat old = {};
  const bool is_known = !old_path.empty() && stat(old_path.c_str(), &old) == 0;
  const mode_t mode = is_known && (old.st_mode & S_IROTH) == 0 ? old.st_mode & 0660 : 0644;
  const support::Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!file.is_open()) throw OsError("cannot make " + path);
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = write(file.fd(), text.data() + done, text.size() - done);
    if (written < 0) {
      const LaunchError problem = OsError("cannot write " + path);
      unlink(path.c_str());  // half a file would be taken by the next run
      throw problem;
    }
    done += static_cast<std::size_t>(written);
  }
}

std::string FoundText(const TunedSite& tuned, const Environment& environment) {
  std::string text;
  for (const KnobResult& result : tuned.results) {
    for (const std::string& line : ResultLines(result)) text += line + "\n";
  }
  for (const std::string& line : tuned.remarks) text += line + "\n";
  for (const auto& [name, value] : ChosenBy(tuned.results).variables) {
    if (!environment.contains(name)) continue;
    text += name + " is set in your environment, which goes before a site file: unset it\n";
  }
  return text;
}

}  // namespace

int TuneSite(const std::vector<std::string>& arguments, const Options& options,
             const Environment& environment) {
  RejectWithTune(options);
  const std::string path = *options.tune;
  std::error_code ignored;
  if (std::filesystem::exists(std::filesystem::symlink_status(path, ignored))) {
    throw LaunchError(EX_USAGE, path +
                                    " is there already, and --tune writes over no file: move it "
                                    "away, or name another one: --tune=FILE");
  }
  const std::string directory = std::filesystem::path(path).parent_path().string();
  if (access(directory.empty() ? "." : directory.c_str(), W_OK) != 0) {
    throw OsError("no file can be made in " +
                  (directory.empty() ? "the working directory" : directory));
  }
  const SiteConfig site = LoadSite(options.site, environment);
  const std::string old_text = site.path.empty() ? "" : ReadFile(site.path);
  CheckCanBeTuned(site, old_text);
  const Settings settings = MergeSettings(options, site, environment);
  NodeQuery requested;
  PlanForQuery(options, settings, environment, requested);
  const std::size_t nodes = requested.planned.plan.nodes.size();
  if (nodes < 2) {
    throw LaunchError(EX_CONFIG,
                      "--tune needs two nodes or more, and this is one: salloc -N2 ddlrun --tune");
  }
  QueryNodes(options, settings, environment, requested);
  if (requested.report.exit_code > 128) {
    Say(requested.report.rejection, true);
    return requested.report.exit_code;
  }
  for (const NodeInfo& node : requested.report.info) {
    if (!node.host.empty()) continue;
    throw LaunchError(EX_CONFIG, "not all nodes answer: ddlrun --check-only says which");
  }
  TrialRuns runs(OptionsOfRuns(arguments), environment, SignalsOfProgram());
  const TunedSite tuned = Tuner(requested, settings, runs).Tune();
  Print(FoundText(tuned, environment));
  WriteNewFile(path, TunedSiteText(tuned, site, old_text), site.path);
  const bool is_site = path.find('/') != std::string::npos || path.ends_with(".yaml");
  Print(path + " is written: ddlrun --site " + (is_site ? "" : "./") + path + " takes it\n");
  return EX_OK;
}

namespace {

using TrialClock = std::chrono::steady_clock;

// How long a ddlrun that was told to stop may take to end its ranks.
constexpr std::chrono::seconds kTimeoutWithEnd{20};
constexpr int kMillisecondsBetweenLooks = 20;

}  // namespace

TrialRuns::TrialRuns(std::vector<std::string> options, const Environment& environment,
                     SignalRelay& signals)
    : options_(std::move(options)), environment_(environment), signals_(signals) {}

TrialOutput TrialRuns::Run(const std::vector<std::string>& more,
                           const std::vector<std::string>& program, std::chrono::seconds limit) {
  std::vector<std::string> argv = {ProgramDirectory() + "/ddlrun"};
  for (const std::vector<std::string>* words : {&options_, &more, &program}) {
    argv.insert(argv.end(), words->begin(), words->end());
  }
  const TrialClock::time_point start = TrialClock::now();
  CommandOutput run(argv, environment_);
  int stopped_by = 0;
  while (!run.HasEnded()) {
    while (const std::optional<int> number = signals_.Next()) {
      if (*number == SIGTERM || *number == SIGINT || *number == SIGHUP) stopped_by = *number;
    }
    if (stopped_by != 0 || TrialClock::now() - start > limit) {
      // It ends its ranks.
      kill(run.pid(), SIGTERM);
      run.Wait(kTimeoutWithEnd);
      if (stopped_by != 0) throw StoppedBySignal(stopped_by);
      return {false, run.text(), 0};
    }
    pollfd ready = {signals_.fd(), POLLIN, 0};
    poll(&ready, 1, kMillisecondsBetweenLooks);
  }
  const double seconds = std::chrono::duration<double>(TrialClock::now() - start).count();
  const bool is_ok = run.Wait(std::chrono::seconds(1));
  return {is_ok, run.text(), seconds};
}

std::string TrialRuns::LastLineOf(const TrialOutput& output) {
  const std::string line = launcher::LastLineOf(output.text);
  return line.empty() ? "nothing was printed" : line;
}

}  // namespace launcher
