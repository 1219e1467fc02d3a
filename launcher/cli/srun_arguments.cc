// SPDX-License-Identifier: Apache-2.0

#include "launcher/cli/srun_arguments.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "launcher/base/error.h"

namespace launcher {
namespace {

// What people say in its place.
struct OwnArgument {
  std::string_view long_name;
  std::string_view letter;  // "" without one
  std::string_view instead;
};
constexpr OwnArgument kOwn[] = {
    {"--nodes", "-N", "-H, or the nodes of the job"},
    {"--ntasks", "-n", "-n"},
    {"--ntasks-per-node", "", "--ranks-per-node"},
    {"--cpus-per-task", "-c", "--cpus-per-rank"},
    {"--distribution", "-m", "--rank-order"},
    {"--nodelist", "-w", "-H"},
    {"--gpus", "-G", "--accelerators"},
    {"--gpus-per-node", "", "--accelerators"},
    {"--cpu-bind", "", "--bind"},
    {"--mpi", "", "--pmi"},
    {"--label", "-l", "--tag-output"},
    {"--export", "", "-x"},
    {"--het-group", "", ""},
    {"--input", "-i", ""},
    {"--kill-on-bad-exit", "-K", ""},
    {"--multi-prog", "", ""},
    {"--overcommit", "-O", ""},
};

// "--nodes", "--nodes=2", "-N", "-N2".
bool Is(std::string_view word, const OwnArgument& own) {
  if (word.starts_with("--")) return word.substr(0, word.find('=')) == own.long_name;
  return !own.letter.empty() && word.starts_with(own.letter);
}

}  // namespace

void RequireNoOwnArgument(const std::vector<std::string>& words, const std::string& origin,
                          int exit_code) {
  const auto reject = [&](const std::string& word, const std::string& why) {
    throw LaunchError(exit_code, "an argument of srun (" + origin + "), '" + word + "', " + why);
  };
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    // Behind an option a word without a dash is its value.
    if (word == "--" || word == ":" || (i == 0 && !word.starts_with("-"))) {
      reject(word, "is none of its options: srun would take it, or what follows, for the program");
    }
    const auto* const own =
        std::ranges::find_if(kOwn, [&](const OwnArgument& each) { return Is(word, each); });
    if (own == std::end(kOwn)) continue;
    reject(word, "is one that ddlrun gives itself: " +
                     (own->instead.empty() ? std::string("leave it out")
                                           : "use " + std::string(own->instead) + " of ddlrun"));
  }
}

}  // namespace launcher
