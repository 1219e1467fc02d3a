// SPDX-License-Identifier: Apache-2.0

#include "launcher/restart/node_probe.h"

#include <memory>
#include <thread>

#include "launcher/base/environment.h"
#include "launcher/launch/child_environment.h"
#include "launcher/system/child_process.h"
#include "launcher/system/signal_relay.h"

namespace launcher {
namespace {

constexpr std::chrono::milliseconds kLook{50};

std::unique_ptr<CommandOutput> Probe(const std::string& host, const std::string& srun,
                                     const Environment& environment) {
  // The step before may still hold the CPUs, the memory and the GPUs of the node, so that this one
  // must do without them.
  return std::make_unique<CommandOutput>(
      std::vector<std::string>{srun, "--overlap", "--mem=0", "--gres=none", "--mpi=none",
                               "--cpu-bind=none", "--nodes=1", "--ntasks=1", "--nodelist=" + host,
                               "--input=none", "true"},
      environment);
}

}  // namespace

std::vector<std::string> NodesThatDoNotAnswer(const std::vector<std::string>& hosts,
                                              const std::string& other, const std::string& srun,
                                              const Environment& environment,
                                              std::chrono::milliseconds limit) {
  const bool can_be_known = !hosts.empty() && hosts.size() <= kMaxProbes && !other.empty() &&
                            !environment.contains("SLURM_HET_SIZE");
  if (!can_be_known) return {};
  const Environment environment_of_srun = EnvironmentForSrun(environment);
  std::vector<std::unique_ptr<CommandOutput>> probes;
  for (const std::string& host : hosts) {
    probes.push_back(Probe(host, srun, environment_of_srun));
  }
  probes.push_back(Probe(other, srun, environment_of_srun));
  const auto all_have_ended = [&] {
    bool have_ended = true;
    for (const auto& probe : probes) have_ended = probe->HasEnded() && have_ended;
    return have_ended;
  };
  for (auto left = limit; left.count() > 0 && !all_have_ended(); left -= kLook) {
    if (IsStopRequestPending()) return {};
    std::this_thread::sleep_for(kLook);
  }
  const auto has_run = [](CommandOutput& probe) { return probe.HasEnded() && probe.Wait(kLook); };
  if (!has_run(*probes.back())) return {};
  std::vector<std::string> silent;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (!has_run(*probes[i])) silent.push_back(hosts[i]);
  }
  return silent;
}

}  // namespace launcher
