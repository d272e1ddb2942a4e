// SPDX-License-Identifier: Apache-2.0
#include "fabric/host/path.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "fabric/host/admin.h"
#include "fabric/host/ana.h"
#include "nvme/format/event_format.h"
#include "nvme/format/log_format.h"
#include "task/deadline.h"

namespace cairn::fabric {

namespace {

// How often to ask for the state of a path that cannot be used; events make it faster.
constexpr Duration kWatchPause = 100_ms;
constexpr Duration kWatchPauseMax = 1_s;

bool is_usable(nvme::AnaState state) {
  return state == nvme::AnaState::kOptimized || state == nvme::AnaState::kNonOptimized;
}

}  // namespace

Path::Path(HostPool& pool, const HostSession::Options& options, const NamespaceName& name,
           User& user)
    : pool_(pool), env_(pool.env()), options_(options), name_(name), user_(user) {}

void Path::start() {
  controller_ = &pool_.take(options_);
  controller_->join(*this);
  if (HostSession* session = controller_->session()) begin(*session);
}

task::Task<Result<void>> Path::first_attempt(task::CancelToken token) {
  const Result<void> waited = co_await first_.wait(token);
  if (!waited) co_return waited;
  co_return first_result_;
}

void Path::settle_first(const Result<void>& result) {
  if (first_.is_set()) return;
  first_result_ = result;
  first_.set();
}

void Path::controller_stopped() {
  settle_first(fail(controller_->last_error().value_or(Error(Errc::kCancelled, "connecting"))));
  user_.path_changed(*this);
}

task::Task<void> Path::close() {
  if (controller_ != nullptr) controller_->leave(*this);
  settle_first(fail(Errc::kCancelled, "connecting"));
  if (attending_ != nullptr) attending_->request();
  co_await gate_.close();
  HostController* last = std::exchange(controller_, nullptr);
  if (last != nullptr) co_await pool_.release(*last);
}

Path::Rank Path::rank() const {
  if (!is_connected() || !is_reached_ || !is_described_) return Rank::kUnusable;
  switch (ana_state_) {
    case nvme::AnaState::kOptimized:
      return Rank::kOptimized;
    case nvme::AnaState::kNonOptimized:
      return Rank::kNonOptimized;
    default:
      return Rank::kUnusable;
  }
}

void Path::begin(HostSession& session) {
  is_reached_ = false;
  namespaces_changed_ = ana_changed_ = false;
  gate_.spawn(attend(session));
}

task::Task<Result<void>> Path::learn(HostSession& session, task::CancelToken token) {
  Result<void> described = co_await describe(session, token);
  if (!described) co_return described;
  const Result<nvme::AnaState> state = co_await read_ana_state(session, info_->ana_group, token);
  if (!state) co_return fail(state.error());
  set_ana_state(*state);
  is_reached_ = true;
  co_return Result<void>{};
}

task::Task<Result<void>> Path::describe(HostSession& session, task::CancelToken token) {
  Result<NamespaceInfo> info = co_await read_namespace(session, name_, token);
  // Of a namespace that is gone, commands will say so.
  if (!info) co_return fail(info.error());
  Result<void> fits = user_.path_described(*this, *info);
  if (fits) fits = co_await user_.admit(session, *info, token);
  is_described_ = fits.has_value();
  if (fits) info_ = *info;
  co_return fits;
}

void Path::controller_event(const nvme::AsynchronousEvent& event) {
  if (event.type != nvme::EventType::kNotice) return;
  if (event.info == nvme::NoticeEvent::kNamespaceAttributes) namespaces_changed_ = true;
  if (event.info == nvme::NoticeEvent::kAna) ana_changed_ = true;
  news_.set();
}

void Path::failed(nvme::Status status) {
  const bool is_new = is_usable(ana_state_);
  switch (status.code()) {
    case nvme::StatusCode::kAnaPersistentLoss:
      set_ana_state(nvme::AnaState::kPersistentLoss);
      break;
    case nvme::StatusCode::kAnaTransition:
      set_ana_state(nvme::AnaState::kChange);
      break;
    default:
      set_ana_state(nvme::AnaState::kInaccessible);
  }
  if (is_new) news_.set();
}

// One per session, from its beginning to its end or that of the path.
task::Task<void> Path::attend(HostSession& session) {
  if (Result<void> entered = session.gate().enter(); !entered) co_return;
  task::CancelSource ending(session.closing_token());
  attending_ = &ending;
  const bool known = co_await learn_until_known(session, ending.token());
  if (known) co_await follow(session, ending.token());
  attending_ = nullptr;
  session.gate().leave();
}

// A namespace that is not there may come; others use the controller meanwhile.
task::Task<bool> Path::learn_until_known(HostSession& session, task::CancelToken token) {
  for (Duration pause = kWatchPause;; pause = std::min(pause * 2, kWatchPauseMax)) {
    const Result<void> known = co_await learn(session, token);
    settle_first(known || !session.lost() ? known : fail(*session.lost()));
    if (token.requested() || session.lost()) co_return false;
    if (known) break;
    env_.trace().record("host.path_unknown", name_.nsid,
                        static_cast<uint64_t>(known.error().code()));
    const Result<void> slept = co_await task::sleep_for(env_, pause, token);
    if (!slept) co_return false;
  }
  user_.path_changed(*this);
  co_return true;
}

// Learns what has changed when the controller says so, and asks now and then for the state of a
// path that cannot be used.
task::Task<void> Path::follow(HostSession& session, task::CancelToken token) {
  Duration pause = kWatchPause;
  for (;;) {
    co_await wait_for_news(pause, token);
    if (token.requested()) co_return;
    if (std::exchange(namespaces_changed_, false)) co_await read_changes(session, token);
    if (token.requested()) co_return;
    pause = is_usable(ana_state_) ? kWatchPause : std::min(pause * 2, kWatchPauseMax);
    if (!std::exchange(ana_changed_, false) && is_usable(ana_state_)) continue;
    const Result<nvme::AnaState> state = co_await read_ana_state(session, info_->ana_group, token);
    if (token.requested()) co_return;
    if (state) set_ana_state(*state);
  }
}

task::Task<void> Path::wait_for_news(Duration pause, task::CancelToken token) {
  // Of a path that has just failed only the controller's own word is news.
  if (is_usable(ana_state_)) {
    const Result<void> waited = co_await news_.wait(token);
    if (!waited) co_return;
  }
  if (!is_usable(ana_state_) && !ana_changed_ && !namespaces_changed_) {
    news_.reset();
    task::Deadline deadline(env_, env_.now() + pause, token);
    const Result<void> waited = co_await news_.wait(deadline.token());
    env_.trace().record("host.path_news", waited.has_value() ? 1 : 0);
  }
  news_.reset();
}

// Reading the list lets the controller tell of the next change.
task::Task<void> Path::read_changes(HostSession& session, task::CancelToken token) {
  std::vector<std::byte> list(sizeof(nvme::ChangedNamespacesPage));
  const LogRequest request{.page = nvme::LogPage::kChangedNamespaces};
  const Result<void> read = co_await get_log(session, request, list, token);
  if (!read && token.requested()) co_return;
  const Result<void> described = co_await describe(session, token);
  env_.trace().record("host.namespace_changed", name_.nsid, described.has_value() ? 1 : 0);
  if (!token.requested()) user_.path_changed(*this);
}

void Path::set_ana_state(nvme::AnaState state) {
  if (state == ana_state_) return;
  env_.trace().record("host.ana", static_cast<uint64_t>(state));
  ana_state_ = state;
  if (controller_->session() != nullptr) user_.path_changed(*this);
}

}  // namespace cairn::fabric
