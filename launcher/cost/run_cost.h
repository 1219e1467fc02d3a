// SPDX-License-Identifier: Apache-2.0
//
// Where the wall time of one ddlrun went: into the start, productive work, what was lost by
// failures, and the end; and what the GPUs took of energy meanwhile.  All times are seconds.  Pure.
//
// Every moment belongs to one part, so that the parts add up to the wall time:
//
//   ddlrun      ranks     all ranks    last         last       failure   all ranks   all ranks
//   starts      start     run          checkpoint   progress   noticed   are gone    run again
//     |-- plan ---|- launch -|-- productive --|- repeated -|- detection -|- teardown -|- restart -|
//
// A start that does not fail is productive until its ranks are gone; what comes after the last
// start is the end.

#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace launcher {

// By what it is known which time was productive.
enum class ProgressSource {
  kNone,         // nothing: the time in which ranks ran is `unknown`
  kHeartbeat,    // --heartbeat alone: what a failure has others repeat is not known, and not lost
  kCheckpoints,  // --progress-file, or the checkpoints of ddltraind
};
// "none", "heartbeat", "checkpoints".
const char* NameOf(ProgressSource source);
std::optional<ProgressSource> ProgressSourceOf(const std::string& name);

// What was seen of one start of the ranks, by one monotonic clock.  nullopt: it did not happen.
struct StartTimes {
  std::optional<double> launched;  // the ranks, or the srun or mpirun that starts them
  std::optional<double> running;   // the programs of all ranks
  std::optional<double> noticed;   // a failure, or a request to stop
  std::optional<double> gone;      // all ranks
  // Of the slowest rank, by --heartbeat; without one it is when the failure was noticed.
  std::optional<double> progress;
  std::optional<double> checkpoint;  // the last change of the progress file since `launched`
  // With another exit code than 0 and 75: what came after the checkpoint has to be done again.
  bool has_failed = false;
  // Joules that its GPUs took, by their own counters.
  std::optional<double> energy;
  bool lacks_energy = false;  // some node has told nothing
};

struct RunTimeline {
  double begin = 0;  // ddlrun has been started
  std::vector<StartTimes> starts;
  std::optional<double> end;  // ddlrun ends
  ProgressSource source = ProgressSource::kNone;
};

struct RunCost {
  ProgressSource source = ProgressSource::kNone;
  int restarts = 0;  // by this ddlrun
  double wall = 0;
  double plan = 0;    // plan and checks, until the first launch
  double launch = 0;  // from there until all ranks run
  double productive = 0;
  double unknown = 0;    // ranks ran, and it is not known whether in vain
  double detection = 0;  // from the last progress to the noticed failure
  double teardown = 0;   // from there until all ranks are gone
  double restart = 0;    // from there until all ranks run again
  double repeated = 0;   // work that is done twice: since the last checkpoint
  double requeued = 0;   // in the queue between two launches of one job (launch_record.h)
  double end = 0;
  // Of `productive`: since the last checkpoint, while no failure has shown whether that is lost.
  double unsaved = 0;
  // Joules that the GPUs took in all starts that are over; nullopt where no node tells.
  std::optional<double> energy;
  // Of these: of each start the share that was lost of the time since all its ranks ran.
  double lost_energy = 0;
  bool lacks_energy = false;  // that of some start or node is not in `energy`

  double Lost() const { return detection + teardown + restart + repeated + requeued; }
  // Productive of all time, from 0 to 1; nullopt where that is not known.
  std::optional<double> Goodput() const;
};

// One of the parts that add up to `wall`.
struct CostPart {
  const char* name;  // "plan"
  double RunCost::*seconds;
  bool is_lost = false;  // by a failure, and `name` is the cause
};
// All of them, in order of time.
std::span<const CostPart> CostParts();
// Without checkpoints it is not known what is repeated, without any progress also not what is
// productive and when a failure could have been noticed.
bool IsKnown(const RunCost& cost, const CostPart& part);

// `now` is the time until which it is told where timeline.end is not known yet.  Times that are not
// in order (of a clock that was set, or of what happened at once) take nothing from other parts.
RunCost SplitRun(const RunTimeline& timeline, double now);

// Of a launch that nobody has ended: with what it had not saved lost.
RunCost AsKilled(RunCost cost);

// What was lost of the energy is known as far as it is of the time.
bool IsLostEnergyKnown(const RunCost& cost);

// Adds all parts of `more`; the source is the weaker one, and energy that only one of both has
// leaves the sum without that of the other.
void AddCost(const RunCost& more, RunCost* sum);

// "4.2 s", "12 min 3 s", "2 h 7 min".
std::string CostDuration(double seconds);

// "restart 0.1 s, repeated 1 min 4 s": what was lost, by cause; "" for nothing.
std::string CausesText(const RunCost& cost);
// "1.24 kWh, 0.31 of it lost", "at least 1.24 kWh" where it lacks some; in Wh below 0.1 kWh.  ""
// where it is not known, or rounds to nothing.
std::string EnergyText(const RunCost& cost);
// For people, one line without its end: "wall time 12 min 3 s, goodput 83.3 %: start 12.0 s, ...".
std::string CostText(const RunCost& cost);

}  // namespace launcher
