// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "launcher/base/error.h"
#include "launcher/health/facts_lines.h"
#include "launcher/health/judge.h"

// What three nodes may have printed: read, judged, and, as far as it was facts, written again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  launcher::FactsReader reader(3);
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size() - 1);
    reader.Add(rest.substr(0, end));
    rest.remove_prefix(end + 1);
  }
  try {
    const std::vector<launcher::NodeFacts> facts = reader.Facts();
    launcher::CheckedJob job;
    job.nodes = {{"n1", 4}, {"n2", 4}, {"n3", 0}};
    launcher::VerdictTable(launcher::JudgeNodes(job, facts));
    for (const launcher::NodeFacts& node : facts) {
      const std::string text = launcher::EncodeNodeFacts(node);
      if (launcher::EncodeNodeFacts(launcher::DecodeNodeFacts(text)) != text) std::abort();
    }
  } catch (const launcher::LaunchError&) {
  }
  return 0;
}
