// SPDX-License-Identifier: Apache-2.0
#include "volume/steering/trader.h"

#include <algorithm>
#include <optional>

#include "task/deadline.h"
#include "view/drive_estimate.h"
#include "volume/steering/steering.h"

namespace cairn::volume {

using share::TradeCall;
using task::Task;

namespace {

constexpr Duration kCallLimit = 500_ms;
constexpr Duration kRetry = 50_ms;
// Of what will not change soon: the arbiters have no market, or the volume is somebody else's.
constexpr Duration kRetryLater = 1_s;
// What is asked for of a drive that had no slice yet.
constexpr uint64_t kFirst = 1_MiB;

rpc::ClientOptions of_market(rpc::ClientOptions options) {
  options.session.service = share::kServiceName;
  options.session.service_version = {.major = share::kServiceMajor};
  return options;
}

}  // namespace

Trader::Trader(env::Env& env, Steering& steering, std::string client)
    : env_(env),
      steering_(steering),
      client_name_(std::move(client)),
      client_(env, of_market(steering.options_.client)) {
  gate_.spawn(run());
}

Task<void> Trader::close() {
  stop_.request(Errc::kClosed);
  co_await gate_.close();
  if (is_joined()) {
    // Soon, or not at all: it notices by itself that the volume is not open any more.
    const std::string body = encode(share::LeaveRequest{.market = market_, .ticket = ticket_});
    const rpc::CallOptions options{.timeout = kRetry, .elsewhere = share::kElsewhere};
    [[maybe_unused]] const Result<rpc::Reply> told = co_await client_.call(
        {.method = static_cast<uint16_t>(TradeCall::kLeave), .body = body}, options, {});
  }
  co_await client_.close();
}

void Trader::met(Route& route) {
  place(route);
  if (route.place) open_sessions();
  hurry();
}

void Trader::place(Route& route) {
  const auto found = places_.find(route.uri);
  const auto now = found == places_.end() ? std::nullopt : std::optional(found->second);
  const bool is_same = route.place && now && route.place->drive == now->drive;
  route.place = now;
  if (route.place && !is_same) {
    route.slices = share::Slices(route.place->drive);
    route.is_held = false;
    route.slices.set_waiting(route.waiting_cost, route.waiting_in, route.waiting_out);
  }
  if (!route.place) route.is_held = false;
}

void Trader::open_sessions() {
  if (steering_.view_ == nullptr) return;
  for (const auto& route : steering_.routes_) {
    if (!route->place || route->session) continue;
    const auto [session, is_new] = sessions_.try_emplace({route->place->box, route->place->port});
    if (is_new) {
      const Result<view::SessionId> opened =
          steering_.view_->open_session({.id = {},
                                         .volume = steering_.options_.volume,
                                         .box = route->place->box,
                                         .port = route->place->port,
                                         .ticket = ticket_});
      if (!opened) {
        sessions_.erase(session);
        continue;
      }
      session->second = *opened;
    }
    route->session = session->second;
  }
}

template <class Reply, class Request>
Task<Result<Reply>> Trader::ask(TradeCall call, Request request) {
  const rpc::CallOptions options{.repeatable = true,
                                 .timeout = kCallLimit,
                                 .attempt_timeout = kCallLimit,
                                 .elsewhere = share::kElsewhere};
  const Result<rpc::Reply> reply = co_await client_.call(
      {.method = static_cast<uint16_t>(call), .body = encode(request)}, options, stop_.token());
  if (!reply) co_return fail(reply.error());
  if (reply->refusal) co_return fail(*reply->refusal, "the market refuses");
  co_return share::decode<Reply>(as_bytes(reply->body));
}

Task<Result<void>> Trader::join() {
  const bool trades = steering_.options_.holds;
  const Result<share::JoinReply> reply = co_await ask<share::JoinReply>(
      TradeCall::kJoin,
      share::JoinRequest{
          .volume = steering_.options_.volume, .client = client_name_, .trades = trades});
  if (!reply) co_return fail(reply.error());
  market_ = reply->market;
  ticket_ = reply->ticket;
  joined_ = env_.now();
  places_.clear();
  for (const share::DrivePlace& each : reply->places) places_[each.uri] = each;
  for (const auto& [where, session] : sessions_) steering_.view_->close_session(session);
  sessions_.clear();
  for (const auto& route : steering_.routes_) {
    route->session.reset();
    place(*route);
  }
  open_sessions();
  co_return Result<void>();
}

Time Trader::due_at() const {
  const SteeringOptions& options = steering_.options_;
  const Duration often = options.orders || options.holds ? share::kEpoch : kRetryLater;
  Time due = Time::never();
  for (const auto& route : steering_.routes_) {
    if (!route->place) {
      // The pool got it after the market was joined, or has it no more.
      if (route->is_used) due = std::min(due, joined_ + kRetryLater);
      continue;
    }
    if (route->is_held) due = std::min(due, route->slices.due_at());
    // To learn how it is doing, and to get its first slice.
    const bool is_first = options.holds && !route->is_held;
    if (route->is_used) due = std::min(due, asked_ + (is_first ? share::Slices::kAskAgain : often));
  }
  return due;
}

std::vector<share::SliceRequest> Trader::requests(Time now) {
  std::vector<share::SliceRequest> all;
  for (const auto& route : steering_.routes_) {
    const bool is_used = std::exchange(route->is_used, route->is_used && !route->place);
    if (!route->place || !steering_.options_.holds) continue;
    const bool is_first = is_used && !route->is_held && route->waiting == 0;
    if (is_first) route->slices.set_waiting(kFirst, 0, kFirst);
    const std::optional<share::SliceRequest> request = route->slices.request(now);
    if (is_first) route->slices.set_waiting(0, 0, 0);
    if (request) all.push_back(*request);
  }
  return all;
}

void Trader::take(const share::TradeReply& reply) {
  const Time now = env_.now();
  for (const auto& route : steering_.routes_) {
    if (!route->place) continue;
    const share::DriveId drive = route->place->drive;
    for (const share::SliceGrant& grant : reply.grants) {
      if (grant.drive != drive) continue;
      route->slices.granted(grant, now);
      route->is_held = route->is_held || !grant.is_learning;
    }
    for (const share::DriveReport& report : reply.drives) {
      if (report.drive != drive) continue;
      route->write_cost_x10 =
          std::clamp(report.write_cost_x10, view::kWriteCostMin, view::kWriteCostMax);
      route->is_congested = report.congestion > Duration();
      const share::DriveId here(route->number);
      steering_.scheduler_.set_write_cost(here, route->write_cost_x10);
      steering_.scheduler_.set_congestion(here, report.congestion);
    }
  }
  steering_.pump();
}

Task<Result<void>> Trader::exchange() {
  asked_ = env_.now();
  const bool has_strays = std::ranges::any_of(
      steering_.routes_, [](const auto& route) { return route->is_used && !route->place; });
  if (has_strays && asked_ >= joined_ + kRetryLater) {
    market_ = 0;
    co_return Result<void>();
  }
  share::TradeRequest request{.market = market_, .ticket = ticket_, .requests = requests(asked_)};
  const Result<share::TradeReply> reply =
      co_await ask<share::TradeReply>(TradeCall::kTrade, std::move(request));
  if (reply) {
    take(*reply);
    co_return Result<void>();
  }
  const Errc code = reply.error().code();
  // Another market, or one that knows another opening of the volume.
  if (code == Errc::kNotFound || code == Errc::kDenied || code == Errc::kInvalid) market_ = 0;
  co_return fail(reply.error());
}

// Slices notice by it that nobody answers.
void Trader::note_silence() {
  const Time now = env_.now();
  for (const auto& route : steering_.routes_) {
    if (route->is_held) (void)route->slices.request(now);
  }
  steering_.pump();
}

Task<void> Trader::run() {
  while (!stop_.requested()) {
    wake_.reset();
    Result<void> done;
    if (!is_joined()) {
      done = co_await join();
    } else if (const Time due = due_at(); env_.now() < due) {
      task::Deadline deadline(env_, due, stop_.token());
      [[maybe_unused]] const Result<void> woken = co_await wake_.wait(deadline.token());
      continue;
    } else {
      done = co_await exchange();
    }
    if (done) continue;
    note_silence();
    const Errc code = done.error().code();
    const bool is_final = code == Errc::kDenied || code == Errc::kUnsupported;
    [[maybe_unused]] const Result<void> slept =
        co_await task::sleep_for(env_, is_final ? kRetryLater : kRetry, stop_.token());
  }
}

}  // namespace cairn::volume
