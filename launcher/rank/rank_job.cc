// SPDX-License-Identifier: Apache-2.0

#include "launcher/rank/rank_job.h"

#include <nlohmann/json.hpp>

#include "launcher/error.h"

namespace launcher {
namespace {

using nlohmann::json;

// Written as [first, last, first, last, ...]: a rank's hardware threads are few runs.
json EncodeRuns(const std::vector<int>& numbers) {
  json runs = json::array();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0 && numbers[i] == numbers[i - 1] + 1) {
      runs.back() = numbers[i];
    } else {
      runs.push_back(numbers[i]);
      runs.push_back(numbers[i]);
    }
  }
  return runs;
}

// No node has more; a text that says so is not ours.
constexpr int kMaxCpus = 65536;

std::vector<int> DecodeRuns(const json& runs) {
  std::vector<int> numbers;
  for (std::size_t i = 0; i + 1 < runs.size(); i += 2) {
    const int first = runs[i];
    const int last = runs[i + 1];
    if (first < 0 || last < first || last >= kMaxCpus || numbers.size() > kMaxCpus) {
      throw std::out_of_range("CPU numbers");
    }
    for (int number = first; number <= last; ++number) numbers.push_back(number);
  }
  return numbers;
}

}  // namespace

std::string EncodeRankJob(const RankJob& job) {
  json hosts = json::array();
  json gpus = json::array();
  for (const NodePlan& node : job.plan.nodes) {
    hosts.push_back(node.host);
    gpus.push_back(node.gpus);
  }
  json ranks = json::array();
  for (const RankPlan& rank : job.plan.ranks) {
    ranks.push_back(json::array({rank.node, rank.local_rank, rank.gpu, rank.numa_os_index,
                                 EncodeRuns(rank.cpus), rank.cores.size()}));
  }
  const json encoded = {{"spawner", job.spawner},
                        {"bind", job.bind},
                        {"check", job.check},
                        {"run_directory", job.run_directory},
                        {"log_directory", job.log_directory},
                        {"master_address", job.master_address},
                        {"master_port", job.master_port},
                        {"restart_count", job.restart_count},
                        {"planned_for", job.planned_for},
                        {"cpus_per_rank", job.plan.cpus_per_rank.value_or(0)},
                        {"hosts", hosts},
                        {"gpus", gpus},
                        {"ranks", ranks}};
  std::string text = encoded.dump();
  if (text.size() > kMaxRankJobBytes) {
    throw LaunchError(EX_CONFIG, "a plan of " + std::to_string(job.plan.ranks.size()) +
                                     " ranks is too long to hand to them (" +
                                     std::to_string(text.size()) + " bytes, at most " +
                                     std::to_string(kMaxRankJobBytes) + "); start fewer ranks");
  }
  return text;
}

RankJob DecodeRankJob(const std::string& text) {
  try {
    const json encoded = json::parse(text);
    RankJob job;
    job.spawner = encoded.at("spawner");
    job.bind = encoded.at("bind");
    job.check = encoded.at("check");
    job.run_directory = encoded.at("run_directory");
    job.log_directory = encoded.at("log_directory");
    job.master_address = encoded.at("master_address");
    job.master_port = encoded.at("master_port");
    job.restart_count = encoded.at("restart_count");
    job.planned_for = encoded.at("planned_for");
    const int cpus_per_rank = encoded.at("cpus_per_rank");
    if (cpus_per_rank > 0) job.plan.cpus_per_rank = cpus_per_rank;
    for (const json& host : encoded.at("hosts")) {
      NodePlan& node = job.plan.nodes.emplace_back();
      node.host = host;
      node.gpus = encoded.at("gpus").at(job.plan.nodes.size() - 1);
    }
    for (const json& entry : encoded.at("ranks")) {
      RankPlan rank;
      rank.rank = static_cast<int>(job.plan.ranks.size());
      rank.node = entry.at(0);
      rank.local_rank = entry.at(1);
      rank.gpu = entry.at(2);
      rank.numa_os_index = entry.at(3);
      rank.cpus = DecodeRuns(entry.at(4));
      const std::size_t cores = entry.at(5);
      if (cores > rank.cpus.size()) throw std::out_of_range("number of cores");
      rank.cores.resize(cores);
      job.plan.nodes.at(static_cast<std::size_t>(rank.node)).ranks.push_back(rank.rank);
      job.plan.ranks.push_back(rank);
    }
    return job;
  } catch (const std::exception& error) {
    throw LaunchError(EX_SOFTWARE,
                      std::string(kRankJobVariable) +
                          " is not what this version of ddlrun writes: " + error.what());
  }
}

}  // namespace launcher
