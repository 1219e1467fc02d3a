// SPDX-License-Identifier: Apache-2.0

#include "launcher/tune/tuned_site.h"

#include <map>
#include <sstream>

#include "launcher/base/error.h"

namespace launcher {
namespace {

constexpr char kEnvironment[] = "environment";

std::string Comment(const std::string& text, const std::string& indent) {
  return indent + "# " + text + "\n";
}

// In double quotes, as YAML has it.
std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char letter : text) {
    if (letter == '\n') {
      quoted += "\\n";
      continue;
    }
    if (letter == '"' || letter == '\\') quoted += '\\';
    quoted += letter;
  }
  return quoted + "\"";
}

// The key that a line begins with; "" for a comment, a blank line, and one that goes on.
std::string KeyOf(const std::string& line) {
  if (line.empty() || line[0] == ' ' || line[0] == '#' || line[0] == '\t') return "";
  const std::size_t colon = line.find(':');
  return colon == std::string::npos ? "" : line.substr(0, colon);
}

// `text` without the keys of `left_out`, each with the comments before it.
std::string WithoutKeys(const std::string& text,
                        const std::map<std::string, std::string>& left_out) {
  std::string kept;
  std::string before;  // comments and blank lines, which belong to what follows
  bool is_kept = true;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::string key = KeyOf(line);
    const bool is_comment = key.empty() && (line.empty() || line[0] == '#');
    if (is_comment) {
      before += line + "\n";
      continue;
    }
    if (!key.empty()) is_kept = !left_out.contains(key);
    if (is_kept) kept += before + line + "\n";
    before.clear();
  }
  return kept + before;
}

// The comments of the result that has chosen `name`.
std::string Reasons(const std::vector<KnobResult>& results, const std::string& name,
                    const std::string& indent) {
  std::string text;
  for (const KnobResult& result : results) {
    const Change& chosen = result.tried[result.best].change;
    const Change& before = result.tried.front().change;
    const bool is_its_own = (chosen.keys.contains(name) && !before.keys.contains(name)) ||
                            (chosen.variables.contains(name) && !before.variables.contains(name));
    if (!is_its_own) continue;
    for (const std::string& line : ResultLines(result)) text += Comment(line, indent);
  }
  return text;
}

std::string EnvironmentText(const Change& chosen, const SiteConfig& site,
                            const std::vector<KnobResult>& results) {
  std::string text = "environment:\n";
  for (const auto& [name, value] : site.environment) {
    if (!chosen.variables.contains(name)) text += "  " + name + ": " + Quoted(value.value) + "\n";
  }
  std::string logged;
  for (const auto& [name, value] : chosen.variables) {
    const std::string reasons = Reasons(results, name, "  ");
    // Two variables of one choice have the same figures.
    if (reasons != logged) text += reasons;
    logged = reasons;
    text += "  " + name + ": " + Quoted(value) + "\n";
  }
  return text;
}

// Makes sure that the text says what it is meant to say.
void Verify(const std::string& text, const Change& chosen, const SiteConfig& site) {
  std::string problem;
  try {
    const SiteConfig read = ParseSiteConfig(text, "the new site file");
    bool is_right = read.environment.size() >= site.environment.size();
    for (const auto& [name, value] : chosen.variables) {
      const auto found = read.environment.find(name);
      is_right = is_right && found != read.environment.end() && found->second.value == value;
    }
    is_right = is_right && (!site.launcher || read.launcher) && (!site.mpirun || read.mpirun) &&
               (!site.mpi_arguments || read.mpi_arguments);
    if (is_right) return;
  } catch (const LaunchError& error) {
    problem = std::string(" (") + error.what() + ")";
  }
  throw LaunchError(EX_CONFIG, "nothing can be added to the site file " + site.path +
                                   ": write each of its keys at the beginning of a line, not in "
                                   "braces, and start again" +
                                   problem);
}

}  // namespace

Change ChosenBy(const std::vector<KnobResult>& results) {
  Change chosen;
  for (const KnobResult& result : results) {
    chosen = Together(chosen, result.tried[result.best].change);
  }
  return chosen;
}

void CheckCanBeTuned(const SiteConfig& site, const std::string& old_text) {
  KnobResult result;
  result.tried = {{"as it is", {}, {1}},
                  {"another", {{{"bind", "none"}}, {{"DDLRUN_TUNE", "1"}}}, {1}}};
  result.best = 1;
  TunedSiteText({{}, {result}, {}}, site, old_text);
}

std::string TunedSiteText(const TunedSite& tuned, const SiteConfig& site,
                          const std::string& old_text) {
  const Change chosen = ChosenBy(tuned.results);
  std::string text;
  for (const std::string& line : tuned.head) text += Comment(line, "");
  std::map<std::string, std::string> left_out = chosen.keys;
  if (!chosen.variables.empty()) left_out[kEnvironment] = "";
  text += "\n" + WithoutKeys(old_text, left_out) + "\n";
  for (const auto& [key, value] : chosen.keys) {
    text += Reasons(tuned.results, key, "");
    text.append(key).append(": ").append(value).append("\n");
  }
  if (!chosen.variables.empty()) text += EnvironmentText(chosen, site, tuned.results);
  for (const KnobResult& result : tuned.results) {
    if (result.best != 0) continue;
    text += "\n";
    for (const std::string& line : ResultLines(result)) text += Comment(line, "");
  }
  if (!tuned.remarks.empty()) text += "\n";
  for (const std::string& line : tuned.remarks) text += Comment(line, "");
  Verify(text, chosen, site);
  return text;
}

}  // namespace launcher
