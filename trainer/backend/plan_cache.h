// SPDX-License-Identifier: Apache-2.0
//
// Which algorithm was the fastest for what is computed, so that a later process need not time them
// again, and computes with the same ones.  Back ends ask and fill it; whoever makes one keeps its
// text.

#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace trainer {

// The text begins with these; doc/formats.md says when the number is raised.
inline constexpr std::string_view kPlanBeginning = "ddltraind plans ";
inline constexpr int kPlanFormat = 1;

// Used from any thread.
class PlanCache {
 public:
  // What TakeNewEntries() had, in addition to what is there.  False, and nothing is added, for a
  // text that is not whole, or none of that.
  bool Read(std::string_view text);

  std::optional<std::string> Find(const std::string& what) const;
  // Instead of what was there.  REQUIRES: IsName(what), IsName(plan).
  void Add(const std::string& what, const std::string& plan);

  // The text of all plans if some were added since it was last taken: a line for each, in the order
  // of what they compute, behind one with their checksum.
  std::optional<std::string> TakeNewEntries();

  // Not empty, and without tabs and ends of lines.
  static bool IsName(std::string_view text);

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::string> plans_;
  bool is_dirty_ = false;
};

// The plans of one device with its libraries, in a cache that may have those of others too.
class DevicePlanCache {
 public:
  // `cache` may be null: nothing is known then, or kept.  `device` has all that plans depend on
  // beside what they compute: its model, the versions of driver and libraries.
  DevicePlanCache(std::shared_ptr<PlanCache> cache, std::string device)
      : cache_(std::move(cache)), device_(std::move(device)) {}

  std::optional<std::string> Find(const std::string& what) const;
  void Add(const std::string& what, const std::string& plan) const;

 private:
  std::string NameOf(const std::string& what) const { return device_ + ": " + what; }

  std::shared_ptr<PlanCache> cache_;
  std::string device_;
};

}  // namespace trainer
