// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/meters/op_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "trainer/telemetry/text/python_format.h"

namespace trainer {
namespace {

struct Card {
  std::string_view name;  // "*": also longer names
  double flops;
};

// NVIDIA's data sheets.  The first that fits counts.
constexpr Card kCards[] = {
    {"V100-PCIE*", 112e12},
    {"V100*", 125e12},
    {"T4", 65e12},
    {"A10", 125e12},
    {"A30", 165e12},
    {"A40", 149.7e12},
    {"A100*", 312e12},
    {"L4", 121e12},
    {"L40", 181e12},
    {"L40S", 362e12},
    {"GeForce RTX 4090", 165.2e12},
    {"H100 PCIe", 756e12},
    {"H100 NVL", 835e12},
    {"H100 80GB HBM3", 989e12},
    {"H200", 989e12},
    {"H200 NVL", 835e12},
    {"GH200*", 989e12},
    {"B200", 2250e12},
    {"GB200", 2500e12},
    {"GeForce RTX 5090", 209.5e12},
    {"RTX PRO 6000 Blackwell Workstation Edition", 503.8e12},
};

bool IsCalled(std::string_view name, std::string_view card) {
  if (!card.ends_with('*')) return name == card;
  card.remove_suffix(1);
  return name.starts_with(card);
}

}  // namespace

std::optional<double> PeakFlopsOfCard(std::string_view name) {
  for (const std::string_view maker : {"NVIDIA ", "Tesla "}) {
    if (name.starts_with(maker)) name.remove_prefix(maker.size());
  }
  if (name.find("MIG") != std::string_view::npos) return std::nullopt;
  for (const Card& card : kCards) {
    if (IsCalled(name, card.name)) return card.flops;
  }
  return std::nullopt;
}

namespace {

ProfileRow RowOf(const ProfiledOp& op, const ProfileHead& head) {
  const auto steps = static_cast<double>(head.steps);
  const double calls = static_cast<double>(op.calls) / steps;
  const double compute = op.work.flop / head.peaks.flops;
  const double memory = op.work.bytes / head.peaks.bytes_per_second;
  ProfileRow row;
  row.layer = op.layer;
  row.op = op.op;
  row.shape = op.shape;
  row.calls = calls;
  row.seconds = op.seconds / steps;
  row.work = {calls * op.work.flop, calls * op.work.bytes};
  row.limit_seconds = calls * std::max(compute, memory);
  row.memory_seconds = memory > compute ? row.limit_seconds : 0;
  return row;
}

void AddTo(ProfileRow& sum, const ProfileRow& row) {
  sum.calls += row.calls;
  sum.seconds += row.seconds;
  sum.work.flop += row.work.flop;
  sum.work.bytes += row.work.bytes;
  sum.limit_seconds += row.limit_seconds;
  sum.memory_seconds += row.memory_seconds;
}

void SortWorstFirst(std::vector<ProfileRow>& rows) {
  std::ranges::stable_sort(rows, std::greater(), &ProfileRow::lost_seconds);
}

// One row for all that have the same text at `name`.
std::vector<ProfileRow> SumBy(std::string ProfileRow::*name, const std::vector<ProfileRow>& rows) {
  std::map<std::string, ProfileRow> sums;
  for (const ProfileRow& row : rows) {
    ProfileRow& sum = sums[row.*name];
    sum.*name = row.*name;
    AddTo(sum, row);
  }
  std::vector<ProfileRow> sorted;
  for (auto& [key, sum] : sums) sorted.push_back(std::move(sum));
  SortWorstFirst(sorted);
  return sorted;
}

constexpr double kGiga = 1e9;
constexpr double kMega = 1e6;
constexpr double kMilli = 1e-3;

double PerSecond(double amount, double seconds) { return seconds > 0 ? amount / seconds : 0; }

const char* const kTableTitles =
    "   lost ms        ms  % of step    calls     GFLOP        MB   GFLOP/s     GB/s  limit    "
    "share";

std::string Numbers(const ProfileRow& row, double step_seconds) {
  return fmt::format(
      "{:10.3f}{:10.3f}{:11.1f}{:9.4g}{:10.3f}{:10.2f}{:10.1f}{:9.1f}  {:<7}{:5.0f} %",
      row.lost_seconds() / kMilli, row.seconds / kMilli, 100 * PerSecond(row.seconds, step_seconds),
      row.calls, row.work.flop / kGiga, row.work.bytes / kMega,
      PerSecond(row.work.flop, row.seconds) / kGiga, PerSecond(row.work.bytes, row.seconds) / kGiga,
      row.bound(), 100 * row.share());
}

// "layer1.0.conv1  convolution forward  64x64x56x56 > ...", of what there is.
std::string NameOf(const ProfileRow& row) {
  std::string name;
  for (const std::string* part : {&row.layer, &row.op, &row.shape}) {
    if (!part->empty()) name += "  " + *part;
  }
  return name;
}

void AddTable(std::vector<std::string>& lines, const std::string& heading,
              const std::vector<ProfileRow>& rows, std::size_t max, double step_seconds) {
  const std::size_t shown = std::min(max, rows.size());
  lines.emplace_back();
  lines.push_back(heading + (shown < rows.size()
                                 ? fmt::format(" (the first {} of {})", shown, rows.size())
                                 : ""));
  lines.emplace_back(kTableTitles);
  for (std::size_t i = 0; i < shown; ++i) {
    lines.push_back(Numbers(rows[i], step_seconds) + NameOf(rows[i]));
  }
}

LogFields FieldsOf(const ProfileRow& row) {
  LogFields fields;
  const auto name = [&](const char* key, const std::string& value) {
    if (!value.empty()) fields.emplace_back(key, value);
  };
  name("layer", row.layer);
  name("op", row.op);
  name("shape", row.shape);
  fields.insert(fields.end(), {{"calls", row.calls},
                               {"seconds", row.seconds},
                               {"flop", row.work.flop},
                               {"bytes", row.work.bytes},
                               {"limit", std::string(row.bound())},
                               {"limit_seconds", row.limit_seconds},
                               {"lost_seconds", row.lost_seconds()},
                               {"share", row.share()}});
  return fields;
}

std::string JsonRows(const std::vector<ProfileRow>& rows) {
  std::string text;
  for (const ProfileRow& row : rows) {
    text += (text.empty() ? "\n  " : ",\n  ") + PythonJson(FieldsOf(row));
  }
  return "[" + text + "]";
}

// RFC 4180: a field with a comma is quoted; ours have no quotes.
std::string Quoted(const std::string& text) {
  return text.find(',') == std::string::npos ? text : '"' + text + '"';
}

}  // namespace

OpProfile AnalyzeOps(ProfileHead head, std::span<const ProfiledOp> ops) {
  OpProfile profile;
  profile.head = std::move(head);
  for (const ProfiledOp& op : ops) {
    profile.ops.push_back(RowOf(op, profile.head));
    AddTo(profile.all, profile.ops.back());
  }
  SortWorstFirst(profile.ops);
  profile.layers = SumBy(&ProfileRow::layer, profile.ops);
  profile.kinds = SumBy(&ProfileRow::op, profile.ops);
  return profile;
}

std::vector<std::string> ProfileLines(const OpProfile& profile, std::size_t rows) {
  const ProfileHead& head = profile.head;
  const double step = head.step_seconds;
  std::vector<std::string> lines;
  lines.push_back(fmt::format("Profile of steps {} to {} on rank 0, means of a step; {}",
                              head.first_step, head.first_step + head.steps - 1, head.backend));
  lines.push_back(fmt::format(
      "limits   {:.1f} GFLOP/s and {:.2f} GB/s, {}", head.peaks.flops / kGiga,
      head.peaks.bytes_per_second / kGiga,
      head.are_peaks_measured ? "measured at the start of this run" : "given by --roofline"));
  lines.push_back(fmt::format(
      "step     {:.3f} ms: {:.3f} ms in ops, which at their limits take {:.3f} ms ({:.0f} %); "
      "{:.3f} ms outside of ops",
      step / kMilli, profile.all.seconds / kMilli, profile.all.limit_seconds / kMilli,
      100 * profile.all.share(), (step - profile.all.seconds) / kMilli));
  AddTable(lines, "By kind of op, the most time beyond the limit first", profile.kinds,
           profile.kinds.size(), step);
  AddTable(lines, "By layer, likewise", profile.layers, rows, step);
  AddTable(lines, "Ops, likewise", profile.ops, rows, step);
  return lines;
}

std::string ProfileCsv(const OpProfile& profile) {
  std::string text =
      "layer,op,shape,calls,seconds,flop,bytes,limit,limit_seconds,lost_seconds,share\n";
  for (const ProfileRow& row : profile.ops) {
    text += Quoted(row.layer) + ',' + Quoted(row.op) + ',' + Quoted(row.shape);
    for (const double number : {row.calls, row.seconds, row.work.flop, row.work.bytes}) {
      text += ',' + PythonFloat(number);
    }
    text += std::string(",") + row.bound();
    for (const double number : {row.limit_seconds, row.lost_seconds(), row.share()}) {
      text += ',' + PythonFloat(number);
    }
    text += '\n';
  }
  return text;
}

std::string ProfileJson(const OpProfile& profile) {
  const ProfileHead& head = profile.head;
  std::string text =
      PythonJson(LogFields{{"backend", head.backend},
                           {"first_step", head.first_step},
                           {"steps", head.steps},
                           {"step_seconds", head.step_seconds},
                           {"op_seconds", profile.all.seconds},
                           {"peak_flops", head.peaks.flops},
                           {"peak_bytes_per_second", head.peaks.bytes_per_second},
                           {"peaks", std::string(head.are_peaks_measured ? "measured" : "given")}});
  text.pop_back();  // its brace
  return text + ",\n \"ops\": " + JsonRows(profile.ops) +
         ",\n \"layers\": " + JsonRows(profile.layers) +
         ",\n \"kinds\": " + JsonRows(profile.kinds) + "}\n";
}

}  // namespace trainer
