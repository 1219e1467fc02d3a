// SPDX-License-Identifier: Apache-2.0

#include "launcher/cli/mpi_arguments.h"

#include <map>

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

}  // namespace launcher
