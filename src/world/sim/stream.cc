// SPDX-License-Identifier: Apache-2.0
#include "world/sim/stream.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "env/stream.h"
#include "world/sim/circuit.h"
#include "world/sim/core.h"
#include "world/sim/machine.h"
#include "world/sim/network.h"
#include "world/sim/process.h"

namespace cairn::sim {

std::unique_ptr<env::Stream> SimStream::open(Core& core, env::Connection connection) {
  return std::make_unique<SimStream>(core, Network::endpoint_of(connection));
}

SimStream::SimStream(Core& core, Endpoint& endpoint) : core_(core), endpoint_(endpoint) {
  CHECK(&core.machine() == &endpoint.machine(), "a connection stays in its process");
  endpoint.set_user(this);
}

SimStream::~SimStream() {
  CHECK(reading_ == nullptr && receiving_ == nullptr && writing_ == nullptr,
        "a stream goes after its operations have completed");
  CHECK(free_ids_.size() == chunks_.size(), "chunks are given back before their stream goes");
  endpoint_.close();
}

void SimStream::begin_reading(ReadBy by) {
  CHECK(core_.is_current(), "a stream is used on the core that opened it");
  CHECK(reading_ == nullptr && receiving_ == nullptr, "one read or receive at a time");
  CHECK(read_by_ == ReadBy::kNobodyYet || read_by_ == by, "read() or receive(), not both");
  read_by_ = by;
}

bool SimStream::can_answer_reader() {
  return endpoint_.in().readable() > 0 || endpoint_.has_peer_finished() ||
         endpoint_.error().has_value();
}

void SimStream::start_read(env::ReadOp& op) {
  begin_reading(ReadBy::kRead);
  if (can_answer_reader()) return op.complete(read_now(op));
  reading_ = &op;
}

Result<size_t> SimStream::read_now(env::ReadOp& op) {
  Pipe& in = endpoint_.in();
  const bool is_gone = was_reset_here_ || core_.process().is_dead();
  if (in.readable() == 0 || is_gone) {
    // An end that arrived before an error is still an end.
    if (endpoint_.has_peer_finished() && !is_gone) return size_t{0};
    return fail(*endpoint_.error());
  }
  size_t count = 0;
  for (const MutableBytes piece : op.pieces()) {
    const size_t part = std::min(piece.size(), in.readable());
    in.bytes().take(piece.first(part));
    count += part;
    if (in.readable() == 0) break;
  }
  if (!endpoint_.error()) in.credit(count);
  return count;
}

void SimStream::start_receive(env::ReceiveOp& op) {
  begin_reading(ReadBy::kReceive);
  if (can_answer_reader()) return op.complete(receive_now());
  receiving_ = &op;
}

Result<env::Chunk> SimStream::receive_now() {
  Pipe& in = endpoint_.in();
  const bool is_gone = was_reset_here_ || core_.process().is_dead();
  if (in.readable() == 0 || is_gone) {
    if (endpoint_.has_peer_finished() && !is_gone) return env::Chunk();
    return fail(*endpoint_.error());
  }
  const ByteQueue::Run run = in.bytes().take_pinned(in.readable());
  if (free_ids_.empty()) {
    free_ids_.push_back(chunks_.size());
    chunks_.emplace_back();
  }
  const uint64_t id = free_ids_.back();
  free_ids_.pop_back();
  chunks_[id] = {run.block, run.bytes.size()};
  return env::Chunk(run.bytes, this, id);
}

void SimStream::take_back(uint64_t id) {
  const HeldChunk chunk = std::exchange(chunks_[id], {});
  free_ids_.push_back(id);
  endpoint_.in().bytes().unpin(*chunk.block);
  if (!endpoint_.error()) endpoint_.in().credit(chunk.size);
}

void SimStream::on_readable() {
  if (reading_ != nullptr) {
    env::ReadOp& op = *std::exchange(reading_, nullptr);
    core_.complete(op, read_now(op));
  } else if (receiving_ != nullptr) {
    env::ReceiveOp& op = *std::exchange(receiving_, nullptr);
    core_.complete(op, receive_now());
  }
}

void SimStream::cancel_read(env::ReadOp& op) {
  CHECK(reading_ == &op);
  reading_ = nullptr;
  core_.complete(op, op.cancelled());
}

void SimStream::cancel_receive(env::ReceiveOp& op) {
  CHECK(receiving_ == &op);
  receiving_ = nullptr;
  core_.complete(op, op.cancelled());
}

Result<void> SimStream::can_write() const {
  CHECK(core_.is_current(), "a stream is used on the core that opened it");
  CHECK(writing_ == nullptr, "one write at a time");
  if (endpoint_.error()) return fail(*endpoint_.error());
  if (endpoint_.is_finished()) return fail(Errc::kClosed, "write after finish");
  if (was_write_cut_short_) return fail(Errc::kClosed, "write after one that was cut short");
  return {};
}

void SimStream::start_write(env::WriteOp& op) {
  if (Result<void> can = can_write(); !can) return op.complete(can);
  piece_ = offset_ = 0;
  if (write_some(op.pieces())) return op.complete({});
  writing_ = &op;
}

Result<size_t> SimStream::write_now(std::span<const Bytes> from) {
  if (Result<void> can = can_write(); !can) return fail(can.error());
  if (core_.buggify("stream.write_later")) return 0;
  // Cut anywhere, as by a socket that fills up.
  size_t room = std::min(total_size(from), endpoint_.out().room());
  if (core_.buggify("stream.write_part")) room = core_.rng().below(room + 1);
  size_t accepted = 0;
  for (const Bytes piece : from) {
    const size_t count = std::min(piece.size(), room - accepted);
    endpoint_.out().append(piece.first(count));
    accepted += count;
    if (count < piece.size()) break;
  }
  endpoint_.out().transmit();
  return accepted;
}

bool SimStream::write_some(std::span<const Bytes> pieces) {
  Pipe& out = endpoint_.out();
  while (true) {
    // Small pieces travel together: all that fits goes in before anything is sent.
    while (piece_ < pieces.size()) {
      const Bytes rest = pieces[piece_].subspan(offset_);
      const size_t count = std::min(rest.size(), out.room());
      out.append(rest.first(count));
      offset_ += count;
      if (count < rest.size()) break;
      ++piece_;
      offset_ = 0;
    }
    out.transmit();
    if (piece_ == pieces.size()) return true;
    if (out.room() == 0) return false;
  }
}

void SimStream::on_room() {
  if (writing_ == nullptr || !write_some(writing_->pieces())) return;
  core_.complete(*std::exchange(writing_, nullptr), Result<void>{});
}

void SimStream::cancel_write(env::WriteOp& op) {
  CHECK(writing_ == &op);
  writing_ = nullptr;
  was_write_cut_short_ = true;
  core_.complete(op, op.cancelled());
}

Result<void> SimStream::finish() {
  CHECK(core_.is_current(), "a stream is used on the core that opened it");
  CHECK(writing_ == nullptr, "no write is in flight when a stream is finished");
  if (core_.process().is_dead()) return fail(crashed());
  if (endpoint_.error()) return fail(Errc::kReset, "finish: the connection is gone");
  endpoint_.finish();
  return {};
}

void SimStream::reset() {
  was_reset_here_ = true;
  endpoint_.reset();
  on_error();
}

void SimStream::on_error() {
  const Error error = *endpoint_.error();
  if (reading_ != nullptr) core_.complete(*std::exchange(reading_, nullptr), fail(error));
  if (receiving_ != nullptr) core_.complete(*std::exchange(receiving_, nullptr), fail(error));
  if (writing_ != nullptr) core_.complete(*std::exchange(writing_, nullptr), fail(error));
}

}  // namespace cairn::sim
