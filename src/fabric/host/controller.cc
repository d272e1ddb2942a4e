// SPDX-License-Identifier: Apache-2.0
#include "fabric/host/controller.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "base/rng.h"
#include "base/uuid.h"
#include "task/deadline.h"

namespace cairn::fabric {

HostController::HostController(env::Env& env, const HostSession::Options& options)
    : env_(env), options_(options) {}

HostController::~HostController() {
  CHECK(session_ == nullptr && users_.empty(), "a controller is closed before it is destroyed");
}

void HostController::start() { gate_.spawn(run()); }

void HostController::join(User& user) {
  users_.push_back(user);
  hurry_.set();
}

void HostController::leave(User& user) { user.unlink(); }

task::Task<void> HostController::close() {
  closing_.request();
  lost_.set();
  co_await gate_.close();
}

task::Task<void> HostController::run() {
  while (!closing_.requested()) {
    Result<void> ended = co_await one_session();
    if (!ended) last_error_ = ended.error();
    // A process that is to end does not come back; one that crashed cannot even try.
    if (closing_.requested() || env_.stop_token().requested()) break;
    if (std::exchange(try_at_once_, false)) continue;
    hurry_.reset();
    task::Deadline pause(env_, env_.now() + next_pause(), closing_.token());
    const Result<void> hurried = co_await hurry_.wait(pause.token());
    if ((!hurried && !pause.expired()) || env_.stop_token().requested()) break;
  }
  is_stopped_ = true;
  users_.for_each([](User& user) { user.controller_stopped(); });
}

// From the first SYN to the last FIN. The error it ended with; always one.
task::Task<Result<void>> HostController::one_session() {
  HostSession::User& user = *this;
  session_ = std::make_unique<HostSession>(env_, options_, user);
  lost_.reset();
  Result<void> opened = co_await session_->open(closing_.token());
  if (opened && session_->lost()) opened = fail(*session_->lost());
  refused_ = session_->is_refused();
  try_at_once_ = session_->wants_flow_control();
  options_.flow_control = options_.flow_control || try_at_once_;
  Error why(Errc::kClosed, "the host closed the controller");
  if (opened) {
    is_live_ = true;
    failures_ = 0;
    ++sessions_;
    env_.trace().record("host.live", sessions_);
    users_.for_each([](User& each) { each.controller_live(); });
    if (!session_->lost() && !closing_.requested()) {
      const Result<void> ended = co_await lost_.wait();
      CHECK(ended.has_value(), "nobody cancels this wait");
    }
    is_live_ = false;
    if (session_->lost()) why = *session_->lost();
    users_.for_each([&why](User& each) { each.controller_lost(why); });
  } else {
    ++failures_;
    why = opened.error();
    env_.trace().record("host.attempt_failed", static_cast<uint64_t>(why.code()), failures_);
    if (!try_at_once_) users_.for_each([&why](User& each) { each.controller_failed(why); });
  }
  co_await session_->close();
  past_ = traffic();
  session_.reset();
  co_return fail(why);
}

LaneTraffic HostController::traffic() const {
  LaneTraffic all = past_;
  if (session_ == nullptr) return all;
  for (const HostLane& lane : session_->lanes()) {
    if (lane.queue_id != 0) all.add(lane.traffic);
  }
  return all;
}

void HostController::session_lost(const Error&) {
  is_live_ = false;
  lost_.set();
}

void HostController::session_event(const nvme::AsynchronousEvent& event) {
  users_.for_each([&event](User& user) { user.controller_event(event); });
}

Duration HostController::next_pause() {
  const HostOptions& host = options_.host;
  Duration pause = host.reconnect_delay;
  for (uint32_t i = 1; i < failures_ && pause < host.reconnect_delay_max; ++i) pause = pause * 2;
  if (refused_) pause = host.reconnect_delay_max;
  pause = std::min(pause, host.reconnect_delay_max);
  return pause / 2 + Duration{static_cast<int64_t>(env_.rng().below(pause.ns / 2 + 1))};
}

// --- names --------------------------------------------------------------------------------------

namespace {

// The UUID a host NQN ends with, as those of Linux do; else 16 bytes that depend on all of it.
Uuid id_from_nqn(std::string_view nqn) {
  constexpr std::string_view kMark = ":uuid:";
  if (const size_t mark = nqn.rfind(kMark); mark != std::string_view::npos) {
    if (const auto uuid = parse_uuid(nqn.substr(mark + kMark.size()))) return *uuid;
  }
  Uuid id{};
  uint64_t high = crc32c(as_bytes(nqn));
  uint64_t low = nqn.size();
  for (const char c : nqn) {
    high = mix64(high ^ static_cast<unsigned char>(c));
    low = mix64(low + static_cast<unsigned char>(c) + high);
  }
  store(std::as_writable_bytes(std::span(id)), high);
  store(std::as_writable_bytes(std::span(id)).subspan(8), low);
  return id;
}

}  // namespace

void name_host(env::Env& env, HostOptions& options) {
  const bool has_id = options.host_id != Uuid{};
  if (!has_id && !options.host_nqn.empty()) {
    options.host_id = id_from_nqn(options.host_nqn);
  } else if (!has_id) {
    env.fill_secret(std::as_writable_bytes(std::span(options.host_id)));
  }
  if (!options.host_nqn.empty()) return;
  Uuid id = options.host_id;
  id[6] = static_cast<uint8_t>((id[6] & 0x0f) | 0x40);  // a random UUID (RFC 4122, 4.4)
  id[8] = static_cast<uint8_t>((id[8] & 0x3f) | 0x80);
  options.host_id = id;
  options.host_nqn = "nqn.2014-08.org.nvmexpress:uuid:" + uuid_text(id);
}

}  // namespace cairn::fabric
