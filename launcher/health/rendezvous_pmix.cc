// SPDX-License-Identifier: Apache-2.0

#include <pmix.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>

#include "launcher/error.h"
#include "launcher/health/rendezvous.h"

namespace launcher {
namespace {

pmix_proc_t own_process = {};  // PMIx is one per process

void Require(pmix_status_t status, const std::string& action) {
  if (status == PMIX_SUCCESS) return;
  throw LaunchError(EX_UNAVAILABLE, action + ": " + PMIx_Error_string(status));
}

}  // namespace

std::string Rendezvous::LibraryVersion() {
  // "OpenPMIx 4.2.2rc2 (PMIx Standard: ...)"
  const std::string text = PMIx_Get_version();
  const std::size_t start = text.find_first_of("0123456789");
  if (start == std::string::npos) return text;
  return text.substr(start, text.find_first_of(" ,", start) - start);
}

Rendezvous::Rendezvous() {
  Require(PMIx_Init(&own_process, nullptr, 0), "PMIx_Init");
  rank_ = static_cast<int>(own_process.rank);
  pmix_proc_t job = own_process;
  job.rank = PMIX_RANK_WILDCARD;
  pmix_value_t* value = nullptr;
  Require(PMIx_Get(&job, PMIX_JOB_SIZE, nullptr, 0, &value), "PMIX_JOB_SIZE");
  size_ = static_cast<int>(value->data.uint32);
  PMIX_VALUE_RELEASE(value);
}

Rendezvous::~Rendezvous() { PMIx_Finalize(nullptr, 0); }

void Rendezvous::Publish(const std::string& key, const std::string& value) const {
  std::string copy = value;
  pmix_value_t entry;
  PMIX_VALUE_CONSTRUCT(&entry);
  entry.type = PMIX_BYTE_OBJECT;
  entry.data.bo.bytes = copy.data();  // PMIx_Put copies
  entry.data.bo.size = copy.size();
  Require(PMIx_Put(PMIX_GLOBAL, key.c_str(), &entry), "PMIx_Put");
  Require(PMIx_Commit(), "PMIx_Commit");
}

std::string Rendezvous::Get(int rank, const std::string& key) const {
  pmix_proc_t peer = own_process;
  peer.rank = static_cast<pmix_rank_t>(rank);
  pmix_value_t* value = nullptr;
  Require(PMIx_Get(&peer, key.c_str(), nullptr, 0, &value), "PMIx_Get " + key);
  std::string text;
  if (value->type == PMIX_BYTE_OBJECT) text.assign(value->data.bo.bytes, value->data.bo.size);
  PMIX_VALUE_RELEASE(value);
  return text;
}

bool Rendezvous::Meet(std::chrono::steady_clock::time_point deadline,
                      const std::function<void()>& meanwhile) const {
  struct State {
    std::atomic<bool> is_over = false;
    std::atomic<pmix_status_t> status = PMIX_SUCCESS;
  };
  // PMIx may still call back after the deadline.
  auto* state = new std::shared_ptr<State>(std::make_shared<State>());
  const std::shared_ptr<State> own = *state;
  const auto on_end = [](pmix_status_t status, void* data) {
    const std::unique_ptr<std::shared_ptr<State>> shared(
        static_cast<std::shared_ptr<State>*>(data));
    (*shared)->status = status;
    (*shared)->is_over = true;
  };
  const bool collect = true;
  pmix_info_t info;
  PMIX_INFO_CONSTRUCT(&info);
  PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
  const pmix_status_t started = PMIx_Fence_nb(nullptr, 0, &info, 1, on_end, state);
  if (started != PMIX_SUCCESS) {
    delete state;
    Require(started, "PMIx_Fence");
  }
  while (!own->is_over) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    meanwhile();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  Require(own->status, "PMIx_Fence");
  return true;
}

}  // namespace launcher
