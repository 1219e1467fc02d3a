// SPDX-License-Identifier: Apache-2.0

#include "launcher/ddlrun/query_nodes.h"

#include <utility>

#include "launcher/system/files.h"
#include "launcher/system/output_queue.h"
#include "launcher/system/run_directory.h"
#include "launcher/system/signal_relay.h"

namespace launcher {

void PlanForQuery(const Options& options, const Settings& settings, const Environment& environment,
                  NodeQuery& requested) {
  const SrunQuestions questions = QuerySrun(options, settings, environment);
  std::unique_ptr<CommandOutput> mpirun = QueryMpirunEarly(options, settings, environment);
  requested.planned = PlanJob(options, settings, environment, {});
  requested.launch =
      ChooseLaunch(options, settings, requested.planned, environment, questions, std::move(mpirun));
}

void QueryNodes(const Options& options, const Settings& settings, const Environment& environment,
                NodeQuery& requested) {
  const std::string program_directory = ProgramDirectory();
  SignalRelay& signals = SignalsOfProgram();
  const RunDirectory directory(settings.run_directory, !options.run_directory.empty());
  CleanupProcess cleanup_process(options.run_directory.empty() ? directory.path() : "");
  Say(CheckAnnouncement(requested.planned.plan));
  requested.report =
      CheckHealth({options, settings, requested.planned, requested.launch, environment,
                   program_directory, directory, signals, cleanup_process, true});
}

}  // namespace launcher
