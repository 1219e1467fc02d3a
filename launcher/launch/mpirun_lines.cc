// SPDX-License-Identifier: Apache-2.0

#include "launcher/launch/mpirun_lines.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include "launcher/base/error.h"
#include "launcher/protocol/launchers.h"

namespace launcher {

std::optional<std::string> ParseLostDaemon(std::string_view line) {
  constexpr std::string_view kDaemon = "  Remote daemon: [";
  constexpr std::string_view kNode = "] on node ";
  if (!line.starts_with(kDaemon)) return std::nullopt;
  const std::size_t at = line.find(kNode, kDaemon.size());
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view host = line.substr(at + kNode.size());
  if (host.empty() || host.find(' ') != std::string_view::npos) return std::nullopt;
  return std::string(host);
}

bool IsFailureOfDaemons(std::string_view line) {
  return line.starts_with("srun returned non-zero exit status (") &&
         line.ends_with(") from launching");
}

bool IsFailedStartOfDaemon(std::string_view line) {
  return line.starts_with("An ORTE daemon has unexpectedly failed after launch");
}

bool IsRemarkOnForwarding(std::string_view line) {
  const std::string remark = ": Forwarding signal " + std::to_string(kPeerFailedSignal) + " to job";
  return line.ends_with(remark) && line.find(' ') == line.size() - remark.size() + 1;
}

std::optional<RankExit> ParseMpirunNotice(std::string_view line) {
  constexpr std::string_view kNotice = " noticed that process rank ";
  constexpr std::array<std::string_view, 4> kNames = {"mpirun", "mpiexec", "orterun", "prterun"};
  const std::size_t at = line.find(kNotice);
  if (at == std::string_view::npos ||
      std::ranges::find(kNames, line.substr(0, at)) == kNames.end()) {
    return std::nullopt;
  }
  const std::string text(line.substr(at + kNotice.size()));
  std::array<char, 256> host = {};
  RankExit end;
  if (std::sscanf(text.c_str(), "%7d with PID %*d on node %255s exited on signal %3d (", &end.rank,
                  host.data(), &end.signal) != 3 ||
      end.rank < 0 || end.signal <= 0 || !IsFailure(128 + end.signal)) {
    return std::nullopt;
  }
  end.host = host.data();
  end.exit_code = 128 + end.signal;
  return end;
}

std::optional<RankExit> ParseMpichAbort(std::string_view line) {
  RankExit end;
  if (std::sscanf(std::string(line.substr(0, 200)).c_str(), "Abort(%7d) on node %7d (rank",
                  &end.exit_code, &end.rank) != 2 ||
      end.rank < 0 || line.find("called MPI_Abort(MPI_COMM_WORLD, ") == std::string_view::npos) {
    return std::nullopt;
  }
  end.exit_code &= 0xff;
  if (!IsFailure(end.exit_code)) return std::nullopt;
  return end;
}

}  // namespace launcher
