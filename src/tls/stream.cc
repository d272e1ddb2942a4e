// SPDX-License-Identifier: Apache-2.0
#include "tls/stream.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "task/deadline.h"

namespace cairn::tls {

namespace {

// To a peer that does not speak TLS: fatal, unexpected_message (RFC 8446, 5.1 and 6).
constexpr std::array kNotTls = {std::byte{21}, std::byte{3}, std::byte{3}, std::byte{0},
                                std::byte{2},  std::byte{2}, std::byte{10}};

bool is_empty(std::span<const MutableBytes> pieces) {
  return std::ranges::all_of(pieces, [](MutableBytes piece) { return piece.empty(); });
}

}  // namespace

struct TlsStream::Link {
  Link(env::Env& its_env, std::unique_ptr<env::Stream> stream, std::unique_ptr<Engine> its_engine)
      : env(its_env), inner(std::move(stream)), engine(std::move(its_engine)) {}

  env::Env& env;
  std::unique_ptr<env::Stream> inner;
  std::unique_ptr<Engine> engine;
};

TlsStream::TlsStream(env::Env& env, std::unique_ptr<env::Stream> inner, const Context& context,
                     Psk psk, task::Gate& lingering)
    : env_(env),
      link_(std::make_shared<Link>(env, std::move(inner),
                                   std::make_unique<Engine>(context, std::move(psk)))),
      lingering_(lingering) {}

TlsStream::TlsStream(env::Env& env, std::unique_ptr<env::Stream> inner, const Context& context,
                     PskKeeper& keeper, task::Gate& lingering)
    : env_(env),
      link_(std::make_shared<Link>(env, std::move(inner), std::make_unique<Engine>(context))),
      keeper_(&keeper),
      lingering_(lingering) {}

TlsStream::TlsStream(env::Env& env, std::unique_ptr<env::Stream> inner, const Context& context,
                     const ServerName& server, task::Gate& lingering)
    : env_(env),
      link_(
          std::make_shared<Link>(env, std::move(inner), std::make_unique<Engine>(context, server))),
      lingering_(lingering) {}

// A write that was cut short leaves half a record behind, after which nothing can be said.
TlsStream::~TlsStream() {
  CHECK(!reading_.busy && !writing_.busy, "a stream goes after its operations have completed");
  CHECK(free_chunks_.size() == chunks_.size(), "chunks are given back before their stream goes");
  const bool has_goodbye = is_open_ && !is_finished_ && !was_reset_ && !write_error_;
  if (!has_goodbye) return;
  link_->engine->close_notify();
  lingering_.spawn(say_goodbye(std::move(link_), false));
}

const HandshakeReport& TlsStream::report() const { return link_->engine->report(); }
const std::string& TlsStream::identity() const { return link_->engine->identity(); }
env::Address TlsStream::local() const { return link_->inner->local(); }
env::Address TlsStream::peer() const { return link_->inner->peer(); }

// --- the handshake ------------------------------------------------------------------------------

task::Task<Result<void>> TlsStream::shake_hands(Duration timeout, task::CancelToken token) {
  task::Deadline deadline(env_, env_.now() + timeout, token);
  link_->engine->judge_at(env_.wall_now());
  Result<void> done = co_await shake_hands_until(deadline.token());
  if (done) {
    is_open_ = true;
  } else if (deadline.expired() && !token.requested()) {
    done = fail(Errc::kTimedOut, "the TLS handshake took too long");
  }
  env_.trace().record("tls.handshake", done ? 1 : 0);
  co_return done;
}

task::Task<Result<void>> TlsStream::shake_hands_until(task::CancelToken token) {
  Engine& engine = *link_->engine;
  for (;;) {
    const Engine::Step step = engine.shake_hands();
    if (step == Engine::Step::kWantsChoice) {
      Result<Psk> choice = co_await keeper_->choose(engine.offered());
      if (!choice && token.requested()) co_return fail(token.error());
      engine.choose(std::move(choice));
      continue;
    }
    if (step == Engine::Step::kFailed) {
      co_await refuse_peer(token);
      co_return fail(*engine.failure());
    }
    Result<void> sent = co_await send_output(*link_, token);
    if (!sent || step == Engine::Step::kDone) co_return sent;
    const Result<size_t> got = co_await link_->inner->read(engine.input_room(), token);
    if (!got) co_return fail(got.error());
    if (*got == 0) engine.input_ended();
    engine.input_came(*got);
  }
}

// Says why, and gives the peer the time to hear it: a stream that goes with unread bytes is reset,
// and the alert may be lost with it.
task::Task<void> TlsStream::refuse_peer(task::CancelToken token) {
  task::Deadline deadline(env_, env_.now() + kGoodbye, token);
  Result<void> said = co_await send_output(*link_, deadline.token());
  const bool is_server = keeper_ != nullptr;
  if (said && is_server && report().heard_anything && !report().heard_tls) {
    said = co_await link_->inner->write(Bytes(kNotTls), deadline.token());
  }
  if (!said || !is_server || !link_->inner->finish()) co_return;
  std::array<std::byte, 512> ignored;
  for (;;) {
    const Result<size_t> got = co_await link_->inner->read(ignored, deadline.token());
    if (!got || *got == 0) co_return;
  }
}

// --- reading ------------------------------------------------------------------------------------

std::optional<Result<size_t>> TlsStream::read_now(std::span<const MutableBytes> into) {
  if (was_reset_) return fail(Errc::kReset, "the stream was reset here");
  size_t total = 0;
  for (MutableBytes piece : into) {
    while (!piece.empty()) {
      size_t count = 0;
      const Engine::Step step = link_->engine->read(piece, count);
      if (step == Engine::Step::kDone) {
        total += count;
        piece = piece.subspan(count);
        continue;
      }
      if (total > 0) return total;
      if (step == Engine::Step::kEnd) return size_t{0};
      if (step == Engine::Step::kFailed) return fail(*link_->engine->failure());
      if (read_error_) return fail(*read_error_);
      return std::nullopt;
    }
  }
  return total;
}

task::Task<Result<size_t>> TlsStream::read_some(std::span<const MutableBytes> into,
                                                task::CancelToken token) {
  Engine& engine = *link_->engine;
  for (;;) {
    const Result<size_t> got = co_await link_->inner->read(engine.input_room(), token);
    if (!got && token.requested()) co_return fail(got.error());
    if (!got) read_error_ = got.error();
    if (got && *got == 0) engine.input_ended();
    if (got) engine.input_came(*got);
    const bool was_sound = !engine.failure();
    std::optional<Result<size_t>> read = read_now(into);
    if (!read) continue;
    // What is wrong with the peer's bytes is told to it, by a write under way or here.
    if (was_sound && engine.failure() && !writing_.busy && !write_error_ && !is_finished_) {
      write_error_ = engine.failure();
      task::Deadline deadline(env_, env_.now() + kGoodbye, token);
      const Result<void> told = co_await send_output(*link_, deadline.token());
      env_.trace().record("tls.alert_sent", told ? 1 : 0);
    }
    co_return *read;
  }
}

void TlsStream::start_read(env::ReadOp& op) {
  CHECK(is_open_, "hands are shaken first");
  CHECK(!reading_.busy, "one read or receive at a time");
  if (is_empty(op.pieces())) return op.complete(size_t{0});
  if (const std::optional<Result<size_t>> here = read_now(op.pieces())) return op.complete(*here);
  const task::CancelToken token = reading_.begin();
  reading_.task = read_for(op, token);
}

task::Task<void> TlsStream::read_for(env::ReadOp& op, task::CancelToken token) {
  const Result<size_t> read = co_await read_some(op.pieces(), token);
  reading_.busy = false;
  op.complete(!read && reading_.is_cancelled() ? op.cancelled() : read);
}

void TlsStream::cancel_read(env::ReadOp&) { reading_.cancel->request(); }

// --- receiving ----------------------------------------------------------------------------------

std::optional<uint64_t> TlsStream::free_chunk() {
  if (free_chunks_.empty()) {
    if (chunks_.size() == kChunksMax) return std::nullopt;
    free_chunks_.push_back(chunks_.size());
    chunks_.emplace_back(new std::byte[kPlainMax]);
    free_chunks_.reserve(kChunksMax);
  }
  return free_chunks_.back();
}

// Lends what was read into it, if anything was.
Result<env::Chunk> TlsStream::chunk_of(uint64_t id, Result<size_t> read) {
  if (!read) return fail(read.error());
  if (*read == 0) return env::Chunk();
  CHECK(free_chunks_.back() == id);
  free_chunks_.pop_back();
  return env::Chunk(Bytes(chunks_[id].get(), *read), this, id);
}

void TlsStream::take_back(uint64_t id) {
  free_chunks_.push_back(id);
  chunk_came_back_.set();
}

void TlsStream::start_receive(env::ReceiveOp& op) {
  CHECK(is_open_, "hands are shaken first");
  CHECK(!reading_.busy, "one read or receive at a time");
  if (const std::optional<uint64_t> id = free_chunk()) {
    const MutableBytes into(chunks_[*id].get(), kPlainMax);
    if (const auto here = read_now(std::span(&into, 1))) return op.complete(chunk_of(*id, *here));
  }
  const task::CancelToken token = reading_.begin();
  reading_.task = receive_for(op, token);
}

task::Task<void> TlsStream::receive_for(env::ReceiveOp& op, task::CancelToken token) {
  Result<void> waited;
  while (waited && !was_reset_ && !free_chunk()) {
    chunk_came_back_.reset();
    waited = co_await chunk_came_back_.wait(token);
  }
  // A chunk that is given back meanwhile goes on top of the free ones: this one is set aside.
  uint64_t id = 0;
  Result<size_t> read = size_t{0};
  if (waited && was_reset_) {
    read = fail(Errc::kReset, "the stream was reset here");
  } else if (waited) {
    id = *free_chunk();
    free_chunks_.pop_back();
    const MutableBytes into(chunks_[id].get(), kPlainMax);
    const std::optional<Result<size_t>> here = read_now(std::span(&into, 1));
    if (here) {
      read = *here;
    } else {
      read = co_await read_some(std::span(&into, 1), token);
    }
    free_chunks_.push_back(id);
  } else {
    read = fail(waited.error());
  }
  reading_.busy = false;
  if (!read && reading_.is_cancelled()) co_return op.complete(op.cancelled());
  op.complete(chunk_of(id, read));
}

void TlsStream::cancel_receive(env::ReceiveOp&) { reading_.cancel->request(); }

// --- writing ------------------------------------------------------------------------------------

task::Task<Result<void>> TlsStream::send_output(Link& link, task::CancelToken token) {
  for (Bytes bytes = link.engine->output(); !bytes.empty(); bytes = link.engine->output()) {
    Result<void> sent = co_await link.inner->write(bytes, token);
    if (!sent) co_return sent;
    link.engine->output_left(bytes.size());
  }
  co_return Result<void>{};
}

Error TlsStream::write_failure() const {
  if (was_reset_) return {Errc::kReset, "the stream was reset here"};
  return write_error_ ? *write_error_ : *link_->engine->failure();
}

void TlsStream::start_write(env::WriteOp& op) {
  CHECK(is_open_, "hands are shaken first");
  CHECK(!writing_.busy, "one write at a time");
  if (was_reset_ || write_error_ || link_->engine->failure()) {
    return op.complete(fail(write_failure()));
  }
  if (is_finished_) return op.complete(fail(Errc::kClosed, "write after finish"));
  const task::CancelToken token = writing_.begin();
  writing_.task = write_for(op, token);
}

task::Task<void> TlsStream::write_for(env::WriteOp& op, task::CancelToken token) {
  const Result<void> written = co_await write_pieces(op.pieces(), token);
  writing_.busy = false;
  if (written) co_return op.complete({});
  const bool was_cancelled = writing_.is_cancelled();
  if (!write_error_) {
    write_error_ = was_cancelled ? Error(Errc::kClosed, "write after one that was cut short")
                                 : written.error();
  }
  op.complete(was_cancelled ? op.cancelled() : written);
}

// Large pieces are encrypted from where they are; small ones share a record.
task::Task<Result<void>> TlsStream::write_pieces(std::span<const Bytes> pieces,
                                                 task::CancelToken token) {
  Engine& engine = *link_->engine;
  size_t offset = 0;  // of pieces.front()
  const auto skip_empty = [&] {
    while (!pieces.empty() && offset == pieces.front().size()) {
      pieces = pieces.subspan(1);
      offset = 0;
    }
  };
  const auto next_record = [&]() -> Bytes {
    const Bytes whole = pieces.front().subspan(offset);
    if (whole.size() >= kPlainMax || pieces.size() == 1) {
      const Bytes part = whole.first(std::min(whole.size(), kPlainMax));
      offset += part.size();
      return part;
    }
    if (gathered_ == nullptr) gathered_.reset(new std::byte[kPlainMax]);
    size_t size = 0;
    for (; !pieces.empty() && size < kPlainMax; skip_empty()) {
      const Bytes rest = pieces.front().subspan(offset);
      const size_t count = std::min(rest.size(), kPlainMax - size);
      std::memcpy(gathered_.get() + size, rest.data(), count);
      size += count;
      offset += count;
    }
    return {gathered_.get(), size};
  };
  skip_empty();
  while (!pieces.empty()) {
    while (!pieces.empty() && engine.has_room_for_record()) {
      if (!engine.write(next_record())) break;
      skip_empty();
    }
    Result<void> sent = co_await send_output(*link_, token);
    if (!sent) co_return sent;
    if (engine.failure()) co_return fail(*engine.failure());
  }
  co_return Result<void>{};
}

void TlsStream::cancel_write(env::WriteOp&) { writing_.cancel->request(); }

// --- the end ------------------------------------------------------------------------------------

Result<void> TlsStream::finish() {
  CHECK(is_open_ && !is_finished_, "a stream is finished once");
  CHECK(!writing_.busy, "no write is in flight when a stream is finished");
  if (was_reset_ || write_error_ || link_->engine->failure() || read_error_) {
    return fail(Errc::kReset, "finish: the connection is gone");
  }
  is_finished_ = true;
  link_->engine->close_notify();
  lingering_.spawn(say_goodbye(link_, true));
  return {};
}

task::Task<void> TlsStream::say_goodbye(std::shared_ptr<Link> link, bool finishes) {
  task::Deadline deadline(link->env, link->env.now() + kGoodbye);
  const Result<void> said = co_await send_output(*link, deadline.token());
  if (said && finishes) {
    const Result<void> finished = link->inner->finish();
    link->env.trace().record("tls.finished", finished ? 1 : 0);
  }
}

void TlsStream::reset() {
  was_reset_ = true;
  link_->inner->reset();
  chunk_came_back_.set();
}

}  // namespace cairn::tls
