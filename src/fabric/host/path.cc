// SPDX-License-Identifier: Apache-2.0
#include "fabric/host/path.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "fabric/host/admin.h"
#include "fabric/host/ana.h"
#include "nvme/event_format.h"
#include "nvme/log_format.h"
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

Path::Path(env::Env& env, const HostSession::Options& options, uint32_t nsid, User& user)
    : env_(env), nsid_(nsid), user_(user), controller_(env, options, this) {}

Path::Rank Path::rank() {
  if (controller_.session() == nullptr || !is_described_) return Rank::kUnusable;
  switch (ana_state_) {
    case nvme::AnaState::kOptimized:
      return Rank::kOptimized;
    case nvme::AnaState::kNonOptimized:
      return Rank::kNonOptimized;
    default:
      return Rank::kUnusable;
  }
}

task::Task<Result<void>> Path::controller_opened(HostSession& session, task::CancelToken token) {
  namespaces_changed_ = ana_changed_ = false;
  Result<void> described = co_await describe(session, token);
  if (!described) co_return described;
  const Result<nvme::AnaState> state = co_await read_ana_state(session, info_->ana_group, token);
  if (!state) co_return fail(state.error());
  set_ana_state(*state);
  session.gate().spawn(follow(session));
  co_return Result<void>{};
}

task::Task<Result<void>> Path::describe(HostSession& session, task::CancelToken token) {
  Result<NamespaceInfo> info = co_await read_namespace(session, nsid_, token);
  // Of a namespace that is gone, commands will say so.
  if (!info) co_return fail(info.error());
  Result<void> fits = user_.path_described(*this, *info);
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

// One per session: learns what has changed when the controller says so, and asks now and then for
// the state of a path that cannot be used.
task::Task<void> Path::follow(HostSession& session) {
  Duration pause = kWatchPause;
  while (!session.lost()) {
    co_await wait_for_news(session, pause);
    if (session.lost()) co_return;
    if (std::exchange(namespaces_changed_, false)) co_await read_changes(session);
    if (session.lost()) co_return;
    pause = is_usable(ana_state_) ? kWatchPause : std::min(pause * 2, kWatchPauseMax);
    if (!std::exchange(ana_changed_, false) && is_usable(ana_state_)) continue;
    const Result<nvme::AnaState> state =
        co_await read_ana_state(session, info_->ana_group, session.closing_token());
    if (session.lost()) co_return;
    if (state) set_ana_state(*state);
  }
}

task::Task<void> Path::wait_for_news(HostSession& session, Duration pause) {
  // Of a path that has just failed only the controller's own word is news.
  if (is_usable(ana_state_)) {
    const Result<void> waited = co_await news_.wait(session.closing_token());
    if (!waited) co_return;
  }
  if (!is_usable(ana_state_) && !ana_changed_ && !namespaces_changed_) {
    news_.reset();
    task::Deadline deadline(env_, env_.now() + pause, session.closing_token());
    const Result<void> waited = co_await news_.wait(deadline.token());
    env_.trace().record("host.path_news", waited.has_value() ? 1 : 0);
  }
  news_.reset();
}

// Reading the list lets the controller tell of the next change.
task::Task<void> Path::read_changes(HostSession& session) {
  std::vector<std::byte> list(sizeof(nvme::ChangedNamespacesPage));
  const LogRequest request{.page = nvme::LogPage::kChangedNamespaces};
  const Result<void> read = co_await get_log(session, request, list, session.closing_token());
  if (!read && session.lost()) co_return;
  const Result<void> described = co_await describe(session, session.closing_token());
  env_.trace().record("host.namespace_changed", nsid_, described.has_value() ? 1 : 0);
  if (!session.lost()) user_.path_changed(*this);
}

void Path::set_ana_state(nvme::AnaState state) {
  if (state == ana_state_) return;
  env_.trace().record("host.ana", static_cast<uint64_t>(state));
  ana_state_ = state;
  if (controller_.session() != nullptr) user_.path_changed(*this);
}

}  // namespace cairn::fabric
