// SPDX-License-Identifier: Apache-2.0
//
// ddldata: makes, indexes and checks TFRecord data sets of JPEG images.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/spelling.h"
#include "trainer/core/error.h"
#include "trainer/data/tool/inspect.h"
#include "trainer/data/tool/synth.h"

namespace {

using trainer::Error;

// "unknown argument --imges; did you mean --images?"
std::string DescribeUnknown(const std::string& argument, const CLI::App& app) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_lnames().empty()) known.push_back("--" + option->get_lnames().front());
  }
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    known.push_back(command->get_name());
  }
  const std::string nearest =
      support::NearestSpelling(argument.substr(0, argument.find('=')), known);
  return "unknown argument " + argument +
         (nearest.empty() ? " (ddldata --help lists all)" : "; did you mean " + nearest + "?");
}

// "80-128", or "96" for both.
void ParseSizeRange(const std::string& text, trainer::SynthOptions& options) {
  const std::size_t dash = text.find('-');
  const std::string low = text.substr(0, dash);
  const std::string high = dash == std::string::npos ? low : text.substr(dash + 1);
  if (!CLI::detail::lexical_cast(low, options.min_size) ||
      !CLI::detail::lexical_cast(high, options.max_size)) {
    throw Error(EX_USAGE, "--size must be a range of pixels such as 80-128, not " + text);
  }
}

void PrintVerifySummary(const trainer::VerifySummary& summary, int threads) {
  const double images = static_cast<double>(summary.records);
  std::printf("%d files, %lld records, %.1f MB, %lld problems\n", summary.files,
              static_cast<long long>(summary.records), static_cast<double>(summary.bytes) / 1e6,
              static_cast<long long>(summary.problems));
  std::printf("%.2f s: %.0f images/s, %.0f images/s per thread, %.1f Mpixel/s per thread\n",
              summary.seconds, images / summary.seconds, images / summary.seconds / threads,
              static_cast<double>(summary.pixels) / 1e6 / summary.seconds / threads);
}

// What the chosen command does; returns the exit code.
using Command = std::function<int()>;

void AddSynth(CLI::App& app, int threads, Command& command) {
  struct Values {
    trainer::SynthOptions options;
    std::string size = "80-128";
  };
  auto values = std::make_shared<Values>();
  trainer::SynthOptions& options = values->options;
  options.threads = threads;
  CLI::App* synth = app.add_subcommand(
      "synth",
      "Make an ImageNet-like data set of painted JPEG images, whose classes differ in "
      "shape and texture, not in colour");
  synth->add_option("DIR", options.dir, "Directory of the data set; made if need be")->required();
  synth->add_option("--classes", options.classes, "Classes, 1 to 200; file labels are 1..CLASSES")
      ->capture_default_str();
  synth->add_option("--images", options.images, "Training images")->capture_default_str();
  synth->add_option("--validation_images", options.validation_images, "Validation images")
      ->capture_default_str();
  synth->add_option("--size", values->size, "Width and height are drawn from MIN-MAX pixels")
      ->capture_default_str();
  synth->add_option("--shards", options.shards, "Files train-*")->capture_default_str();
  synth->add_option("--validation_shards", options.validation_shards, "Files validation-*")
      ->capture_default_str();
  synth->add_option("--seed", options.seed, "The same seed makes the same bytes")
      ->capture_default_str();
  synth->add_option("--threads", options.threads, "Threads")->capture_default_str();
  synth->add_flag("--force", options.force, "Replace the data files that are in DIR");
  synth->callback([values, &command] {
    command = [values] {
      ParseSizeRange(values->size, values->options);
      trainer::MakeDataSet(values->options);
      std::printf("%s: %lld training images in %d files, %lld validation images\n",
                  values->options.dir.c_str(), static_cast<long long>(values->options.images),
                  values->options.shards,
                  static_cast<long long>(values->options.validation_images));
      return 0;
    };
  });
}

void AddIndex(CLI::App& app, int threads, Command& command) {
  struct Values {
    std::string data_dir;
    std::string index_dir;
    int threads;
  };
  auto values = std::make_shared<Values>(Values{"", "", threads});
  CLI::App* index = app.add_subcommand(
      "index", "Make DALI's index files, as tfrecord2idx does: one per data file, same name");
  index->add_option("DATA_DIR", values->data_dir, "Directory with train-*, validation-*")
      ->required();
  index->add_option("INDEX_DIR", values->index_dir, "Directory of the indices; made if need be")
      ->required();
  index->add_option("--threads", values->threads, "Threads")->capture_default_str();
  index->callback([values, &command] {
    command = [values] {
      const std::int64_t records =
          trainer::MakeIndexFiles(values->data_dir, values->index_dir, values->threads);
      std::printf("%s: %lld records indexed\n", values->index_dir.c_str(),
                  static_cast<long long>(records));
      return 0;
    };
  });
}

void AddVerify(CLI::App& app, int threads, Command& command) {
  auto options = std::make_shared<trainer::VerifyOptions>();
  options->threads = threads;
  CLI::App* verify = app.add_subcommand(
      "verify",
      "Check every record: checksums, features, label, and the whole image decoded; "
      "exit code 65 if anything is wrong");
  verify->add_option("DATA_DIR", options->data_dir, "Directory with train-*, validation-*")
      ->required();
  verify->add_option("--classes", options->classes, "Labels are 1..CLASSES")->capture_default_str();
  verify->add_option("--threads", options->threads, "Threads")->capture_default_str();
  verify->callback([options, &command] {
    command = [options] {
      const auto summary = trainer::VerifyDataSet(
          *options, [](const std::string& problem) { std::printf("%s\n", problem.c_str()); });
      PrintVerifySummary(summary, options->threads);
      return summary.problems == 0 ? 0 : EX_DATAERR;
    };
  });
}

int Run(int argc, char** argv) {
  const int threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  CLI::App app("Makes, indexes and checks TFRecord data sets of JPEG images.", "ddldata");
  app.set_version_flag("--version", DDLRUN_VERSION);
  Command command;
  AddSynth(app, threads, command);
  AddIndex(app, threads, command);
  AddVerify(app, threads, command);
  app.allow_extras();
  for (CLI::App* sub : app.get_subcommands({})) sub->allow_extras();
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    throw Error(EX_USAGE, std::string(error.what()) + " (ddldata --help lists the options)");
  }
  const CLI::App& chosen = command ? *app.get_subcommands().front() : app;
  const std::vector<std::string> unknown = chosen.remaining();
  if (!unknown.empty()) throw Error(EX_USAGE, DescribeUnknown(unknown.front(), chosen));
  if (!command) throw Error(EX_USAGE, "a command is missing: synth, index or verify");
  return command();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Run(argc, argv);
  } catch (const Error& error) {
    std::fprintf(stderr, "ddldata: %s\n", error.what());
    return error.exit_code();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ddldata: %s\n", error.what());
    return EX_SOFTWARE;
  }
}
