// SPDX-License-Identifier: Apache-2.0

#include "launcher/cli/launcher_arguments.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "launcher/base/error.h"
#include "launcher/base/messages.h"
#include "support/quoting.h"

namespace launcher {
namespace {

struct IbmArgument {
  const char* name;                      // without dashes
  bool has_value;                        // the next word belongs to it
  std::vector<std::string> replacement;  // empty: left out
  const char* reason;
};

const std::vector<IbmArgument>& IbmArguments() {
  static const std::vector<std::string>& no_infiniband = NoInfinibandArguments();
  static const char* const own_choice = "Open MPI chooses the interconnect by itself";
  static const char* const shared_memory_or_tcp =
      "MPI then uses shared memory within a node and TCP between nodes; --tcp does that and keeps "
      "NCCL off InfiniBand too";
  static const std::vector<IbmArgument> table = {
      {"pami_noib", false, no_infiniband, shared_memory_or_tcp},
      {"tcp", false, no_infiniband, shared_memory_or_tcp},
      {"TCP", false, no_infiniband, shared_memory_or_tcp},
      {"disable_gdr",
       false,
       {"-x", "UCX_IB_GPU_DIRECT_RDMA=no"},
       "no GPUDirect RDMA in UCX; for NCCL set NCCL_NET_GDR_LEVEL=LOC"},
      {"gpu", false, {}, "an Open MPI built with CUDA passes GPU memory as it is"},
      {"verbsbypass", true, {}, "it is about PAMI, which Open MPI does not use"},
      {"async", false, {}, "it is about PAMI, which Open MPI does not use"},
      {"prot", false, {}, "--mpiarg '--mca btl_base_verbose 30' shows what is used"},
      {"pami", false, {}, own_choice},
      {"PAMI", false, {}, own_choice},
      {"mxm", false, {}, own_choice},
      {"MXM", false, {}, own_choice},
      {"ibv", false, {}, own_choice},
      {"IBV", false, {}, own_choice},
  };
  return table;
}

const IbmArgument* FindIbmArgument(const std::string& word) {
  for (const IbmArgument& argument : IbmArguments()) {
    const std::string name = argument.name;
    if (word == "-" + name || word == "--" + name) return &argument;
  }
  return nullptr;
}

bool IsParameter(const std::vector<std::string>& words, std::size_t index) {
  return (words[index] == "--mca" || words[index] == "-mca") && index + 2 < words.size();
}

}  // namespace

const std::vector<std::string>& NoInfinibandArguments() {
  static const std::vector<std::string> arguments = {"--mca", "pml", "ob1",
                                                     "--mca", "btl", "^openib,ofi,uct"};
  return arguments;
}

MpiArguments TranslateIbmArguments(const std::vector<std::string>& words) {
  MpiArguments result;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const IbmArgument* ibm = FindIbmArgument(words[i]);
    if (ibm == nullptr) {
      result.words.push_back(words[i]);
      continue;
    }
    std::string given = words[i];
    if (ibm->has_value && i + 1 < words.size()) given += " " + words[++i];
    result.words.insert(result.words.end(), ibm->replacement.begin(), ibm->replacement.end());
    const std::string text = "--mpiarg '" + given + "' is of IBM's mpirun: ";
    result.warnings.push_back(
        ibm->replacement.empty()
            ? Coded(Message::kArgumentLeftOut, text + "left out; " + ibm->reason)
            : Coded(Message::kArgumentReplaced, text + "replaced by '" +
                                                    support::QuoteCommand(ibm->replacement) +
                                                    "'; " + ibm->reason));
  }
  return result;
}

SplitArguments SplitMpiArguments(const std::vector<std::string>& words) {
  SplitArguments split;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (IsParameter(words, i)) {
      split.variables["OMPI_MCA_" + words[i + 1]] = words[i + 2];
      i += 2;
    } else if ((words[i] == "-x" || words[i] == "--x") && i + 1 < words.size()) {
      const std::string& text = words[++i];
      const std::size_t equals = text.find('=');
      if (equals != std::string::npos) {
        split.variables[text.substr(0, equals)] = text.substr(equals + 1);
      }
    } else {
      split.rest.push_back(words[i]);
    }
  }
  return split;
}

std::vector<std::string> LastOfEachParameter(const std::vector<std::string>& words) {
  std::map<std::string, std::size_t> last;
  for (std::size_t i = 0; i < words.size(); i += IsParameter(words, i) ? 3 : 1) {
    if (IsParameter(words, i)) last[words[i + 1]] = i;
  }
  std::vector<std::string> result;
  for (std::size_t i = 0; i < words.size();) {
    const std::size_t count = IsParameter(words, i) ? 3 : 1;
    if (count == 1 || last[words[i + 1]] == i) {
      const auto first = words.begin() + static_cast<std::ptrdiff_t>(i);
      result.insert(result.end(), first, first + static_cast<std::ptrdiff_t>(count));
    }
    i += count;
  }
  return result;
}

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
