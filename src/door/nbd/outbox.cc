// SPDX-License-Identifier: Apache-2.0
#include "door/nbd/outbox.h"

#include "base/check.h"
#include "task/deadline.h"

namespace cairn::door::nbd {

namespace {

// One write: enough to be cheap, not so much that the first reply waits for the last.
constexpr size_t kBatchPieces = 128;
constexpr size_t kBatchBytes = 256UL * 1024;

}  // namespace

Outbox::Send::Send(Outbox& outbox, std::initializer_list<Bytes> pieces, Part part)
    : Operation(task::CancelToken{}), outbox_(outbox), part_(part) {
  CHECK(pieces.size() <= kPiecesMax);
  for (const Bytes piece : pieces) {
    if (!piece.empty()) pieces_[count_++] = piece;
  }
}

void Outbox::Send::start() { outbox_.add(*this); }

Outbox::Outbox(env::Env& env, env::Stream& stream, Duration stall)
    : env_(env), stream_(stream), stall_(stall) {
  pieces_.reserve(kBatchPieces + kPiecesMax);
}

void Outbox::add(Send& message) {
  if (failure_) return message.complete(fail(*failure_));
  const bool continues = message.part_ == Part::kMiddle || message.part_ == Part::kLast;
  (continues ? continuing_ : waiting_).push_back(message);
  changed_.set();
}

void Outbox::take(Send& message, List<Send, Outbox>& batch) {
  for (size_t i = 0; i < message.count_; ++i) {
    pieces_.push_back(message.pieces_[i]);
    gathered_ += message.pieces_[i].size();
  }
  batch.push_back(message);
  if (message.part_ == Part::kFirst) is_open_reply_ = true;
  if (message.part_ == Part::kLast) is_open_reply_ = false;
}

void Outbox::gather(List<Send, Outbox>& batch) {
  pieces_.clear();
  gathered_ = 0;
  while (pieces_.size() < kBatchPieces && gathered_ < kBatchBytes) {
    Send* next = is_open_reply_ ? continuing_.pop_front() : waiting_.pop_front();
    if (next == nullptr) return;
    take(*next, batch);
  }
}

task::Task<void> Outbox::run() {
  for (;;) {
    List<Send, Outbox> batch;
    gather(batch);
    if (batch.empty()) {
      if (closed_) co_return;
      changed_.reset();
      const Result<void> woken = co_await changed_.wait();
      CHECK(woken.has_value());
      continue;
    }
    Result<void> sent;
    {
      task::Deadline deadline(env_, env_.now() + stall_);
      sent = co_await stream_.write(pieces_, deadline.token());
    }
    if (!sent) failure_ = sent.error();
    while (Send* message = batch.pop_front()) message->complete(sent);
    if (failure_) {
      while (Send* message = waiting_.pop_front()) message->complete(fail(*failure_));
      while (Send* message = continuing_.pop_front()) message->complete(fail(*failure_));
      is_open_reply_ = false;
    }
  }
}

void Outbox::close() {
  closed_ = true;
  changed_.set();
}

}  // namespace cairn::door::nbd
