// SPDX-License-Identifier: Apache-2.0
#include "world/sim/circuit.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "env/address.h"
#include "env/stream.h"
#include "world/sim/event_queue.h"
#include "world/sim/machine.h"
#include "world/sim/network.h"
#include "world/sim/process.h"
#include "world/sim/shared.h"

namespace cairn::sim {

const EventKind Pipe::kArrival("net.arrival", &Pipe::on_arrival);
const EventKind Pipe::kCredit("net.credit", &Pipe::on_credit);
const EventKind Pipe::kGiveUp("net.give_up", &Pipe::on_give_up);

Pipe::Pipe(Network& network, Endpoint& from, Endpoint& to, const env::StreamOptions& sender,
           const env::StreamOptions& receiver)
    : network_(network),
      from_(from),
      to_(to),
      link_(network.link(from.machine(), to.machine())),
      link_back_(network.link(to.machine(), from.machine())),
      send_capacity_(sender.send_buffer_size != 0 ? sender.send_buffer_size
                                                  : network.options().send_buffer_size),
      receive_capacity_(receiver.receive_buffer_size != 0 ? receiver.receive_buffer_size
                                                          : network.options().receive_buffer_size),
      bytes_(network.world().blocks()),
      arrival_(kArrival, to.machine().origin(), *this),
      credit_(kCredit, from.machine().origin(), *this),
      give_up_(kGiveUp, from.machine().origin(), *this) {}

void Pipe::transmit() {
  while (unsent() > 0) {
    const size_t window = receive_capacity_ - (sent_ - credited_);
    if (window == 0) {
      send_credit_if_needed();
      if (credit_.is_linked()) held();
      return;
    }
    const size_t count = network_.cut_segment(std::min(unsent(), window));
    uint32_t flags = 0;
    if (network_.is_segment_broken(link_)) flags = kBreak;
    if (network_.is_segment_flipped(link_)) {
      bytes_.flip(sent_ + network_.rng().below(count), network_.rng().below(8));
    }
    sent_ += count;
    send_segment(static_cast<uint32_t>(count), flags);
  }
  if (end_ == End::kNone || is_end_sent_) return;
  is_end_sent_ = true;
  is_reset_sent_ = is_reset_sent_ || end_ == End::kReset;
  send_segment(0, end_ == End::kReset ? kReset : kFinish);
}

void Pipe::end_with(End end) {
  if (end_ != End::kNone) return;
  end_ = end;
  transmit();
}

void Pipe::abort() {
  drop_unsent();
  if (is_reset_sent_ && !segments_.empty()) return;
  is_reset_sent_ = true;
  end_ = End::kReset;
  is_end_sent_ = true;
  send_segment(0, kReset);
}

void Pipe::send_segment(uint32_t bytes, uint32_t flags) {
  if (bytes == 0) {
    last_arrival_ = std::max(last_arrival_, network_.arrival_time(link_, 0));
    segments_.push({last_arrival_, bytes, flags});
    return schedule_arrival();
  }
  const Network::Sent sent = network_.send(link_, bytes, *this);
  if (sent.arrival) {
    last_arrival_ = std::max(last_arrival_, *sent.arrival);
    segments_.push({last_arrival_, bytes, flags});
  } else {
    segments_.push({Time::never(), bytes, flags, sent.tag, sent.slower});
  }
  schedule_arrival();
}

void Pipe::schedule_arrival() {
  if (segments_.empty() || arrival_.is_under_way()) return;
  if (segments_.front().arrival == Time::never()) return;
  network_.world().schedule(arrival_, segments_.front().arrival);
}

// One that overtook others waits for them.
void Pipe::arrived(uint64_t tag) {
  for (size_t i = 0; i < segments_.size(); ++i) {
    Segment& segment = segments_.at(i);
    if (segment.tag != tag) continue;
    segment.tag = kNoTag;
    segment.arrival = network_.world().now() + segment.slower;
    break;
  }
  schedule_arrival();
}

void Pipe::forget_segments() {
  for (size_t i = 0; i < segments_.size(); ++i) {
    if (segments_.at(i).tag != kNoTag) network_.forget(segments_.at(i).tag);
  }
  segments_.clear();
}

void Pipe::on_arrival(Event& event) {
  Pipe& self = static_cast<Arrival&>(event).pipe;
  if (!self.network_.let_pass(self.link_, self.arrival_)) return self.held();
  if (!self.credit_.is_linked()) self.give_up_.cancel();
  const Segment segment = self.segments_.pop();
  self.arrived_ += segment.bytes;
  if (self.arrived_ == self.cut_at_) self.reached_cut();
  self.schedule_arrival();
  self.to_.on_segment(segment.bytes, segment.flags);
}

void Pipe::reached_cut() {
  cut_at_ = UINT64_MAX;
  network_.note_cut();
  const Time now = network_.world().now();
  if (cut_breaks_) {
    // Late enough for what has arrived to be read, too early for an answer to it.
    last_arrival_ = std::max(last_arrival_, now + 1_us);
    segments_.push({last_arrival_, 0, kBreak});
  } else if (!credit_.is_under_way()) {
    credit_on_its_way_ = consumed_;
    network_.world().schedule(credit_, network_.arrival_time(link_back_, 0));
  }
}

void Pipe::held() {
  // Nobody is left to send it again.
  if (from_.has_vanished_) return lose_segments();
  if (give_up_.is_scheduled()) return;
  network_.world().schedule(give_up_, network_.world().now() + network_.options().held_limit);
}

void Pipe::on_give_up(Event& event) {
  Pipe& self = static_cast<Arrival&>(event).pipe;
  const bool is_data_held = self.arrival_.is_linked();
  const bool is_window_held = self.credit_.is_linked() && self.unsent() > 0;
  if (!is_data_held && !is_window_held) return;
  self.drop_unsent();
  self.from_.fail_with({Errc::kTimedOut, "the peer's machine does not answer"});
  self.lose_segments();
}

void Pipe::lose_segments() {
  arrival_.unlink();
  arrival_.cancel();
  forget_segments();
  to_.forget_if_embryo();
}

void Pipe::credit(size_t bytes) {
  consumed_ += bytes;
  send_credit_if_needed();
}

std::vector<SharedHold> Pipe::take_parcel(size_t count) {
  // A reader that wanted bytes alone has passed those before by.
  std::erase_if(parcels_, [&](const Parcel& parcel) { return parcel.position < bytes_.begin(); });
  if (until_parcel() >= count) return {};
  std::vector<SharedHold> things = std::move(parcels_.front().things);
  parcels_.erase(parcels_.begin());
  return things;
}

size_t Pipe::until_parcel() const {
  return parcels_.empty() ? SIZE_MAX : parcels_.front().position - bytes_.begin();
}

// The receiver tells of new room when it is a good part of the window, or the sender waits for it.
void Pipe::send_credit_if_needed() {
  const uint64_t untold = consumed_ - credited_;
  if (untold == 0 || credit_.is_under_way()) return;
  if (unsent() == 0 && untold < receive_capacity_ / 2) return;
  credit_on_its_way_ = consumed_;
  network_.world().schedule(credit_, network_.arrival_time(link_back_, 0));
}

void Pipe::on_credit(Event& event) {
  Pipe& self = static_cast<Arrival&>(event).pipe;
  if (!self.network_.let_pass(self.link_back_, self.credit_)) return self.held();
  if (!self.arrival_.is_linked()) self.give_up_.cancel();
  self.credited_ = self.credit_on_its_way_;
  self.transmit();
  self.send_credit_if_needed();
  self.from_.on_room();
}

Endpoint::Endpoint(Circuit& circuit, Machine& machine, env::Address local, env::Address peer)
    : circuit_(circuit),
      machine_(machine),
      local_(std::move(local)),
      peer_(std::move(peer)),
      life_(machine.lives()) {}

Pipe& Endpoint::in() {
  return this == &circuit_.client_ ? circuit_.to_client_ : circuit_.to_server_;
}
Pipe& Endpoint::out() {
  return this == &circuit_.client_ ? circuit_.to_server_ : circuit_.to_client_;
}

void Endpoint::own(Process* process) {
  is_owned_ = true;
  if (process != nullptr) join(*process);
}

void Endpoint::forget_if_embryo() {
  if (!std::exchange(is_embryo_, false)) return;
  is_owned_ = false;
  circuit_.network().free_if_unowned(circuit_);
}

void Endpoint::close() {
  leave();
  user_ = nullptr;
  is_owned_ = false;
  if (is_listening()) {
    // As TCP does: unread bytes mean that somebody did not finish talking.
    out().end_with(in().readable() > 0 ? Pipe::End::kReset : Pipe::End::kFinish);
  }
  is_closed_ = true;
  circuit_.network().free_if_unowned(circuit_);
}

void Endpoint::finish() {
  is_finished_ = true;
  out().end_with(Pipe::End::kFinish);
}

void Endpoint::reset() {
  if (!is_listening()) return;
  error_ = Error(Errc::kReset, "reset by this side");
  is_closed_ = true;
  out().abort();
}

void Endpoint::break_off() {
  if (!is_listening()) return;
  out().drop_unsent();
  fail_with({Errc::kReset, "connection reset"});
}

void Endpoint::fail_with(Error error) {
  if (!is_listening()) return;
  error_ = error;
  if (user_ != nullptr) user_->on_error();
}

void Endpoint::on_room() {
  if (user_ != nullptr) user_->on_room();
}

void Endpoint::on_segment(uint32_t bytes, uint32_t flags) {
  if ((flags & Pipe::kBreak) != 0) {
    circuit_.client_.break_off();
    circuit_.server_.break_off();
    return;
  }
  if ((flags & Pipe::kHello) != 0) {
    // A process that was not there when the client asked knows nothing of it.
    if (life_ != machine_.lives() || !circuit_.network().enter_backlog(circuit_)) {
      is_closed_ = true;
      out().abort();
      return forget_if_embryo();
    }
    is_embryo_ = false;
  }
  if (!is_listening()) {
    if (bytes > 0) out().abort();
    return;
  }
  if ((flags & Pipe::kReset) != 0) {
    out().drop_unsent();
    return fail_with({Errc::kReset, "connection reset by the peer"});
  }
  if ((flags & Pipe::kFinish) != 0) has_peer_finished_ = true;
  if (user_ != nullptr && flags != Pipe::kHello) user_->on_readable();
}

void Endpoint::die(Death death) {
  if (is_listening()) {
    if (death == Death::kPowerLoss) {
      has_vanished_ = true;
      out().drop_unsent();
    } else if (in().readable() > 0 || circuit_.network().rng().bernoulli(0.5)) {
      out().abort();
    } else {
      out().end_with(Pipe::End::kFinish);
    }
  }
  is_closed_ = true;
  error_ = crashed();
  if (user_ != nullptr) user_->on_error();
}

Circuit::Circuit(Network& network, const Side& client, const Side& server)
    : network_(network),
      client_(*this, client.machine, client.address, server.address),
      server_(*this, server.machine, server.address, client.address),
      to_server_(network, client_, server_, client.options, server.options),
      to_client_(network, server_, client_, server.options, client.options) {
  server_.is_embryo_ = server_.is_owned_ = true;
}

bool Circuit::joins(const Machine& a, const Machine& b) const {
  const Machine* one = &client_.machine_;
  const Machine* other = &server_.machine_;
  return (one == &a && other == &b) || (one == &b && other == &a);
}

}  // namespace cairn::sim
