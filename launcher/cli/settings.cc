// SPDX-License-Identifier: Apache-2.0

#include "launcher/cli/settings.h"

#include <algorithm>

#include "launcher/base/error.h"
#include "launcher/cli/launcher_arguments.h"
#include "launcher/cli/quoting.h"
#include "launcher/cli/user_program.h"
#include "launcher/protocol/rank_variables.h"
#include "launcher/system/files.h"
#include "launcher/system/run_directory.h"
#include "support/number.h"
#include "support/quoting.h"

namespace launcher {
namespace {

constexpr char kCommandLine[] = "command line";
constexpr char kDefault[] = "default";

class Merger {
 public:
  Merger(const Options& options, const SiteConfig& site, const Environment& environment)
      : options_(options), site_(site), environment_(environment) {}

  Settings Merge() {
    settings_.launcher = Pick("launcher", options_.launcher, site_.launcher, "auto");
    settings_.pmi = Pick("pmi", options_.pmi, site_.pmi, "auto");
    settings_.mpirun = Pick("mpirun", "", site_.mpirun, "mpirun");
    settings_.bind = Pick("bind", options_.bind, site_.bind, "auto") == "auto";
    MergeRankOrder();
    MergeGpuVisibility();
    settings_.check = Pick("check", options_.check, site_.check, "auto");
    MergeCheckLimits();
    MergeRunDirectory();
    settings_.grace = PickSeconds("grace_seconds", site_.grace_seconds, settings_.grace);
    settings_.start = PickSeconds("start_seconds", site_.start_seconds, settings_.start);
    MergeMinNodes();
    MergeExports();
    MergeMpiArguments();
    MergeSrunArguments();
    MergeSiteEnvironment();
    return settings_;
  }

 private:
  void Show(const std::string& name, const std::string& value, const std::string& origin) {
    settings_.shown.push_back({name, value, origin});
  }

  std::string InSite(int line) const { return site_.path + ":" + std::to_string(line); }

  std::string Pick(const std::string& name, const std::string& given,
                   const std::optional<SiteValue<std::string>>& site, const std::string& fallback) {
    const std::string value = !given.empty() ? given : site ? site->value : fallback;
    Show(name, value, !given.empty() ? kCommandLine : site ? InSite(site->line) : kDefault);
    return value;
  }

  void MergeRankOrder() {
    settings_.rank_order = Pick("rank_order", options_.rank_order, site_.rank_order, "auto");
    const std::string hosts = !options_.hosts.empty()      ? "-H"
                              : !options_.hostfile.empty() ? "-hostfile"
                              : !options_.rankfile.empty() ? "--rankfile"
                                                           : "";
    if (options_.rank_order != "topology" || hosts.empty()) return;
    throw LaunchError(EX_USAGE, "--rank-order=topology beside " + hosts +
                                    ", whose hosts keep their order: leave out one of them");
  }

  // Why a number of nodes that may become smaller is of no use; "" where it is.
  std::string MinNodesLacks() const {
    if (options_.ranks) return "-n, which fixes the number of ranks: give --ranks-per-node";
    if (!options_.hosts.empty()) return "-H: it takes the nodes of the Slurm job that are left";
    if (!options_.hostfile.empty()) {
      return "--hostfile: it takes the nodes of the Slurm job that are left";
    }
    if (!options_.rankfile.empty()) return "--rankfile, which fixes where each rank is";
    if (options_.nodes || options_.racks || options_.aisles) {
      return "--nodes, --racks and --aisles, which fix the number of nodes";
    }
    return "";
  }

  // What the site says counts only where it can.
  void MergeMinNodes() {
    const bool is_used = options_.max_restarts > 0 || settings_.check == "full";
    const std::string conflict = MinNodesLacks();
    if (options_.min_nodes && !conflict.empty()) {
      throw LaunchError(EX_USAGE, "--min-nodes does not go with " + conflict);
    }
    if (options_.min_nodes && !is_used) {
      throw LaunchError(EX_USAGE,
                        "--min-nodes without --max-restarts or --check=full: no restart would ever "
                        "use it; add --max-restarts 3");
    }
    if (options_.min_nodes) {
      settings_.min_nodes = *options_.min_nodes;
    } else if (site_.min_nodes && is_used && conflict.empty()) {
      settings_.min_nodes = site_.min_nodes->value;
    }
    Show("min_nodes", settings_.min_nodes > 0 ? std::to_string(settings_.min_nodes) : "all",
         options_.min_nodes        ? kCommandLine
         : settings_.min_nodes > 0 ? InSite(site_.min_nodes->line)
                                   : kDefault);
  }

  void MergeGpuVisibility() {
    const std::string chosen =
        Pick("gpu_visibility", options_.gpu_visibility, site_.gpu_visibility, "auto");
    if (chosen != "auto") settings_.rank_settings[kGpuVisibilityVariable] = chosen;
  }

  void MergeCheckLimits() {
    for (const CheckLimitKey& key : kCheckLimitKeys) {
      const auto value = site_.check_limits.find(key.name);
      if (value == site_.check_limits.end()) continue;
      settings_.check_limits.*key.limit = support::WholeNumber<double>(value->second.value).value();
      Show(std::string("check_limits.") + key.name, value->second.value,
           InSite(value->second.line));
    }
  }

  void MergeRunDirectory() {
    settings_.run_directory = Pick("run_directory", options_.run_directory, site_.run_directory,
                                   RunDirectoryBase(environment_));
  }

  std::chrono::seconds PickSeconds(const std::string& name,
                                   const std::optional<SiteValue<int>>& site,
                                   std::chrono::seconds fallback) {
    const std::chrono::seconds seconds = site ? std::chrono::seconds(site->value) : fallback;
    Show(name, std::to_string(seconds.count()), site ? InSite(site->line) : kDefault);
    return seconds;
  }

  void AddSrunArguments(const std::vector<std::string>& words, const std::string& origin,
                        int exit_code) {
    RequireNoOwnArgument(words, origin, exit_code);
    settings_.srun_arguments.insert(settings_.srun_arguments.end(), words.begin(), words.end());
    Show("srun_arguments", support::QuoteCommand(words), origin);
  }

  void MergeSrunArguments() {
    if (site_.srun_arguments) {
      AddSrunArguments(site_.srun_arguments->value, InSite(site_.srun_arguments->line), EX_CONFIG);
    }
    std::vector<std::string> words = SplitAll(options_.srun_arguments);
    settings_.has_requested_srun_arguments = !words.empty();
    if (!words.empty()) AddSrunArguments(words, kCommandLine, EX_USAGE);
  }

  void AddRequestedMpiArguments(const std::vector<std::string>& words, const std::string& origin) {
    std::vector<std::string>& requested = settings_.requested_mpi_arguments;
    requested.insert(requested.end(), words.begin(), words.end());
    AddMpiArguments(words, origin);
  }

  void AddMpiArguments(const std::vector<std::string>& words, const std::string& origin) {
    settings_.mpi_arguments.insert(settings_.mpi_arguments.end(), words.begin(), words.end());
    Show("mpi_arguments", support::QuoteCommand(words), origin);
  }

  void MergeMpiArguments() {
    if (site_.mpi_arguments) {
      AddMpiArguments(site_.mpi_arguments->value, InSite(site_.mpi_arguments->line));
    }
    if (options_.tcp) {
      AddRequestedMpiArguments(NoInfinibandArguments(), "command line --tcp");
      SetForRanks("NCCL_IB_DISABLE", "1", "command line --tcp");
    }
    MpiArguments translated = TranslateIbmArguments(SplitAll(options_.mpi_arguments));
    if (!translated.words.empty()) AddRequestedMpiArguments(translated.words, kCommandLine);
    settings_.warnings = std::move(translated.warnings);
    settings_.mpi_arguments = LastOfEachParameter(settings_.mpi_arguments);
  }

  // Does nothing where the user has set the variable, in the environment or with -x.
  void SetForRanks(const std::string& name, const std::string& value, const std::string& origin) {
    if (settings_.rank_settings.contains(name)) return;
    const auto users = environment_.find(name);
    if (users != environment_.end()) {
      Show("environment." + name, users->second, "environment");
    } else {
      settings_.rank_settings[name] = value;
      Show("environment." + name, value, origin);
    }
  }

  void MergeSiteEnvironment() {
    for (const auto& [name, value] : site_.environment) {
      SetForRanks(name, value.value, InSite(value.line));
    }
  }

  void MergeExports() {
    for (const std::string& text : options_.exports) {
      const std::size_t equals = text.find('=');
      const std::string name = text.substr(0, equals);
      if (equals != std::string::npos) {
        settings_.rank_settings[name] = text.substr(equals + 1);
        Show("environment." + name, text.substr(equals + 1), kCommandLine);
        continue;
      }
      if (!environment_.contains(name)) {
        throw LaunchError(EX_USAGE,
                          "-x " + name + ": the variable is not set; write -x " + name + "=value");
      }
      settings_.requested_exports.push_back(name);
    }
  }

  const Options& options_;
  const SiteConfig& site_;
  const Environment& environment_;
  Settings settings_;
};

// Of environment.NAME, and of words such as NAME=VALUE, without what may be a secret.
std::string ShownValue(const ShownSetting& setting) {
  constexpr std::string_view kVariable = "environment.";
  if (setting.name.starts_with(kVariable)) {
    const std::string variable = setting.name.substr(kVariable.size()) + "=";
    return WithoutSecret(variable + setting.value).substr(variable.size());
  }
  std::string text;
  for (std::size_t begin = 0; begin <= setting.value.size();) {
    const std::size_t end = std::min(setting.value.find(' ', begin), setting.value.size());
    text += (begin == 0 ? "" : " ") + WithoutSecret(setting.value.substr(begin, end - begin));
    begin = end + 1;
  }
  return text;
}

}  // namespace

void Settings::Show(const std::string& name, const std::string& value, bool is_given) {
  shown.push_back({name, value, is_given ? kCommandLine : kDefault});
}

Settings MergeBaseSettings(const Options& options, const SiteConfig& site,
                           const Environment& environment) {
  return Merger(options, site, environment).Merge();
}

std::string SettingsText(const Settings& settings) {
  std::vector<std::string> lines;
  std::size_t width = 0;
  for (const ShownSetting& setting : settings.shown) {
    lines.push_back(setting.name + ": " + ShownValue(setting));
    width = std::max(width, lines.back().size());
  }
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    text += lines[i] + std::string(width - lines[i].size() + 2, ' ') + "# " +
            settings.shown[i].origin + "\n";
  }
  return text;
}

}  // namespace launcher
