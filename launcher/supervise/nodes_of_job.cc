// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/nodes_of_job.h"

#include "launcher/allocation/host_index.h"
#include "launcher/base/error.h"
#include "rankfile/hostlist.h"
#include "rankfile/scanner.h"

namespace launcher {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{100};  // at a question that is under way
constexpr std::chrono::milliseconds kSlurmTimeout{10000};

// Null where it cannot be asked: the machine may have no process left.
std::unique_ptr<CommandOutput> Ask(const NodesOfJobOptions& options) {
  if (options.question.empty()) return nullptr;
  try {
    return std::make_unique<CommandOutput>(options.question, options.environment);
  } catch (const LaunchError&) {
    return nullptr;
  }
}

std::string RejectionOf(CommandOutput* question, std::chrono::milliseconds limit,
                        const NodesOfJobOptions& options) {
  return question->Wait(limit) ? options.rejection(question->text()) : "";
}

}  // namespace

void NodesOfJob::ExpectStart(Clock::time_point now) {
  if (!options_.question.empty()) deadline_ = now + query_after_;
}

void NodesOfJob::Dismiss() {
  deadline_.reset();
  question_.reset();
}

std::string NodesOfJob::Look(Clock::time_point now) {
  if (!deadline_ || now < *deadline_) return "";
  if (question_ == nullptr) question_ = Ask(options_);
  deadline_ = now + kBetweenLooks;
  if (question_ != nullptr && !question_->HasEnded()) return "";
  const std::string rejection =
      question_ == nullptr ? ""
                           : RejectionOf(question_.get(), std::chrono::milliseconds(0), options_);
  question_.reset();
  query_after_ *= 2;
  deadline_ = now + query_after_;
  return rejection;
}

std::string NodesOfJob::QueryNow() const {
  const std::unique_ptr<CommandOutput> question = Ask(options_);
  return question == nullptr ? "" : RejectionOf(question.get(), kSlurmTimeout, options_);
}

namespace {

std::vector<std::string> Expanded(const std::string& hosts) {
  try {
    return rankfile::ExpandHostlist(hosts);
  } catch (const rankfile::ParseError&) {
    return {};
  }
}

}  // namespace

std::vector<std::string> NodesNotStarted(const std::vector<std::string>& hosts,
                                         const std::set<int>& started) {
  std::vector<std::string> nodes;
  std::set<std::string> known;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    if (started.contains(static_cast<int>(rank))) continue;
    if (known.insert(hosts[rank]).second) nodes.push_back(hosts[rank]);
  }
  return nodes;
}

std::vector<std::string> SilentNodes(const std::vector<std::string>& hosts,
                                     const std::set<std::string>& hosts_with_ends) {
  HostIndex known;
  for (const std::string& names : hosts_with_ends) {
    for (const std::string& host : Expanded(names)) known.Add(host);
  }
  std::vector<std::string> nodes;
  if (known.IsEmpty()) return nodes;
  for (const std::string& host : hosts) {
    if (known.Holds(host)) continue;
    known.Add(host);
    nodes.push_back(host);
  }
  return nodes;
}

}  // namespace launcher
