// SPDX-License-Identifier: Apache-2.0

#include "launcher/diagnose/facts.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "launcher/base/error.h"
#include "support/json.h"
#include "support/number.h"

namespace launcher {
namespace {

using FactsJson = nlohmann::ordered_json;

constexpr char kFactsMark[] = "ddlrun-facts";
constexpr std::size_t kMaxFactsBytes = std::size_t{16} << 20;
constexpr support::JsonLimits kFactsLimits = {
    .bytes = kMaxFactsBytes, .depth = 8, .values = 2'000'000};
constexpr std::size_t kMaxFactText = 4096;
constexpr std::size_t kMaxStatusText = std::size_t{8} << 20;
constexpr double kMaxCpus = 1e6;

// What a reader and a writer say of each field, so that the two cannot differ.

class FactsWriter {
 public:
  template <typename Value>
  void operator()(const char* name, const Value& value, std::size_t /*max*/ = 0) {
    json_[name] = value;
  }
  void operator()(const char* name, const char& value) { json_[name] = std::string(1, value); }
  template <typename Element, typename Each>
  void List(const char* name, std::vector<Element>& list, std::size_t /*max*/, Each each) {
    FactsJson array = FactsJson::array();
    for (Element& element : list) {
      FactsWriter writer;
      each(writer, element);
      array.push_back(std::move(writer.json_));
    }
    json_[name] = std::move(array);
  }
  std::string Dump() const {
    return json_.dump(-1, ' ', /*ensure_ascii=*/true, FactsJson::error_handler_t::replace);
  }

 private:
  FactsJson json_ = FactsJson::object();
};

class FactsReader {
 public:
  explicit FactsReader(const FactsJson& json) : json_(json) {
    if (!json.is_object()) throw std::invalid_argument("an object is missing");
  }

  void operator()(const char* name, int& value) { value = Whole<int>(name, 0); }
  void operator()(const char* name, long long& value) { value = Whole<long long>(name, -1); }
  void operator()(const char* name, bool& value) {
    if (!At(name).is_boolean()) Reject(name);
    value = At(name).get<bool>();
  }
  void operator()(const char* name, double& value) {
    if (!At(name).is_number()) Reject(name);
    value = At(name).get<double>();
    if (!(value >= 0 && value <= kMaxCpus)) Reject(name);
  }
  void operator()(const char* name, char& value) {
    std::string text;
    (*this)(name, text, 1);
    const bool is_letter = !text.empty() && std::isalpha(static_cast<unsigned char>(text[0])) != 0;
    if (!is_letter && text != "?") Reject(name);
    value = text[0];
  }
  void operator()(const char* name, std::string& value, std::size_t max = kMaxFactText) {
    value = Text(name, At(name), max);
  }
  void operator()(const char* name, std::vector<std::string>& value, std::size_t max) {
    for (const FactsJson& text : Array(name, max)) value.push_back(Text(name, text, kMaxFactText));
  }
  template <typename Element, typename Each>
  void List(const char* name, std::vector<Element>& list, std::size_t max, Each each) {
    for (const FactsJson& element : Array(name, max)) {
      FactsReader reader(element);
      each(reader, list.emplace_back());
    }
  }

 private:
  [[noreturn]] static void Reject(const std::string& name) { throw std::invalid_argument(name); }
  const FactsJson& At(const char* name) const {
    const auto found = json_.find(name);
    if (found == json_.end()) Reject(name);
    return *found;
  }
  const FactsJson& Array(const char* name, std::size_t max) const {
    if (!At(name).is_array() || At(name).size() > max) Reject(name);
    return At(name);
  }
  template <typename Int>
  Int Whole(const char* name, Int min) const {
    const auto number = support::IntegerOf<Int>(At(name), min, std::numeric_limits<Int>::max());
    if (!number) Reject(name);
    return *number;
  }
  static std::string Text(const char* name, const FactsJson& json, std::size_t max) {
    if (!json.is_string()) Reject(name);
    std::string text = json.get<std::string>();
    if (text.size() > max) Reject(name);
    return text;
  }

  const FactsJson& json_;
};

template <typename Visitor>
void VisitProcess(Visitor& visit, ProcessFacts& process) {
  visit("pid", process.pid);
  visit("parent", process.parent);
  visit("name", process.name);
  visit("state", process.state);
  visit("thread", process.thread);
  visit("wait", process.wait);
  visit("call", process.call);
  visit("object", process.object);
  visit("file_system", process.file_system);
  visit("is_still", process.is_still);
  visit("cpus", process.cpus);
  visit("tracer", process.tracer);
  visit("wait_status", process.wait_status);
  visit("stack", process.stack, kMaxFrames);
}

template <typename Visitor>
void VisitNode(Visitor& visit, NodeFacts& node) {
  visit("host", node.host);
  visit("run", node.run);
  visit("directory", node.directory);
  visit("status", node.status, kMaxStatusText);
  visit("notes", node.notes, 64);
  visit("gpus", node.gpus, kMaxGpus);
  visit.List("ranks", node.ranks, kMaxRanksOfNode, [](auto& each, RankFacts& rank) {
    each("rank", rank.rank);
    each("world", rank.world);
    each("host", rank.host);
    each("memory_kills", rank.memory_kills);
    each("gpu_error", rank.gpu_error);
    each.List("processes", rank.processes, kMaxProcessesOfRank,
              [](auto& inner, ProcessFacts& process) { VisitProcess(inner, process); });
    each.List("communicators", rank.communicators, kMaxCommunicators,
              [](auto& inner, CommunicatorFacts& communicator) {
                inner("name", communicator.name);
                inner("rank", communicator.rank);
                inner("size", communicator.size);
                inner.List("launched", communicator.launched, kMaxCollectives,
                           [](auto& innermost, CollectiveCount& collective) {
                             innermost("name", collective.name);
                             innermost("count", collective.count);
                           });
              });
    each.List("recorded", rank.recorded, kMaxRecordedGroups, [](auto& inner, RecordedGroup& group) {
      inner("name", group.name);
      inner("description", group.description);
      inner.List("collectives", group.collectives, kMaxRecordedCollectives,
                 [](auto& innermost, RecordedCollective& collective) {
                   innermost("number", collective.number);
                   innermost("name", collective.name);
                   innermost("state", collective.state);
                   innermost("sizes", collective.sizes);
                   innermost("types", collective.types);
                   innermost("place", collective.place);
                 });
    });
    if (rank.rank >= rank.world || rank.world > kMaxWorld) throw std::invalid_argument("rank");
    if (rank.processes.empty()) throw std::invalid_argument("processes");
  });
}

}  // namespace

const ProcessFacts& FocusOf(const RankFacts& rank) {
  const ProcessFacts* focus = &rank.processes.front();
  for (;;) {
    const bool waits_for_child =
        focus->call == "wait4" || focus->call == "waitid" || focus->wait.starts_with("do_wait");
    const auto child = std::ranges::find_if(rank.processes, [focus](const ProcessFacts& process) {
      return process.parent == focus->pid && process.pid != focus->pid && process.state != 'Z' &&
             process.state != 'X';
    });
    // Parents come before their children, so that this ends.
    if (!waits_for_child || child == rank.processes.end() || &*child < focus) return *focus;
    focus = &*child;
  }
}

std::string EncodeFacts(const NodeFacts& facts) {
  NodeFacts node = facts;
  FactsWriter writer;
  VisitNode(writer, node);
  return writer.Dump();
}

NodeFacts DecodeFacts(const std::string& text) {
  NodeFacts node;
  try {
    const auto json = support::ParseJson<FactsJson>(text, kFactsLimits);
    if (json.is_discarded()) throw std::invalid_argument("it is no JSON, or too long");
    FactsReader reader(json);
    VisitNode(reader, node);
  } catch (const std::exception& error) {
    throw LaunchError(EX_SOFTWARE,
                      std::string("the facts of a node's ranks are not what this version of ddlctl "
                                  "writes; are all nodes' installations the same? ") +
                          error.what());
  }
  return node;
}

std::string FactsLines(const NodeFacts& facts) {
  const std::string text = EncodeFacts(facts);
  // No blank is in a host name; what else it has is the business of who reads it.
  std::string host = facts.host.substr(0, 256);
  std::ranges::replace_if(
      host, [](char letter) { return letter <= ' '; }, '_');
  if (host.empty()) host = "?";
  const std::size_t part = kMaxFactsLine - host.size() - 64;
  const std::size_t count = (text.size() + part - 1) / part;
  std::string lines;
  for (std::size_t i = 0; i < count; ++i) {
    lines += std::string(kFactsMark) + " " + host + " " + std::to_string(i) + " " +
             std::to_string(count) + " " + text.substr(i * part, part) + "\n";
  }
  return lines;
}

std::map<std::string, NodeFacts> ReadFactsLines(std::string_view output, std::string* problem) {
  struct Parts {
    std::size_t next = 0;
    std::size_t count = 0;
    std::string text;
  };
  std::map<std::string, Parts> parts;
  std::map<std::string, NodeFacts> nodes;
  while (!output.empty()) {
    const std::size_t end = std::min(output.find('\n'), output.size());
    std::string_view rest = output.substr(0, end);
    output.remove_prefix(std::min(end + 1, output.size()));
    const auto word = [&rest] {
      const std::size_t blank = std::min(rest.find(' '), rest.size());
      const std::string_view found = rest.substr(0, blank);
      rest.remove_prefix(std::min(blank + 1, rest.size()));
      return found;
    };
    if (word() != kFactsMark) continue;
    const std::string host(word());
    const auto index = support::WholeNumber<std::size_t>(word());
    const auto count = support::WholeNumber<std::size_t>(word());
    Parts& node = parts[host];
    if (!index || !count || *index != node.next || (*index > 0 && *count != node.count) ||
        node.text.size() + rest.size() > kMaxFactsBytes) {
      *problem = "a part of the facts of " + host + " is missing";
      continue;
    }
    node.count = *count;
    node.text += rest;
    if (++node.next < node.count) continue;
    try {
      nodes[host] = DecodeFacts(node.text);
    } catch (const LaunchError& error) {
      *problem = error.what();
    }
  }
  for (const auto& [host, node] : parts) {
    if (node.next < node.count) *problem = "a part of the facts of " + host + " is missing";
  }
  return nodes;
}

}  // namespace launcher
