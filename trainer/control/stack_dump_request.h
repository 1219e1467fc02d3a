// SPDX-License-Identifier: Apache-2.0
//
// How the ranks of a training are asked for their stacks, and what each of them writes then.  Ranks
// that hang hear nothing of what others send them, so it is a file that a thread of each looks at.
//
//   RESULTS_DIR/.ddltraind.stacks
//     00001764000000000000        the last order; 0: none yet
//     /scratch/run/stacks         where the ranks write
//     n1 4711                     host and process of rank 0, then of the others
//     n2 4711
//
// It is there from the start of a training, and the order is written over the one before, in place:
// so that a rank on another node finds it however long its NFS remembers which names there are.
// Only this user may read and write it; what is no file of this user's, or a link, is taken for
// none, and a pipe in its place is not waited for.
//
//   STACKS/rank-N.txt
//     rank 1 on n2, process 4711: in training, step 17, waiting for other ranks
//     asked for by ddlctl, order 1764000000000000     not where the rank wrote by itself
//
//     thread 4711 (ddltraind)
//     ...
//
// Safe from any thread and process, but for one writer of each file at a time.

#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainer {

inline constexpr char kStackDumpRequestName[] = ".ddltraind.stacks";
inline constexpr char kStackDumpDirectoryName[] = "stacks";  // in MODEL_DIR

struct StackDumpRequest {
  struct Rank {
    std::string host;  // without blanks
    std::int64_t pid = 0;
  };

  std::uint64_t command = 0;
  std::filesystem::path directory;  // absolute
  std::vector<Rank> ranks;
};

// Writes the whole file.  Throws Error(EX_OSERR) that names it.
void MakeStackDumpRequest(const std::filesystem::path& file, const StackDumpRequest& request);
// nullopt where it cannot be read, or is none.
std::optional<StackDumpRequest> ReadStackDumpRequest(const std::filesystem::path& file);

// Of the file alone the order, which is all that ranks look for; 0 where there is none.
std::uint64_t ReadStackDumpCommand(const std::filesystem::path& file);
// Of a file that is there.  Returns 0 or errno; EPERM: it is no file of this user's.
int WriteStackDumpCommand(const std::filesystem::path& file, std::uint64_t command);
// Above `before`, and unlike those of launches before this one: by the clock.
std::uint64_t NextStackDumpCommand(std::uint64_t before);

// Seconds between two looks of a rank at the file: so many ranks look at it that a file system
// would feel it if all did each second.
double StackDumpPollSeconds(std::size_t ranks);

struct RankStackTraces {
  std::string headline;       // "rank 1 on n2, process 4711: ..."
  std::uint64_t command = 0;  // 0: not asked for
  std::string stacks;         // telemetry/stacks/thread_stacks.h has its form
};

std::string FormatRankStackTraces(const RankStackTraces& stacks);
// nullopt for any other text.
std::optional<RankStackTraces> ParseRankStackTraces(std::string_view text);
// "rank-3.txt".
std::string StackDumpFileName(int rank);

}  // namespace trainer
