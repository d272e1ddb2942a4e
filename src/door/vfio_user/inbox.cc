// SPDX-License-Identifier: Apache-2.0
#include "door/vfio_user/inbox.h"

#include "base/check.h"

namespace cairn::door::vfio_user {

void Inbox::end(const Error& why) {
  end_ = why;
  came_.set();
  on_end_();
}

task::Task<void> Inbox::fill(task::CancelToken token) {
  while (true) {
    Result<void> outcome;
    if (count_ == slots_.size()) {
      outcome = co_await wait_for_room(token);
    } else {
      Message& slot = slots_[(first_ + count_) % slots_.size()];
      outcome = co_await read_message(stream_, slot, token);
      if (outcome) ++count_;
    }
    if (!outcome) co_return end(outcome.error());
    came_.set();
  }
}

// What nobody reads may hide the end, so it is asked for by itself meanwhile.
task::Task<Result<void>> Inbox::wait_for_room(task::CancelToken token) {
  task::CancelSource room(token);
  room_ = &room;
  const Result<void> left = co_await stream_.hang_up(room.token());
  room_ = nullptr;
  if (left) co_return fail(Errc::kClosed, "the peer has finished");
  if (count_ < slots_.size()) co_return Result<void>{};
  co_return left;
}

task::Task<Result<Message*>> Inbox::next() {
  while (!end_) {
    if (count_ > 0) co_return &slots_[first_];
    came_.reset();
    const Result<void> came = co_await came_.wait();
    CHECK(came.has_value(), "nobody cancels this wait");
  }
  co_return fail(*end_);
}

void Inbox::drop() {
  slots_[first_].clear();
  first_ = (first_ + 1) % slots_.size();
  --count_;
  if (room_ != nullptr) room_->request();
}

}  // namespace cairn::door::vfio_user
