// SPDX-License-Identifier: Apache-2.0

#include "launcher/slurm/slurm_job.h"

#include <cstdio>
#include <map>
#include <sstream>

#include "launcher/allocation/host_index.h"
#include "launcher/system/files.h"
#include "rankfile/hostlist.h"
#include "rankfile/scanner.h"
#include "support/number.h"

namespace launcher {

ScontrolAnswer RunScontrol(const std::vector<std::string>& arguments,
                           const Environment& environment) {
  std::vector<std::string> words = {FindProgram("scontrol", environment)};
  if (words.front().empty()) return AnswerOfScontrol(nullptr);
  words.insert(words.end(), arguments.begin(), arguments.end());
  CommandOutput command(words, environment);
  return AnswerOfScontrol(&command);
}

ScontrolAnswer AnswerOfScontrol(CommandOutput* command) {
  if (command == nullptr) return {false, false, "there is no scontrol in PATH"};
  if (command->Wait(kTimeoutWithScontrol)) return {true, false, command->text()};
  const std::string said = command->text().substr(0, command->text().find('\n'));
  return {false, command->WasKilledByOthers(), said.empty() ? "scontrol did not answer" : said};
}

namespace {

constexpr char kEndTime[] = "SLURM_JOB_END_TIME";

// The values of the words KEY=VALUE of a line.  If a key is there twice, the first value counts.
std::map<std::string, std::string> Words(const std::string& line) {
  std::map<std::string, std::string> words;
  std::istringstream stream(line);
  for (std::string word; stream >> word;) {
    const std::size_t equals = word.find('=');
    if (equals != std::string::npos) {
      words.emplace(word.substr(0, equals), word.substr(equals + 1));
    }
  }
  return words;
}

// The seconds of "01:02:03" or, with days, "4-01:02:03"; nullopt for "UNLIMITED" and any other
// text.
std::optional<double> Seconds(const std::string& text) {
  int days = 0;
  int hours = 0;
  int minutes = 0;
  int seconds = 0;
  const std::size_t dash = text.find('-');
  const char* time = text.c_str() + (dash == std::string::npos ? 0 : dash + 1);
  int length = 0;
  if (std::sscanf(time, "%4d:%2d:%2d%n", &hours, &minutes, &seconds, &length) != 3 ||
      time[length] != '\0') {
    return std::nullopt;
  }
  if (dash != std::string::npos) {
    const std::optional<int> number = support::WholeNumber<int>(text.substr(0, dash));
    if (!number) return std::nullopt;
    days = *number;
  }
  return ((days * 24.0 + hours) * 60 + minutes) * 60 + seconds;
}

std::optional<double> SecondsLeft(const std::map<std::string, std::string>& words) {
  const auto of = [&](const char* key) {
    const auto found = words.find(key);
    return found == words.end() ? std::nullopt : Seconds(found->second);
  };
  const std::optional<double> limit = of("TimeLimit");
  const std::optional<double> run = of("RunTime");
  return limit && run ? std::optional(*limit - *run) : std::nullopt;
}

// "PreemptTime=2026-11-28T08:55:09", not "None", and not of the run before a requeue.
bool IsPreempted(const std::map<std::string, std::string>& words) {
  const auto preempted = words.find("PreemptTime");
  const auto started = words.find("StartTime");
  return preempted != words.end() && started != words.end() && preempted->second.starts_with('2') &&
         preempted->second >= started->second;
}

std::string IdOf(const std::map<std::string, std::string>& words) {
  const auto array = words.find("ArrayJobId");
  const auto task = words.find("ArrayTaskId");
  if (array == words.end() || task == words.end()) return words.at("JobId");
  return array->second + "_" + task->second;
}

}  // namespace

std::optional<SlurmJob> ParseSlurmJob(const std::string& text, const std::string& number) {
  std::optional<SlurmJob> job;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::map<std::string, std::string> words = Words(line);
    const auto is = [&](const char* key, const std::string& value) {
      const auto found = words.find(key);
      return found != words.end() && found->second == value;
    };
    if (!words.contains("JobId") || !words.contains("JobState")) continue;
    if (!is("JobId", number) && !is("HetJobId", number)) continue;
    if (!job) {
      job = SlurmJob{.number = number,
                     .id = IdOf(words),
                     .state = words.at("JobState"),
                     .may_requeue = is("Requeue", "1"),
                     .is_batch = is("BatchFlag", "1"),
                     .is_preempted = IsPreempted(words),
                     .is_expedited = is("ExpeditedRequeue", "Yes"),
                     .nodes = {},
                     .seconds_left = SecondsLeft(words)};
    }
    const auto nodes = words.find("NodeList");
    if (nodes == words.end() || nodes->second == "(null)") continue;
    try {
      for (std::string& host : rankfile::ExpandHostlist(nodes->second)) {
        job->nodes.push_back(std::move(host));
      }
    } catch (const rankfile::ParseError&) {
      return std::nullopt;
    }
  }
  return job;
}

std::string SlurmJobNumber(const Environment& environment) {
  return ValueOr(environment, "SLURM_JOB_ID", "");
}

std::vector<std::string> StepsOfComponents(const std::string& step, const std::set<int>& components,
                                           const Environment& environment) {
  std::vector<std::string> steps;
  const std::size_t dot = step.find('.');
  for (const int component : components) {
    const std::string job =
        ValueOr(environment, "SLURM_JOB_ID_HET_GROUP_" + std::to_string(component), "");
    if (!job.empty() && dot != std::string::npos) steps.push_back(job + step.substr(dot));
  }
  if (steps.empty()) steps.push_back(step);
  return steps;
}

std::vector<std::string> SignalStepCommand(const std::vector<std::string>& steps, int signal,
                                           const Environment& environment) {
  const std::string scancel = FindProgram("scancel", environment);
  if (scancel.empty()) return {};
  std::vector<std::string> words = {scancel, "--signal=" + std::to_string(signal)};
  words.insert(words.end(), steps.begin(), steps.end());
  return words;
}

std::vector<std::string> ListStepsCommand(const std::vector<std::string>& steps,
                                          const Environment& environment) {
  const std::string squeue = FindProgram("squeue", environment);
  if (squeue.empty()) return {};
  std::string list;
  for (const std::string& step : steps) list += (list.empty() ? "" : ",") + step;
  return {squeue, "--noheader", "--format=%i", "--steps=" + list};
}

std::vector<std::string> ShowJobCommand(const Environment& environment) {
  const std::string scontrol = FindProgram("scontrol", environment);
  const std::string job = SlurmJobNumber(environment);
  if (scontrol.empty() || job.empty()) return {};
  return {scontrol, "--oneliner", "show", "job", job};
}

std::optional<double> SecondsToTimeLimit(const Environment& environment,
                                         std::chrono::system_clock::time_point now) {
  const std::string text = ValueOr(environment, kEndTime, "");
  const long long end = support::WholeNumber<long long>(text).value_or(0);
  if (end > 0) {
    return static_cast<double>(end) - std::chrono::duration<double>(now.time_since_epoch()).count();
  }
  if (SlurmJobNumber(environment).empty()) return std::nullopt;
  const std::optional<SlurmJob> job = QuerySlurmForJob(environment);
  return job ? job->seconds_left : std::nullopt;
}

Environment WithTimeLimit(Environment environment, std::chrono::system_clock::time_point now) {
  if (environment.contains(kEndTime)) return environment;
  const std::optional<double> left = SecondsToTimeLimit(environment, now);
  if (!left) return environment;
  const std::chrono::duration<double> end =
      now.time_since_epoch() + std::chrono::duration<double>(*left);
  environment[kEndTime] = std::to_string(static_cast<long long>(end.count()));
  return environment;
}

std::optional<SlurmJob> QuerySlurmForJob(const Environment& environment) {
  const std::string number = SlurmJobNumber(environment);
  const ScontrolAnswer answer = RunScontrol({"--oneliner", "show", "job", number}, environment);
  return answer.is_ok ? ParseSlurmJob(answer.text, number) : std::nullopt;
}

std::string RejectionOfHosts(const SlurmJob& job, const std::vector<std::string>& hosts) {
  constexpr std::size_t kMaxNames = 8;
  if (!IsStateOfRunningJob(job.state)) return "";
  const HostIndex left(job.nodes);
  std::vector<std::string> gone;
  std::string names;  // of those of `hosts` that are left
  std::size_t count = 0;
  for (const std::string& host : std::set<std::string>(hosts.begin(), hosts.end())) {
    if (!left.Holds(host)) {
      gone.push_back(host);
    } else if (++count <= kMaxNames) {
      names += (names.empty() ? "" : ",") + host;
    }
  }
  if (gone.empty()) return "";
  const bool are_few = count > 0 && count <= kMaxNames;
  return "job " + job.number + " has " + rankfile::CompressHostlist(job.nodes) +
         " now, and no longer " + rankfile::CompressHostlist(gone) +
         ", which its variables still name: it was made smaller, or has lost a node. Where "
         "scontrol "
         "update was typed, source the script that it has written, . ./slurm_job_" +
         job.number + "_resize.sh" +
         (are_few ? ", or name the nodes that are left: ddlrun -H " + names : "");
}

std::string RequeueSlurmJob(const std::string& id, const Environment& environment) {
  const ScontrolAnswer answer = RunScontrol({"requeue", id}, environment);
  // When Slurm puts the job into the queue again it ends all processes of the job.  scontrol is one
  // of them, and may be ended before it has the answer.
  return answer.is_ok || answer.was_killed ? "" : answer.text;
}

}  // namespace launcher
