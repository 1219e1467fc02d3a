// SPDX-License-Identifier: Apache-2.0

#include "launcher/protocol/rank_job.h"

#include <exception>
#include <sstream>

#include "launcher/base/error.h"
#include "launcher/protocol/plan_encoding.h"

namespace launcher {
namespace {

// Before 0.3.0 the text began with another word.
LaunchError OtherVersion(const std::string& text) {
  const std::string name = "ddlrun=";
  const std::string first = text.substr(0, text.find(' '));
  const std::string writer =
      first.starts_with(name) ? "ddlrun " + first.substr(name.size()) : "an older version";
  return LaunchError(EX_CONFIG,
                     "this node has ddlrun " + std::string(RankJobVersion()).substr(name.size()) +
                         ", but the job was started by " + writer +
                         ": ddlrun was upgraded while the job ran, or not on all nodes; submit the "
                         "job again when it is the same everywhere");
}

}  // namespace

std::string EncodeRankJob(const RankJob& job) {
  std::ostringstream words;
  words << RankJobVersion() << ' ' << EscapeToken(job.launcher) << ' ' << EscapeToken(job.pmi)
        << ' ' << EscapeToken(job.event_key) << " bind=" << job.bind << " check=" << job.check
        << " pause=" << job.pause << " cores=" << job.plan.cpus_are_cores << ' '
        << EscapeToken(job.planned_for) << ' ' << EscapeToken(job.run_directory) << ' '
        << EscapeToken(job.log_directory) << ' ' << EscapeToken(job.directory) << ' '
        << EscapeToken(job.master_address) << ' ' << job.master_port << ' ' << job.restart_count
        << ' ' << job.grace_ms << " frames=" << job.frames << ' ' << EscapeToken(job.shown_ranks)
        << ' ' << job.wraps.size();
  for (const RankWrap& wrap : job.wraps) {
    words << ' ' << EscapeToken(wrap.ranks) << ' ' << wrap.words.size();
    for (const std::string& word : wrap.words) words << ' ' << EscapeToken(word);
  }
  words << ' ' << EncodePlan(job.plan);
  std::string text = words.str();
  if (text.size() > kMaxRankJobBytes) {
    throw LaunchError(
        EX_CONFIG,
        "a plan of " + std::to_string(job.plan.ranks.size()) + " ranks on " +
            std::to_string(job.plan.nodes.size()) +
            " nodes has too little order to hand it to them (" + std::to_string(text.size()) +
            " bytes, at most " + std::to_string(kMaxRankJobBytes) +
            "): number the ranks node by node (--rank-order=node) on nodes in the scheduler's "
            "order, or start fewer");
  }
  return text;
}

RankJob DecodeRankJob(const std::string& text) {
  const char* of_this_version = SkipRankJobVersion(text.c_str());
  if (of_this_version == nullptr) throw OtherVersion(text);
  try {
    TokenReader words(of_this_version);
    RankJob job;
    job.launcher = words.Text();
    job.pmi = words.Text();
    job.event_key = words.Text();
    job.bind = words.Flag("bind");
    job.check = words.Flag("check");
    job.pause = words.Flag("pause");
    const bool cpus_are_cores = words.Flag("cores");
    job.planned_for = words.Text();
    job.run_directory = words.Text();
    job.log_directory = words.Text();
    job.directory = words.Text();
    job.master_address = words.Text();
    job.master_port = words.Number();
    job.restart_count = words.Number();
    job.grace_ms = words.Number();
    job.frames = words.Flag("frames");
    job.shown_ranks = words.Text();
    for (int wraps = words.Number(); wraps > 0; --wraps) {
      RankWrap& wrap = job.wraps.emplace_back();
      wrap.ranks = words.Text();
      for (int left = words.Number(); left > 0; --left) wrap.words.push_back(words.Text());
    }
    job.plan = DecodePlan(words);
    job.plan.cpus_are_cores = cpus_are_cores;
    return job;
  } catch (const std::exception& error) {
    throw LaunchError(EX_SOFTWARE,
                      std::string(kRankJobVariable) +
                          " is not what this version of ddlrun writes: " + error.what());
  }
}

std::map<std::string, std::string> RankJobVariables(const std::string& text) {
  std::map<std::string, std::string> variables;
  for (std::size_t start = 0; start < text.size(); start += kMaxRankJobChunkBytes) {
    variables.emplace(NameOfChunk(static_cast<int>(variables.size())).name,
                      text.substr(start, kMaxRankJobChunkBytes));
  }
  return variables;
}

std::string RankJobText(const Environment& environment) {
  std::string text;
  for (int index = 0; index < kMaxRankJobChunks; ++index) {
    const auto part = environment.find(NameOfChunk(index).name);
    if (part == environment.end()) break;
    text += part->second;
  }
  return text;
}

}  // namespace launcher
