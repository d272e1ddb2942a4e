// SPDX-License-Identifier: Apache-2.0
#include "volume/steering/steering.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/check.h"
#include "view/view_service.h"
#include "volume/steering/steered_drive.h"
#include "volume/steering/trader.h"

namespace cairn::volume {

using task::Task;

namespace {

// Kept in the operation while it waits.
struct Waiting {
  SteeredDrive* drive = nullptr;
  uint64_t cost = 0;
};
static_assert(sizeof(Waiting) <= drive::DriveOp::kScratchSize);

Waiting waiting_of(const drive::DriveOp& op) {
  Waiting waiting;
  std::memcpy(&waiting, op.scratch, sizeof waiting);
  return waiting;
}

}  // namespace

Steering::Steering(env::Env& env, SteeringOptions options)
    : env_(env),
      options_(std::move(options)),
      timer_([](task::Timer& timer) { static_cast<WaitTimer&>(timer).steering->pump(); }) {
  timer_.steering = this;
}

Steering::~Steering() = default;

Task<void> Steering::close() {
  CHECK(scheduler_.size() == 0, "drives are closed before what steers them");
  if (trader_ != nullptr) co_await trader_->close();
  if (view_ != nullptr) co_await view_->close();
}

std::unique_ptr<drive::Drive> Steering::steer(const std::string& uri, const std::string& client,
                                              std::unique_ptr<drive::Drive> drive) {
  if (options_.is_off()) return drive;
  if (trader_ == nullptr) {
    if (options_.notes) {
      view_ = std::make_unique<view::RemoteView>(
          env_, view::RemoteViewOptions{.client = options_.client,
                                        .name = client,
                                        .pulls = false,
                                        .elsewhere = view::ViewService::kElsewhere});
    }
    trader_ = std::make_unique<Trader>(env_, *this, client);
  }
  const auto known =
      std::ranges::find_if(routes_, [&](const auto& route) { return route->uri == uri; });
  Route* route = known == routes_.end() ? nullptr : known->get();
  if (route == nullptr) {
    routes_.push_back(std::make_unique<Route>(uri, static_cast<uint32_t>(routes_.size())));
    route = routes_.back().get();
    trader_->met(*route);
  }
  return std::make_unique<SteeredDrive>(env_, *this, *route, std::move(drive));
}

bool Steering::is_joined() const { return trader_ != nullptr && trader_->is_joined(); }

bool Steering::has_room(Route& route, Io io, Time now) {
  if (!route.is_used) {
    route.is_used = true;
    trader_->hurry();
  }
  if (!fits(route, io.bytes)) return false;
  if (!route.is_held) return true;
  const uint64_t cost = route.cost(io.type, io.bytes);
  if (route.slices.take(cost, now)) return true;
  trader_->hurry();
  return route.slices.borrow(cost, now);
}

// Without an order what waits for a drive is one stream; with one, reads and writes of a size are.
share::StreamId Steering::stream_of(const Route& route, Io io) const {
  constexpr uint32_t kStreams = 2 * view::kSizeClasses;
  const uint32_t first = route.number * kStreams;
  if (!options_.orders) return share::StreamId(first);
  const auto kind = static_cast<uint32_t>(io.type) * static_cast<uint32_t>(view::kSizeClasses);
  return share::StreamId(first + kind + static_cast<uint32_t>(view::size_class(io.bytes)));
}

void Steering::wait(Route& route, SteeredDrive& drive, drive::DriveOp& op, Io io, Time now) {
  const Result<void> queued = scheduler_.enqueue({.stream = stream_of(route, io),
                                                  .tag = reinterpret_cast<uintptr_t>(&op),
                                                  .drive = share::DriveId(route.number),
                                                  .type = io.type,
                                                  .bytes = io.bytes},
                                                 now);
  if (!queued) {
    // As many wait as may: this one is in nobody's way any more.
    route.in_flight += io.bytes;
    return drive.send(op, now);
  }
  const Waiting waiting{.drive = &drive, .cost = route.cost(io.type, io.bytes)};
  std::memcpy(op.scratch, &waiting, sizeof waiting);
  ++route.waiting;
  route.waiting_cost += waiting.cost;
  (io.type == view::IoType::kWrite ? route.waiting_in : route.waiting_out) += io.bytes;
  route.slices.set_waiting(route.waiting_cost, route.waiting_in, route.waiting_out);
  ++counters_.waited;
  if (route.is_held) trader_->hurry();
  arm(now);
}

void Steering::arm(Time now) {
  if (scheduler_.size() == 0) return;
  const bool is_soon = std::ranges::any_of(routes_, [&](const auto& route) {
    return route->waiting > 0 && route->is_held && route->slices.is_early(now);
  });
  const Time at = now + (is_soon ? kLookSoon : kLookAgain);
  if (timer_.is_armed() && timer_.when() <= at) return;
  if (timer_.is_armed()) env_.disarm(timer_);
  env_.arm(timer_, at);
}

void Steering::leave_queue(Route& route, Io io, uint64_t cost) {
  --route.waiting;
  route.waiting_cost -= cost;
  (io.type == view::IoType::kWrite ? route.waiting_in : route.waiting_out) -= io.bytes;
  route.slices.set_waiting(route.waiting_cost, route.waiting_in, route.waiting_out);
}

void Steering::forget(Route& route, drive::DriveOp& op, Io io) {
  const bool was_there = scheduler_.remove(stream_of(route, io), reinterpret_cast<uintptr_t>(&op));
  CHECK(was_there);
  leave_queue(route, io, waiting_of(op).cost);
}

void Steering::give_up(Route& route, Io io) {
  route.in_flight -= io.bytes;
  --counters_.sent;
  if (route.is_held) route.slices.give_up(route.cost(io.type, io.bytes));
}

void Steering::ended(Route& route, Io io, Time began, bool is_good) {
  route.in_flight -= std::min<uint64_t>(route.in_flight, io.bytes);
  route.slices.done();
  if (is_good && route.session && route.place) {
    const Time now = env_.now();
    view_->note({.session = *route.session,
                 .drive = route.place->index,
                 .type = io.type,
                 .bytes = io.bytes,
                 .rtt = now - began,
                 .completed = now});
  }
  if (route.waiting > 0) pump();
}

void Steering::pump() {
  must_pump_ = true;
  if (is_pumping_) return;
  is_pumping_ = true;
  while (std::exchange(must_pump_, false)) {
    for (;;) {
      const Time now = env_.now();
      const auto takes = [&](const share::Pending& next) {
        return has_room(*routes_[next.drive.value()], {.type = next.type, .bytes = next.bytes},
                        now);
      };
      const std::optional<share::Pending> next = scheduler_.dequeue(takes);
      if (!next) break;
      Route& route = *routes_[next->drive.value()];
      auto& op = *reinterpret_cast<drive::DriveOp*>(next->tag);
      const Waiting waiting = waiting_of(op);
      leave_queue(route, {.type = next->type, .bytes = next->bytes}, waiting.cost);
      route.in_flight += next->bytes;
      ++counters_.sent;
      waiting.drive->send(op, now);
    }
  }
  is_pumping_ = false;
  arm(env_.now());
}

}  // namespace cairn::volume
