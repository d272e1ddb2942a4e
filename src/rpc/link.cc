// SPDX-License-Identifier: Apache-2.0
#include "rpc/link.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/check.h"
#include "env/io.h"
#include "task/deadline.h"
#include "tls/stream.h"

namespace cairn::rpc {

namespace {

constexpr size_t kReceiverSize = 16_KiB;
constexpr size_t kBatchMax = 256_KiB;  // bytes of one write, which is to be done in time
// Bodies up to here are taken out of the receiver's buffer; larger ones go straight to their place.
constexpr size_t kCopiedMax = 8_KiB;

}  // namespace

Link::Link(env::Env& env, std::unique_ptr<env::Stream> stream, const LinkOptions& options)
    : env_(env),
      options_(options),
      stream_(std::move(stream)),
      receiver_(*stream_, kReceiverSize),
      tick_([](task::Timer& timer) { static_cast<Tick&>(timer).link->on_tick(); }) {
  tick_.link = this;
  env_.arm(tick_, env_.now() + options_.ping_interval);
  gate_.spawn(send_queue());
}

Link::~Link() { CHECK(gate_.is_closed(), "a link is closed before it is destroyed"); }

void Link::end(Error reason) {
  if (over_) return;
  over_ = reason;
  env_.disarm(tick_);
  stop_.request(reason.code());
}

void Link::on_tick() {
  const Time now = env_.now();
  const auto is_late = [&](Time since) {
    return since != Time::never() && now - since >= options_.message_timeout;
  };
  if (is_late(reading_since_)) return end({Errc::kReset, "a frame did not arrive in time"});
  if (is_broken_) return end({Errc::kReset, "the peer is gone"});
  if (is_late(writing_since_)) return end({Errc::kReset, "the peer takes nothing"});
  const bool is_silent = !std::exchange(heard_, false) && has_received_ && !is_paused_ &&
                         reading_since_ == Time::never();
  if (!is_silent) {
    pings_ = 0;
  } else if (pings_ == options_.pings_max) {
    return end({Errc::kReset, "the peer is silent"});
  } else {
    ++pings_;
    send({.kind = FrameKind::kPing});
  }
  env_.arm(tick_, now + options_.ping_interval);
}

void Link::send(const FrameHead& head, std::string body) {
  if (is_over() || is_broken_) return;
  Outgoing& frame =
      queue_.emplace_back(head.kind, encode_head(head, as_bytes(body)), std::move(body));
  queued_bytes_ += frame.size();
  queued_.set();
}

size_t Link::gather(std::array<Bytes, 64>& pieces, size_t& count) const {
  size_t skip = sent_of_front_;
  size_t bytes = 0;
  count = 0;
  const auto add = [&](Bytes piece) {
    const size_t skipped = std::min(skip, piece.size());
    skip -= skipped;
    piece = piece.subspan(skipped);
    piece = piece.first(std::min(piece.size(), kBatchMax - bytes));
    bytes += piece.size();
    if (!piece.empty()) pieces[count++] = piece;
  };
  for (const Outgoing& frame : queue_) {
    if (count + 2 > pieces.size() || bytes == kBatchMax) break;
    add(frame.head);
    add(as_bytes(frame.body));
  }
  return bytes;
}

void Link::drop_sent(size_t bytes) {
  queued_bytes_ -= bytes;
  sent_of_front_ += bytes;
  while (!queue_.empty() && sent_of_front_ >= queue_.front().size()) {
    sent_of_front_ -= queue_.front().size();
    if (queue_.front().kind == FrameKind::kPong) has_pong_queued_ = false;
    queue_.pop_front();
  }
  if (queued_bytes_ <= options_.queue_max) drained_.set();
}

task::Task<void> Link::send_queue() {
  std::array<Bytes, 64> pieces;
  while (!is_over()) {
    if (queue_.empty()) {
      if (is_closing_) co_return;
      queued_.reset();
      [[maybe_unused]] const Result<void> waited = co_await queued_.wait(stop_.token());
      continue;
    }
    size_t count = 0;
    const size_t bytes = gather(pieces, count);
    writing_since_ = env_.now();
    const Result<void> written =
        co_await stream_->write(std::span(pieces).first(count), stop_.token());
    writing_since_ = Time::never();
    if (!written) {
      // What the peer said last may say why: receive() has until the next tick to find it.
      is_broken_ = true;
      co_return;
    }
    drop_sent(bytes);
  }
}

task::Task<Result<void>> Link::fill(size_t count) {
  while (receiver_.bytes().size() < count) {
    if (!receiver_.bytes().empty() && reading_since_ == Time::never()) {
      reading_since_ = env_.now();
    }
    const Result<void> more = co_await receiver_.more(stop_receiving_.token());
    if (!more) co_return fail(more.error());
    heard_ = true;
  }
  co_return Result<void>{};
}

Result<Frame> Link::note_strange(Error error) {
  if (has_received_) return fail(error);
  const Bytes bytes = receiver_.bytes();
  strange_size_ = std::min(bytes.size(), strange_.size());
  std::ranges::copy(bytes.first(strange_size_), strange_.begin());
  if (!looks_encrypted(strange_bytes())) return fail(error);
  return fail(Errc::kUnsupported, "the other side speaks TLS");
}

task::Task<Result<Frame>> Link::read_frame() {
  if (receiver_.bytes().size() < kHeadSize) {
    const Result<void> filled = co_await fill(kHeadSize);
    if (!filled) co_return note_strange(filled.error());
  }
  const Result<FrameHead> head = decode_head(receiver_.bytes().first(kHeadSize));
  if (!head) {
    co_return note_strange(has_received_ ? Error(Errc::kReset, "a frame arrived damaged")
                                         : head.error());
  }
  if (head->body_size > body_max_) {
    co_return fail(Errc::kCorrupt, "a frame is larger than was agreed");
  }
  receiver_.take(kHeadSize);
  Frame frame{.head = *head, .body = {}};
  if (head->body_size > 0 && head->body_size <= kCopiedMax) {
    if (receiver_.bytes().size() < head->body_size) {
      reading_since_ = reading_since_ == Time::never() ? env_.now() : reading_since_;
      const Result<void> filled = co_await fill(head->body_size);
      if (!filled) co_return fail(filled.error());
    }
    frame.body = as_text(receiver_.bytes().first(head->body_size));
    receiver_.take(head->body_size);
  } else if (head->body_size > 0) {
    reading_since_ = reading_since_ == Time::never() ? env_.now() : reading_since_;
    frame.body.resize(head->body_size);
    const Result<void> read = co_await receiver_.read_into(
        std::as_writable_bytes(std::span(frame.body)), stop_receiving_.token());
    if (!read) co_return fail(read.error());
    heard_ = true;
  }
  reading_since_ = Time::never();
  if (!check_body(*head, as_bytes(frame.body))) {
    co_return fail(Errc::kReset, "a frame arrived damaged");
  }
  has_received_ = true;
  co_return frame;
}

bool Link::answer_itself(const FrameHead& head) {
  if (head.kind == FrameKind::kPong) return true;
  if (head.kind != FrameKind::kPing) return false;
  // One pong answers any number of pings, or a peer that pings without end would fill the queue.
  if (!std::exchange(has_pong_queued_, true)) send({.kind = FrameKind::kPong});
  return true;
}

task::Task<Result<Frame>> Link::receive() {
  while (!stop_receiving_.requested()) {
    if (options_.queue_max > 0 && queued_bytes_ > options_.queue_max) {
      drained_.reset();
      is_paused_ = true;
      [[maybe_unused]] const Result<void> waited = co_await drained_.wait(stop_receiving_.token());
      is_paused_ = false;
      continue;
    }
    Result<Frame> frame = co_await read_frame();
    if (frame) {
      if (!answer_itself(frame->head)) co_return frame;
      continue;
    }
    if (strange_size_ > 0) co_return frame;
    if (stop_receiving_.requested()) break;
    const Error error = frame.error();
    end(error == Errc::kClosed ? Error(Errc::kReset, "the peer hung up") : error);
  }
  co_return fail(is_over() ? error() : stop_receiving_.token().error());
}

task::Task<Result<Frame>> Link::receive_greeting(task::CancelToken token) {
  struct Hook : task::CancelHook {
    using CancelHook::CancelHook;
    Link* link = nullptr;
    task::CancelToken token;
  };
  Hook hook([](task::CancelHook& self) {
    auto& it = static_cast<Hook&>(self);
    it.link->end(it.token.error());
  });
  hook.link = this;
  hook.token = token;
  if (token.requested()) {
    end(token.error());
  } else if (token.can_cancel()) {
    token.add(hook);
  }
  Result<Frame> frame = co_await receive();
  co_return frame;
}

task::Task<void> Link::say_goodbye() {
  task::Deadline deadline(env_, env_.now() + tls::kGoodbye, stop_.token());
  if (!stream_->finish()) co_return;
  // Closed with bytes unread, the peer's end could lose what was sent last.
  std::array<std::byte, 512> ignored;
  for (bool goes_on = true; goes_on;) {
    const Result<size_t> got = co_await stream_->read(ignored, deadline.token());
    goes_on = got && *got > 0;
  }
}

task::Task<void> Link::close() {
  is_closing_ = true;
  queued_.set();
  co_await gate_.close();
  if (!is_over()) co_await say_goodbye();
  end({Errc::kClosed, "the connection was closed"});
  stream_.reset();
}

}  // namespace cairn::rpc
