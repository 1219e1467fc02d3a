// SPDX-License-Identifier: Apache-2.0

#include "trainer/outputs/run_outputs.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>

#include "support/file.h"
#include "support/number.h"
#include "support/quoting.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/retention.h"
#include "trainer/checkpoint/writer.h"
#include "trainer/core/error.h"
#include "trainer/telemetry/formats/dllogger.h"
#include "trainer/telemetry/formats/nvlog.h"
#include "trainer/telemetry/formats/progress.h"
#include "trainer/telemetry/formats/training_json.h"

namespace trainer {
namespace {

LogValue ValueOf(const OptionRow& row, const std::string& text) {
  if (row.access.is_on_or_off) return !text.empty();
  if (const auto whole = support::WholeNumber<std::int64_t>(text)) return *whole;
  if (const auto seed = support::WholeNumber<std::uint64_t>(text)) return *seed;
  if (const auto real = support::WholeNumber<double>(text)) return *real;
  return text;
}

}  // namespace

LogFields LoggedParameters(const Options& options) {
  LogFields parameters;
  for (const OptionRow& row : OptionTable()) {
    if (row.rank_rule == RankRule::kOtherName) continue;
    const std::string text = row.access.value(options);
    if (!text.empty() || row.access.is_on_or_off) {
      parameters.emplace_back(row.name, ValueOf(row, text));
    }
  }
  return parameters;
}

std::string HostOf(const launcher::RankInfo& rank) {
  return rank.host.empty() ? HostName() : rank.host;
}

LogFields DescribeLaunch(const RunMetadata& items, const launcher::RankInfo& rank,
                         const std::string& host) {
  std::vector<std::string> command = {"ddltraind"};
  command.insert(command.end(), items.arguments.begin(), items.arguments.end());
  LogFields fields = {{"program", "ddltraind " + items.version},
                      {"command", support::QuoteCommand(command)},
                      {"ranks", std::int64_t{rank.world_size}},
                      {"nodes", std::int64_t{rank.node_count}},
                      {"host", host},
                      {"backend", items.backend},
                      {"communication", items.communication}};
  if (!items.job.empty()) fields.emplace_back("job", items.job);
  return fields;
}

namespace {

constexpr char kStandardOutput[] = "standard output";

// Both are on one terminal, as far as anybody can tell.
std::function<void()> BeforeText(const ProgressOptions& progress, RedrawnLine& line) {
  if (!progress.beside_text) return nullptr;
  return [&line] { line.End(); };
}

}  // namespace

RootOutputs::RootOutputs(const RootOutputsDeps& deps, RedrawnLine& line, const Logger& log)
    : log_(log),
      json_(deps.options.results_dir / deps.options.log_filename,
            "another --results_dir or --log_filename", log),
      text_buffer_(STDOUT_FILENO, /*is_own=*/false, LogDroppedOutput(log, kStandardOutput),
                   BeforeText(deps.progress, line)) {
  const Options& options = deps.options;
  const std::string host = HostOf(deps.rank);
  if (!deps.device_id.empty()) gpu_.emplace("libnvidia-ml.so.1", deps.device_id);

  logs_.push_back(std::make_unique<NvLog>(text_));

  auto dllogger = std::make_unique<DlLogger>(&text_, &json_.stream());
  dllogger->Parameters(LoggedParameters(options));
  dllogger->Metadata("run", DescribeLaunch(deps.launch, deps.rank, host));
  for (const char* metric : {"imgs_per_sec", "train_throughput", "eval_throughput"}) {
    dllogger->Metadata(metric, {{"unit", "images/s"}});
  }
  logs_.push_back(std::move(dllogger));

  if (KeepsWeights(options.mode)) {
    const std::filesystem::path path = options.results_dir / "training.json";
    TryToWrite(path, "another --results_dir");
    logs_.push_back(std::make_unique<TrainingJson>(path, LogOldText(log, path.string())));
  }
  logs_.push_back(std::make_unique<Progress>(deps.progress, line));
  std::ranges::move(
      OpenLogs({options, deps.rank.rank, host, deps.launch.version, deps.launch.job, log}, false),
      std::back_inserter(logs_));
}

Outputs RootOutputs::outputs() {
  Outputs outputs = {.log = log_, .gpu = gpu_ ? &*gpu_ : nullptr};
  for (const auto& log : logs_) outputs.logs.push_back(log.get());
  return outputs;
}

bool RootOutputs::End() {
  json_.LogDroppedOutputs();
  for (const auto& log : logs_) log->LogDroppedOutputs();
  LogDroppedOutputs(log_, kStandardOutput, text_buffer_.lost_lines());
  return text_buffer_.lost_lines() == 0;
}

void TryToWrite(const std::filesystem::path& file, std::string_view instead) {
  const WriteHook no_hook;
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) {
    throw Error(EX_OSERR, "cannot write " + file.string() + ": it is a directory; give " +
                              std::string(instead));
  }
  RemoveStalePartials(file);
  const std::filesystem::path partial = PartialName(file);
  std::filesystem::remove(partial, ignored);  // of an earlier process with our number
  WriteNewFile(partial, {}, {no_hook, instead});
  std::filesystem::remove(partial, ignored);
}

std::unique_ptr<RunLock> PrepareDirectories(const TrainConfig& config,
                                            const RunLockOptions& lock_options, const Logger& log) {
  MakeDirectory(config.results_dir, "--results_dir");
  if (config.trace.count > 0) TryToWrite(TracePath(config), "another --results_dir");
  if (config.profile.count > 0) {
    for (const char* name : {"profile.csv", "profile.json"}) {
      TryToWrite(config.results_dir / name, "another --results_dir");
    }
  }
  std::unique_ptr<RunLock> lock;
  if (KeepsWeights(config.mode)) lock = LockRun(ModelDirectory(config), lock_options);
  if (!config.export_dir.empty() && ExportsWeights(config.mode)) {
    MakeDirectory(config.export_dir, "--export_dir");
    TryToWrite(ExportFile(config), "another --export_dir");
  }
  if (!KeepsWeights(config.mode)) return nullptr;
  const std::filesystem::path checkpoints = CheckpointsDirectory(ModelDirectory(config));
  std::error_code ignored;
  if (std::filesystem::symlink_status(checkpoints, ignored).type() !=
      std::filesystem::file_type::not_found) {
    MakeDirectory(checkpoints, "--model_dir");
    TryToWrite(checkpoints / kManifestFile, "another --model_dir");
  }
  const int removed = RemoveStaleCheckpoints(ModelDirectory(config));
  if (removed > 0) {
    log->info("removed {} of a run that died", support::Counted(removed, "unfinished checkpoint"));
  }
  if (!config.dump_state.empty()) TryToWrite(config.dump_state, "another --dump_state");
  return lock;
}

}  // namespace trainer
