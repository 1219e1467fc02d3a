// SPDX-License-Identifier: Apache-2.0

#include "trainer/comm/rank_consistency.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>

#include "trainer/core/error.h"

namespace trainer {
namespace {

constexpr std::size_t kMaxShown = 3;  // differences in a message: the first ones tell the mistake
constexpr char kEnd = '\0';           // no host, option or file name has it

std::uint64_t FingerprintOf(std::span<const ConsistencyItem> items) {
  Fingerprint fingerprint;
  for (const ConsistencyItem& item : items) {
    fingerprint.Add(item.name + kEnd);
    fingerprint.Add(item.text + kEnd);
  }
  return fingerprint.value();
}

// Communicators reduce doubles, which are exact up to 2^53.
struct Halves {
  double high = 0;
  double low = 0;
};
Halves HalvesOf(std::uint64_t number) {
  return {static_cast<double>(number >> 32), static_cast<double>(number & 0xffffffff)};
}
std::uint64_t NumberOf(const Halves& halves) {
  return static_cast<std::uint64_t>(halves.high) << 32 | static_cast<std::uint64_t>(halves.low);
}

struct Rank {
  std::string host;
  std::vector<ConsistencyItem> items;
};

std::string ToText(const Rank& rank) {
  std::string text = rank.host + kEnd;
  for (const ConsistencyItem& item : rank.items) text += item.name + kEnd + item.text + kEnd;
  return text;
}

Rank FromText(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size(); at += words.back().size() + 1) {
    words.push_back(text.substr(at, text.find(kEnd, at) - at));
  }
  Rank rank{words.at(0), {}};
  for (std::size_t i = 1; i + 1 < words.size(); i += 2) {
    rank.items.push_back({words[i], words[i + 1]});
  }
  return rank;
}

std::string BroadcastText(std::string text, Communicator& communicator, int root) {
  std::uint64_t bytes = text.size();
  communicator.Broadcast(&bytes, sizeof bytes, root);
  text.resize(bytes);
  communicator.Broadcast(text.data(), bytes, root);
  return text;
}

std::map<std::string, std::string> ByName(std::span<const ConsistencyItem> items) {
  std::map<std::string, std::string> texts;
  for (const ConsistencyItem& item : items) texts[item.name] = item.text;
  return texts;
}

}  // namespace

// The largest of a number is the largest of its negative, with another sign, only if all have it.
bool AllHave(std::uint64_t number, Communicator& communicator) {
  const Halves own = HalvesOf(number);
  std::array<double, 4> max = {own.high, own.low, -own.high, -own.low};
  communicator.AllReduceMax(max);
  return max[0] == -max[2] && max[1] == -max[3];
}

std::vector<std::uint64_t> GatherNumbers(std::uint64_t number, Communicator& communicator) {
  const auto ranks = static_cast<std::size_t>(communicator.size());
  const auto place = 2 * static_cast<std::size_t>(communicator.rank());
  std::vector<double> halves(2 * ranks);
  halves[place] = HalvesOf(number).high;
  halves[place + 1] = HalvesOf(number).low;
  communicator.AllReduceSum(halves);
  std::vector<std::uint64_t> all;
  for (std::size_t i = 0; i < halves.size(); i += 2) {
    all.push_back(NumberOf({halves[i], halves[i + 1]}));
  }
  return all;
}

std::string NameOfRank(int rank, const std::string& host) {
  return "rank " + std::to_string(rank) + (host.empty() ? "" : " on " + host);
}

std::string Listed(const std::vector<std::string>& items) {
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) text += i + 1 == items.size() ? " and " : ", ";
    text += items[i];
  }
  return text;
}

RankMismatch CompareFingerprints(std::span<const std::uint64_t> fingerprints) {
  std::map<std::uint64_t, int> ranks_with;
  for (const std::uint64_t fingerprint : fingerprints) ++ranks_with[fingerprint];
  const auto has_fewer = [&](std::uint64_t a, std::uint64_t b) {
    return ranks_with[a] < ranks_with[b];
  };
  // The first of several that are equally frequent.
  const auto measure = std::max_element(fingerprints.begin(), fingerprints.end(), has_fewer);
  const auto odd = std::find_if(fingerprints.begin(), fingerprints.end(),
                                [&](std::uint64_t other) { return other != *measure; });
  DDL_CHECK(odd != fingerprints.end());
  return {.measure = static_cast<int>(measure - fingerprints.begin()),
          .odd = static_cast<int>(odd - fingerprints.begin()),
          .unlike = static_cast<int>(fingerprints.size()) - ranks_with[*measure]};
}

std::string DescribeDifference(std::span<const ConsistencyItem> own,
                               std::span<const ConsistencyItem> measure,
                               const std::string& measure_name) {
  const std::map<std::string, std::string> own_texts = ByName(own);
  const std::map<std::string, std::string> measure_texts = ByName(measure);
  std::vector<std::string> here;
  std::vector<std::string> there;
  const auto compare = [&](const std::string& name) {
    const auto text_in = [&](const std::map<std::string, std::string>& texts) {
      const auto found = texts.find(name);
      return found == texts.end() ? "no " + name : found->second;
    };
    if (text_in(own_texts) == text_in(measure_texts)) return;
    here.push_back(text_in(own_texts));
    there.push_back(text_in(measure_texts));
  };
  for (const ConsistencyItem& item : measure) compare(item.name);
  for (const ConsistencyItem& item : own) {
    if (!measure_texts.contains(item.name)) compare(item.name);
  }
  const std::size_t more = here.size() - std::min(here.size(), kMaxShown);
  here.resize(here.size() - more);
  there.resize(here.size());
  return "has " + Listed(here) + ", but " + measure_name + " has " + Listed(there) +
         (more == 0 ? "" : "; " + std::to_string(more) + " more differ");
}

void CheckRankConsistency(Communicator& communicator, const std::string& host,
                          std::span<const ConsistencyItem> items, const std::string& advice) {
  const std::uint64_t own = FingerprintOf(items);
  if (AllHave(own, communicator)) return;
  const RankMismatch found = CompareFingerprints(GatherNumbers(own, communicator));
  const Rank measure = FromText(
      BroadcastText(ToText({host, {items.begin(), items.end()}}), communicator, found.measure));
  // The one that throws is the first to end, so that the starter names it.
  while (communicator.rank() != found.odd) communicator.Barrier();
  std::string what =
      DescribeDifference(items, measure.items, NameOfRank(found.measure, measure.host));
  if (found.unlike > 1) {
    what += "; " + std::to_string(found.unlike) + " of " + std::to_string(communicator.size()) +
            " ranks are unlike rank " + std::to_string(found.measure);
  }
  throw Error(EX_CONFIG, what + ": " + advice);
}

}  // namespace trainer
