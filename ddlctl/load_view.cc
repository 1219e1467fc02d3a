// SPDX-License-Identifier: Apache-2.0

#include "ddlctl/load_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>

#include "ddlctl/status_text.h"
#include "support/number.h"

namespace ddlctl {
namespace {

using trainer::RankLoad;
using trainer::RunStatus;

constexpr std::size_t kShownAll = 6;
constexpr std::size_t kShownOfMany = 4;
constexpr double kWorthSaying = 0.05;  // above the median

// " +25 %" against the median.
std::string ExcessText(double seconds, double median) {
  return std::isfinite(median) && median > 0
             ? fmt::format("{:+4.0f} %", (seconds / median - 1) * 100)
             : std::string("   ? %");
}

// The name of a node as the job has it, without its domain.
std::string HostOf(const RankLoad& load) {
  return Harmless(load.host.substr(0, load.host.find('.')));
}

std::string DeviceText(const RankLoad& load) {
  std::string text;
  if (std::isfinite(load.input_wait_seconds) && load.busy_seconds > 0) {
    text += fmt::format("  data {:2.0f} %",
                        std::clamp(load.input_wait_seconds / load.busy_seconds, 0.0, 1.0) * 100);
  }
  if (load.gpu_percent) text += fmt::format("  GPU {:2d} %", *load.gpu_percent);
  if (load.compute_mhz) text += fmt::format("  {:4d} MHz", *load.compute_mhz);
  if (load.celsius) text += fmt::format("  {:2d} C", *load.celsius);
  return text;
}

std::string TimeText(double seconds) { return NumberText(seconds * 1e3, 1) + " ms"; }

}  // namespace

std::vector<LoadRow> LoadRows(const RunStatus& status) {
  std::vector<RankLoad> loads = status.loads;
  if (loads.empty()) return {};
  const auto ranks = static_cast<std::size_t>(std::max(status.identity.ranks, 1));
  const int slowest = std::ranges::max_element(loads, {}, &RankLoad::busy_seconds)->rank;
  double next = 0;  // of those that are not shown, the slowest
  if (ranks > kShownAll && loads.size() > kShownOfMany) {
    std::ranges::stable_sort(loads, std::greater(), &RankLoad::busy_seconds);
    next = loads[kShownOfMany].busy_seconds;
    loads.resize(kShownOfMany);
  }
  std::vector<LoadRow> rows = {{"own time, median", TimeText(status.median_busy_seconds),
                                "of " + support::Counted(static_cast<long long>(ranks), "rank") +
                                    (ranks > 1 ? "; >: slowest" : "")}};
  for (const RankLoad& load : loads) {
    const std::string host = HostOf(load);
    const std::string name =
        fmt::format("{} rank {}{}", ranks > 1 && load.rank == slowest ? ">" : " ", load.rank,
                    host.empty() ? "" : ", " + host);
    rows.push_back({name.substr(0, kLoadNameColumns), TimeText(load.busy_seconds),
                    ExcessText(load.busy_seconds, status.median_busy_seconds) + DeviceText(load)});
  }
  if (next > 0) {
    rows.push_back({fmt::format("  {} more, up to", ranks - loads.size()), TimeText(next),
                    ExcessText(next, status.median_busy_seconds)});
  }
  return rows;
}

std::string SlowestText(const RunStatus& status) {
  if (status.loads.size() < 2 || !(status.median_busy_seconds > 0)) return "";
  const RankLoad& load = *std::ranges::max_element(status.loads, {}, &RankLoad::busy_seconds);
  const double excess = load.busy_seconds / status.median_busy_seconds - 1;
  if (!(excess >= kWorthSaying)) return "";
  const std::string host = HostOf(load);
  return fmt::format("slowest rank {}{} {:+.0f} %", load.rank, host.empty() ? "" : " on " + host,
                     excess * 100);
}

}  // namespace ddlctl
