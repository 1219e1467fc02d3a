// SPDX-License-Identifier: Apache-2.0

#include "launcher/ddlrun/ask_nodes.h"

#include <utility>

#include "launcher/system/programs.h"
#include "launcher/system/run_directory.h"
#include "launcher/system/say.h"
#include "launcher/system/signal_relay.h"

namespace launcher {

void PlanToAsk(const Options& options, const Settings& settings, const Environment& environment,
               AskedNodes& asked) {
  const SrunQuestions questions = AskSrun(options, settings, environment);
  std::unique_ptr<CommandOutput> mpirun = QueryMpirunEarly(options, settings, environment);
  asked.planned = PlanJob(options, settings, environment, {});
  asked.launch =
      ChooseLaunch(options, settings, asked.planned, environment, questions, std::move(mpirun));
}

void AskNodes(const Options& options, const Settings& settings, const Environment& environment,
              AskedNodes& asked) {
  const std::string program_directory = ProgramDirectory();
  SignalRelay& signals = SignalsOfProgram();
  const RunDirectory directory(settings.run_directory, !options.run_directory.empty());
  CleanupProcess cleanup_process(options.run_directory.empty() ? directory.path() : "");
  Say(CheckAnnouncement(asked.planned.plan));
  asked.report = CheckHealth({options, settings, asked.planned, asked.launch, environment,
                              program_directory, directory, signals, cleanup_process, true});
}

}  // namespace launcher
