// SPDX-License-Identifier: Apache-2.0

#include "launcher/ddlrun/run_messages.h"

#include <sysexits.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "launcher/base/messages.h"
#include "launcher/cli/launcher_arguments.h"
#include "launcher/supervise/failure_report.h"
#include "launcher/system/run_directory.h"
#include "launcher/system/signal_relay.h"
#include "support/number.h"
#include "support/quoting.h"

namespace launcher {
namespace {

std::string Failed(const std::string& text) {
  return "ddlrun: " + Coded(Message::kJobFailed, "the job failed: " + text) + "\n";
}

std::string InLowerCase(std::string text) {
  for (char& letter : text) letter = static_cast<char>(std::tolower(letter));
  return text;
}

// The end of a job that was told to stop.  No rank is the cause, but if one ended in another way
// than by the signal, it is named.
std::string StoppedText(const JobResult& result, const std::string& how) {
  std::string text;
  const bool is_of_the_signal =
      !result.failure || result.failure->signal != 0 || result.failure->exit_code > 128;
  if (!is_of_the_signal) {
    text = "ddlrun: rank " + std::to_string(result.failure->rank) + " on " + result.failure->host +
           " ended with " + DescribeEnd(*result.failure) + " after that\n";
  }
  return text + "ddlrun: " + how + " (exit code " + std::to_string(result.exit_code) + ")\n";
}

// The words of srun or mpirun itself may be far above, in front of what ranks have said since.
std::string LauncherReport(const JobResult& result) {
  std::string text;
  if (!result.launcher_lines.empty()) {
    text = "ddlrun: last lines of " + result.launcher_end.substr(0, result.launcher_end.find(' ')) +
           ":\n";
    for (const std::string& line : result.launcher_lines) text += "ddlrun:   | " + line + "\n";
  }
  return text + Failed(result.launcher_end +
                       (result.is_before_start ? ", before any rank had started"
                                               : ", and no rank is known to have failed") +
                       (result.launcher_advice.empty() ? "" : "; ") + result.launcher_advice);
}

std::string ResultText(const JobResult& result, const Decision& decision) {
  if (result.exit_code == 0) return "";
  using Kind = OwnEnd::Kind;
  const std::optional<OwnEnd>& own = result.own_end;
  if (own && own->kind == Kind::kRejected) {
    return "ddlrun: " + CodedError(LaunchError(result.exit_code, own->text)) + "\n";
  }
  if (result.exit_code == EX_TEMPFAIL) {
    const bool is_requeued = decision.next == Decision::Next::kRequeue;
    return (own ? "ddlrun: " + own->text + "; what was left was killed\n" : "") +
           std::string("ddlrun: stopped early with a checkpoint written (exit code 75)") +
           (is_requeued ? "\n" : ": start it again\n");
  }
  if (own && own->kind == Kind::kClosedOutput) {
    return "ddlrun: " + own->text + " (exit code " + std::to_string(result.exit_code) + ")\n";
  }
  if (own && own->kind == Kind::kHung && result.lost_nodes.empty()) return Failed(own->text);
  // A step to which ddlrun has passed SIGTERM on is called cancelled by Slurm as well.
  if (result.cancelled && (result.stop_signal == 0 || !result.cancelled->empty())) {
    return StoppedText(result, "cancelled by Slurm" + InLowerCase(*result.cancelled));
  }
  if (result.stop_signal != 0) {
    return StoppedText(result, std::string("stopped by ") + NameOfStopRequest(result.stop_signal));
  }
  if (own && own->kind == Kind::kStartHung) return Failed(own->text);
  if (!result.lost_nodes.empty()) return Failed("node " + result.lost_nodes[0] + " was lost");
  if (result.failure) return FailureReport(*result.failure);
  if (!result.unresponsive.empty()) {
    return Failed("mpirun ended with 0, but did not report the exit of " +
                  SomeOf(result.unresponsive) + ": the node, or mpirun's daemon there, is gone");
  }
  if (result.launcher_has_given_up) return LauncherReport(result);
  if (!result.launcher_end.empty()) {
    return Failed(result.launcher_end + (result.is_before_start
                                             ? " before any rank had started"
                                             : ", which is not ddlrun's doing; the ranks were well "
                                               "until then"));
  }
  return "ddlrun: " +
         Coded(Message::kJobFailed,
               "the job failed with exit code " + std::to_string(result.exit_code) +
                   (!result.rank_rejection.empty() ? ": " + result.rank_rejection
                    : result.error_line.empty()    ? "; the messages above say why"
                                                   : ": " + result.error_line)) +
         "\n";
}

}  // namespace

std::string Announcement(const Options& options, const PlannedJob& planned,
                         const Settings& settings, const Launch& launch, bool is_root) {
  std::vector<std::string> warnings = planned.plan.warnings;
  warnings.insert(warnings.begin(), settings.warnings.begin(), settings.warnings.end());
  const std::vector<std::string> rest = SplitMpiArguments(settings.requested_mpi_arguments).rest;
  const LauncherTraits& launcher = launch.choice.traits();
  if (!launcher.is_open_mpi && !rest.empty()) {
    warnings.push_back(Coded(Message::kArgumentNotUsed,
                             "--mpiarg '" + support::ShortCommand(rest) + "' is not used by the " +
                                 launch.choice.name + " launcher; --launcher=mpirun uses it"));
  }
  if (!launcher.makes_step && settings.has_requested_srun_arguments) {
    warnings.push_back(Coded(Message::kArgumentNotUsed,
                             "--srunarg is not used by the " + launch.choice.name +
                                 " launcher; it is for ranks that srun starts inside Slurm"));
  }
  if (!options.pmi.empty() && !launcher.makes_step) {
    warnings.push_back(Coded(Message::kArgumentNotUsed,
                             "--pmi is not used by the " + launch.choice.name +
                                 " launcher; it is for ranks that srun starts inside Slurm"));
  }
  std::string text;
  for (const std::string& warning : warnings)
    text += "ddlrun: " + support::WithoutControls(warning) + "\n";
  if (!launch.choice.reason.empty()) {
    text += "ddlrun: starting " +
            support::Counted(static_cast<long long>(planned.plan.ranks.size()), "rank") +
            " with the " + launch.choice.name + " launcher: " + launch.choice.reason + "\n";
  }
  if (is_root && launcher.is_open_mpi) {
    text += "ddlrun: started by root, so mpirun gets --allow-run-as-root\n";
  }
  return text;
}

std::string WhereTheLogIs(const std::string& run_directory) {
  return "Please see " + run_directory + "/" + kRunLogName + " for detailed log.\n";
}

bool ShowsCost(const RunCost& cost, int exit_code, bool is_verbose) {
  const bool has_failed = exit_code != EX_OK && exit_code != EX_TEMPFAIL;
  return is_verbose || cost.restarts > 0 || (has_failed && cost.wall >= kSecondsOfProgress);
}

std::string EndText(const JobResult& result, const Decision& decision) {
  std::string text;
  for (const std::string& note : result.notes) text += "ddlrun: " + note + "\n";
  text += ResultText(result, decision);
  if (decision.reason.empty()) return text;
  const std::string reason = "ddlrun: " + decision.reason + "\n";
  return decision.next == Decision::Next::kEnd ? reason + text : text + reason;
}

}  // namespace launcher
