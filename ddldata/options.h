// SPDX-License-Identifier: Apache-2.0
//
// The command line of ddldata: one description that makes the parser, --help, the manual page and
// the completion.  Pure.

#pragma once

#include <string>

#include "ddldata/convert.h"
#include "ddldata/inspect.h"
#include "ddldata/split_set.h"
#include "ddldata/synth.h"
#include "support/command_line.h"

namespace trainer {

enum class DataToolCommand { kNone, kSynth, kConvert, kIndex, kManifest, kVerify, kStats, kSplit };

// What was asked for: that of `command` counts.
struct DataToolOptions {
  // `count`: as many threads as every command uses unless told otherwise.
  explicit DataToolOptions(int count) : threads(count) {
    synth.threads = count;
    convert.threads = count;
    verify.threads = count;
    split.threads = count;
  }

  DataToolCommand command = DataToolCommand::kNone;
  SynthOptions synth;
  std::string size = "80-128";  // of synth: pixels, MIN-MAX
  ConvertOptions convert;
  std::string bad_images = "stop";  // of convert: stop, skip
  std::string data_dir;             // of index, manifest and stats
  std::string index_dir;
  bool is_part = false;  // of manifest
  bool as_json = false;  // of stats
  int threads;           // of index, manifest and stats
  VerifyOptions verify;
  SplitSetOptions split;
};

// Its commands and options; parsing fills `options`, which must outlive it.
support::Program DescribeOptions(DataToolOptions& options);

}  // namespace trainer
