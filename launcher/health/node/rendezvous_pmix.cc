// SPDX-License-Identifier: Apache-2.0

#include <pmix.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include "launcher/base/error.h"
#include "launcher/health/node/rendezvous.h"
#include "launcher/health/node/runtime_library.h"

namespace launcher {
namespace {

struct Pmix {
  RuntimeLibrary library{"PMIx", {DDLRUN_PMIX_LIBRARIES}};
  decltype(&PMIx_Init) init = library.Find("PMIx_Init");
  decltype(&PMIx_Finalize) finalize = library.Find("PMIx_Finalize");
  decltype(&PMIx_Get) get = library.Find("PMIx_Get");
  decltype(&PMIx_Get_nb) get_nb = library.Find("PMIx_Get_nb");
  decltype(&PMIx_Put) put = library.Find("PMIx_Put");
  decltype(&PMIx_Commit) commit = library.Find("PMIx_Commit");
  decltype(&PMIx_Fence_nb) fence_nb = library.Find("PMIx_Fence_nb");
  decltype(&PMIx_Get_version) version = library.Find("PMIx_Get_version");
  decltype(&PMIx_Error_string) error = library.Find("PMIx_Error_string");
};

const Pmix& ThePmix() {
  static const Pmix pmix;
  return pmix;
}

pmix_proc_t own_process = {};  // PMIx is one per process

constexpr std::chrono::microseconds kPollInterval{100};

// Shared with a thread of PMIx, which may call back when nobody waits for the answer any more.
struct Answer {
  std::atomic<bool> is_here = false;
  std::atomic<pmix_status_t> status = PMIX_SUCCESS;
};

// `data` is a std::shared_ptr<Answer>*, which this function deletes.
void TakeAnswer(pmix_status_t status, void* data) {
  const std::unique_ptr<std::shared_ptr<Answer>> answer(
      static_cast<std::shared_ptr<Answer>*>(data));
  (*answer)->status = status;
  (*answer)->is_here = true;
}

void Require(pmix_status_t status, const std::string& action) {
  if (status == PMIX_SUCCESS) return;
  throw LaunchError(EX_UNAVAILABLE, action + ": " + ThePmix().error(status));
}

// What the macros of PMIx do, which would call the library by other functions in each version.
void Release(pmix_value_t* value) {
  if (value->type == PMIX_BYTE_OBJECT) std::free(value->data.bo.bytes);
  std::free(value);
}

}  // namespace

std::string Rendezvous::Problem() { return ThePmix().library.problem(); }

std::string Rendezvous::LibraryVersion() {
  if (!Problem().empty()) return "";
  // "OpenPMIx 4.2.2rc2 (PMIx Standard: ...)"
  const std::string text = ThePmix().version();
  const std::size_t start = text.find_first_of("0123456789");
  if (start == std::string::npos) return text;
  return text.substr(start, text.find_first_of(" ,", start) - start);
}

Rendezvous::Rendezvous() {
  if (!Problem().empty()) throw LaunchError(EX_UNAVAILABLE, Problem());
  Require(ThePmix().init(&own_process, nullptr, 0), "PMIx_Init");
  rank_ = static_cast<int>(own_process.rank);
  pmix_proc_t job = own_process;
  job.rank = PMIX_RANK_WILDCARD;
  pmix_value_t* value = nullptr;
  Require(ThePmix().get(&job, PMIX_JOB_SIZE, nullptr, 0, &value), "PMIX_JOB_SIZE");
  size_ = static_cast<int>(value->data.uint32);
  Release(value);
}

Rendezvous::~Rendezvous() { ThePmix().finalize(nullptr, 0); }

void Rendezvous::Publish(const std::string& key, const std::string& value) const {
  std::string copy = value;
  pmix_value_t entry = {};
  entry.type = PMIX_BYTE_OBJECT;
  entry.data.bo.bytes = copy.data();  // which is copied
  entry.data.bo.size = copy.size();
  Require(ThePmix().put(PMIX_GLOBAL, key.c_str(), &entry), "PMIx_Put");
  Require(ThePmix().commit(), "PMIx_Commit");
}

std::string Rendezvous::Get(int rank, const std::string& key) const {
  pmix_proc_t peer = own_process;
  peer.rank = static_cast<pmix_rank_t>(rank);
  pmix_value_t* value = nullptr;
  Require(ThePmix().get(&peer, key.c_str(), nullptr, 0, &value), "PMIx_Get " + key);
  std::string text;
  if (value->type == PMIX_BYTE_OBJECT) text.assign(value->data.bo.bytes, value->data.bo.size);
  Release(value);
  return text;
}

bool Rendezvous::Meet(std::chrono::steady_clock::time_point deadline,
                      const std::function<void()>& meanwhile) const {
  const std::shared_ptr<Answer> answer = std::make_shared<Answer>();
  auto* for_callback = new std::shared_ptr<Answer>(answer);
  pmix_info_t info = {};
  std::strncpy(info.key, PMIX_COLLECT_DATA, sizeof info.key - 1);
  info.value.type = PMIX_BOOL;
  info.value.data.flag = true;
  const pmix_status_t started = ThePmix().fence_nb(nullptr, 0, &info, 1, TakeAnswer, for_callback);
  if (started != PMIX_SUCCESS) {
    delete for_callback;
    Require(started, "PMIx_Fence");
  }
  while (!answer->is_here) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    meanwhile();
    std::this_thread::sleep_for(kPollInterval);
  }
  Require(answer->status, "PMIx_Fence");
  return true;
}

std::vector<int> Rendezvous::FindSilent(const std::vector<int>& ranks, const std::string& key,
                                        std::chrono::steady_clock::time_point deadline) const {
  std::vector<std::shared_ptr<Answer>> answers;
  for (const int rank : ranks) {
    answers.push_back(std::make_shared<Answer>());
    pmix_proc_t peer = own_process;
    peer.rank = static_cast<pmix_rank_t>(rank);
    auto* for_callback = new std::shared_ptr<Answer>(answers.back());
    const auto on_value = [](pmix_status_t status, pmix_value_t*, void* data) {
      TakeAnswer(status, data);
    };
    if (ThePmix().get_nb(&peer, key.c_str(), nullptr, 0, on_value, for_callback) != PMIX_SUCCESS) {
      delete for_callback;
    }
  }
  const auto has_answered = [](const auto& answer) {
    return answer->is_here && answer->status == PMIX_SUCCESS;
  };
  while (!std::all_of(answers.begin(), answers.end(), has_answered) &&
         std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(kPollInterval);
  }
  std::vector<int> silent;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (!has_answered(answers[i])) silent.push_back(ranks[i]);
  }
  return silent;
}

}  // namespace launcher
