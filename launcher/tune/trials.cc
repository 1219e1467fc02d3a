// SPDX-License-Identifier: Apache-2.0

#include "launcher/tune/trials.h"

#include <algorithm>
#include <set>

namespace launcher {
namespace {

// The names that every node has; `names_of` gives those of one.
template <typename NamesOf>
std::vector<std::string> OnAllNodes(const std::vector<NodeInfo>& info, const NamesOf& names_of) {
  std::vector<std::string> common;
  bool is_first = true;
  for (const NodeInfo& node : info) {
    if (node.host.empty()) continue;
    const std::vector<std::string> names = names_of(node);
    if (is_first) common = names;
    is_first = false;
    std::erase_if(common, [&names](const std::string& name) {
      return std::find(names.begin(), names.end(), name) == names.end();
    });
  }
  return common;
}

std::vector<std::string> ActivePortsOf(const NodeInfo& node) {
  std::vector<std::string> names;
  for (const IbPortInfo& port : node.ports) {
    if (port.state == "ACTIVE") names.push_back(port.name);
  }
  return names;
}

bool LeadsNowhere(const std::string& network) {
  for (const char* start : {"docker", "virbr", "br-", "cni", "flannel", "cali", "lxc", "podman"}) {
    if (network.starts_with(start)) return true;
  }
  return false;
}

// "network eth1", "up, 10000 Mbit/s, ...": details.h has the form.
std::vector<std::string> NetworksOf(const NodeInfo& node) {
  const std::string start = "network ";
  std::vector<std::string> names;
  for (const Detail& detail : node.details) {
    if (!detail.name.starts_with(start) || !detail.text.starts_with("up,")) continue;
    const std::string name = detail.name.substr(start.size());
    if (!LeadsNowhere(name)) names.push_back(name);
  }
  return names;
}

std::string Listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

Change PortChange(const std::string& ports, bool by_nccl) {
  // '=': the exact names.
  if (by_nccl) return {{}, {{"NCCL_IB_HCA", "=" + ports}}};
  return {{}, {{"UCX_NET_DEVICES", ports}}};
}

Change NetworkChange(const std::string& network, bool by_nccl) {
  if (by_nccl) return {{}, {{"NCCL_SOCKET_IFNAME", "=" + network}}};
  return {{}, {{"OMPI_MCA_btl_tcp_if_include", network}, {"UCX_NET_DEVICES", network}}};
}

Knob VariableKnob(const std::string& title, const std::string& name,
                  const std::vector<std::string>& values) {
  Knob knob{title, {}};
  for (const std::string& value : values) {
    knob.choices.push_back({name + "=" + value, {{}, {{name, value}}}});
  }
  return knob;
}

// The value that a setting of --show-config has; "" for none.
std::string ValueNow(const Settings& settings, const std::string& name) {
  for (const ShownSetting& setting : settings.shown) {
    if (setting.name == name) return setting.value;
  }
  return "";
}

bool IsAsNow(const Change& change, const Settings& settings) {
  for (const auto& [name, value] : change.keys) {
    if (ValueNow(settings, name) != value) return false;
  }
  for (const auto& [name, value] : change.variables) {
    if (ValueNow(settings, "environment." + name) != value) return false;
  }
  return true;
}

}  // namespace

Rails RailsOf(const std::vector<NodeInfo>& info) {
  return {OnAllNodes(info, ActivePortsOf), OnAllNodes(info, NetworksOf)};
}

std::vector<Choice> RailChoices(const Rails& rails, bool by_nccl) {
  std::vector<Choice> choices;
  for (const std::string& port : rails.ports) {
    choices.push_back({port, PortChange(port, by_nccl)});
  }
  if (rails.ports.size() > 1) {
    choices.push_back({Listed(rails.ports), PortChange(Listed(rails.ports), by_nccl)});
  }
  if (!rails.ports.empty()) return choices;
  for (const std::string& network : rails.networks) {
    choices.push_back({network, NetworkChange(network, by_nccl)});
  }
  return choices;
}

std::vector<Knob> MakeKnobs(const Rails& rails, const Tuned& tuned, const Settings& settings) {
  std::vector<Knob> knobs;
  const std::vector<Choice> ways = RailChoices(rails, tuned.by_nccl);
  // A single way is what is taken anyway.
  if (ways.size() > 1) knobs.push_back({"network", ways});
  if (!tuned.by_nccl && tuned.by_open_mpi) {
    knobs.push_back(VariableKnob("MPI's way", "OMPI_MCA_pml", {"ucx", "ob1"}));
    if (rails.ports.empty()) {
      // Otherwise Open MPI leaves UCX to InfiniBand (opal_common_ucx_tls, opal_common_ucx_devices).
      std::map<std::string, std::string>& by_ucx = knobs.back().choices.front().change.variables;
      by_ucx["OMPI_MCA_pml_ucx_tls"] = "any";
      by_ucx["OMPI_MCA_pml_ucx_devices"] = "any";
    }
  }
  if (tuned.by_nccl) {
    if (!rails.ports.empty()) {
      knobs.push_back(VariableKnob("GPUDirect", "NCCL_NET_GDR_LEVEL", {"LOC", "PHB", "SYS"}));
      knobs.push_back(VariableKnob("SHARP", "NCCL_COLLNET_ENABLE", {"1"}));
    }
    knobs.push_back(VariableKnob("algorithm", "NCCL_ALGO", {"Ring", "Tree"}));
    knobs.push_back(VariableKnob("channels", "NCCL_MIN_NCHANNELS", {"8", "16"}));
  }
  knobs.push_back(
      {"cores",
       {{"bind: auto", {{{"bind", "auto"}}, {}}}, {"bind: none", {{{"bind", "none"}}, {}}}}});
  if (tuned.max_ranks_of_a_node > 1) {
    knobs.push_back({"order of ranks",
                     {{"rank_order: auto", {{{"rank_order", "auto"}}, {}}},
                      {"rank_order: cyclic", {{{"rank_order", "cyclic"}}, {}}}}});
  }
  for (Knob& knob : knobs) {
    std::erase_if(knob.choices,
                  [&](const Choice& choice) { return IsAsNow(choice.change, settings); });
  }
  std::erase_if(knobs, [](const Knob& knob) { return knob.choices.empty(); });
  return knobs;
}

Change Together(Change first, const Change& second) {
  for (const auto& [name, value] : second.keys) first.keys[name] = value;
  for (const auto& [name, value] : second.variables) first.variables[name] = value;
  return first;
}

std::vector<std::string> OptionsFor(const Change& change) {
  std::vector<std::string> options;
  for (const auto& [name, value] : change.keys) {
    std::string option = "--" + name;
    std::replace(option.begin(), option.end(), '_', '-');
    options.push_back(option + "=" + value);
  }
  for (const auto& [name, value] : change.variables) {
    options.insert(options.end(), {"-x", name + "=" + value});
  }
  return options;
}

namespace {

std::string FiguresText(const TriedChoice& choice) {
  if (choice.failed) return "failed";
  const std::string text = SummaryText(Summarize(choice.microseconds));
  return choice.hopeless ? text + ", not tried again" : text;
}

}  // namespace

KnobResult TryKnob(const Knob& knob, const Change& base, const Measure& measure) {
  KnobResult result;
  result.title = knob.title;
  result.tried.push_back({.label = "as it is", .change = base});
  for (const Choice& choice : knob.choices) {
    result.tried.push_back({.label = choice.label, .change = Together(base, choice.change)});
  }
  const std::size_t count = result.tried.size();
  for (std::size_t round = 0; round < kTrialRounds; ++round) {
    for (std::size_t turn = 0; turn < count; ++turn) {
      TriedChoice& choice = result.tried[(round + turn) % count];
      if (choice.failed || choice.hopeless) continue;
      const std::optional<double> time = measure(choice.change);
      if (time) {
        choice.microseconds.push_back(*time);
      } else {
        choice.failed = true;
      }
    }
    const TriedChoice& now = result.tried.front();
    for (std::size_t other = 1; round == 0 && !now.failed && other < count; ++other) {
      TriedChoice& choice = result.tried[other];
      choice.hopeless =
          !choice.failed && choice.microseconds.front() > kHopeless * now.microseconds.front();
    }
  }
  const TriedChoice& now = result.tried.front();
  double min = 0;
  for (std::size_t other = 1; other < count; ++other) {
    const TriedChoice& choice = result.tried[other];
    if (choice.failed || choice.hopeless) continue;
    const Summary figures = Summarize(choice.microseconds);
    if (!now.failed && !IsBetter(figures, Summarize(now.microseconds))) continue;
    if (result.best != 0 && figures.median >= min) continue;
    result.best = other;
    min = figures.median;
  }
  return result;
}

std::vector<std::string> ResultLines(const KnobResult& result) {
  const TriedChoice& best = result.tried[result.best];
  std::vector<std::string> lines;
  lines.push_back(result.title + ": " +
                  (result.best == 0
                       ? "kept as it is, nothing else is better by more than its scatter"
                       : best.label + " is better"));
  for (const TriedChoice& choice : result.tried) {
    lines.push_back("  " + choice.label + ": " + FiguresText(choice));
  }
  return lines;
}

}  // namespace launcher
