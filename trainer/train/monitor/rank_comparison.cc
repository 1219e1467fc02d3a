// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/monitor/rank_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>
#include <vector>

#include "support/number.h"
#include "trainer/comm/communicator.h"
#include "trainer/comm/rank_consistency.h"
#include "trainer/core/consistency_item.h"
#include "trainer/core/crc32c.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

constexpr std::size_t kChunkBytes = 32U << 20;  // of device memory that is copied at once
constexpr std::size_t kMaxNamed = 8;            // ranks in a message

// "rank 2 on node3, rank 5 on node4 and 7 others".
std::string NamesOf(const std::vector<int>& ranks, std::span<const std::string> hosts) {
  std::vector<std::string> names;
  for (const int rank : ranks) {
    if (names.size() == kMaxNamed) break;
    names.push_back(NameOfRank(rank, hosts[static_cast<std::size_t>(rank)]));
  }
  if (ranks.size() > names.size()) {
    names.push_back(support::Counted(static_cast<long long>(ranks.size() - names.size()), "other"));
  }
  return Listed(names);
}

// What to leave out of the next start, or "" where the hosts have no names.
std::string Exclude(const std::vector<int>& ranks, std::span<const std::string> hosts) {
  std::set<std::string> names;
  for (const int rank : ranks) names.insert(hosts[static_cast<std::size_t>(rank)]);
  names.erase("");
  if (names.empty()) return "";
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ",") + name;
  return names.size() == 1 ? " without that node (sbatch --exclude=" + list + ")"
                           : " without those nodes (sbatch --exclude=" + list + ")";
}

}  // namespace

RankComparison::RankComparison(Backend& backend, const Network& network, Communicator& communicator,
                               std::string host)
    : backend_(backend), network_(network), communicator_(communicator), host_(std::move(host)) {
  if (!backend.is_host()) {
    staging_ = backend.AllocateHost(std::min(kChunkBytes, network.elements() * sizeof(float)));
  }
}

void RankComparison::Require(std::int64_t step, Stream& stream) {
  const std::uint64_t own = Checksum(stream);
  if (AllHave(own, communicator_)) return;
  const RankDifference found = DescribeRankDifference(step, GatherNumbers(own, communicator_),
                                                      GatherTexts(communicator_, host_));
  // The one that throws is the first to end, so that the starter names it.
  while (communicator_.rank() != found.speaker) communicator_.Barrier();
  throw Error(EX_OSERR, found.message);
}

std::uint64_t RankComparison::Checksum(Stream& stream) {
  Fingerprint fingerprint;
  const std::size_t bytes = network_.elements() * sizeof(float);
  stream.Synchronize();
  for (const float* part : {network_.weights(), network_.momentum()}) {
    const auto* values = reinterpret_cast<const std::byte*>(part);
    for (std::size_t at = 0; at < bytes; at += kChunkBytes) {
      const std::size_t count = std::min(kChunkBytes, bytes - at);
      const std::byte* chunk = values + at;
      if (staging_.bytes() > 0) {
        backend_.CopyToHost(staging_.data(), chunk, count, stream);
        stream.Synchronize();
        chunk = staging_.data();
      }
      fingerprint.Add(std::uint64_t{Crc32c({chunk, count})});
    }
  }
  return fingerprint.value();
}

RankDifference DescribeRankDifference(std::int64_t step, std::span<const std::uint64_t> checksums,
                                      std::span<const std::string> hosts) {
  const auto ranks = static_cast<int>(checksums.size());
  const RankMismatch judged = CompareFingerprints(checksums);
  const std::uint64_t measure = checksums[static_cast<std::size_t>(judged.measure)];
  std::vector<int> alike;
  std::vector<int> odd;
  for (int rank = 0; rank < ranks; ++rank) {
    (checksums[static_cast<std::size_t>(rank)] == measure ? alike : odd).push_back(rank);
  }
  const std::string head = fmt::format("after step {} ", step);
  constexpr char kCause[] = "a GPU, memory, or what carried a sum fails; no checkpoint has it";
  if (2 * judged.unlike < ranks) {
    return {judged.odd,
            head + fmt::format("{} {} other weights or momentum than the {} that are alike: {}; "
                               "give the same command again{}",
                               NamesOf(odd, hosts), odd.size() == 1 ? "has" : "have",
                               support::Counted(static_cast<long long>(alike.size()), "rank"),
                               kCause, Exclude(odd, hosts))};
  }
  return {0, head + fmt::format("{} {} other weights or momentum than {}, and without a majority "
                                "that is alike nobody can tell which are right: {}; ddlrun "
                                "--check=full looks at the nodes, and the same command resumes "
                                "from the last checkpoint",
                                NamesOf(odd, hosts), odd.size() == 1 ? "has" : "have",
                                NamesOf(alike, hosts), kCause)};
}

}  // namespace trainer
