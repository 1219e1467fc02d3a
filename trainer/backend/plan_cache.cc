// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/plan_cache.h"

#include <algorithm>
#include <cstdio>
#include <span>

#include "trainer/core/crc32c.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

// Up to the next `end`, which is taken too; all of `rest` where there is none.
std::string_view TakeUpTo(char end, std::string_view& rest) {
  const std::string_view taken = rest.substr(0, rest.find(end));
  rest.remove_prefix(std::min(taken.size() + 1, rest.size()));
  return taken;
}

std::string FirstLine(std::string_view plans) {
  char checksum[9];
  std::snprintf(checksum, sizeof checksum, "%08x", Crc32c(std::as_bytes(std::span(plans))));
  return std::string(kPlanBeginning) + std::to_string(kPlanFormat) + ", crc32c " + checksum;
}

}  // namespace

bool PlanCache::Read(std::string_view text) {
  const std::string_view first = TakeUpTo('\n', text);
  if (first != FirstLine(text)) return false;
  const std::scoped_lock lock(mutex_);
  while (!text.empty()) {
    std::string_view line = TakeUpTo('\n', text);
    const std::string_view what = TakeUpTo('\t', line);
    plans_.insert_or_assign(std::string(what), line);
  }
  return true;
}

std::optional<std::string> PlanCache::Find(const std::string& what) const {
  const std::scoped_lock lock(mutex_);
  const auto found = plans_.find(what);
  return found == plans_.end() ? std::nullopt : std::optional(found->second);
}

void PlanCache::Add(const std::string& what, const std::string& plan) {
  DDL_CHECK(IsName(what) && IsName(plan));
  const std::scoped_lock lock(mutex_);
  plans_.insert_or_assign(what, plan);
  is_dirty_ = true;
}

std::optional<std::string> PlanCache::TakeNewEntries() {
  const std::scoped_lock lock(mutex_);
  if (!is_dirty_) return std::nullopt;
  is_dirty_ = false;
  std::string text;
  for (const auto& [what, plan] : plans_) text.append(what).append("\t").append(plan) += '\n';
  return FirstLine(text) + "\n" + text;
}

bool PlanCache::IsName(std::string_view text) {
  return !text.empty() && text.find_first_of("\t\n") == std::string_view::npos;
}

std::optional<std::string> DevicePlanCache::Find(const std::string& what) const {
  return cache_ == nullptr ? std::nullopt : cache_->Find(NameOf(what));
}

void DevicePlanCache::Add(const std::string& what, const std::string& plan) const {
  if (cache_ != nullptr) cache_->Add(NameOf(what), plan);
}

}  // namespace trainer
