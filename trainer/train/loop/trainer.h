// SPDX-License-Identifier: Apache-2.0
//
// The training loop, from the first weight to the last evaluation.
//
// What main provides:
//   * TrainConfig, equal on all ranks (train/config.h).
//   * a back end; a communicator (comm/factory.h);
//   * `training`: a DataLoader of batches of config.batch_size images, endless; in the training
//   modes;
//   * `evaluation`: a DataLoader that ends, of the same batch and size; for kTrainAndEvaluate,
//     kEvaluate and kInferenceBenchmark;
//   * outputs: a log for people on every rank; most of the other logs are rank 0's;
//   * stop_requested: true once a signal (SIGTERM, SIGUSR1) or a request has asked this rank to
//     stop.  Requested once per step, from the thread of the loop.
//   * requests: on rank 0, in the training modes that keep weights (control/run_control.h).
// All of it outlives the call.
//
// What main does with what comes back:
//   * kCompleted: exit 0.  kStopped: exit EX_TEMPFAIL (75): a checkpoint was written, start again.
//   * An exception: print its line, then Communicator::Abort(exit code), never plain exit: the
//     other ranks wait in a collective call and would wait for ever.  Every rank makes the same
//     collective calls in the same order; only an exception breaks that, which is why Abort must
//     follow it, and `failed` is the place.
//   * Before all that, once per model_dir and on rank 0 alone: RemoveStaleCheckpoints
//     (checkpoint/writer.h).

#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "trainer/backend/backend.h"
#include "trainer/checkpoint/writer.h"
#include "trainer/comm/communicator.h"
#include "trainer/control/run_control.h"
#include "trainer/core/consistency_item.h"
#include "trainer/core/span_recorder.h"
#include "trainer/data/data_loader.h"
#include "trainer/model/network_definition.h"
#include "trainer/telemetry/meters/device_state.h"
#include "trainer/train/config.h"
#include "trainer/train/evaluation/evaluate.h"
#include "trainer/train/logging/log_dispatcher.h"
#include "trainer/train/logging/step_profile.h"
#include "trainer/train/monitor/hang_watchdog.h"

namespace trainer {

// What the training loop is given, and what it gives back.
struct TrainerDeps {
  Backend& backend;
  Communicator& communicator;
  DataLoader* training = nullptr;
  DataLoader* evaluation = nullptr;
  Outputs outputs;
  std::function<bool()> stop_requested = [] { return false; };
  RunRequests* requests = nullptr;  // null: nothing else asks for anything
  std::string host = {};            // of this rank, or ""
  // What it computes with, and its clocks and temperature of now, or ""
  // (train/monitor/stragglers.h).
  std::function<std::string()> describe_device = {};
  // The same with its serial number, for --replay_check.
  std::function<std::string()> identify_device = {};
  // Clocks and temperature of a short while ago; called in every step.  May be null.
  std::function<DeviceState()> device_state = {};
  // Collective, before anything is summed: throws where the ranks differ in what it is told.
  std::function<void(const std::vector<ConsistencyItem>&)> agree =
      [](const std::vector<ConsistencyItem>&) {};
  // Told what begins now, and after how many steps (train/monitor/hang_watchdog.h).
  std::function<void(Activity, std::int64_t)> entered = [](Activity, std::int64_t) {};
  // Told of an error in a training step while the memory is still there that sums over the ranks
  // may be under way in; need not return.
  std::function<void(const std::exception&)> failed = [](const std::exception&) {};
  NetworkDefinition* network = nullptr;  // of NetworkSpecOf(config), taken over; null: planned here
  // Of the steps config.trace; also given to the communicator and the training source.  May be
  // null.
  SpanRecorder* spans = nullptr;
  // Both outlive the call and may be null.
  const StepProfileDeps* profile = nullptr;
  const VariabilityLogDeps* variability = nullptr;
  WriteHook checkpoint_hook = {};  // seam for tests: as WriteCheckpoint has it
  // In a pause, before the ranks ask each other whether it is over.
  std::function<void()> rest = [] { std::this_thread::sleep_for(std::chrono::milliseconds(200)); };
};

enum class Ending : std::uint8_t {
  kCompleted,  // all that this launch was asked for
  kStopped,    // stop was asked for; training modes have written a checkpoint
};

struct TrainResult {
  Ending ending = Ending::kCompleted;
  std::int64_t step = 0;                       // updates done, those before a resume included
  std::optional<EvaluationResult> evaluation;  // if there was one
  double images_per_second = 0;                // median, in the benchmark modes; all ranks together
  std::vector<ImagePrediction> predictions;    // in kPredict: main prints them
  std::vector<std::string> profile;            // lines, which main prints
};

// Does what config.mode says:
//   kTrain, kTrainAndEvaluate  resume from model_dir, or init_from, or fresh weights; train to the
//       end of the schedule or of run_iter; checkpoint every checkpoint_every steps, at the end and
//       when stopped (train/state/checkpoints.h); then evaluate, and write
//       export_dir, unless stopped.
//   kEvaluate, kPredict  weights from init_from, else from model_dir; Error(EX_USAGE) if there are
//       neither.
//       kPredict needs no source; config.batch_size may be 1.
//   kTrainingBenchmark, kInferenceBenchmark  fresh weights; num_iter of schedule.iter_unit, the
//   first
//       warmup_steps steps of it not measured; Error(EX_USAGE) if nothing is left.  No file is
//       written.
TrainResult RunTrainer(const TrainConfig& config, const TrainerDeps& deps);

}  // namespace trainer
