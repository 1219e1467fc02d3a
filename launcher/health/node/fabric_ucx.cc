// SPDX-License-Identifier: Apache-2.0

#include <ucp/api/ucp.h>

#include <algorithm>
#include <list>
#include <thread>

#include "launcher/base/error.h"
#include "launcher/health/node/fabric.h"
#include "launcher/health/node/runtime_library.h"
#include "launcher/health/pair_schedule.h"

namespace launcher {
namespace {

using Clock = std::chrono::steady_clock;

struct Ucx {
  RuntimeLibrary library{"UCX", {DDLRUN_UCX_LIBRARIES}};
  decltype(&ucp_config_read) config_read = library.Find("ucp_config_read");
  decltype(&ucp_config_release) config_release = library.Find("ucp_config_release");
  decltype(&ucp_ep_create) ep_create = library.Find("ucp_ep_create");
  decltype(&ucp_get_version_string) get_version_string = library.Find("ucp_get_version_string");
  decltype(&ucp_init_version) init_version = library.Find("ucp_init_version");
  decltype(&ucp_request_check_status) request_check_status =
      library.Find("ucp_request_check_status");
  decltype(&ucp_request_free) request_free = library.Find("ucp_request_free");
  decltype(&ucp_tag_msg_recv_nbx) tag_msg_recv_nbx = library.Find("ucp_tag_msg_recv_nbx");
  decltype(&ucp_tag_probe_nb) tag_probe_nb = library.Find("ucp_tag_probe_nb");
  decltype(&ucp_tag_send_nbx) tag_send_nbx = library.Find("ucp_tag_send_nbx");
  decltype(&ucp_worker_create) worker_create = library.Find("ucp_worker_create");
  decltype(&ucp_worker_get_address) worker_get_address = library.Find("ucp_worker_get_address");
  decltype(&ucp_worker_progress) worker_progress = library.Find("ucp_worker_progress");
  decltype(&ucp_worker_release_address) worker_release_address =
      library.Find("ucp_worker_release_address");
  decltype(&ucs_status_string) status_string = library.Find("ucs_status_string");
};

const Ucx& TheUcx() {
  static const Ucx ucx;
  return ucx;
}

// A tag has the kind of the message, and the index of the node that sends it: a ping from the one
// that speaks first, a pong from the one that answers.
constexpr ucp_tag_t kPing = 1ULL << 32;
constexpr ucp_tag_t kPong = 2ULL << 32;
constexpr ucp_tag_t kKinds = 3ULL << 32;
constexpr ucp_tag_t kNodes = (1ULL << 32) - 1;

void Require(ucs_status_t status, const std::string& action) {
  if (status == UCS_OK) return;
  throw LaunchError(EX_UNAVAILABLE, action + ": " + TheUcx().status_string(status));
}

// A message on its way, with its bytes.
struct Transfer {
  enum class Kind { kSend, kPingIn, kPongIn } kind = Kind::kSend;
  std::size_t peer = 0;
  std::string bytes;
  void* request = nullptr;
};

// What this node knows of another node.
struct Peer {
  ucp_ep_h endpoint = nullptr;
  bool is_waiting = false;     // this node waits for its answer
  bool has_responded = false;  // it has spoken or answered
  Clock::time_point start;
  double seconds = 0;   // until its answer
  std::string problem;  // "": none so far
};

}  // namespace

class Fabric::Worker {
 public:
  Worker();

  std::string Address() const;
  void Begin(int own, const std::vector<std::string>& addresses);
  void Ping(std::size_t peer);
  void Progress();
  std::vector<Peer>& peers() { return peers_; }

 private:
  void Send(std::size_t peer, ucp_tag_t tag, std::string bytes);
  void Receive(Transfer::Kind kind, ucp_tag_t tag);
  void Finish(Transfer& transfer, ucs_status_t status);
  void Connect(std::size_t peer);

  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_tag_t own_ = 0;
  std::vector<std::string> addresses_;
  std::vector<Peer> peers_;
  std::list<Transfer> transfers_;
};

Fabric::Worker::Worker() {
  ucp_config_t* config = nullptr;
  Require(TheUcx().config_read(nullptr, nullptr, &config), "ucp_config_read");
  ucp_params_t params = {};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_TAG;
  const ucs_status_t status =
      TheUcx().init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &context_);
  TheUcx().config_release(config);
  Require(status, "UCX finds no device it may use (UCX_TLS, UCX_NET_DEVICES)");
  ucp_worker_params_t worker_params = {};
  worker_params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  worker_params.thread_mode = UCS_THREAD_MODE_SINGLE;
  Require(TheUcx().worker_create(context_, &worker_params, &worker_), "ucp_worker_create");
}

std::string Fabric::Worker::Address() const {
  ucp_address_t* address = nullptr;
  std::size_t length = 0;
  Require(TheUcx().worker_get_address(worker_, &address, &length), "ucp_worker_get_address");
  const std::string bytes(reinterpret_cast<const char*>(address), length);
  TheUcx().worker_release_address(worker_, address);
  return bytes;
}

void Fabric::Worker::Begin(int own, const std::vector<std::string>& addresses) {
  own_ = static_cast<ucp_tag_t>(own);
  addresses_ = addresses;
  peers_.resize(addresses.size());
}

void Fabric::Worker::Connect(std::size_t peer) {
  ucp_ep_params_t params = {};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(addresses_[peer].data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;  // so that no dead peer ends this process
  params.err_handler.arg = &peers_[peer];
  params.err_handler.cb = [](void* argument, ucp_ep_h, ucs_status_t status) {
    auto* failed = static_cast<Peer*>(argument);
    if (failed->problem.empty()) failed->problem = TheUcx().status_string(status);
  };
  Require(TheUcx().ep_create(worker_, &params, &peers_[peer].endpoint), "ucp_ep_create");
}

void Fabric::Worker::Send(std::size_t peer, ucp_tag_t tag, std::string bytes) {
  try {
    if (peers_[peer].endpoint == nullptr) Connect(peer);
  } catch (const LaunchError& error) {
    peers_[peer].problem = error.what();
    return;
  }
  Transfer& transfer = transfers_.emplace_back();
  transfer.peer = peer;
  transfer.bytes = std::move(bytes);
  const ucp_request_param_t params = {};
  transfer.request = TheUcx().tag_send_nbx(peers_[peer].endpoint, transfer.bytes.data(),
                                           transfer.bytes.size(), tag, &params);
}

void Fabric::Worker::Ping(std::size_t peer) {
  peers_[peer].is_waiting = true;
  peers_[peer].start = Clock::now();
  Send(peer, kPing | own_, std::string(kLinkMessageBytes, static_cast<char>(own_ + peer)));
}

void Fabric::Worker::Receive(Transfer::Kind kind, ucp_tag_t tag) {
  ucp_tag_recv_info_t info = {};
  while (ucp_tag_message_h message = TheUcx().tag_probe_nb(worker_, tag, kKinds, 1, &info)) {
    Transfer& transfer = transfers_.emplace_back();
    transfer.kind = kind;
    transfer.peer = info.sender_tag & kNodes;
    transfer.bytes.resize(info.length);
    const ucp_request_param_t params = {};
    transfer.request = TheUcx().tag_msg_recv_nbx(worker_, transfer.bytes.data(),
                                                 transfer.bytes.size(), message, &params);
  }
}

void Fabric::Worker::Finish(Transfer& transfer, ucs_status_t status) {
  if (transfer.peer >= peers_.size()) return;
  Peer& peer = peers_[transfer.peer];
  if (status != UCS_OK) {
    if (peer.problem.empty()) peer.problem = TheUcx().status_string(status);
    return;
  }
  if (transfer.kind == Transfer::Kind::kSend) return;
  peer.has_responded = true;
  if (transfer.kind == Transfer::Kind::kPingIn) {
    Send(transfer.peer, kPong | own_, std::move(transfer.bytes));
    return;
  }
  peer.seconds = std::chrono::duration<double>(Clock::now() - peer.start).count();
  const std::string sent(kLinkMessageBytes, static_cast<char>(own_ + transfer.peer));
  if (transfer.bytes != sent) peer.problem = "what came back is not what was sent";
}

void Fabric::Worker::Progress() {
  while (TheUcx().worker_progress(worker_) != 0) {
  }
  Receive(Transfer::Kind::kPingIn, kPing);
  Receive(Transfer::Kind::kPongIn, kPong);
  for (auto transfer = transfers_.begin(); transfer != transfers_.end();) {
    ucs_status_t status = UCS_OK;
    if (UCS_PTR_IS_ERR(transfer->request)) {
      status = UCS_PTR_STATUS(transfer->request);
    } else if (transfer->request != nullptr) {
      status = TheUcx().request_check_status(transfer->request);
      if (status == UCS_INPROGRESS) {
        ++transfer;
        continue;
      }
      TheUcx().request_free(transfer->request);
    }
    Finish(*transfer, status);
    transfer = transfers_.erase(transfer);
  }
}

namespace {

// Counts the pairs in which this node speaks first, as far as they are done; true while some are
// not.
bool Settle(std::vector<Peer>& peers, std::chrono::milliseconds limit, ConnectivityResult& info) {
  bool any_left = false;
  for (std::size_t index = 0; index < peers.size(); ++index) {
    Peer& peer = peers[index];
    if (!peer.is_waiting) continue;
    if (!peer.has_responded && peer.problem.empty() && Clock::now() - peer.start > limit) {
      peer.problem = "no answer within " +
                     std::to_string(std::chrono::ceil<std::chrono::seconds>(limit).count()) + " s";
    }
    const auto to = static_cast<int>(index);
    if (!peer.problem.empty()) {
      info.failed.push_back({to, peer.problem, 0});
    } else if (peer.has_responded) {
      ++info.links_ok;
      if (peer.seconds > info.slowest.seconds) info.slowest = {to, "", peer.seconds};
    } else {
      any_left = true;
      continue;
    }
    peer.is_waiting = false;
  }
  return any_left;
}

}  // namespace

std::string Fabric::Problem() { return TheUcx().library.problem(); }

std::string Fabric::LibraryVersion() {
  if (!Problem().empty()) return "";
  const std::string text = TheUcx().get_version_string();  // "1.13.1 revision ..."
  return text.substr(0, text.find(' '));
}

Fabric::Fabric() {
  if (!Problem().empty()) throw LaunchError(EX_UNAVAILABLE, Problem());
  worker_ = std::make_unique<Worker>();
}
Fabric::~Fabric() = default;

std::string Fabric::address() const { return worker_->Address(); }

void Fabric::TestLinks(int own, const std::vector<std::string>& addresses,
                       std::chrono::milliseconds limit, ConnectivityResult& info) {
  worker_->Begin(own, addresses);
  std::vector<Peer>& peers = worker_->peers();
  std::vector<int> partners = PartnersByRound(own, static_cast<int>(addresses.size()));
  std::erase_if(partners, [&addresses](int partner) {
    return partner < 0 || addresses[static_cast<std::size_t>(partner)].empty();
  });
  for (const int partner : partners) {
    Peer& peer = peers[static_cast<std::size_t>(partner)];
    if (partner > own) worker_->Ping(static_cast<std::size_t>(partner));
    const Clock::time_point next = Clock::now() + kRoundTimeout;
    while (!peer.has_responded && peer.problem.empty() && Clock::now() < next) {
      worker_->Progress();
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
  while (Settle(peers, limit, info)) {
    worker_->Progress();
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

void Fabric::Progress() { worker_->Progress(); }

}  // namespace launcher
