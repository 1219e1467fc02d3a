// SPDX-License-Identifier: Apache-2.0

#include "launcher/health/verdict.h"

#include <algorithm>
#include <stdexcept>

#include "rankfile/hostlist.h"

namespace launcher {
namespace {

constexpr std::size_t kCheckWidth = 13;
constexpr std::size_t kVerdictWidth = 11;

std::string Padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size() + 1, width), ' ');
  return text;
}

const char* StatusText(Status status) {
  switch (status) {
    case Status::kOk:
      return "ok";
    case Status::kWarn:
      return "warn";
    case Status::kFail:
      return "fail";
    case Status::kNotKnown:
      return "not known";
  }
  return "";
}

}  // namespace

bool AnyFailed(const std::vector<Verdict>& verdicts) {
  return std::any_of(verdicts.begin(), verdicts.end(),
                     [](const Verdict& verdict) { return verdict.status == Status::kFail; });
}

std::vector<BadNode> BadNodes(const std::vector<Verdict>& verdicts) {
  std::vector<BadNode> nodes;
  for (const Verdict& verdict : verdicts) {
    const std::string reason = verdict.check + ": " + verdict.seen;
    for (const std::string& host : verdict.bad_hosts) {
      const auto known = std::find_if(nodes.begin(), nodes.end(),
                                      [&](const BadNode& node) { return node.host == host; });
      if (known == nodes.end()) {
        nodes.push_back({host, reason});
      } else {
        known->reason += "; " + reason;
      }
    }
  }
  return nodes;
}

std::string VerdictTable(const std::vector<Verdict>& verdicts) {
  std::string text = Padded("check", kCheckWidth) + Padded("verdict", kVerdictWidth) +
                     "what was seen: what to do\n";
  for (const Verdict& verdict : verdicts) {
    text += Padded(verdict.check, kCheckWidth) + Padded(StatusText(verdict.status), kVerdictWidth) +
            verdict.seen;
    if (!verdict.advice.empty()) text += ": " + verdict.advice;
    text += "\n";
  }
  return text;
}

std::string HostsText(const std::vector<std::string>& hosts) {
  try {
    return rankfile::CompressHostlist(hosts);
  } catch (const std::invalid_argument&) {
    std::string text;
    for (const std::string& host : hosts) text += (text.empty() ? "" : ",") + host;
    return text;
  }
}

}  // namespace launcher
