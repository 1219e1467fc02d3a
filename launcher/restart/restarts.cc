// SPDX-License-Identifier: Apache-2.0

#include "launcher/restart/restarts.h"

#include <algorithm>
#include <memory>
#include <thread>

#include "launcher/allocation/host_index.h"
#include "launcher/base/error.h"
#include "launcher/cli/user_program.h"
#include "launcher/launch/child_environment.h"
#include "launcher/slurm/slurm_job.h"
#include "launcher/system/child_process.h"
#include "launcher/system/signal_relay.h"
#include "support/number.h"

namespace launcher {
namespace {

namespace fs = std::filesystem;

// What becomes of a job of sbatch --requeue=expedite.
constexpr char kHeld[] =
    "Slurm requeues this job and holds it, since it is one of --requeue=expedite and its script "
    "ends with another code than 0: scontrol release has it start again, scancel ends it";

// How often the job was put into the queue again before.
int RequeuedSoFar(const Environment& environment) {
  const std::string text = ValueOr(environment, "SLURM_RESTART_COUNT", "0");
  const std::optional<int> count = support::WholeNumber<int>(text);
  if (count && *count >= 0) return *count;
  throw LaunchError(EX_CONFIG, "SLURM_RESTART_COUNT='" + text + "' is not numeric: unset it");
}

void CheckRequeue(const Environment& environment, const std::optional<SlurmJob>& job) {
  if (SlurmJobNumber(environment).empty()) {
    throw LaunchError(EX_CONFIG, "--requeue needs a batch job of Slurm: submit a script by sbatch");
  }
  if (!job) throw LaunchError(EX_CONFIG, "--requeue: 'scontrol show job' does not answer");
  if (!job->is_batch) {
    throw LaunchError(EX_CONFIG,
                      "--requeue needs a batch job, and this is one of salloc or srun: submit a "
                      "script by sbatch");
  }
  if (!job->may_requeue) {
    throw LaunchError(EX_CONFIG,
                      "--requeue: Slurm may not requeue this job (--no-requeue, or JobRequeue=0 in "
                      "slurm.conf): write #SBATCH --requeue");
  }
}

}  // namespace

std::optional<fs::file_time_type> NewestTime(const fs::path& path) {
  std::error_code error;
  std::optional<fs::file_time_type> newest;
  const auto look_at = [&](const fs::path& file) {
    const fs::file_time_type time = fs::last_write_time(file, error);
    if (!error && (!newest || time > *newest)) newest = time;
  };
  if (!fs::is_directory(path, error)) {
    look_at(path);
    return newest;
  }
  for (fs::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!entry->path().filename().string().starts_with(".")) look_at(entry->path());
  }
  return newest;
}

std::string ProgressFile(const Options& options) {
  if (!options.progress_file.empty()) return options.progress_file;
  const auto arguments = TrainerArguments(options.program);
  if (!arguments) return "";
  // Where an option is given twice, the last one counts.
  const auto value_of = [&](const std::string& name) {
    std::string value;
    for (auto word = arguments->begin(); word != arguments->end(); ++word) {
      if (word->starts_with(name + "=")) value = word->substr(name.size() + 1);
      if (*word == name && word + 1 != arguments->end()) value = *(word + 1);
    }
    return value;
  };
  const std::string mode = value_of("--mode");
  if (!mode.empty() && mode != "train" && mode != "train_and_evaluate") return "";
  std::string directory = value_of("--model_dir");
  if (directory.empty()) directory = value_of("--results_dir");
  return fs::path(directory) / "checkpoints";
}

Restarts::Restarts(const Options& options, const Environment& environment, int dispensable_nodes,
                   int min_nodes)
    : options_(options),
      environment_(environment),
      dispensable_nodes_(dispensable_nodes),
      min_nodes_(min_nodes),
      progress_file_(ProgressFile(options)),
      requeued_(RequeuedSoFar(environment)),
      policy_({options.max_restarts, options.requeue, requeued_}) {
  std::optional<SlurmJob> job;
  if (options.requeue || dispensable_nodes > 0) job = QuerySlurmForJob(environment);
  if (options.requeue) CheckRequeue(environment, job);
  if (job) {
    job_id_ = job->id;
    nodes_before_ = job->nodes;
  }
}

std::optional<fs::file_time_type> Restarts::ProgressTime() const {
  return progress_file_.empty() ? std::nullopt : NewestTime(progress_file_);
}

bool Restarts::LeaveOut(const std::vector<std::string>& nodes) {
  std::vector<std::string> all = lost_nodes_;
  for (const std::string& node : nodes) {
    if (std::find(all.begin(), all.end(), node) == all.end()) all.push_back(node);
  }
  if (all.size() > static_cast<std::size_t>(dispensable_nodes_)) return false;
  lost_nodes_ = all;
  return true;
}

void Restarts::BeforeRun(const std::vector<std::string>& hosts) {
  const HostIndex known(nodes_before_);
  for (const std::string& host : hosts) {
    if (!known.Holds(host)) nodes_before_.push_back(host);
  }
  start_ = std::chrono::steady_clock::now();
  file_before_ = ProgressTime();
}

Decision Restarts::AfterRun(const JobResult& result) {
  const bool is_wanted = options_.max_restarts > 0 || options_.requeue;
  using Kind = OwnEnd::Kind;
  const auto was = [&result](Kind kind) { return result.own_end && result.own_end->kind == kind; };
  const bool start_hung = was(Kind::kStartHung);
  // After an order to stop Slurm is not asked, since slurmctld may take long to answer, or be down.
  const bool is_stop_requested = result.stop_requested || IsStopRequestPending();
  const bool is_over = is_stop_requested || was(Kind::kClosedOutput) || result.exit_code == EX_OK;
  if (is_over || (!is_wanted && !start_hung)) return {};

  RunOutcome end;
  // Nodes that the job has lost before the start are as ranks that could not start there.
  end.exit_code = was(Kind::kRejected) ? EX_UNAVAILABLE : result.exit_code;
  end.has_started = result.has_started;
  end.start_hung = start_hung;
  const std::chrono::duration<double> lasted = std::chrono::steady_clock::now() - start_;
  end.seconds = lasted.count();
  if (!progress_file_.empty()) {
    if (options_.progress_file.empty()) end.checkpoints = progress_file_;
    const auto now = ProgressTime();
    end.file_moved = now && (!file_before_ || *now > *file_before_);
  }

  bool is_held = false;  // by Slurm, once the batch script ends with this code
  end.is_near_end = result.notified_of_end;
  const std::size_t lost_before = lost_nodes_.size();
  HostIndex lost(lost_nodes_);
  const auto add_lost = [&](const std::string& host) {
    if (lost.Holds(host)) return;
    lost.Add(host);
    lost_nodes_.push_back(host);
  };
  for (const std::string& host : result.lost_nodes) add_lost(host);
  if (!SlurmJobNumber(environment_).empty()) {
    const std::optional<SlurmJob> job = QuerySlurmForJob(environment_);
    if (job) end.seconds_left = job->seconds_left;
    end.is_preempted = job && job->is_preempted;
    is_held = job && job->is_expedited;
    if (end.seconds_left && options_.stop_before) {
      end.is_near_end =
          end.is_near_end || *end.seconds_left < *options_.stop_before + kSecondsOfProgress;
    }
    // The user or the time limit has ended the job.  Ranks may end before ddlrun learns of it.
    if (job && !IsStateOfRunningJob(job->state)) {
      return {Decision::Next::kEnd, 0, "the job is " + job->state + ", so this is the end"};
    }
    const HostIndex left(job ? job->nodes : nodes_before_);
    for (const std::string& host : nodes_before_) {
      if (!left.Holds(host)) add_lost(host);
    }
  }
  end.has_lost_node = lost_nodes_.size() > lost_before;
  const int dispensable_left = dispensable_nodes_ - static_cast<int>(lost_nodes_.size());
  end.has_nodes = dispensable_left >= 0;
  end.min_nodes = min_nodes_;
  end.nodes_left = min_nodes_ + dispensable_left;

  Decision decision = policy_.AfterRun(end);
  if (decision.next == Decision::Next::kRequeue) {
    const std::string rejection = RequeueSlurmJob(job_id_, environment_);
    if (!rejection.empty()) {
      return {Decision::Next::kEnd, 0,
              "the job could not be requeued (" + rejection + "): submit it again"};
    }
  }
  if (decision.next == Decision::Next::kEnd && is_held) {
    decision.reason += (decision.reason.empty() ? "" : "; ") + std::string(kHeld);
  }
  for (std::size_t i = 0; i < lost_nodes_.size(); ++i) {
    if (decision.next != Decision::Next::kRestart) break;
    decision.reason += (i == 0 ? ", without " : ", ") + lost_nodes_[i];
  }
  return decision;
}

namespace {

constexpr std::chrono::milliseconds kLook{50};

std::unique_ptr<CommandOutput> Probe(const std::string& host, const std::string& srun,
                                     const Environment& environment) {
  // The step before may still hold the CPUs, the memory and the GPUs of the node, so that this one
  // must do without them.
  return std::make_unique<CommandOutput>(
      std::vector<std::string>{srun, "--overlap", "--mem=0", "--gres=none", "--mpi=none",
                               "--cpu-bind=none", "--nodes=1", "--ntasks=1", "--nodelist=" + host,
                               "--input=none", "true"},
      environment);
}

}  // namespace

ProbeOutcome ProbeNodes(const std::vector<std::string>& hosts, const std::string& other,
                        const std::string& srun, const Environment& environment,
                        std::chrono::milliseconds limit) {
  const bool can_be_known = !hosts.empty() && hosts.size() <= kMaxProbes && !other.empty() &&
                            !environment.contains("SLURM_HET_SIZE");
  if (!can_be_known) return {};
  const Environment environment_of_srun = EnvironmentForSrun(environment);
  std::vector<std::unique_ptr<CommandOutput>> probes;
  for (const std::string& host : hosts) {
    probes.push_back(Probe(host, srun, environment_of_srun));
  }
  probes.push_back(Probe(other, srun, environment_of_srun));
  const auto all_have_ended = [&] {
    bool have_ended = true;
    for (const auto& probe : probes) have_ended = probe->HasEnded() && have_ended;
    return have_ended;
  };
  for (auto left = limit; left.count() > 0 && !all_have_ended(); left -= kLook) {
    if (IsStopRequestPending()) return {};
    std::this_thread::sleep_for(kLook);
  }
  const auto has_run = [](CommandOutput& probe) { return probe.HasEnded() && probe.Wait(kLook); };
  CommandOutput& probe_of_other = *probes.back();
  if (!has_run(probe_of_other)) {
    probe_of_other.Wait(kLook);  // for what it has written
    const std::string words = LastLineOf(probe_of_other.text());
    return {.lost = {},
            .unknown = "a step of srun does not run on " + other + " either" +
                       (words.empty() ? "" : ": " + words)};
  }
  ProbeOutcome outcome;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (!has_run(*probes[i])) outcome.lost.push_back(hosts[i]);
  }
  return outcome;
}

}  // namespace launcher
