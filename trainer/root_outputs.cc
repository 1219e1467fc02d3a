// SPDX-License-Identifier: Apache-2.0

#include "trainer/root_outputs.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <iostream>
#include <system_error>

#include "support/counted.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

constexpr char kStandardOutput[] = "standard output";

int OpenForAppending(const std::filesystem::path& path) {
  // O_NONBLOCK: a FIFO without a reader in its place must not hang us.
  const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
  if (fd < 0) {
    throw Error(EX_OSERR, "cannot write '" + path.string() +
                              "': " + std::generic_category().message(errno) +
                              "; check it, or give another --results_dir or --log_filename");
  }
  ::fcntl(fd, F_SETFL, O_APPEND);
  return fd;
}

std::function<void(int)> TellLoss(const Logger& log, const std::string& where) {
  return [log, where](int error) {
    log->warn("{}: lines are lost: {}; the run goes on without them", where,
              std::generic_category().message(error));
  };
}

void TellLosses(const Logger& log, const std::string& where, std::int64_t lines) {
  if (lines > 0) log->warn("{}: {} lost", where, support::Counted(lines, "line"));
}

}  // namespace

RootOutputs::RootOutputs(const std::filesystem::path& json_path, const std::string& device_id,
                         const ProgressOptions& progress, const Logger& log)
    : log_(log),
      json_path_(json_path),
      json_file_(OpenForAppending(json_path)),
      text_buffer_(STDOUT_FILENO, /*is_own=*/false, TellLoss(log, kStandardOutput)),
      json_buffer_(json_file_, /*is_own=*/true, TellLoss(log, json_path.string())),
      progress_(progress, std::cerr) {
  if (!device_id.empty()) gpu_.emplace("libnvidia-ml.so.1", device_id);
}

RootOutputs::~RootOutputs() { ::close(json_file_); }

Outputs RootOutputs::outputs() {
  return {log_, &nvlog_, &dllogger_, &progress_, gpu_ ? &*gpu_ : nullptr};
}

bool RootOutputs::End() {
  TellLosses(log_, json_path_.string(), json_buffer_.lost_lines());
  TellLosses(log_, kStandardOutput, text_buffer_.lost_lines());
  return text_buffer_.lost_lines() == 0;
}

}  // namespace trainer
