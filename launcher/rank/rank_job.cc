// SPDX-License-Identifier: Apache-2.0

#include "launcher/rank/rank_job.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "launcher/error.h"

namespace launcher {
namespace {

constexpr std::string_view kPlain = "_./+,@";
constexpr char kNothing[] = "-";

// No node has more; a text that says so is not ours.
constexpr int kMaxCpus = 65536;

std::string EncodeText(const std::string& text) {
  if (text.empty()) return kNothing;
  std::string word;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 128 && (std::isalnum(byte) != 0 || kPlain.find(c) != std::string_view::npos)) {
      word += c;
    } else {
      std::array<char, 4> escaped = {};
      std::snprintf(escaped.data(), escaped.size(), "%%%02X", byte);
      word += escaped.data();
    }
  }
  return word;
}

// A rank's hardware threads are few runs: "0-3,8".
std::string EncodeCpus(const std::vector<int>& cpus) {
  if (cpus.empty()) return kNothing;
  std::string runs;
  for (std::size_t i = 0; i < cpus.size(); ++i) {
    std::size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    if (!runs.empty()) runs += ",";
    runs += std::to_string(cpus[i]);
    if (last > i) runs += "-" + std::to_string(cpus[last]);
    i = last;
  }
  return runs;
}

// std::exception: what the text has is not what EncodeRankJob writes.
int ToNumber(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < -1) {
    throw std::out_of_range("'" + std::string(text.substr(0, 40)) + "' is no number");
  }
  return number;
}

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

std::vector<int> DecodeCpus(const std::string& runs) {
  std::vector<int> cpus;
  if (runs == kNothing) return cpus;
  for (const std::string& run : Split(runs, ',')) {
    const std::size_t dash = std::min(run.find('-'), run.size());
    const int first = ToNumber(run.substr(0, dash));
    const int last = dash < run.size() ? ToNumber(run.substr(dash + 1)) : first;
    if (first < 0 || last < first || last >= kMaxCpus || cpus.size() > kMaxCpus) {
      throw std::out_of_range("CPU numbers");
    }
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

// The words of the text, one after the other.
class Words {
 public:
  explicit Words(const std::string& text) : stream_(text) {}
  std::string Next() {
    std::string word;
    if (!std::getline(stream_, word, ' ')) throw std::out_of_range("it is too short");
    return word;
  }
  std::string Text() {
    const std::string word = Next();
    if (word == kNothing) return "";
    std::string text;
    for (std::size_t i = 0; i < word.size(); ++i) {
      int byte = static_cast<unsigned char>(word[i]);
      if (word[i] == '%') {
        const std::string_view digits = std::string_view(word).substr(i + 1, 2);
        const auto [end, error] =
            std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
        if (error != std::errc() || end != word.data() + i + 3) throw std::out_of_range("a %");
        i += 2;
      }
      text += static_cast<char>(byte);
    }
    return text;
  }
  int Number() { return ToNumber(Next()); }
  bool Flag(const std::string& name) { return Next() == name + "=1"; }
  // A word of `count` fields.
  std::vector<std::string> Fields(std::size_t count) {
    std::vector<std::string> fields = Split(Next(), ':');
    if (fields.size() != count) throw std::out_of_range("another number of fields");
    return fields;
  }

 private:
  std::istringstream stream_;
};

RankPlan DecodeRank(const std::vector<std::string>& fields) {
  RankPlan rank;
  rank.node = ToNumber(fields[0]);
  rank.local_rank = ToNumber(fields[1]);
  rank.gpu = ToNumber(fields[2]);
  rank.numa_os_index = ToNumber(fields[3]);
  rank.cpus = DecodeCpus(fields[5]);
  const auto cores = static_cast<std::size_t>(ToNumber(fields[4]));
  if (cores > rank.cpus.size()) throw std::out_of_range("number of cores");
  rank.cores.resize(cores);
  return rank;
}

}  // namespace

std::string EncodeRankJob(const RankJob& job) {
  const Plan& plan = job.plan;
  std::ostringstream text;
  text << EncodeText(job.spawner) << ' ' << EncodeText(job.pmi) << " bind=" << job.bind
       << " check=" << job.check << " pause=" << job.pause << " cores=" << plan.cpus_are_cores
       << ' ' << EncodeText(job.planned_for) << ' ' << EncodeText(job.run_directory) << ' '
       << EncodeText(job.log_directory) << ' ' << EncodeText(job.master_address) << ' '
       << job.master_port << ' ' << job.restart_count << ' ' << plan.cpus_per_rank.value_or(0)
       << ' ' << plan.nodes.size() << ' ' << plan.ranks.size();
  for (const NodePlan& node : plan.nodes) text << ' ' << EncodeText(node.host) << ':' << node.gpus;
  for (const RankPlan& rank : plan.ranks) {
    text << ' ' << rank.node << ':' << rank.local_rank << ':' << rank.gpu << ':'
         << rank.numa_os_index << ':' << rank.cores.size() << ':' << EncodeCpus(rank.cpus);
  }
  if (text.str().size() > kMaxRankJobBytes) {
    throw LaunchError(EX_CONFIG, "a plan of " + std::to_string(plan.ranks.size()) +
                                     " ranks is too long to hand to them (" +
                                     std::to_string(text.str().size()) + " bytes, at most " +
                                     std::to_string(kMaxRankJobBytes) + "); start fewer ranks");
  }
  return text.str();
}

RankJob DecodeRankJob(const std::string& text) {
  try {
    Words words(text);
    RankJob job;
    job.spawner = words.Text();
    job.pmi = words.Text();
    job.bind = words.Flag("bind");
    job.check = words.Flag("check");
    job.pause = words.Flag("pause");
    job.plan.cpus_are_cores = words.Flag("cores");
    job.planned_for = words.Text();
    job.run_directory = words.Text();
    job.log_directory = words.Text();
    job.master_address = words.Text();
    job.master_port = words.Number();
    job.restart_count = words.Number();
    const int cpus_per_rank = words.Number();
    if (cpus_per_rank > 0) job.plan.cpus_per_rank = cpus_per_rank;
    const int nodes = words.Number();
    const int ranks = words.Number();
    for (int i = 0; i < nodes; ++i) {
      const std::vector<std::string> fields = words.Fields(2);
      NodePlan& node = job.plan.nodes.emplace_back();
      node.host = Words(fields[0]).Text();
      node.gpus = ToNumber(fields[1]);
    }
    for (int i = 0; i < ranks; ++i) {
      RankPlan rank = DecodeRank(words.Fields(6));
      rank.rank = i;
      job.plan.nodes.at(static_cast<std::size_t>(rank.node)).ranks.push_back(i);
      job.plan.ranks.push_back(std::move(rank));
    }
    return job;
  } catch (const std::exception& error) {
    throw LaunchError(EX_SOFTWARE,
                      std::string(kRankJobVariable) +
                          " is not what this version of ddlrun writes: " + error.what());
  }
}

}  // namespace launcher
