// SPDX-License-Identifier: Apache-2.0

#include "ddlctl/status_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ddlctl/load_view.h"
#include "support/build.h"
#include "support/number.h"
#include "trainer/telemetry/text/clock.h"

namespace ddlctl {

using trainer::RunStatus;

namespace {

std::string Row(const char* name, const std::string& value) {
  return fmt::format("{:<14} {}\n", name, value);
}

}  // namespace

std::string NumberText(double value, int digits) {
  return std::isfinite(value) ? fmt::format("{:.{}f}", value, digits) : "?";
}

std::string RejectionText(const trainer::ControlAnswer& answer) {
  const std::string own = support::ProgramVersion();
  const std::string& other = answer.status.identity.version;
  if (other == own) return Harmless(answer.rejection);
  return Harmless(
      fmt::format("{} (it is ddltraind {}, this is ddlctl {})", answer.rejection, other, own));
}

std::string Harmless(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char letter) { return letter < ' ' || letter > '~'; }, '?');
  return text;
}

std::string StepText(const RunStatus& status) {
  return fmt::format("step {}/{}", status.step, status.steps);
}

// People count epochs from 1; at the very end the last one stays.
std::string EpochText(const RunStatus& status) {
  if (status.epochs <= 0) return "";
  return fmt::format("epoch {}/{}", std::min(status.epoch, status.epochs - 1) + 1, status.epochs);
}

std::string RequestedText(const RunStatus& status) {
  std::string text;
  for (const trainer::ControlCommand command : status.requested) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", NameOf(command));
  }
  return text;
}

std::string StatusText(const RunStatus& status) {
  const trainer::RunIdentity& identity = status.identity;
  const std::string epoch = EpochText(status);
  std::string text = Row("state", std::string(NameOf(status.state)));
  text += Row("progress", StepText(status) + (epoch.empty() ? "" : ", " + epoch));
  text +=
      Row("speed", fmt::format("{} images/s, {} ms a step", NumberText(status.images_per_second, 1),
                               NumberText(status.times.step * 1e3, 1)));
  for (const LoadRow& row : LoadRows(status)) {
    text += fmt::format("{:<{}} {:>10}  {}\n", row.name, kLoadNameColumns, row.time, row.rest);
  }
  text += Row("loss", NumberText(status.loss, 4));
  text += Row("eta", trainer::FormatDuration(status.eta_seconds));
  text += Row("checkpoint", status.checkpoint_step < 0
                                ? std::string("none")
                                : fmt::format("step {}", status.checkpoint_step));
  text += Row("display_every", std::to_string(status.display_every));
  if (!status.requested.empty()) text += Row("asked for", RequestedText(status));
  text += Row("ranks", std::to_string(identity.ranks));
  text += Row("rank 0", fmt::format("process {} on {}{}", identity.pid, Harmless(identity.host),
                                    identity.job.empty() ? "" : ", job " + Harmless(identity.job)));
  text += Row("version", "ddltraind " + Harmless(identity.version));
  return text;
}

std::string StatusLine(const RunStatus& status) {
  const std::string epoch = EpochText(status);
  const std::string requested = RequestedText(status);
  const std::string slowest = SlowestText(status);
  return fmt::format(
      "{} {}{} {} images/s loss {} eta {} checkpoint {}{}{}", NameOf(status.state),
      StepText(status), epoch.empty() ? "" : " " + epoch, NumberText(status.images_per_second, 1),
      NumberText(status.loss, 4), trainer::FormatDuration(status.eta_seconds),
      status.checkpoint_step < 0 ? std::string("none") : std::to_string(status.checkpoint_step),
      slowest.empty() ? "" : " " + slowest, requested.empty() ? "" : " asked for " + requested);
}

}  // namespace ddlctl
