// SPDX-License-Identifier: Apache-2.0
#include "drive/shared_drive.h"

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/list.h"
#include "base/rng.h"
#include "env/call.h"
#include "task/cancel.h"

namespace cairn::drive {

// One request of another core. Belongs to a Far drive, which knows when it is free again: each of
// its two messages goes to the home core and comes back.
struct SharedDrive::Ticket : env::Message {
  // Asks the request to stop. It leaves after the request did, so it arrives after it too.
  struct Stop : env::Message {
    explicit Stop(Ticket& its) : Message(nullptr), ticket(its) {}
    Ticket& ticket;
    Errc reason = Errc::kCancelled;
  };
  explicit Ticket(Far& its) : Message(nullptr), owner(its), stop(*this) {}

  // The sender's.
  Far& owner;
  DriveOp* op = nullptr;
  int travelling = 0;
  Stop stop;
  // Lent to the home core while it travels.
  CoreId from{};
  SharedDrive* shared = nullptr;
  Result<void> result;
  Incarnation incarnation;                     // of the drive when it gave the result
  std::optional<task::CancelSource> stopping;  // there while it is served
};

// The drive as its home core uses it.
class SharedDrive::Near final : public Drive {
 public:
  explicit Near(SharedDrive& shared) : shared_(shared), drive_(*shared.drive_) {}

  const Geometry& geometry() const override { return drive_.geometry(); }
  Extent extent_at(Lba lba, uint64_t max) const override { return drive_.extent_at(lba, max); }
  Incarnation incarnation() const override { return shared_.incarnation_here(); }
  task::Task<Result<void>> resize(uint64_t blocks) override {
    return shared_.resize(shared_.env_, blocks);
  }
  task::Task<void> close() override { return gate_.close(); }

 private:
  void start(DriveOp& op) override { gate_.spawn(pass(op)); }
  void cancel(DriveOp&) override {}
  bool run_now(const Request& request, std::span<const MutableBytes> data,
               Result<void>& done) override {
    const std::optional<Result<void>> now = drive_.try_now(request, data);
    if (now) done = *now;
    return now.has_value();
  }
  Bytes lend_now(Lba lba, uint64_t blocks) const override { return drive_.lend(lba, blocks); }
  task::Task<void> pass(DriveOp& op) {
    const Result<void> done =
        co_await drive_.submit(op.request, op.data(), op.second(), op.token());
    op.complete(done);
  }

  SharedDrive& shared_;
  Drive& drive_;
  task::Gate gate_;
};

// The drive as another core uses it.
class SharedDrive::Far final : public Drive {
 public:
  Far(env::Env& env, SharedDrive& shared)
      : env_(env),
        shared_(shared),
        geometry_(shared.geometries_[env.core().value()]),
        incarnation_(shared.incarnations_[env.core().value()]) {}

  const Geometry& geometry() const override { return geometry_; }
  Incarnation incarnation() const override { return incarnation_; }
  task::Task<Result<void>> resize(uint64_t blocks) override { return shared_.resize(env_, blocks); }
  task::Task<void> close() override { return gate_.close(); }

 private:
  void start(DriveOp& op) override;
  void cancel(DriveOp& op) override;
  // Null: all are on their way.
  Ticket* free_ticket();
  void send(DriveOp& op, Ticket& ticket);
  void came_back(Ticket& ticket);
  static void arrive(env::Message& message, env::Env& home);
  static void arrive_back(env::Message& message, env::Env& here);
  static void stop_arrives(env::Message& message, env::Env& home);
  static void stop_is_back(env::Message& message, env::Env& here);
  friend SharedDrive;

  static Ticket*& ticket_of(DriveOp& op) { return *reinterpret_cast<Ticket**>(op.scratch); }

  env::Env& env_;
  SharedDrive& shared_;
  const Geometry& geometry_;
  Incarnation& incarnation_;
  std::vector<std::unique_ptr<Ticket>> tickets_;
  std::vector<Ticket*> free_;
  List<DriveOp, DriveOp> waiting_;  // for a ticket
  task::Gate gate_;                 // requests that wait or are on their way
};

SharedDrive::Ticket* SharedDrive::Far::free_ticket() {
  if (free_.empty()) {
    if (tickets_.size() == kTravellingMax) return nullptr;
    tickets_.push_back(std::make_unique<Ticket>(*this));
    free_.push_back(tickets_.back().get());
    free_.reserve(tickets_.size());
  }
  Ticket* ticket = free_.back();
  free_.pop_back();
  return ticket;
}

void SharedDrive::Far::start(DriveOp& op) {
  if (Result<void> entered = gate_.enter(); !entered) return op.complete(entered);
  ticket_of(op) = nullptr;
  Ticket* ticket = free_ticket();
  if (ticket == nullptr) return waiting_.push_back(op);
  send(op, *ticket);
}

void SharedDrive::Far::send(DriveOp& op, Ticket& ticket) {
  ticket_of(op) = &ticket;
  ticket.op = &op;
  ticket.from = env_.core();
  ticket.shared = &shared_;
  ticket.travelling = 1;
  ticket.run = &Far::arrive;
  env_.post(shared_.core_, ticket);
}

void SharedDrive::Far::cancel(DriveOp& op) {
  if (ticket_of(op) == nullptr) {
    ListHook<DriveOp>& hook = op;
    hook.unlink();
    op.complete(op.cancelled());
    return gate_.leave();
  }
  Ticket& ticket = *ticket_of(op);
  ++ticket.travelling;
  ticket.stop.reason = op.token().error().code();
  ticket.stop.run = &Far::stop_arrives;
  env_.post(shared_.core_, ticket.stop);
}

void SharedDrive::Far::arrive(env::Message& message, env::Env&) {
  auto& ticket = static_cast<Ticket&>(message);
  ticket.shared->take(ticket);
}

void SharedDrive::Far::stop_arrives(env::Message& message, env::Env& home) {
  auto& stop = static_cast<Ticket::Stop&>(message);
  if (stop.ticket.stopping) stop.ticket.stopping->request(stop.reason);
  stop.run = &Far::stop_is_back;
  home.post(stop.ticket.from, stop);
}

void SharedDrive::Far::arrive_back(env::Message& message, env::Env&) {
  auto& ticket = static_cast<Ticket&>(message);
  ticket.owner.incarnation_ = ticket.incarnation;
  ticket.op->complete(ticket.result);
  ticket.owner.came_back(ticket);
}

void SharedDrive::Far::stop_is_back(env::Message& message, env::Env&) {
  Ticket& ticket = static_cast<Ticket::Stop&>(message).ticket;
  ticket.owner.came_back(ticket);
}

void SharedDrive::Far::came_back(Ticket& ticket) {
  if (--ticket.travelling > 0) return;
  if (DriveOp* next = waiting_.pop_front()) {
    send(*next, ticket);
  } else {
    free_.push_back(&ticket);
  }
  gate_.leave();
}

SharedDrive::SharedDrive(env::Env& home, std::unique_ptr<Drive> drive, Opening opening)
    : env_(home),
      core_(home.core()),
      opening_(opening == Opening::kNew ? home.rng().next() | 1 : 0),
      geometries_(home.core_count(), drive->geometry()),
      drive_(std::move(drive)) {
  incarnations_.assign(home.core_count(), incarnation_here());
}

Incarnation SharedDrive::incarnation_here() const {
  Incarnation now = drive_->incarnation();
  if (opening_ == 0) return now;
  now.opening = now.opening == 0 ? opening_ : mix64(now.opening ^ opening_) | 1;
  return now;
}

Result<std::unique_ptr<Drive>> SharedDrive::open(env::Env& env) {
  if (env.core() == core_) return std::make_unique<Near>(*this);
  return std::make_unique<Far>(env, *this);
}

void SharedDrive::take(Ticket& ticket) {
  const std::optional<Result<void>> now = drive_->try_now(ticket.op->request, ticket.op->data());
  if (!now) return gate_.spawn(serve(ticket));
  ticket.result = *now;
  send_back(ticket);
}

task::Task<void> SharedDrive::serve(Ticket& ticket) {
  const DriveOp& asked = *ticket.op;
  ticket.stopping.emplace();
  ticket.result = co_await drive_->submit(asked.request, asked.data(), asked.second(),
                                          ticket.stopping->token());
  ticket.stopping.reset();
  send_back(ticket);
}

void SharedDrive::send_back(Ticket& ticket) {
  ticket.incarnation = incarnation_here();
  ticket.run = &Far::arrive_back;
  env_.post(ticket.from, ticket);
}

task::Task<Result<void>> SharedDrive::resize(env::Env& env, uint64_t blocks) {
  const Result<void> resized =
      co_await env::call_on(env, core_, [this, blocks](env::Env&) { return resize_here(blocks); });
  if (!resized) co_return resized;
  for (uint32_t core = 0; core < geometries_.size(); ++core) {
    co_await env::call_on(env, CoreId(core),
                          [this, core, blocks](env::Env&) { geometries_[core].blocks = blocks; });
  }
  co_return resized;
}

task::Task<Result<void>> SharedDrive::resize_here(uint64_t blocks) {
  if (blocks == drive_->geometry().blocks) co_return Result<void>{};
  const Result<void> resized = co_await drive_->resize(blocks);
  co_return resized;
}

task::Task<Extent> SharedDrive::extent_at(env::Env& env, const Drive&, Lba lba, uint64_t max) {
  const Extent extent = co_await env::call_on(
      env, core_, [this, lba, max](env::Env&) { return drive_->extent_at(lba, max); });
  co_return extent;
}

task::Task<void> SharedDrive::close(env::Env& env) {
  co_await env::call_on(env, core_, [this](env::Env&) { return close_here(); });
}

task::Task<void> SharedDrive::close_here() {
  co_await gate_.close();
  co_await drive_->close();
  drive_.reset();
}

}  // namespace cairn::drive
