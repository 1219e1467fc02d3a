// SPDX-License-Identifier: Apache-2.0

#include "launcher/health/node_info_messages.h"

#include <algorithm>
#include <cstdio>

namespace launcher {
namespace {

constexpr char kPrefix[] = "ddlrun-node-check: ";
// The text of EncodeLaterInfo begins like this; that of EncodeNodeInfo begins with another name.
constexpr std::string_view kLaterStart = "{\"directory\":";
// No node sends as many reports.
constexpr int kMaxReports = 8;

}  // namespace

std::string FormatNodeInfo(const NodeInfo& info, int report, NodeInfoKind kind) {
  const std::string text =
      kind == NodeInfoKind::kAll ? EncodeNodeInfo(info) : EncodeLaterInfo(info);
  const std::size_t parts = (text.size() + kMaxChunkBytes - 1) / kMaxChunkBytes;
  std::string lines;
  for (std::size_t part = 0; part < parts; ++part) {
    const std::string body = text.substr(part * kMaxChunkBytes, kMaxChunkBytes);
    lines += kPrefix + std::to_string(info.node) + " " + std::to_string(report) + " " +
             std::to_string(part + 1) + "/" + std::to_string(parts) + " " +
             std::to_string(body.size()) + " " + body + "\n";
  }
  return lines;
}

bool NodeInfoReader::Add(std::string_view line) {
  const std::size_t start = line.rfind(kPrefix);
  if (start == std::string_view::npos) return false;
  const std::string text(line.substr(start + sizeof(kPrefix) - 1));
  int node = -1;
  int report = -1;
  int part = 0;
  int parts = 0;
  int bytes = 0;
  int length = 0;
  if (std::sscanf(text.c_str(), "%6d %1d %4d/%4d %4d%n", &node, &report, &part, &parts, &bytes,
                  &length) != 5 ||
      length == 0 || node < 0 || static_cast<std::size_t>(node) >= parts_.size() || report < 0 ||
      report >= kMaxReports || part < 1 || part > parts || parts > kMaxChunks) {
    return false;
  }
  // Only one blank is taken away, since the text itself may begin with blanks.
  const std::string body = text.substr(std::min(text.size(), static_cast<std::size_t>(length) + 1));
  if (body.size() > kMaxChunkBytes || body.size() != static_cast<std::size_t>(bytes)) return false;
  NodeInfoMessage& into = parts_[static_cast<std::size_t>(node)][report];
  into.parts = parts;
  into.texts[part] = body;
  return true;
}

std::vector<NodeInfo> NodeInfoReader::Facts() const {
  std::vector<NodeInfo> all;
  for (const auto& reports : parts_) {
    NodeInfo& info = all.emplace_back();
    for (const auto& [number, report] : reports) {
      if (report.texts.size() != static_cast<std::size_t>(report.parts)) continue;
      std::string text;
      for (const auto& [part, body] : report.texts) text += body;
      if (text.starts_with(kLaterStart)) {
        DecodeLaterInfo(text, &info);
      } else {
        info = DecodeNodeInfo(text);
      }
    }
  }
  return all;
}

}  // namespace launcher
