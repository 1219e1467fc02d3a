// SPDX-License-Identifier: Apache-2.0

#include "ddlctl/job.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>

#include "ddlctl/status_text.h"
#include "launcher/base/error.h"
#include "launcher/cli/site_config.h"
#include "launcher/cost/launch_record.h"
#include "launcher/system/child_process.h"
#include "launcher/system/files.h"
#include "launcher/system/run_directory.h"
#include "support/format_version.h"
#include "support/number.h"
#include "trainer/core/error.h"
#include "trainer/telemetry/text/clock.h"

namespace ddlctl {
namespace {

namespace fs = std::filesystem;
using launcher::JobStatus;
using RankState = JobStatus::RankState;
using trainer::Error;

// After so many seconds without a new file ddlrun is gone, or its node is: it writes every 2 s, or
// every 5 s at most where there are many ranks.
constexpr double kOldSeconds = 20;

std::string RowOfJob(const char* name, const std::string& value) {
  return fmt::format("{:<14} {}\n", name, value);
}

std::string TimeOf(double seconds) {
  return trainer::IsoTime(
      trainer::TimePoint(std::chrono::seconds(static_cast<long long>(seconds))));
}

bool IsOld(const JobStatus& status, double now) { return now - status.written > kOldSeconds; }

int CountOf(const JobStatus& status, RankState state) {
  return static_cast<int>(std::ranges::count(status.ranks, state, &JobStatus::Rank::state));
}

std::string NameOfRank(const JobStatus& status, std::size_t rank) {
  return fmt::format("rank {} on {}", rank, Harmless(status.ranks[rank].host));
}

// "4 running, 1 ended; rank 3 on n2: exit code 3".
std::string RanksText(const JobStatus& status) {
  constexpr int kShown = 8;
  const std::pair<RankState, const char*> states[] = {{RankState::kStarting, "starting"},
                                                      {RankState::kRunning, "running"},
                                                      {RankState::kEnded, "ended"}};
  std::string text;
  for (const auto& [state, name] : states) {
    const int count = CountOf(status, state);
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, name);
  }
  int failed = 0;
  for (std::size_t i = 0; i < status.ranks.size(); ++i) {
    const int code = status.ranks[i].exit_code;
    if (code == 0 || ++failed > kShown) continue;
    text += fmt::format("; {}: exit code {}", NameOfRank(status, i), code);
  }
  if (failed > kShown) text += fmt::format("; {} more", failed - kShown);
  return text;
}

// Who has not been heard of for longest, of those that run; "" without heartbeats.
std::string HeartbeatText(const JobStatus& status) {
  std::optional<std::size_t> slowest;
  double min = 0;
  for (std::size_t i = 0; i < status.ranks.size(); ++i) {
    const JobStatus::Rank& rank = status.ranks[i];
    if (!rank.silence || rank.state == RankState::kEnded) continue;
    min = slowest ? std::min(min, *rank.silence) : *rank.silence;
    if (!slowest || *rank.silence > *status.ranks[*slowest].silence) slowest = i;
  }
  if (!slowest) return "";
  return fmt::format("{:.1f} s ago; longest ago {}: {:.1f} s", min, NameOfRank(status, *slowest),
                     *status.ranks[*slowest].silence);
}

std::size_t NodesOf(const JobStatus& status) {
  std::set<std::string> nodes;
  for (const JobStatus::Rank& rank : status.ranks) nodes.insert(rank.host);
  return nodes.size();
}

// A directory of this user's that nobody else can write to.
bool IsOwn(const fs::path& directory) {
  struct stat info = {};
  return ::lstat(directory.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
         info.st_uid == ::geteuid() && (info.st_mode & 0777) == 0700;
}

bool IsNumber(const std::string& name) {
  return !name.empty() && name.find_first_not_of("0123456789_") == std::string::npos;
}

bool IsNodeName(const std::string& name) {
  constexpr char kLetters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  return !name.empty() && name.find_first_not_of(kLetters) == std::string::npos &&
         !name.starts_with("-");
}

// What squeue says about a job in `format`, a line for each job.  Throws Error(EX_UNAVAILABLE).
std::string QuerySqueue(const std::string& squeue, const std::string& number, const char* format,
                        std::chrono::seconds timeout, launcher::Environment environment) {
  std::string problem;
  environment["SLURM_TIME_FORMAT"] = "standard";
  try {
    launcher::CommandOutput question({squeue, "--noheader", "--states=all",
                                      std::string("--format=") + format, "--jobs=" + number},
                                     launcher::WithoutDefaultsOfSlurmTools(std::move(environment)));
    if (question.Wait(timeout)) return question.text();
    problem = question.text().substr(0, question.text().find('\n'));
    if (problem.empty()) problem = "squeue does not answer";
  } catch (const launcher::LaunchError& error) {
    problem = error.what();
  }
  throw Error(EX_UNAVAILABLE, "job " + number + " is not found: " + Harmless(problem));
}

}  // namespace

bool IsJobNumber(const std::string& name) {
  std::error_code ignored;
  return IsNumber(name) && !fs::exists(name, ignored);
}

std::vector<fs::path> RunDirectoryBases(const launcher::Environment& environment) {
  std::vector<fs::path> bases;
  for (const char* name : {"SLURM_TMPDIR", "TMPDIR", "XDG_RUNTIME_DIR"}) {
    const std::string value = launcher::ValueOr(environment, name, "");
    if (!value.empty()) bases.emplace_back(value);
  }
  try {
    const auto site = launcher::LoadSite("", environment).run_directory;
    if (site) bases.emplace_back(site->value);
  } catch (const launcher::LaunchError&) {
    // ddlrun says what is wrong with a site file.
  }
  for (const char* base : {"/tmp", "/dev/shm"}) bases.emplace_back(base);
  return bases;
}

std::optional<JobStatus> ReadJobStatus(const fs::path& directory) {
  const fs::path file = directory / launcher::kStatusFileName;
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) return std::nullopt;
  std::ifstream stream(file, std::ios::binary);
  std::string text;
  for (char part[65536]; text.size() <= launcher::kMaxStatusBytes && stream;) {
    stream.read(part, sizeof part);
    text.append(part, static_cast<std::size_t>(stream.gcount()));
  }
  if (!text.starts_with(launcher::kStatusBeginning)) return std::nullopt;
  std::optional<JobStatus> status;
  if (text.size() <= launcher::kMaxStatusBytes) status = launcher::ParseJobStatus(text);
  if (status) return status;
  const int format = support::FormatVersion(text, launcher::kStatusBeginning).value_or(0);
  throw Error(EX_DATAERR,
              file.string() + ": " +
                  (format > launcher::kStatusFormat
                       ? support::DescribeNewerFormat("a status", format, launcher::kStatusFormat)
                       : "not written by a ddlrun of this version"));
}

std::optional<JobStatus> FindJobStatus(const std::string& number,
                                       const std::vector<fs::path>& bases, std::string* unread) {
  std::optional<JobStatus> found;
  for (const fs::path& base : bases) {
    std::error_code error;
    for (fs::directory_iterator entry(base, error), end; !error && entry != end;
         entry.increment(error)) {
      const bool is_run = entry->path().filename().string().starts_with("ddlrun.");
      if (!is_run || !IsOwn(entry->path())) continue;
      try {
        std::optional<JobStatus> status = ReadJobStatus(entry->path());
        const bool is_better =
            status && status->job == number && (!found || status->written > found->written);
        if (is_better) found = std::move(status);
      } catch (const Error& error) {
        if (unread != nullptr) *unread = error.what();
      }
    }
  }
  return found;
}

std::optional<RunningJob> FindRunningJob(const std::string& number,
                                         const launcher::Environment& environment) {
  const std::string squeue = launcher::FindProgram("squeue", environment);
  if (squeue.empty()) return std::nullopt;
  // A line for each task of an array that is asked for as a whole.
  std::istringstream lines(
      QuerySqueue(squeue, number, "%T %B %A %D", std::chrono::seconds(30), environment));
  std::string first_state;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    RunningJob job;
    std::string state;
    words >> state >> job.node >> job.number >> job.nodes;
    // As IsStateOfRunningJob (launcher/slurm/slurm_job.h).
    const bool runs = state == "RUNNING" || state == "SIGNALING" || state == "RESIZING";
    if (runs && IsNodeName(job.node) && IsNumber(job.number)) return job;
    if (first_state.empty()) first_state = state;
  }
  throw Error(EX_UNAVAILABLE,
              "job " + number + " is not running" +
                  (first_state.empty() ? "" : ": its state is " + Harmless(first_state)));
}

std::optional<double> EndOfJob(const std::string& number,
                               const launcher::Environment& environment) {
  const std::string squeue = launcher::FindProgram("squeue", environment);
  if (squeue.empty() || !IsNumber(number)) return std::nullopt;
  try {
    const std::string text =
        QuerySqueue(squeue, number, "%e", std::chrono::seconds(5), environment);
    std::tm local = {};
    local.tm_isdst = -1;
    if (strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &local) == nullptr) return std::nullopt;
    return static_cast<double>(std::mktime(&local));
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string JobText(const JobStatus& status, double now) {
  std::string text;
  if (!status.job.empty()) text += RowOfJob("job", Harmless(status.job));
  text += RowOfJob("program", Harmless(status.program));
  text += RowOfJob("ddlrun", fmt::format("process {} on {}, {}", status.pid, Harmless(status.host),
                                         Harmless(status.launcher)));
  text += RowOfJob("started", fmt::format("{}, {} ago; {}", TimeOf(status.started),
                                          trainer::FormatDuration(now - status.started),
                                          support::Counted(status.restarts, "restart")));
  text +=
      RowOfJob("time limit",
               status.ends ? fmt::format("{}, {} left", TimeOf(*status.ends),
                                         trainer::FormatDuration(std::max(0.0, *status.ends - now)))
                           : std::string("not known"));
  text += RowOfJob("ranks",
                   fmt::format("{} on {}: {}", status.ranks.size(),
                               support::Counted(static_cast<long long>(NodesOf(status)), "node"),
                               RanksText(status)));
  if (status.cost) text += RowOfJob("cost", launcher::CostText(*status.cost));
  const std::string heartbeat = HeartbeatText(status);
  if (!heartbeat.empty()) text += RowOfJob("heartbeat", heartbeat);
  if (IsOld(status, now)) {
    text += RowOfJob("old", fmt::format("this was written {} ago: ddlrun is gone, or stopped",
                                        trainer::FormatDuration(now - status.written)));
  }
  return text;
}

std::string JobJson(const JobStatus& status, double now) {
  using Json = nlohmann::ordered_json;
  const char* const names[] = {"starting", "running", "ended"};
  Json ranks = Json::array();
  for (const JobStatus::Rank& rank : status.ranks) {
    const bool has_ended = rank.state == RankState::kEnded;
    ranks.push_back({{"host", rank.host},
                     {"state", names[static_cast<int>(rank.state)]},
                     {"exit_code", has_ended ? Json(rank.exit_code) : Json(nullptr)},
                     {"silence_seconds", rank.silence ? Json(*rank.silence) : Json(nullptr)}});
  }
  const Json json = {
      {"job", status.job},
      {"program", status.program},
      {"host", status.host},
      {"pid", status.pid},
      {"launcher", status.launcher},
      {"restarts", status.restarts},
      {"started", status.started},
      {"ends", status.ends ? Json(*status.ends) : Json(nullptr)},
      {"written", status.written},
      {"is_old", IsOld(status, now)},
      {"cost", status.cost ? Json::parse(launcher::CostJson(*status.cost)) : Json(nullptr)},
      {"ranks", ranks}};
  return json.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

}  // namespace ddlctl
