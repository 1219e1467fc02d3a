// SPDX-License-Identifier: Apache-2.0

#include "launcher/protocol/local_rank_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/protocol/rank_list.h"
#include "launcher/protocol/rank_variables.h"
#include "launcher/topology/gpus_of_node.h"

namespace launcher {
namespace {

// Takes the text apart from left to right.  After a mistake is_ok() is false, and what the
// functions give has no meaning.
class Reader {
 public:
  explicit Reader(const char* text) : next_(text) {}

  bool is_ok() const { return is_ok_; }
  bool is_at_end() const { return is_ok_ && *next_ == '\0'; }
  const char* position() const { return next_; }

  void Skip(char end) {
    next_ += strcspn(next_, " :");
    Take(end);
  }

  // Passes over the rest of a word.
  void SkipWord() {
    next_ += strcspn(next_, " ");
    Take(' ');
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
  // Takes `end`, which must follow a field.  The last word of the text may lack the blank behind
  // it.
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

// How many words of each kind follow (plan_encoding.h).
struct Counts {
  int kinds, host_ranges, rank_spans;
};

void SkipKinds(int kinds, Reader* reader) {
  for (int i = 0; i < kinds && reader->is_ok(); ++i) {
    reader->Skip(':');
    const int ranks = reader->Number(' ');
    for (int word = 0; word < ranks && reader->is_ok(); ++word) {
      reader->Skip(':');
      reader->SkipWord();
    }
  }
}

// Reads the runs of ranks up to the end of the text.  Finds the node of the job's rank, its local
// rank and how many ranks its node has.
bool FindRank(const Reader& first_run, int rank_spans, LocalRankJob* job) {
  Reader reader = first_run;
  long long next_rank = 0;
  int own_run = -1;
  int in_run = 0;  // how many ranks of the same node come before this one in its run
  for (int i = 0; i < rank_spans && reader.is_ok(); ++i) {
    const int node = reader.Number(':');
    const int nodes = reader.Number(':');
    const int ranks = reader.Number(' ');
    if (node < 0 || nodes < 1 || ranks < 1 || node >= job->node_count ||
        nodes > job->node_count - node) {
      return false;
    }
    const long long end = next_rank + static_cast<long long>(nodes) * ranks;
    if (end > job->world_size) return false;
    if (own_run < 0 && job->rank < end) {
      const int index = job->rank - static_cast<int>(next_rank);
      own_run = i;
      job->node = node + index / ranks;
      in_run = index % ranks;
    }
    next_rank = end;
  }
  if (!reader.is_at_end() || own_run < 0 || next_rank != job->world_size) return false;

  reader = first_run;
  job->local_rank = in_run;
  job->local_world_size = 0;
  for (int i = 0; i < rank_spans; ++i) {
    const int node = reader.Number(':');
    const int nodes = reader.Number(':');
    const int ranks = reader.Number(' ');
    if (job->node < node || job->node >= node + nodes) continue;
    if (i < own_run) job->local_rank += ranks;
    job->local_world_size += ranks;
  }
  return true;
}

// Finds the name of the job's node, and returns the kind of that node; -1 where the text has no
// such node.
int ReadHost(Reader reader, int host_ranges, LocalRankJob* job) {
  int first_node = 0;
  for (int i = 0; i < host_ranges && reader.is_ok(); ++i) {
    const int nodes = reader.Number(':');
    if (nodes < 1 || nodes > job->node_count - first_node) return -1;
    if (job->node >= first_node + nodes) {
      first_node += nodes;
      reader.SkipWord();
      continue;
    }
    char prefix[sizeof(job->host)];
    char first[16];
    char suffix[sizeof(job->host)];
    const int kind = reader.Number(':');
    reader.Text(prefix, ':');
    reader.Text(first, ':');
    reader.Text(suffix, ' ');
    const bool is_one_node = first[0] == '\0';
    if (first[strspn(first, "0123456789")] != '\0' ||
        (is_one_node && (nodes > 1 || suffix[0] != '\0'))) {
      return -1;
    }
    char number[24] = "";
    if (!is_one_node) {
      char* end = nullptr;
      const long of_first = strtol(first, &end, 10);
      if (*end != '\0') return -1;
      snprintf(number, sizeof(number), "%0*ld", static_cast<int>(strlen(first)),
               of_first + job->node - first_node);
    }
    const int length = snprintf(job->host, sizeof(job->host), "%s%s%s", prefix, number, suffix);
    return reader.is_ok() && static_cast<size_t>(length) < sizeof(job->host) ? kind : -1;
  }
  return -1;
}

// Whether the rank's GPU is another one than planned.  On a node that is shared with other jobs,
// the GPUs of this job need not be the first ones.
bool IsAnotherGpu(const char* granted, int local_rank, int planned) {
  const int count = CountGpuEntries(granted);
  const int number = count > 0 ? GpuNumberAt(granted, local_rank % count) : -1;
  return planned >= 0 && number >= 0 && number != planned;
}

// Reads the rank's own entry among those of its kind of node, and looks whether any rank of the
// node has another GPU.
bool ReadKind(Reader reader, int kind, const char* granted_gpus, LocalRankJob* job) {
  SkipKinds(kind, &reader);
  job->gpus = reader.Number(':');
  if (reader.Number(' ') != job->local_world_size) return false;
  job->has_other_gpus = false;
  job->used_gpus = 0;
  unsigned long long seen = 0;  // a bit for each
  for (int local_rank = 0; local_rank < job->local_world_size && reader.is_ok(); ++local_rank) {
    const int gpu = reader.Number(':');
    if (IsAnotherGpu(granted_gpus, local_rank, gpu)) job->has_other_gpus = true;
    const unsigned long long bit = gpu >= 0 && gpu < 64 ? 1ULL << gpu : 0;
    if ((bit & ~seen) != 0) ++job->used_gpus;
    seen |= bit;
    if (local_rank == job->local_rank) {
      job->gpu = gpu;
      job->numa_os_index = reader.Number(':');
      job->cores = reader.Number(':');
      job->cpus = reader.position();
    }
    reader.SkipWord();
  }
  return reader.is_ok();
}

// A copy of `word` with the number of the rank instead of each kRankMark.
char* WithRank(const char* word, int rank) {
  char number[16];
  const int length = snprintf(number, sizeof(number), "%d", rank);
  size_t size = strlen(word) + 1;
  for (const char* mark = word; (mark = strstr(mark, kRankMark)) != nullptr; ++mark) {
    size += static_cast<size_t>(length);
  }
  const auto text = static_cast<char*>(malloc(size));
  if (text == nullptr) return nullptr;
  char* end = text;
  for (const char* mark = nullptr; (mark = strstr(word, kRankMark)) != nullptr;) {
    end = stpncpy(end, word, static_cast<size_t>(mark - word));
    end = stpcpy(end, number);
    word = mark + strlen(kRankMark);
  }
  strcpy(end, word);
  return text;
}

}  // namespace

const char* RankJobVersion() { return "ddlrun=" DDLRUN_VERSION; }

const char* SkipRankJobVersion(const char* text) {
  const size_t length = strlen(RankJobVersion());
  const bool is_own = strncmp(text, RankJobVersion(), length) == 0 && text[length] == ' ';
  return is_own ? text + length + 1 : nullptr;
}

RankJobChunk NameOfChunk(int index) {
  RankJobChunk part;
  snprintf(part.name, sizeof(part.name), index == 0 ? "%s" : "%s_%d", kRankJobVariable, index + 1);
  return part;
}

const char* JoinRankJob(const char* (*get)(const char* name)) {
  const char* parts[kMaxRankJobChunks];
  int count = 0;
  size_t size = 1;
  while (count < kMaxRankJobChunks) {
    const char* part = get(NameOfChunk(count).name);
    if (part == nullptr) break;
    parts[count++] = part;
    size += strlen(part);
  }
  if (count == 0) return "";
  if (count == 1) return parts[0];
  char* text = static_cast<char*>(malloc(size));
  if (text == nullptr) return "";
  char* end = text;
  for (int i = 0; i < count; ++i) {
    const size_t length = strlen(parts[i]);
    memcpy(end, parts[i], length);
    end += length;
  }
  *end = '\0';
  return text;
}

char** WithWraps(const LocalRankJob& job, char** program) {
  int count = 1;  // with the null pointer
  while (program[count - 1] != nullptr) ++count;
  char** words = program;
  // From the inner ones to the outer ones, each of which comes in front.
  for (int wrap = job.wrap_count - 1; wrap >= 0 && words != nullptr; --wrap) {
    Reader reader(job.wraps);
    char ranks[kMaxRankListBytes + 1];
    int size = 0;
    for (int i = 0; i <= wrap; ++i) {
      for (; size > 0; --size) reader.Skip(' ');  // the words of the one before
      reader.Text(ranks, ' ');
      size = reader.Number(' ');
    }
    if (!IsInRankList(ranks, job.rank)) continue;
    const auto longer = static_cast<char**>(
        calloc(static_cast<size_t>(size) + static_cast<size_t>(count), sizeof(char*)));
    for (int i = 0; i < size && longer != nullptr; ++i) {
      char word[kMaxWrapWordBytes + 1];
      reader.Text(word, ' ');
      longer[i] = WithRank(word, job.rank);
      if (longer[i] == nullptr) return nullptr;
    }
    if (longer != nullptr) {
      memcpy(longer + size, words, static_cast<size_t>(count) * sizeof(char*));
    }
    if (words != program) free(words);
    words = longer;
    count += size;
  }
  return words;
}

bool ReadLocalRankJob(const char* text, int rank, const char* granted_gpus, LocalRankJob* job) {
  const char* words = SkipRankJobVersion(text);
  if (words == nullptr) return false;
  Reader reader(words);
  reader.Text(job->launcher, ' ');
  reader.Text(job->pmi, ' ');
  reader.Text(job->event_key, ' ');
  job->bind = reader.Flag("bind", ' ');
  job->check = reader.Flag("check", ' ');
  job->pause = reader.Flag("pause", ' ');
  reader.Flag("cores", ' ');
  reader.Text(job->planned_for, ' ');
  reader.Text(job->run_directory, ' ');
  reader.Text(job->log_directory, ' ');
  reader.Text(job->directory, ' ');
  reader.Text(job->master_address, ' ');
  job->master_port = reader.Number(' ');
  job->restart_count = reader.Number(' ');
  job->grace_ms = reader.Number(' ');
  job->frames = reader.Flag("frames", ' ');
  char shown[kMaxRankListBytes + 1];
  reader.Text(shown, ' ');
  job->wrap_count = reader.Number(' ');
  job->wraps = reader.position();
  for (int i = 0; i < job->wrap_count && reader.is_ok(); ++i) {
    reader.Skip(' ');
    for (int left = reader.Number(' '); left > 0 && reader.is_ok(); --left) reader.Skip(' ');
  }
  job->cpus_per_rank = reader.Number(' ');
  job->node_count = reader.Number(' ');
  job->world_size = reader.Number(' ');
  const Counts counts = {reader.Number(' '), reader.Number(' '), reader.Number(' ')};
  if (!reader.is_ok() || rank < 0 || rank >= job->world_size) return false;
  job->rank = rank;
  job->is_shown = shown[0] == '\0' || IsInRankList(shown, rank);

  const Reader first_kind = reader;
  SkipKinds(counts.kinds, &reader);
  const Reader first_host = reader;
  for (int i = 0; i < counts.host_ranges && reader.is_ok(); ++i) {
    reader.Skip(':');
    reader.SkipWord();
  }
  if (!FindRank(reader, counts.rank_spans, job)) return false;
  const int kind = ReadHost(first_host, counts.host_ranges, job);
  return kind >= 0 && kind < counts.kinds && ReadKind(first_kind, kind, granted_gpus, job);
}

}  // namespace launcher
