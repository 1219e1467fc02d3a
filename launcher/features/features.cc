// SPDX-License-Identifier: Apache-2.0

#include "launcher/features/features.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "launcher/features/closed_output.h"
#include "launcher/features/end_limit.h"
#include "launcher/features/heartbeat.h"
#include "launcher/features/nodes_of_job.h"
#include "launcher/features/run_recorder.h"
#include "launcher/features/start_limit.h"
#include "launcher/features/status_file.h"
#include "launcher/features/stop_before.h"
#include "launcher/features/stopped_ranks.h"

namespace launcher {
namespace {

// In the order of --help, and in that in which they watch: the recorder asks for the heartbeat of
// ranks that are about to end, which is watched no more then.
constexpr std::array kFeatures = {&kRunRecorder, &kClosedOutput, &kHeartbeat,
                                  &kStopBefore,  &kEndLimit,     &kStartLimit,
                                  &kNodesOfJob,  &kStoppedRanks, &kStatusFile};

}  // namespace

const std::vector<OptionSpec>& OptionTable() {
  static const std::vector<OptionSpec> table = [] {
    std::vector<OptionSpec> rows = BaseOptions();
    for (const Feature* feature : kFeatures) {
      if (feature->options == nullptr) continue;
      for (OptionSpec& row : feature->options()) {
        const auto last = std::find_if(rows.rbegin(), rows.rend(), [&row](const auto& known) {
          return std::strcmp(known.section, row.section) == 0;
        });
        rows.insert(last.base(), std::move(row));
      }
    }
    return rows;
  }();
  return table;
}

Options ParseOptions(const std::vector<std::string>& arguments) {
  return ParseOptions(OptionTable(), arguments);
}

Settings MergeSettings(const Options& options, const SiteConfig& site,
                       const Environment& environment) {
  Settings settings = MergeBaseSettings(options, site, environment);
  for (const Feature* feature : kFeatures) {
    if (feature->merge != nullptr) feature->merge(options, &settings);
  }
  return settings;
}

std::vector<std::unique_ptr<JobWatcher>> WatchersOf(const JobRun& run) {
  std::vector<std::unique_ptr<JobWatcher>> watchers;
  for (const Feature* feature : kFeatures) {
    if (feature->watch == nullptr) continue;
    if (auto watcher = feature->watch(run)) watchers.push_back(std::move(watcher));
  }
  return watchers;
}

}  // namespace launcher
