// SPDX-License-Identifier: Apache-2.0
//
// A plan as words, as a part of a rank job (rank_job.h).  What a thousand equal nodes have in
// common is written once, so that a regular plan is short however large it is.  Pure.
//
//   CPUS_PER_RANK NODES RANKS KINDS HOST_RUNS RANK_RUNS, then
//   for each kind of node       GPUS:RANKS and, for each of these ranks, GPU:NUMA:CORES:CPUS
//   for each run of hosts       NODES:KIND:PREFIX:FIRST:SUFFIX
//   for each run of ranks       NODE:NODES:RANKS
//
// GPU and NUMA are -1 for none.  CORES is how many cores the rank has, CPUS are the OS numbers of
// its hardware threads as in 0-3,8-11, or "-" for none.  A run of hosts is NODES nodes of one kind
// whose names differ in a number only: 3:0:n:08:- stands for n08, n09 and n10.  With "-" in place
// of FIRST it is a single node.  A run of ranks is RANKS ranks on NODE, as many on the next node,
// and so on for NODES nodes: the word 0:64:8 fills 64 nodes one after the other, and eight words
// 0:64:1 deal the ranks out in turn.  The local ranks of a node are numbered in this order.

#pragma once

#include <cstddef>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/placement/launch_plan.h"

namespace launcher {

// Words, of which a rank job (rank_job.h) is made: writes texts as one word each, and reads the
// words again.  Pure.

// `text` as one word: every byte but letters, digits and _./+,@ becomes %XX, an empty text "-".
std::string EscapeToken(const std::string& text);
// The inverse.  Throws std::out_of_range for a % that no two digits follow.
std::string UnescapeToken(std::string_view word);

// Reads a number, which is -1 or more.  Throws std::out_of_range for anything else.
int DecodeNumber(std::string_view text);

// Takes a text with single blanks between its words apart.  Each function reads the next word, and
// throws std::out_of_range where there is none or it is not what was asked for.
class TokenReader {
 public:
  explicit TokenReader(const std::string& text) : stream_(text) {}

  std::string Next();
  std::string Text() { return UnescapeToken(Next()); }
  int Number() { return DecodeNumber(Next()); }
  // True for "NAME=1".
  bool Flag(const std::string& name) { return Next() == name + "=1"; }
  // A word of `count` fields with ':' between them.
  std::vector<std::string> Fields(std::size_t count);
  void ExpectEnd();

 private:
  std::istringstream stream_;
};

// A text with more ranks was not written by ddlrun.
inline constexpr int kMaxPlannedRanks = 1 << 20;

// REQUIRES: the invariants of LaunchPlan, but for those of cores and GPUs.
std::string EncodePlan(const LaunchPlan& plan);

// The inverse, which reads `words` to their end.  The plan has what a rank needs: it has no
// warnings, and of `cores` only the length is right.  Throws std::out_of_range for words that
// EncodePlan did not write.
LaunchPlan DecodePlan(TokenReader& words);

}  // namespace launcher
