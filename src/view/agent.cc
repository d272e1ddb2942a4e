// SPDX-License-Identifier: Apache-2.0
#include "view/agent.h"

#include <algorithm>
#include <utility>

namespace cairn::view {

Result<SessionId> Agent::open_session(SessionInfo info) {
  if (sessions_.size() >= kSessionsMax) {
    return fail(Errc::kLimit, "an agent has 1024 sessions at most");
  }
  const SessionId id(next_session_++);
  info.id = id;
  sessions_.emplace(id, Session{.info = std::move(info), .box = {}});
  must_attach_ = true;
  return id;
}

void Agent::close_session(SessionId id) {
  if (sessions_.erase(id) > 0) must_attach_ = true;
}

Time Agent::due_at() const {
  if (must_attach_ && !sessions_.empty()) return {};
  if (batch_) return {};
  if (ring_.empty()) return Time::never();
  if (ring_.size() >= kBatchMax) return {};
  return ring_.front().completed + kBatchAge;
}

AttachRequest Agent::attach_request() const {
  AttachRequest request{.client = {}, .incarnation = incarnation_, .sessions = {}};
  for (const auto& [id, session] : sessions_) request.sessions.push_back(session.info);
  return request;
}

void Agent::attached(const AttachReply& reply) {
  const bool is_new = reply.controller != controller_;
  controller_ = reply.controller;
  if (is_new) {
    // Its counters began anew, and so do its boxes' numbers.
    held_.clear();
  }
  for (auto& [id, session] : sessions_) session.box.reset();
  for (const AttachedSession& known : reply.sessions) {
    const auto session = sessions_.find(known.id);
    if (session != sessions_.end()) session->second.box = known.box;
  }
  // Sessions that were opened since the request was made attach by the next one.
  must_attach_ = std::ranges::any_of(sessions_, [](const auto& each) { return !each.second.box; });
  // The answer to the batch may have been lost.
  if (!is_new && batch_ && batch_->number == reply.number) batch_.reset();
  number_ = reply.number;
  if (batch_) batch_->number = number_ + 1;
}

std::optional<ReportRequest> Agent::report_request(Time now) {
  if (must_attach_ || due_at() > now) return std::nullopt;
  if (!batch_) {
    batch_.emplace();
    batch_->number = number_ + 1;
    while (!ring_.empty() && batch_->vectors.size() < kBatchMax) {
      batch_->vectors.push_back(ring_.pop());
    }
  }
  batch_->controller = controller_;
  batch_->incarnation = incarnation_;
  batch_->sent = now;
  batch_->dropped = dropped_;
  return batch_;
}

void Agent::reported(const ReportReply& reply) {
  if (!batch_ || reply.number != batch_->number) return;
  number_ = reply.number;
  batch_.reset();
  late_ += reply.late;
  refused_ += reply.refused;
  for (const Recency& changed : reply.changed) {
    Held& held = held_[changed.id];
    // One of ours is one more. What is further is of others; what is less is of another life.
    if (changed.counter != held.counter + changed.own) held.is_stale = true;
    held.counter = changed.counter;
  }
}

void Agent::refused(Errc code) {
  if (code == Errc::kNotFound) {
    must_attach_ = true;
    return;
  }
  if (!batch_) return;
  // Its number is still free at the controller, or known there: attaching tells which.
  dropped_ += batch_->vectors.size();
  batch_.reset();
  must_attach_ = true;
}

SyncRequest Agent::stale() const {
  SyncRequest request;
  for (const auto& [id, held] : held_) {
    if (held.is_stale && request.components.size() < kSyncMax) request.components.push_back(id);
  }
  return request;
}

void Agent::synced(const SyncReply& reply) {
  if (reply.controller != controller_) return;
  for (const ComponentView& view : reply.components) {
    const auto held = held_.find(view.id);
    // What was never reported is not part of the view; an answer that is older than a report is
    // stale itself.
    if (held == held_.end() || view.recency < held->second.counter) continue;
    held->second = {.counter = view.recency, .is_stale = false, .view = view};
  }
}

const ComponentView* Agent::find(ComponentId id) const {
  const auto held = held_.find(id);
  return held == held_.end() || !held->second.view ? nullptr : &*held->second.view;
}

bool Agent::is_stale(ComponentId id) const {
  const auto held = held_.find(id);
  return held == held_.end() || held->second.is_stale;
}

std::optional<BoxId> Agent::box_of(SessionId id) const {
  const auto found = sessions_.find(id);
  return found == sessions_.end() ? std::nullopt : found->second.box;
}

}  // namespace cairn::view
