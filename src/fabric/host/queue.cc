// SPDX-License-Identifier: Apache-2.0
#include "fabric/host/queue.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "env/io.h"
#include "task/deadline.h"

namespace cairn::fabric {

namespace {

// A command id: the slot's index, and above it a count of the slot's commands.
constexpr uint16_t kIndexBits = 10;
constexpr uint16_t kIndexMask = (1 << kIndexBits) - 1;
static_assert(kHostDepthMax <= kIndexMask, "FFFFh is nobody's id");

// How long a TermReq may take to leave.
constexpr Duration kLinger = 1_s;
// More than one write ever has.
constexpr size_t kPiecesReserved = 256;

}  // namespace

HostQueue::HostQueue(env::Env& env, const Options& options, Owner& owner)
    : env_(env),
      options_(options),
      owner_(owner),
      doorbell_(env, options.doorbell, &HostQueue::on_ring, this),
      age_timer_(&HostQueue::on_age),
      grace_timer_(&HostQueue::on_grace),
      linger_timer_(&HostQueue::on_linger) {
  CHECK(options.slots > 0 && options.slots <= kHostDepthMax);
  age_timer_.queue = grace_timer_.queue = linger_timer_.queue = this;
  rules_ = {.receiver = nvme::End::kHost,
            .header_digest = options.header_digest,
            .data_digest = options.data_digest};
  pieces_.reserve(kPiecesReserved);
  for (uint16_t i = 0; i < options.slots; ++i) {
    slots_.push_back(std::make_unique<Slot>());
    slots_.back()->cid = i;
    free_.push_back(*slots_.back());
  }
  free_count_ = options.slots;
}

HostQueue::~HostQueue() { CHECK(outstanding() == 0, "a queue is closed before it is destroyed"); }

task::Task<Result<void>> HostQueue::connect(task::CancelToken token) {
  Result<std::unique_ptr<env::Stream>> stream =
      co_await env::connect_stream(env_, options_.address, {}, token);
  if (stream && options_.tls) {
    const SecureWish wish{.timeout = options_.connect_timeout, .lingering = lingering_};
    stream = co_await secure(env_, std::move(*stream), *options_.tls, wish, token);
  }
  if (!stream) co_return fail(stream.error());
  stream_ = std::move(*stream);
  co_return Result<void>{};
}

task::Task<Result<void>> HostQueue::open(task::CancelToken token) {
  task::Deadline deadline(env_, env_.now() + options_.connect_timeout, token);
  Result<void> connected = co_await connect(deadline.token());
  if (!connected) co_return connected;
  receiver_.emplace(*stream_, kHostStagingSize);
  greeting_size_ = nvme::build_ic_req(
      greeting_, {.header_digest = options_.header_digest, .data_digest = options_.data_digest});
  out_ready_.set();
  gate_.spawn(run());
  const Result<void> settled = co_await established_.wait(deadline.token());
  if (!settled) stop(settled.error());
  if (why_) co_return fail(*why_);
  co_return Result<void>{};
}

// From the first byte to the last.
task::Task<void> HostQueue::run() {
  task::Task<void> writer = write_loop();
  const Result<void> read = co_await read_pdus();
  if (!why_) why_ = read.error();
  env_.trace().record("host.queue_ended", options_.id, static_cast<uint64_t>(why_->code()));
  open_ = false;
  reading_ended_ = true;
  established_.set();
  owner_.queue_ended(*this, *why_);
  env_.arm(linger_timer_, env_.now() + kLinger);
  out_ready_.set();
  co_await writer;
  env_.disarm(linger_timer_);
  // What waits in the send buffer must not reach the target when nobody waits for it here; but a
  // TermReq must, which comes last.
  const bool said_why = is_at_fault_ && farewell_size_ == 0;
  if (outstanding() > 0 && !said_why) stream_->reset();
  hand_back(*why_);
}

void HostQueue::stop(const Error& why) {
  if (!why_) why_ = why;
  open_ = false;
  // A TermReq gets its time; see run().
  if (!is_at_fault_) ending_.request();
}

task::Task<void> HostQueue::close() {
  stop(Error(Errc::kClosed, "the host closed the connection"));
  co_await gate_.close();
  receiver_.reset();
  stream_.reset();
  co_await lingering_.close();
  env_.disarm(age_timer_);
  env_.disarm(grace_timer_);
}

void HostQueue::hand_back(const Error& why) {
  current_ = nullptr;
  doorbell_.silence();
  for (const auto& slot : slots_) {
    if (slot->state == Slot::State::kFree) continue;
    HostCommand* command = slot->command;
    const Error error = slot->cancelled.value_or(why);
    free_slot(*slot);
    if (command == nullptr) continue;
    command->transport = fail(error);
    command->done(*command);
  }
}

HostLane HostQueue::lane() const {
  LaneTraffic traffic{.out = doorbell_.counters(), .in = {}};
  if (receiver_) traffic.in = receiver_->counters();
  return {.core = env_.core(),
          .address = options_.address,
          .queue_id = options_.id,
          .depth = options_.slots,
          .in_flight = outstanding(),
          .doorbell = options_.doorbell,
          .traffic = traffic};
}

// --- slots --------------------------------------------------------------------------------------

void HostQueue::submit(HostCommand& command) {
  CHECK(room() >= (command.second != nullptr ? 2u : 1u), "whoever submits looks for room first");
  HostCommand* second = command.second;
  const bool no_delay = command.no_delay || options_.id == 0 || second != nullptr;
  submit_one(command, no_delay);
  if (second != nullptr) submit_one(*second, no_delay);
}

void HostQueue::submit_one(HostCommand& command, bool no_delay) {
  Slot& slot = take_slot(command);
  const bool in_capsule = command.sqe.sgl1.id == nvme::SglId::kDataBlockOffset;
  ++ready_count_;
  enqueue(slot, sizeof(nvme::CapsuleCmd) + (in_capsule ? command.length : 0), no_delay);
}

HostQueue::Slot& HostQueue::take_slot(HostCommand& command) {
  Slot& slot = *free_.pop_front();
  --free_count_;
  slot.state = Slot::State::kReady;
  slot.answered = false;
  slot.last_came = false;
  slot.command = &command;
  slot.since = env_.now();
  slot.cursor = PieceCursor(command.data, command.skip);
  slot.reads = command.reads();
  slot.next = 0;
  slot.window_next = slot.window_end = 0;
  const bool in_capsule = command.writes() && command.length <= in_capsule_max_;
  slot.length = in_capsule ? 0 : command.length;

  command.queue = this;
  command.slot = &slot;
  command.transport = {};
  command.moved = 0;
  command.sent = false;
  command.corrupt = false;
  command.sqe.cid = slot.cid;
  command.sqe.sgl1 = in_capsule && command.length > 0
                         ? nvme::SglDescriptor::in_capsule(command.length)
                         : nvme::SglDescriptor::transport(command.length);
  if (!command.never_times_out) {
    by_age_.push_back(slot);
    arm_age();
  }
  return slot;
}

void HostQueue::free_slot(Slot& slot) {
  slot.ListHook<OutTag>::unlink();
  slot.ListHook<SendingTag>::unlink();
  slot.ListHook<AgeTag>::unlink();
  if (slot.state == Slot::State::kReady) --ready_count_;
  if (slot.command != nullptr) slot.command->queue = nullptr;
  slot.command = nullptr;
  slot.cancelled.reset();
  slot.state = Slot::State::kFree;
  slot.cid = static_cast<uint16_t>(slot.cid + kIndexMask + 1);
  free_.push_front(slot);
  ++free_count_;
}

HostQueue::Slot* HostQueue::find(uint16_t cid) {
  const size_t index = cid & kIndexMask;
  if (index >= slots_.size()) return nullptr;
  Slot& slot = *slots_[index];
  const bool is_out = slot.state == Slot::State::kSent || slot.state == Slot::State::kAbandoned;
  return is_out && slot.cid == cid && !slot.answered ? &slot : nullptr;
}

bool HostQueue::is_being_sent(const Slot& slot) const {
  return slot.ListHook<SendingTag>::is_linked() || current_ == &slot;
}

// A target may answer before it has taken all of a command's data; they are lent to the stream
// until the write is over.
void HostQueue::answered(Slot& slot) {
  slot.answered = true;
  slot.ListHook<OutTag>::unlink();
  if (!is_being_sent(slot)) finish(slot);
}

void HostQueue::finish(Slot& slot) {
  HostCommand* command = slot.command;
  if (command != nullptr && slot.cancelled &&
      command->cqe.get_status() == nvme::StatusCode::kAbortRequested) {
    command->transport = fail(*slot.cancelled);
  }
  free_slot(slot);
  if (command != nullptr) command->done(*command);
  if (!open_) return;
  owner_.queue_has_room(*this);
  if (doorbell_.reconsider(with_target())) out_ready_.set();
}

// --- cancelling and waiting ---------------------------------------------------------------------

void HostQueue::cancel(HostCommand& command, const Error& why) {
  Slot& slot = *static_cast<Slot*>(command.slot);
  if (slot.cancelled || slot.answered) return;
  const bool is_alone = command.sqe.fuse() == nvme::Fuse::kNone;
  if (slot.state == Slot::State::kReady && is_alone) {
    command.transport = fail(why);
    return finish(slot);
  }
  // While bytes go into its memory it waits; see data_came().
  if (!command.changes && !command.writes() && &slot != filling_) return abandon(slot, why);
  slot.cancelled = why;
  slot.cancelled_at = env_.now();
  if (!grace_timer_.is_armed()) env_.arm(grace_timer_, env_.now() + options_.cancel_timeout);
  if (command.changes && slot.state == Slot::State::kSent) {
    owner_.queue_wants_abort(*this, slot.cid);
  }
}

// The command comes back; its id stays in use until the target has answered.
void HostQueue::abandon(Slot& slot, const Error& why) {
  HostCommand& command = *std::exchange(slot.command, nullptr);
  slot.state = Slot::State::kAbandoned;
  slot.cancelled.reset();
  command.queue = nullptr;
  command.transport = fail(why);
  command.done(command);
}

void HostQueue::arm_age() {
  if (age_timer_.is_armed() || by_age_.empty()) return;
  env_.arm(age_timer_, by_age_.front()->since + options_.command_timeout);
}

// Commands of a queue have the same time, so the oldest is the first to run out. The timer is not
// moved when one completes: it looks again when it fires.
void HostQueue::on_age(task::Timer& timer) {
  HostQueue& queue = *static_cast<QueueTimer&>(timer).queue;
  Slot* oldest = queue.by_age_.front();
  if (oldest == nullptr) return;
  if (oldest->since + queue.options_.command_timeout > queue.env_.now()) return queue.arm_age();
  queue.stop(Error(Errc::kTimedOut, "a command got no answer in time", oldest->cid));
}

void HostQueue::on_grace(task::Timer& timer) {
  HostQueue& queue = *static_cast<QueueTimer&>(timer).queue;
  Time next = Time::never();
  for (const auto& slot : queue.slots_) {
    if (slot->cancelled) next = std::min(next, slot->cancelled_at + queue.options_.cancel_timeout);
  }
  if (next == Time::never()) return;
  if (next > queue.env_.now()) return queue.env_.arm(timer, next);
  queue.stop(Error(Errc::kTimedOut, "a cancelled command got no answer in time"));
}

void HostQueue::on_linger(task::Timer& timer) {
  static_cast<QueueTimer&>(timer).queue->ending_.request();
}

}  // namespace cairn::fabric
