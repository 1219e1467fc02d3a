// SPDX-License-Identifier: Apache-2.0

#include "launcher/spawn/mpirun_lines.h"

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

}  // namespace launcher
