// SPDX-License-Identifier: Apache-2.0

#include "launcher/cli/site_config.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <sstream>
#include <system_error>
#include <vector>

#include "launcher/base/error.h"
#include "launcher/cli/check_limits.h"
#include "launcher/cli/option_values.h"
#include "launcher/system/files.h"
#include "support/file.h"
#include "support/number.h"
#include "support/quoting.h"
#include "support/spelling.h"

namespace launcher {
namespace {

using support::Shortened;

LaunchError Rejection(const std::string& path, int line, const std::string& problem) {
  return LaunchError(EX_CONFIG, path + ":" + std::to_string(line) + ": " + problem);
}

int LineOf(const YAML::Mark& mark) { return mark.line < 0 ? 1 : mark.line + 1; }

// Checks the limits on the parser's events, before a tree is built: a few lines with aliases can
// stand for a tree that fills the memory.
class LimitCheck : public YAML::EventHandler {
 public:
  explicit LimitCheck(const std::string& path) : path_(path) {}

  void OnDocumentStart(const YAML::Mark&) override { ++documents_; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Check(mark, anchor, /*is_empty=*/true);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { Check(mark, 1); }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                const std::string&) override {
    Check(mark, anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Enter(mark, anchor);
  }
  void OnSequenceEnd() override { --depth_; }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Enter(mark, anchor);
  }
  void OnMapEnd() override { --depth_; }

 private:
  void Check(const YAML::Mark& mark, YAML::anchor_t anchor, bool is_empty = false) const {
    if (documents_ > 1 && !is_empty) {
      throw Rejection(path_, LineOf(mark),
                      "a second document begins here, behind '---': a site file is one");
    }
    if (anchor != 0) {
      throw Rejection(path_, LineOf(mark), "no anchors (&) and aliases (*): write the value out");
    }
  }
  void Enter(const YAML::Mark& mark, YAML::anchor_t anchor) {
    Check(mark, anchor);
    if (++depth_ > kMaxSiteDepth) {
      throw Rejection(path_, LineOf(mark),
                      "nested deeper than " + std::to_string(kMaxSiteDepth) + " levels");
    }
  }

  const std::string& path_;
  int documents_ = 0;
  int depth_ = 0;
};

// One value of the file; `key` and `path` are for messages.
struct Entry {
  const std::string& path;
  const std::string& key;
  const YAML::Node& node;

  int line() const { return LineOf(node.Mark()); }
  LaunchError Wrong(const std::string& expected) const {
    return Rejection(path, line(), Shortened(key) + " must be " + expected);
  }
};

SiteValue<std::string> ReadText(const Entry& entry) {
  const bool is_text = entry.node.IsScalar() && !entry.node.Scalar().empty();
  // A NUL would cut it off where it is used.
  if (!is_text || entry.node.Scalar().find('\0') != std::string::npos) throw entry.Wrong("a text");
  return {entry.node.Scalar(), entry.line()};
}

SiteValue<std::string> ReadChoice(const Entry& entry, const std::vector<std::string>& choices) {
  const SiteValue<std::string> text = ReadText(entry);
  if (std::find(choices.begin(), choices.end(), text.value) != choices.end()) return text;
  std::string expected;
  for (const std::string& choice : choices) expected += (expected.empty() ? "" : " or ") + choice;
  throw entry.Wrong(expected + ", not '" + Shortened(text.value) + "'");
}

SiteValue<std::vector<std::string>> ReadList(const Entry& entry) {
  if (!entry.node.IsSequence()) throw entry.Wrong("a list of texts: [a, b]");
  SiteValue<std::vector<std::string>> list{{}, entry.line()};
  for (const YAML::Node& item : entry.node) {
    list.value.push_back(ReadText({entry.path, entry.key, item}).value);
  }
  return list;
}

// Decimal, also with zeros in front, which YAML takes for octal; -1 for no such number.
int WholeNumberIn(const Entry& entry) {
  const std::string text = entry.node.IsScalar() ? entry.node.Scalar() : "";
  return support::WholeNumber<int>(text).value_or(-1);
}

SiteValue<int> ReadSeconds(const Entry& entry) {
  constexpr int kMaxSeconds = 3600;
  const int seconds = WholeNumberIn(entry);
  if (seconds < 0 || seconds > kMaxSeconds) {
    throw entry.Wrong("a whole number of seconds from 0 to " + std::to_string(kMaxSeconds));
  }
  return {seconds, entry.line()};
}

SiteValue<int> ReadNodes(const Entry& entry) {
  const int nodes = WholeNumberIn(entry);
  if (nodes < 1) throw entry.Wrong("a whole number of nodes from 1");
  return {nodes, entry.line()};
}

std::map<std::string, SiteValue<std::string>> ReadEnvironment(const Entry& entry) {
  if (!entry.node.IsMap()) throw entry.Wrong("a map of texts: {NAME: value}");
  std::map<std::string, SiteValue<std::string>> variables;
  for (const auto& item : entry.node) {
    const std::string text = ReadText({entry.path, entry.key, item.first}).value;
    if (text.find('=') != std::string::npos) {
      throw Rejection(entry.path, LineOf(item.first.Mark()),
                      "'" + Shortened(text) + "' is no name of a variable");
    }
    const SiteValue<std::string> read = ReadText({entry.path, entry.key + "." + text, item.second});
    if (!variables.emplace(text, read).second) {
      throw Rejection(entry.path, read.line, entry.key + "." + Shortened(text) + " is given twice");
    }
  }
  return variables;
}

// A map that has some of `keys`: `set` gets each with its value, and returns "" or what it should
// have been.
void ReadKeys(const Entry& entry, const std::string& example, const std::vector<std::string>& keys,
              const std::function<std::string(const std::string& key,
                                              const SiteValue<std::string>& value)>& set) {
  if (!entry.node.IsMap()) throw entry.Wrong("a map: " + example);
  std::vector<std::string> seen;
  for (const auto& item : entry.node) {
    const std::string key = ReadText({entry.path, entry.key, item.first}).value;
    const int line = LineOf(item.first.Mark());
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      const std::string nearest = support::NearestSpelling(key, keys);
      throw Rejection(entry.path, line,
                      "unknown key '" + entry.key + "." + Shortened(key) + "'" +
                          (nearest.empty() ? "" : "; did you mean '" + nearest + "'?"));
    }
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
      throw Rejection(entry.path, line, entry.key + "." + key + " is given twice");
    }
    seen.push_back(key);
    const std::string expected = set(key, ReadText({entry.path, entry.key, item.second}));
    if (!expected.empty()) {
      throw Rejection(entry.path, line, entry.key + "." + key + " must be " + expected);
    }
  }
}

scaling::Machine ReadMachine(const Entry& entry) {
  scaling::Machine machine;
  ReadKeys(entry, "{gpu: V100, adapters: 2}", scaling::MachineKeys(),
           [&machine](const std::string& key, const SiteValue<std::string>& value) {
             return scaling::SetMachineValue(machine, key, value.value);
           });
  return machine;
}

std::map<std::string, SiteValue<std::string>> ReadCheckLimits(const Entry& entry) {
  std::map<std::string, SiteValue<std::string>> limits;
  std::vector<std::string> keys;
  for (const CheckLimitKey& key : kCheckLimitKeys) keys.emplace_back(key.name);
  ReadKeys(entry, "{clock_seconds: 2}", keys,
           [&limits](const std::string& key, const SiteValue<std::string>& value) -> std::string {
             const auto number = support::WholeNumber<double>(value.value);
             if (!number || !(*number >= 0) || *number > 1e6) return "a number from 0 to 1e6";
             limits[key] = value;
             return "";
           });
  return limits;
}

using Reader = std::function<void(SiteConfig&, const Entry&)>;

const std::map<std::string, Reader>& Readers() {
  static const std::map<std::string, Reader> readers = {
      {"launcher", [](SiteConfig& site,
                      const Entry& entry) { site.launcher = ReadChoice(entry, LauncherNames()); }},
      {"pmi",
       [](SiteConfig& site, const Entry& entry) {
         site.pmi = ReadChoice(entry, {"auto", "pmix", "pmi2", "none"});
       }},
      {"mpirun", [](SiteConfig& site, const Entry& entry) { site.mpirun = ReadText(entry); }},
      {"mpi_arguments",
       [](SiteConfig& site, const Entry& entry) { site.mpi_arguments = ReadList(entry); }},
      {"srun_arguments",
       [](SiteConfig& site, const Entry& entry) { site.srun_arguments = ReadList(entry); }},
      {"environment",
       [](SiteConfig& site, const Entry& entry) { site.environment = ReadEnvironment(entry); }},
      {"bind",
       [](SiteConfig& site, const Entry& entry) {
         site.bind = ReadChoice(entry, {"auto", "none"});
       }},
      {"rank_order",
       [](SiteConfig& site, const Entry& entry) {
         site.rank_order = ReadChoice(entry, {"auto", "topology", "node", "cyclic"});
       }},
      {"gpu_visibility",
       [](SiteConfig& site, const Entry& entry) {
         site.gpu_visibility = ReadChoice(entry, {"auto", "all", "rank"});
       }},
      {"check",
       [](SiteConfig& site, const Entry& entry) {
         site.check = ReadChoice(entry, {"auto", "full", "off"});
       }},
      {"check_limits",
       [](SiteConfig& site, const Entry& entry) { site.check_limits = ReadCheckLimits(entry); }},
      {"min_nodes",
       [](SiteConfig& site, const Entry& entry) { site.min_nodes = ReadNodes(entry); }},
      {"machine", [](SiteConfig& site, const Entry& entry) { site.machine = ReadMachine(entry); }},
      {"run_directory",
       [](SiteConfig& site, const Entry& entry) { site.run_directory = ReadText(entry); }},
      {"grace_seconds",
       [](SiteConfig& site, const Entry& entry) { site.grace_seconds = ReadSeconds(entry); }},
      {"start_seconds",
       [](SiteConfig& site, const Entry& entry) { site.start_seconds = ReadSeconds(entry); }},
  };
  return readers;
}

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

[[noreturn]] void RejectLength(const std::string& path) {
  throw Rejection(path, 1, "longer than " + std::to_string(kMaxSiteBytes) + " bytes");
}

YAML::Node LoadTree(const std::string& text, const std::string& path) {
  if (text.size() > kMaxSiteBytes) RejectLength(path);
  try {
    std::istringstream stream(text);
    LimitCheck limits(path);
    YAML::Parser parser(stream);
    // Twice, not to the end: behind an error the parser may stay where it is.
    if (parser.HandleNextDocument(limits)) parser.HandleNextDocument(limits);
    YAML::Node tree = YAML::Load(text);
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    // yaml-cpp takes such a text for an empty one.
    if (tree.IsNull() && first != std::string::npos && text[first] == ',') {
      throw Rejection(path, 1, "a site file does not begin with a comma");
    }
    return tree;
  } catch (const YAML::Exception& error) {
    throw Rejection(path, LineOf(error.mark), error.msg);
  }
}

// The names of the site files in `directory`, which may not be there.
std::vector<std::string> NamesOfSites(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (std::filesystem::directory_iterator entry(directory, ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    const std::filesystem::path& file = entry->path();
    if (file.extension() == ".yaml") names.push_back(file.stem().string());
  }
  return names;
}

}  // namespace

SiteConfig ParseSiteConfig(const std::string& text, const std::string& path) {
  SiteConfig site;
  site.path = path;
  const YAML::Node tree = LoadTree(text, path);
  if (tree.IsNull()) return site;
  if (!tree.IsMap()) throw Rejection(path, 1, "a site file is a map of keys: 'launcher: mpirun'");
  std::vector<std::string> seen;
  for (const auto& item : tree) {
    const int line = LineOf(item.first.Mark());
    const std::string key = item.first.IsScalar() ? item.first.Scalar() : "";
    const auto reader = Readers().find(key);
    if (reader == Readers().end()) {
      std::vector<std::string> keys;
      for (const auto& [name, unused] : Readers()) keys.push_back(name);
      const std::string nearest = support::NearestSpelling(key, keys);
      throw Rejection(
          path, line,
          "unknown key '" + Shortened(key) + "'" +
              (nearest.empty() ? "; take it out, or use the version of ddlrun that has it;"
                                 " this one has " +
                                     Joined(keys)
                               : "; did you mean '" + nearest + "'?"));
    }
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
      throw Rejection(path, line, key + " is given twice");
    }
    seen.push_back(key);
    reader->second(site, Entry{path, key, item.second});
  }
  return site;
}

SiteConfig LoadSiteConfig(const std::string& path) {
  const support::WholeFile file =
      support::ReadWholeFile(path, kMaxSiteBytes, support::FileKind::kAny);
  if (file.problem == support::ReadProblem::kTooLong) RejectLength(path);
  if (file.problem != support::ReadProblem::kNone) {
    throw LaunchError(EX_CONFIG, "site file " + path + " cannot be read");
  }
  return ParseSiteConfig(file.content, path);
}

std::string FindSiteFile(const std::string& wanted, const std::string& own,
                         const std::string& installed) {
  if (wanted.find('/') != std::string::npos || wanted.ends_with(".yaml")) return wanted;
  const std::vector<std::string> own_names = NamesOfSites(own);
  const auto is_own = [&own_names](const std::string& name) {
    return std::find(own_names.begin(), own_names.end(), name) != own_names.end();
  };
  if (wanted.empty() && is_own("site")) return own + "/site.yaml";
  const std::string name = wanted.empty() ? "generic" : wanted;
  if (is_own(name)) return own + "/" + name + ".yaml";
  std::vector<std::string> names = NamesOfSites(installed);
  if (std::find(names.begin(), names.end(), name) != names.end()) {
    return installed + "/" + name + ".yaml";
  }
  if (names.empty()) {
    throw LaunchError(EX_CONFIG, "there are no site files in " + installed +
                                     ", where an installation has them: start ddlrun where it is "
                                     "installed, or by a link to it (ln -s) instead of a copy");
  }
  names.insert(names.end(), own_names.begin(), own_names.end());
  const std::string nearest = support::NearestSpelling(name, names);
  const std::string shown = Shortened(name);
  throw LaunchError(EX_CONFIG, "no site file '" + shown + "' in " + own + " or " + installed +
                                   (nearest.empty() ? "; give a path: --site ./" + shown + ".yaml"
                                                    : "; did you mean '" + nearest + "'?"));
}

SiteConfig LoadSite(const std::string& requested, const Environment& environment) {
  const std::string wanted =
      requested.empty() ? ValueOr(environment, "DDLRUN_SITE", "") : requested;
  const std::filesystem::path installed =
      std::filesystem::path(ProgramDirectory()).parent_path() / "share/ddlrun/sites";
  return LoadSiteConfig(FindSiteFile(wanted, kOwnSites, installed.string()));
}

}  // namespace launcher
