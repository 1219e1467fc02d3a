// SPDX-License-Identifier: Apache-2.0

#include "launcher/protocol/job_status.h"

#include <cstdio>
#include <sstream>
#include <stdexcept>

#include "launcher/protocol/plan_encoding.h"
#include "support/number.h"

namespace launcher {
namespace {

// Of seconds, 30 million years, and of joules: what is more is neither.
constexpr double kMaxAmount = 1e15;
constexpr char kCostBeginning[] = "cost ";
constexpr const char* kRankStates[] = {"starting", "running", "ended"};

std::string FirstStatusLine(int version) { return kStatusBeginning + std::to_string(version); }

std::string AmountText(std::optional<double> amount) {
  if (!amount) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", *amount);
  return text;
}

std::optional<double> ReadAmount(const std::string& word) {
  if (word == "-") return std::nullopt;
  const double value = support::WholeNumber<double>(word).value_or(-1);
  if (!(value >= 0 && value <= kMaxAmount)) throw std::out_of_range(word);
  return value;
}

JobStatus::RankState ReadRankState(const std::string& word) {
  for (int i = 0; i < 3; ++i) {
    if (word == kRankStates[i]) return static_cast<JobStatus::RankState>(i);
  }
  throw std::out_of_range(word);
}

void Expect(TokenReader& words, const std::string& name) {
  if (words.Next() != name) throw std::out_of_range(name);
}

RunCost ReadCost(const std::string& line) {
  TokenReader words(line);
  Expect(words, "cost");
  RunCost cost;
  const auto source = ProgressSourceOf(words.Next());
  cost.source = source ? *source : throw std::out_of_range(line);
  cost.restarts = words.Number();
  cost.wall = ReadAmount(words.Next()).value_or(0);
  cost.unsaved = ReadAmount(words.Next()).value_or(0);
  for (const CostPart& part : CostParts()) {
    cost.*part.seconds = ReadAmount(words.Next()).value_or(0);
  }
  cost.energy = ReadAmount(words.Next());
  cost.lost_energy = ReadAmount(words.Next()).value_or(0);
  cost.lacks_energy = words.Number() != 0;
  words.ExpectEnd();
  return cost;
}

std::string CostLine(const RunCost& cost) {
  std::string text = std::string(kCostBeginning) + NameOf(cost.source) + " " +
                     std::to_string(cost.restarts) + " " + AmountText(cost.wall) + " " +
                     AmountText(cost.unsaved);
  for (const CostPart& part : CostParts()) text += " " + AmountText(cost.*part.seconds);
  return text + " " + AmountText(cost.energy) + " " + AmountText(cost.lost_energy) +
         (cost.lacks_energy ? " 1\n" : " 0\n");
}

JobStatus Read(std::istringstream& lines) {
  std::string line;
  const bool is_known = std::getline(lines, line) &&
                        (line == FirstStatusLine(1) || line == FirstStatusLine(kStatusFormat));
  if (!is_known) throw std::out_of_range(line);
  JobStatus status;
  std::getline(lines, line);
  TokenReader job(line);
  Expect(job, "job");
  status.job = job.Text();
  status.host = job.Text();
  status.pid = job.Number();
  status.launcher = job.Text();
  status.restarts = job.Number();
  status.program = job.Text();
  job.ExpectEnd();
  std::getline(lines, line);
  TokenReader times(line);
  Expect(times, "times");
  status.written = ReadAmount(times.Next()).value_or(0);
  status.started = ReadAmount(times.Next()).value_or(0);
  status.ends = ReadAmount(times.Next());
  times.ExpectEnd();
  while (std::getline(lines, line)) {
    if (status.ranks.empty() && !status.cost && line.starts_with(kCostBeginning)) {
      status.cost = ReadCost(line);
      continue;
    }
    TokenReader words(line);
    Expect(words, "rank");
    JobStatus::Rank rank;
    rank.host = words.Text();
    rank.state = ReadRankState(words.Next());
    rank.exit_code = words.Number();
    rank.silence = ReadAmount(words.Next());
    words.ExpectEnd();
    status.ranks.push_back(std::move(rank));
  }
  if (status.ranks.empty()) throw std::out_of_range("ranks");
  return status;
}

}  // namespace

std::string FormatJobStatus(const JobStatus& status) {
  std::string text = FirstStatusLine(kStatusFormat) + "\njob " + EscapeToken(status.job) + " " +
                     EscapeToken(status.host) + " " + std::to_string(status.pid) + " " +
                     EscapeToken(status.launcher) + " " + std::to_string(status.restarts) + " " +
                     EscapeToken(status.program) + "\ntimes " + AmountText(status.written) + " " +
                     AmountText(status.started) + " " + AmountText(status.ends) + "\n";
  if (status.cost) text += CostLine(*status.cost);
  for (const JobStatus::Rank& rank : status.ranks) {
    text += "rank " + EscapeToken(rank.host) + " " + kRankStates[static_cast<int>(rank.state)] +
            " " + std::to_string(rank.exit_code) + " " + AmountText(rank.silence) + "\n";
  }
  return text;
}

std::optional<JobStatus> ParseJobStatus(const std::string& text) {
  if (text.empty() || text.back() != '\n') return std::nullopt;
  std::istringstream lines(text);
  try {
    return Read(lines);
  } catch (const std::out_of_range&) {
    return std::nullopt;
  }
}

}  // namespace launcher
