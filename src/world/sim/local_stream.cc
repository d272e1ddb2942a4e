// SPDX-License-Identifier: Apache-2.0
#include "world/sim/local_stream.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "env/address.h"
#include "env/sharing.h"
#include "env/stream.h"
#include "world/sim/circuit.h"
#include "world/sim/core.h"
#include "world/sim/machine.h"
#include "world/sim/network.h"
#include "world/sim/process.h"
#include "world/sim/shared.h"

namespace cairn::sim {

Result<std::unique_ptr<env::LocalStream>> SimLocalStream::open(Core& core,
                                                               env::Connection connection) {
  Endpoint& endpoint = Network::endpoint_of(connection);
  if (endpoint.local().family != env::Address::Family::kLocal) {
    endpoint.close();
    return fail(Errc::kInvalid, "a connection that carries descriptors is a local one");
  }
  return std::make_unique<SimLocalStream>(core, endpoint);
}

SimLocalStream::SimLocalStream(Core& core, Endpoint& endpoint) : core_(core), endpoint_(endpoint) {
  CHECK(&core.machine() == &endpoint.machine(), "a connection stays in its process");
  endpoint.set_user(this);
}

SimLocalStream::~SimLocalStream() {
  CHECK(reading_ == nullptr && writing_ == nullptr && hanging_up_ == nullptr,
        "a stream goes after its operations have completed");
  endpoint_.close();
}

void SimLocalStream::start_read(env::LocalReadOp& op) {
  CHECK(core_.is_current(), "a stream is used on the core that opened it");
  CHECK(reading_ == nullptr, "one read at a time");
  const bool can_answer = endpoint_.in().readable() > 0 || endpoint_.has_peer_finished() ||
                          endpoint_.error().has_value() || op.into.empty();
  if (can_answer) return op.complete(read_now(op));
  reading_ = &op;
}

Result<env::Received> SimLocalStream::read_now(env::LocalReadOp& op) {
  Pipe& in = endpoint_.in();
  const bool is_gone = was_reset_here_ || core_.process().is_dead();
  if (in.readable() == 0 || is_gone) {
    if (endpoint_.error() && (is_gone || !endpoint_.has_peer_finished())) {
      return fail(*endpoint_.error());
    }
    return env::Received{};
  }
  if (op.into.empty()) return env::Received{};
  // As Linux does: bytes from before those that bring something may be in the same read.
  const std::vector<SharedHold> came = in.take_parcel(std::min(op.into.size(), in.readable()));
  const size_t count = std::min({op.into.size(), in.readable(), in.until_parcel()});
  in.bytes().take(op.into.first(count));
  if (!endpoint_.error()) in.credit(count);
  if (came.size() > op.descriptors.size()) {
    return fail(Errc::kLimit, "more descriptors than expected came, and were closed",
                static_cast<int32_t>(came.size()));
  }
  for (size_t i = 0; i < came.size(); ++i) {
    op.descriptors[i] = core_.machine().descriptors().add(core_.process(), came[i]);
  }
  return env::Received{.bytes = count, .descriptors = came.size()};
}

void SimLocalStream::on_readable() {
  if (hanging_up_ != nullptr && endpoint_.has_peer_finished()) {
    core_.complete(*std::exchange(hanging_up_, nullptr), Result<void>{});
  }
  if (reading_ == nullptr) return;
  env::LocalReadOp& op = *std::exchange(reading_, nullptr);
  core_.complete(op, read_now(op));
}

void SimLocalStream::cancel_read(env::LocalReadOp& op) {
  CHECK(reading_ == &op);
  reading_ = nullptr;
  core_.complete(op, op.cancelled());
}

Result<void> SimLocalStream::can_write(const env::LocalWriteOp& op) const {
  CHECK(core_.is_current(), "a stream is used on the core that opened it");
  CHECK(writing_ == nullptr, "one write at a time");
  if (endpoint_.error()) return fail(*endpoint_.error());
  if (was_write_cut_short_) return fail(Errc::kClosed, "write after one that was cut short");
  return env::check_descriptors(op.descriptors);
}

void SimLocalStream::start_write(env::LocalWriteOp& op) {
  if (const Result<void> can = can_write(op); !can) return op.complete(can);
  if (op.from.empty()) return op.complete({});
  written_ = 0;
  to_send_.clear();
  for (const env::Descriptor* descriptor : op.descriptors) {
    to_send_.push_back(Holding::of(*descriptor));
  }
  if (!to_send_.empty()) core_.machine().record("share.send", to_send_.size());
  writing_ = &op;
  if (write_some()) std::exchange(writing_, nullptr)->complete({});
}

bool SimLocalStream::write_some() {
  Pipe& out = endpoint_.out();
  while (true) {
    const size_t count = std::min(writing_->from.size() - written_, out.room());
    if (count > 0 && !to_send_.empty()) out.attach(std::exchange(to_send_, {}));
    out.append(writing_->from.subspan(written_, count));
    written_ += count;
    out.transmit();
    if (written_ == writing_->from.size()) return true;
    if (out.room() == 0) return false;
  }
}

void SimLocalStream::on_room() {
  if (writing_ == nullptr || !write_some()) return;
  core_.complete(*std::exchange(writing_, nullptr), Result<void>{});
}

void SimLocalStream::cancel_write(env::LocalWriteOp& op) {
  CHECK(writing_ == &op);
  writing_ = nullptr;
  was_write_cut_short_ = true;
  core_.complete(op, op.cancelled());
}

void SimLocalStream::start_hang_up(env::LocalHangUpOp& op) {
  CHECK(core_.is_current(), "a stream is used on the core that opened it");
  CHECK(hanging_up_ == nullptr, "one wait for the peer's leaving at a time");
  if (endpoint_.error()) return op.complete(left());
  if (endpoint_.has_peer_finished()) return op.complete({});
  hanging_up_ = &op;
}

// Whether it is the peer that a connection which is over has lost.
Result<void> SimLocalStream::left() const {
  if (was_reset_here_ || core_.process().is_dead()) return fail(*endpoint_.error());
  return {};
}

void SimLocalStream::cancel_hang_up(env::LocalHangUpOp& op) {
  CHECK(hanging_up_ == &op);
  hanging_up_ = nullptr;
  core_.complete(op, op.cancelled());
}

void SimLocalStream::reset() {
  was_reset_here_ = true;
  endpoint_.reset();
  on_error();
}

void SimLocalStream::on_error() {
  const Error error = *endpoint_.error();
  if (reading_ != nullptr) core_.complete(*std::exchange(reading_, nullptr), fail(error));
  if (writing_ != nullptr) core_.complete(*std::exchange(writing_, nullptr), fail(error));
  if (hanging_up_ != nullptr) core_.complete(*std::exchange(hanging_up_, nullptr), left());
}

}  // namespace cairn::sim
