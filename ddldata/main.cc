// SPDX-License-Identifier: Apache-2.0
//
// ddldata: makes, converts, splits, indexes, describes and checks TFRecord data sets of JPEG
// images.

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "ddldata/convert.h"
#include "ddldata/convert_progress.h"
#include "ddldata/inspect.h"
#include "ddldata/options.h"
#include "ddldata/split_set.h"
#include "ddldata/stats.h"
#include "ddldata/synth.h"
#include "support/cpu_quota.h"
#include "support/number.h"
#include "support/quoting.h"
#include "support/standard_streams.h"
#include "support/terminal.h"
#include "trainer/core/error.h"
#include "trainer/data/files/data_files.h"

namespace {

void PrintMessage(const char* text) {
  std::fprintf(stderr, "ddldata: %s\n", support::WithoutControls(text).c_str());
}

using trainer::DataToolCommand;
using trainer::DataToolOptions;
using trainer::Error;
using trainer::SynthOptions;

std::atomic<int> stop_signal = 0;

// The first signal asks for an orderly end; a second SIGINT ends at once.  One that is ignored from
// the start, as SIGHUP is by nohup, stays so.
extern "C" void RequestStop(int signal_number) {
  stop_signal = signal_number;
  if (signal_number == SIGINT) std::signal(SIGINT, SIG_DFL);
}

void CatchStopSignals() {
  struct sigaction action = {};
  action.sa_handler = RequestStop;
  action.sa_flags = SA_RESTART;
  for (const int signal_number : {SIGTERM, SIGINT, SIGHUP}) {
    struct sigaction before = {};
    sigaction(signal_number, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaction(signal_number, &action, nullptr);
  }
  std::signal(SIGXFSZ, SIG_IGN);  // a limit of file sizes is an error to report, not a death
}

trainer::ProgressOptions ProgressFor(int descriptor) {
  trainer::ProgressOptions progress;
  progress.terminal = support::CanRedraw(descriptor, std::getenv("TERM"));
  progress.columns = [descriptor] { return support::ColumnsOf(descriptor); };
  return progress;
}

// "80-128", or "96" for both.
void ParseSizeRange(const std::string& text, SynthOptions& options) {
  const std::size_t dash = text.find('-');
  const std::string low = text.substr(0, dash);
  const std::string high = dash == std::string::npos ? low : text.substr(dash + 1);
  const auto min = support::WholeNumber<int>(low);
  const auto max = support::WholeNumber<int>(high);
  if (!min || !max) {
    throw Error(EX_USAGE, "--size must be a range of pixels such as 80-128, not " + text);
  }
  options.min_size = *min;
  options.max_size = *max;
}

void PrintVerifySummary(const trainer::VerifySummary& summary, int threads) {
  const double images = static_cast<double>(summary.records);
  std::printf("%s, %s, %.1f MB, %s\n", support::Counted(summary.files, "file").c_str(),
              support::Counted(summary.records, "record").c_str(),
              static_cast<double>(summary.bytes) / 1e6,
              support::Counted(summary.problems, "problem").c_str());
  std::printf("%.2f s: %.0f images/s, %.0f images/s per thread, %.1f Mpixel/s per thread\n",
              summary.seconds, images / summary.seconds, images / summary.seconds / threads,
              static_cast<double>(summary.pixels) / 1e6 / summary.seconds / threads);
}

int Synth(const DataToolOptions& options) {
  SynthOptions synth = options.synth;
  ParseSizeRange(options.size, synth);
  trainer::MakeDataSet(synth);
  std::printf("%s: %s in %s, %s\n", synth.dir.c_str(),
              support::Counted(synth.images, "training image").c_str(),
              support::Counted(synth.shards, "file").c_str(),
              support::Counted(synth.validation_images, "validation image").c_str());
  return 0;
}

int Convert(const DataToolOptions& options) {
  trainer::ConvertOptions convert = options.convert;
  if (options.bad_images == "skip") convert.bad_images = trainer::BadRecords::kSkip;
  CatchStopSignals();
  trainer::ConvertProgress progress(ProgressFor(STDERR_FILENO), std::cerr);
  const trainer::ConvertSummary summary =
      trainer::ConvertImages(convert, progress, [] { return stop_signal != 0; });
  progress.Break();
  std::string text = convert.dir + ": " + std::to_string(summary.train_images) + " training and " +
                     std::to_string(summary.validation_images) + " validation images of " +
                     std::to_string(summary.classes) + " classes in " +
                     support::Counted(summary.files, "file");
  if (summary.files_before > 0) {
    text += ", " + std::to_string(summary.files_before) + " of them from before";
  }
  if (!convert.boxes.empty()) {
    text += "; " + support::Counted(summary.images_with_boxes, "training image") +
            " with bounding boxes" + (summary.left_out > 0 ? ", of all that were found" : "");
  }
  if (summary.left_out > 0) {
    text += "; " + support::Counted(summary.left_out, "image") + " left out";
  }
  std::printf("%s\n", text.c_str());
  return 0;
}

int SplitSet(const DataToolOptions& options) {
  CatchStopSignals();
  trainer::ConvertProgress progress(ProgressFor(STDERR_FILENO), std::cerr);
  const trainer::SplitSetSummary summary =
      trainer::SplitDataSet(options.split, progress, [] { return stop_signal != 0; });
  progress.Break();
  std::string text = options.split.dir + ": " + std::to_string(summary.train_images) +
                     " training and " + std::to_string(summary.validation_images) +
                     " validation images in " + support::Counted(summary.files, "file");
  if (summary.files_before > 0) {
    text += ", " + std::to_string(summary.files_before) + " of them from before";
  }
  std::printf("%s\n", text.c_str());
  return 0;
}

int Stats(const DataToolOptions& options) {
  const trainer::DataStats stats = trainer::MeasureDataSet(options.data_dir, options.threads);
  const std::string text =
      options.as_json ? trainer::FormatStatsAsJson(stats) : trainer::FormatStats(stats);
  std::fputs(text.c_str(), stdout);
  return 0;
}

int Index(const DataToolOptions& options) {
  const std::int64_t records =
      trainer::MakeIndexFiles(options.data_dir, options.index_dir, options.threads);
  std::printf("%s: %lld records indexed\n", options.index_dir.c_str(),
              static_cast<long long>(records));
  return 0;
}

int Manifest(const DataToolOptions& options) {
  const std::int64_t records =
      trainer::MakeShardManifest(options.data_dir, options.is_part, options.threads);
  std::printf("%s/%s: %lld records counted\n", options.data_dir.c_str(),
              trainer::kShardManifestName, static_cast<long long>(records));
  return 0;
}

int Verify(const DataToolOptions& options) {
  const auto summary = trainer::VerifyDataSet(options.verify, [](const std::string& problem) {
    std::printf("%s\n", support::WithoutControls(problem).c_str());
  });
  if (!summary.has_manifest) {
    std::fprintf(stderr, "ddldata: note: %s\n",
                 trainer::DescribeMissingManifest(options.verify.data_dir).c_str());
  }
  if (!summary.labels_note.empty()) {
    std::fprintf(stderr, "ddldata: note: the classes are not compared with labels.txt: %s\n",
                 support::WithoutControls(summary.labels_note).c_str());
  }
  PrintVerifySummary(summary, options.verify.threads);
  return summary.problems == 0 ? 0 : EX_DATAERR;
}

int RunCommand(const DataToolOptions& options) {
  switch (options.command) {
    case DataToolCommand::kSynth:
      return Synth(options);
    case DataToolCommand::kConvert:
      return Convert(options);
    case DataToolCommand::kIndex:
      return Index(options);
    case DataToolCommand::kManifest:
      return Manifest(options);
    case DataToolCommand::kVerify:
      return Verify(options);
    case DataToolCommand::kStats:
      return Stats(options);
    case DataToolCommand::kSplit:
      return SplitSet(options);
    case DataToolCommand::kNone:
      break;
  }
  throw Error(EX_USAGE,
              "a command is missing: synth, convert, index, manifest, verify, stats or split");
}

void RequirePrinted() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    throw Error(EX_OSERR, "not all of the output could be written to the standard output");
  }
}

int Run(int argc, char** argv) {
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const int threads = support::ThreadsWithinQuota("", cores, /*ranks=*/1);
  DataToolOptions options(threads);
  const support::Parsed parsed =
      support::Parse(trainer::DescribeOptions(options), {argv + 1, argv + argc});
  if (!parsed.answer.empty()) {
    std::fputs(parsed.answer.c_str(), stdout);
    RequirePrinted();
    return EX_OK;
  }
  const int exit_code = RunCommand(options);
  RequirePrinted();
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  support::OpenStandardStreams();
  try {
    return Run(argc, argv);
  } catch (const Error& error) {
    PrintMessage(error.what());
    return error.exit_code();
  } catch (const support::UsageError& error) {
    PrintMessage(error.what());
    return EX_USAGE;
  } catch (const std::exception& error) {
    PrintMessage(error.what());
    return EX_SOFTWARE;
  }
}
