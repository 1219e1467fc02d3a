// SPDX-License-Identifier: Apache-2.0

#include "launcher/shim/own_job.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/shim/gpus.h"

namespace launcher {
namespace {

// Takes the text apart from left to right; after a mistake it gives nothing more.
class Reader {
 public:
  explicit Reader(const char* text) : next_(text) {}

  bool is_ok() const { return is_ok_; }
  const char* position() const { return next_; }

  void Skip(char end) {
    next_ += strcspn(next_, " :");
    Take(end);
  }

  int Number(char end) {
    char* after = nullptr;
    const long number = strtol(next_, &after, 10);
    is_ok_ = is_ok_ && after != next_ && number >= -1 && number <= INT_MAX;
    next_ = after;
    Take(end);
    return static_cast<int>(number);
  }

  bool Flag(const char* name, char end) {
    const size_t length = strlen(name);
    is_ok_ = is_ok_ && strncmp(next_, name, length) == 0 && next_[length] == '=';
    if (!is_ok_) return false;
    next_ += length + 1;
    return Number(end) == 1;
  }

  template <size_t size>
  void Text(char (&to)[size], char end) {
    size_t length = 0;
    if (next_[0] == '-') {
      ++next_;
    } else {
      while (is_ok_ && *next_ != '\0' && *next_ != ' ' && *next_ != ':' && length + 1 < size) {
        to[length++] = Character();
      }
    }
    to[length] = '\0';
    Take(end);
  }

 private:
  // `end` after a field; at the end of the text, which is one word as well, nothing.
  void Take(char end) {
    if (is_ok_ && *next_ == end) {
      ++next_;
    } else if (*next_ != '\0' || end != ' ') {
      is_ok_ = false;
    }
  }

  char Character() {
    if (*next_ != '%') return *next_++;
    const char digits[] = {next_[1], next_[1] == '\0' ? '\0' : next_[2], '\0'};
    char* after = nullptr;
    const long byte = strtol(digits, &after, 16);
    if (after != digits + 2) {
      is_ok_ = false;
      return '\0';
    }
    next_ += 3;
    return static_cast<char>(byte);
  }

  const char* next_;
  bool is_ok_ = true;
};

// Where others have GPUs of a node as well, the first ones need not be those of this job.
bool IsAnotherGpu(const char* granted, int local_rank, int planned) {
  const int count = CountGpuEntries(granted);
  const int number = count > 0 ? GpuNumberAt(granted, local_rank % count) : -1;
  return planned >= 0 && number >= 0 && number != planned;
}

}  // namespace

bool ReadOwnJob(const char* text, int rank, const char* granted_gpus, OwnJob* job) {
  Reader reader(text);
  reader.Text(job->spawner, ' ');
  reader.Text(job->pmi, ' ');
  job->bind = reader.Flag("bind", ' ');
  job->check = reader.Flag("check", ' ');
  job->pause = reader.Flag("pause", ' ');
  reader.Flag("cores", ' ');
  reader.Text(job->planned_for, ' ');
  reader.Text(job->run_directory, ' ');
  reader.Text(job->log_directory, ' ');
  reader.Text(job->master_address, ' ');
  job->master_port = reader.Number(' ');
  job->restart_count = reader.Number(' ');
  job->cpus_per_rank = reader.Number(' ');
  job->node_count = reader.Number(' ');
  job->world_size = reader.Number(' ');
  if (!reader.is_ok() || rank < 0 || rank >= job->world_size) return false;

  const Reader first_node = reader;
  for (int i = 0; i < job->node_count && reader.is_ok(); ++i) {
    reader.Skip(':');
    reader.Skip(' ');
  }
  job->rank = rank;
  job->node = -1;
  const Reader first_rank = reader;
  for (int i = 0; i <= rank && reader.is_ok(); ++i) {
    job->node = reader.Number(':');
    job->local_rank = reader.Number(':');
    job->gpu = reader.Number(':');
    job->numa_os_index = reader.Number(':');
    job->cores = reader.Number(':');
    job->cpus = reader.position();
    reader.Skip(' ');
  }
  if (!reader.is_ok() || job->node < 0 || job->node >= job->node_count) return false;

  reader = first_rank;
  job->local_world_size = 0;
  job->has_other_gpus = false;
  for (int i = 0; i < job->world_size && reader.is_ok(); ++i) {
    const bool is_on_node = reader.Number(':') == job->node;
    const int local_rank = reader.Number(':');
    const int gpu = reader.Number(':');
    for (int field = 0; field < 2; ++field) reader.Skip(':');
    reader.Skip(' ');
    if (!is_on_node) continue;
    ++job->local_world_size;
    if (IsAnotherGpu(granted_gpus, local_rank, gpu)) job->has_other_gpus = true;
  }
  const bool has_all_ranks = reader.is_ok() && *reader.position() == '\0';
  reader = first_node;
  for (int i = 0; i < job->node; ++i) {
    reader.Skip(':');
    reader.Skip(' ');
  }
  reader.Text(job->host, ':');
  job->gpus = reader.Number(' ');
  return has_all_ranks && reader.is_ok();
}

}  // namespace launcher
