// SPDX-License-Identifier: Apache-2.0
#include "fabric/target/connection.h"

#include <algorithm>

#include "base/check.h"
#include "env/call.h"
#include "nvme/controller/io_commands.h"
#include "nvme/format/replicate_format.h"
#include "task/deadline.h"

namespace cairn::fabric {

namespace {

// Before Connect has said how many entries its queue has.
constexpr uint32_t kFirstSlots = 2;
// Beyond the queue's entries: to refuse what a host sends too much of.
constexpr uint32_t kSpareSlots = 8;
// More than one write ever has.
constexpr size_t kPiecesReserved = 256;

// Of a command on an admin queue.
bool is_event_request(const TcpCommand& command) {
  return !command.sqe.is_fabrics() &&
         command.sqe.admin_opcode() == nvme::AdminOpcode::kAsynchronousEventRequest;
}

// What a Connect says, where it was received, or why it is none.
std::expected<nvme::ConnectData, nvme::Status> connect_data(TcpCommand& command) {
  const nvme::Sqe& sqe = command.sqe;
  if (!sqe.is_fabrics() || sqe.fabrics_type() != nvme::FabricsType::kConnect) {
    return std::unexpected(nvme::final(nvme::StatusCode::kCommandSequenceError));
  }
  // Nothing else is read until a queue is connected, so its data cannot come later.
  if (!command.pointer.in_capsule) {
    return std::unexpected(nvme::final(nvme::StatusCode::kSglDescriptorTypeInvalid));
  }
  if (command.piece.size() < sizeof(nvme::ConnectData)) {
    return std::unexpected(nvme::final(nvme::StatusCode::kDataSglLengthInvalid));
  }
  if (command.data_corrupt) {
    return std::unexpected(nvme::Status(nvme::StatusCode::kTransientTransportError));
  }
  return load<nvme::ConnectData>(command.piece);
}

// The control core's half of an admin command.
task::Task<nvme::Cqe> admin_on_control(nvme::Registry& registry, nvme::Controller& controller,
                                       uint16_t queue_id, const nvme::Sqe& sqe, MutableBytes data,
                                       ControlSide& side) {
  if (!side.gate.enter()) co_return nvme::make_cqe(sqe, nvme::StatusCode::kAbortedQueueDeletion);
  nvme::Cqe cqe = co_await registry.admin(controller, sqe, data, side.cancel.token(), queue_id);
  side.gate.leave();
  co_return cqe;
}

// Ends what waits there on behalf of the connection, then takes the queue off its controller.
task::Task<void> leave_control(nvme::Registry& registry, nvme::Controller* controller,
                               uint16_t queue_id, nvme::QueueLink& link, ControlSide& side) {
  side.cancel.request();
  co_await side.gate.close();
  if (controller != nullptr) co_await registry.disconnected(*controller, queue_id, link);
}

}  // namespace

TargetConnection::TargetConnection(TargetCore& core, std::unique_ptr<env::Stream> stream,
                                   Origin origin)
    : core_(core),
      stream_(std::move(stream)),
      peer_(stream_->peer()),
      visitor_(origin.visitor),
      tls_(std::move(origin.tls)),
      receiver_(*stream_, kAdminStagingSize),
      account_(&core.lanes.begin(origin.listener)),
      slots_max_(kFirstSlots),
      cids_(kFirstSlots),
      doorbell_(core.env, core.options.doorbell, &TargetConnection::on_ring, this) {
  rules_ = {.receiver = nvme::End::kController,
            .h2c_data_max = kH2cDataMax,
            .in_capsule_max = nvme::kAdminInCapsuleMax};
  pieces_.reserve(kPiecesReserved);
}

TargetConnection::~TargetConnection() { core_.lanes.end(*account_, lane().work); }

TargetLane TargetConnection::lane() const {
  return {.core = core_.env.core(),
          .key = account_->first,
          .peer = peer_,
          .controller_id = controller_id_,
          .queue_id = queue_id_,
          .queue_entries = queue_entries_,
          .in_flight = static_cast<uint32_t>(running_),
          .work = {.commands = commands_,
                   .failures = failures_,
                   .traffic = {.out = doorbell_.counters(), .in = receiver_.counters()}}};
}

task::Task<void> TargetConnection::run() {
  task::Task<void> writer = write_loop();
  Result<void> read = co_await read_pdus();
  if (!read) core_.env.trace().record("target.ended", static_cast<uint64_t>(read.error().code()));
  co_await note_fault();
  co_await close_down(std::move(writer));
}

void TargetConnection::stop(const char* why) {
  if (ending_.requested()) return;
  why_ended_ = why;
  ending_.request();
}

void TargetConnection::set_proven(bool proven) {
  share_.set_proven(proven);
  if (proven) admin_gate_.spawn(tell_proven());
}

task::Task<void> TargetConnection::tell_proven() {
  co_await env::call_on(core_.env, core_.control,
                        [this](env::Env&) { core_.reception.prove(visitor_); });
}

void TargetConnection::drain() { draining_ = true; }

bool TargetConnection::is_idle() const {
  for (const auto& slot : slots_) {
    // A request for events is answered when there is one, perhaps never.
    const bool waits_for_event =
        queue_id_ == 0 && slot->state == TcpCommand::State::kRunning && is_event_request(*slot);
    if (slot->state != TcpCommand::State::kFree && !waits_for_event) return false;
  }
  return true;
}

void TargetConnection::finish() {
  finishing_ = true;
  out_ready_.set();
}

// Commands first, since they use everything else; then the writer; then the control core's half.
task::Task<void> TargetConnection::close_down(task::Task<void> writer) {
  reading_ended_ = true;
  for (const auto& slot : slots_) {
    if (slot->is_running()) slot->cancel->request();
  }
  if (io_queue_ != nullptr) co_await io_queue_->close();
  co_await env::call_on(core_.env, core_.control, [this](env::Env&) {
    return leave_control(core_.registry, controller_, queue_id_, *this, control_side_);
  });
  co_await admin_gate_.close();
  out_ready_.set();
  co_await writer;
  drop_output();
  if (has_said_farewell_) co_await linger();
}

// A stream that goes with unread bytes is reset, and the TermReq may be lost with it: the host gets
// the time to read it and to close.
task::Task<void> TargetConnection::linger() {
  task::Deadline deadline(core_.env, core_.env.now() + core_.options.linger_timeout,
                          ending_.token());
  Result<void> heard = stream_->finish();
  while (heard) {
    receiver_.take(receiver_.bytes().size());
    heard = co_await receiver_.more(deadline.token());
  }
}

// --- slots --------------------------------------------------------------------------------------

size_t TargetConnection::memory_max(uint16_t queue_entries) {
  const size_t slots = queue_entries + kSpareSlots;
  const size_t slot =
      sizeof(TcpCommand) + sizeof(std::unique_ptr<TcpCommand>) + sizeof(OwedData::Entry);
  return sizeof(TargetConnection) + sizeof(nvme::IoQueue) + kStagingSize + slots * slot +
         stream::CommandIds::memory(slots) + kPiecesReserved * sizeof(Bytes);
}

TcpCommand* TargetConnection::take_slot() {
  TcpCommand* slot = free_.pop_front();
  if (slot == nullptr) {
    if (slots_.size() == slots_max_) return nullptr;
    slots_.push_back(std::make_unique<TcpCommand>());
    slot = slots_.back().get();
    slot->connection = this;
    slot->ttag = static_cast<uint16_t>(slots_.size() - 1);
  }
  slot->state = TcpCommand::State::kRunning;
  ++running_;
  slot->pointer = {};
  slot->has_output = false;
  slot->data_corrupt = false;
  slot->partner = nullptr;
  slot->superseded = false;
  slot->cancel.emplace();
  return slot;
}

void TargetConnection::end_running(TcpCommand& command) {
  --running_;
  if (TcpCommand* partner = std::exchange(command.partner, nullptr)) partner->partner = nullptr;
  if (std::exchange(command.preempted, false) && --preempted_ == 0) preempted_ended_.set();
}

void TargetConnection::free_slot(TcpCommand& command) {
  if (std::exchange(command.owns_cid, false)) cids_.remove(command.sqe.cid);
  if (command.is_running()) end_running(command);
  command.state = TcpCommand::State::kFree;
  if (&command == filling_) return;  // bytes are still going into its memory; then it is freed
  command.drop_data();
  free_.push_front(command);  // it is in the cache
  if (draining_) core_.drained.set();
}

void TargetConnection::abandon_data(TcpCommand& command) {
  if (command.window.next == command.window.end) return;
  owed_.add({.ttag = command.ttag, .cid = command.sqe.cid, .window = command.window}, slots_max_);
  const size_t next = command.ttag + slots_max_;
  command.ttag = static_cast<uint16_t>(next <= UINT16_MAX ? next : command.ttag % slots_max_);
}

void TargetConnection::cancel(TcpCommand& command) {
  if (io_queue_ != nullptr && io_queue_->abandon(command)) return;
  command.cancel->request();
  if (command.partner != nullptr) command.partner->cancel->request();
}

bool TargetConnection::abort(uint16_t cid) {
  for (const auto& slot : slots_) {
    if (!slot->is_running() || slot->sqe.cid != cid) continue;
    cancel(*slot);
    return true;
  }
  return false;
}

// Reservation commands stay: they wait for the one that preempts, and change nothing they may not.
task::Task<void> TargetConnection::abort_namespace(uint32_t nsid) {
  for (const auto& slot : slots_) {
    const bool is_meant = slot->is_running() && !slot->sqe.is_fabrics() &&
                          nvme::concerns_namespace(slot->sqe, nsid) &&
                          !nvme::is_reservation(slot->sqe.io_opcode());
    if (!is_meant) continue;
    preempted_ += slot->preempted ? 0 : 1;
    slot->preempted = true;
    cancel(*slot);
  }
  while (preempted_ > 0) {
    preempted_ended_.reset();
    const Result<void> ended = co_await preempted_ended_.wait();
    CHECK(ended.has_value(), "nobody cancels this wait");
  }
}

// --- commands -----------------------------------------------------------------------------------

void TargetConnection::dispatch(TcpCommand& command) {
  if (io_queue_ == nullptr || command.sqe.is_fabrics()) {
    return admin_gate_.spawn(execute_admin(command));
  }
  const bool is_first = command.sqe.fuse() == nvme::Fuse::kFirst;
  io_queue_->submit(command);
  if (is_first) await_second(command);
}

void TargetConnection::await_second(TcpCommand& first) {
  first_half_.command = &first;
  if (first_half_.is_armed()) core_.env.disarm(first_half_);
  core_.env.arm(first_half_, core_.env.now() + core_.options.data_timeout);
}

// Its second may have come, and its slot may be another command's: that is no first half then, or
// it is one whose own time is over.
void TargetConnection::on_second_missing(task::Timer& timer) {
  TcpCommand& first = *static_cast<FirstHalf&>(timer).command;
  first.connection->io_queue_->abandon(first, nvme::StatusCode::kAbortedMissingFused);
}

task::Task<void> TargetConnection::execute_admin(TcpCommand& command) {
  const nvme::Sqe& sqe = command.sqe;
  if (command.pointer.length > 0 && !command.pointer.in_capsule) {
    // Nothing is spent on a command that is refused in any case.
    const std::optional<nvme::Cqe> refusal =
        co_await env::call_on(core_.env, core_.control, [&](env::Env&) {
          return core_.registry.refusal(*controller_, sqe, command.pointer.length, queue_id_);
        });
    if (refusal) co_return command.complete(*refusal);
  }
  Result<nvme::Pieces> pieces = nvme::Pieces();
  if (command.pointer.length > 0) {
    const nvme::Transfer transfer = sqe.transfer();
    if (transfer == nvme::Transfer::kHostToController) {
      pieces = co_await command.from_host(command.pointer.length);
    } else if (transfer == nvme::Transfer::kControllerToHost) {
      pieces = co_await command.to_host(command.pointer.length);
      if (pieces) std::ranges::fill(command.piece, std::byte{0});
    }
  }
  if (!pieces) {
    co_return command.complete(nvme::make_cqe(sqe, nvme::data_status(pieces.error())));
  }
  nvme::Cqe cqe = co_await env::call_on(core_.env, core_.control, [&](env::Env&) {
    return admin_on_control(core_.registry, *controller_, queue_id_, sqe, command.piece,
                            control_side_);
  });
  const bool leaves = queue_id_ > 0 && sqe.is_fabrics() &&
                      sqe.fabrics_type() == nvme::FabricsType::kDisconnect && cqe.get_status().ok();
  if (command.superseded) co_return free_slot(command);
  command.complete(cqe);
  if (leaves) reading_end_.request();
}

bool TargetConnection::supersede_event_request(uint16_t cid) {
  if (queue_id_ != 0) return false;
  for (const auto& slot : slots_) {
    if (!slot->owns_cid || slot->sqe.cid != cid || !is_event_request(*slot)) continue;
    slot->owns_cid = false;
    if (slot->state == TcpCommand::State::kResponding) {
      // Its answer has not left yet, and would be taken for the other command's.
      slot->ListHook<OutTag>::unlink();
      free_slot(*slot);
    } else {
      slot->superseded = true;
      admin_gate_.spawn(end_event_request(cid));
    }
    return true;
  }
  return false;
}

// Reaches the control core before the command that has the id now.
task::Task<void> TargetConnection::end_event_request(uint16_t cid) {
  co_await env::call_on(core_.env, core_.control, [this, cid](env::Env&) {
    core_.registry.end_event_request(*controller_, cid);
  });
}

task::Task<Result<void>> TargetConnection::connect(TcpCommand& command) {
  const std::expected<nvme::ConnectData, nvme::Status> data = connect_data(command);
  receiver_.take(front_.length);
  if (!data) {
    command.complete(nvme::make_cqe(command.sqe, data.error()));
    co_return Result<void>{};
  }
  const nvme::ConnectRequest request{.sqe = command.sqe,
                                     .data = *data,
                                     .local = stream_->local(),
                                     .peer = peer_,
                                     .core = core_.env.core(),
                                     .link = this,
                                     .tls = tls_.get()};
  nvme::ConnectReply reply = co_await env::call_on(
      core_.env, core_.control, [&](env::Env&) { return core_.registry.connect(request); });
  if (reply.status.ok()) {
    controller_ = reply.controller;
    queue_id_ = reply.queue_id;
    controller_id_ = nvme::ConnectResult::decode(reply.dw0).controller_id;
    account_ = &core_.lanes.connect(
        *account_, {.listener = account_->first.listener,
                    .nqn = std::string(request.data.subsystem_nqn.get().value_or("")),
                    .admin = queue_id_ == 0});
    queue_entries_ = reply.queue_entries;
    flow_control_ = reply.flow_control;
    set_proven(reply.authenticated && (!reply.discovery || tls_ != nullptr));
    slots_max_ = queue_entries_ + kSpareSlots;
    slots_.reserve(slots_max_);
    cids_.reserve(slots_max_);
    if (queue_id_ > 0) {
      rules_.in_capsule_max = kInCapsuleMax;
      receiver_.grow(kStagingSize);
      receiver_.let_grow(kStagingMax, core_.staging_reserve);
      io_queue_ = std::make_unique<nvme::IoQueue>(
          nvme::IoQueue::Context{.namespaces = *reply.namespaces,
                                 .control = *this,
                                 .host = reply.host,
                                 .host_nqn = reply.host_nqn,
                                 .era = reply.era,
                                 .knows_incarnations = reply.knows_incarnations,
                                 .limits = reply.limits,
                                 .authenticated = reply.authenticated});
    }
    sq_head_ = 1 % queue_entries_;
  }
  command.complete(nvme::make_cqe(command.sqe, reply.status, reply.dw0));
  co_return Result<void>{};
}

task::Task<nvme::Status> TargetConnection::reservation(const nvme::Sqe& sqe, nvme::Pieces data) {
  CHECK(data.size() == 1, "this transport lends one piece");
  nvme::Status status = co_await env::call_on(core_.env, core_.control, [&](env::Env&) {
    return core_.registry.reservation(*controller_, sqe, data[0]);
  });
  co_return status;
}

}  // namespace cairn::fabric
