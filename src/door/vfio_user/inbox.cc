// SPDX-License-Identifier: Apache-2.0
#include "door/vfio_user/inbox.h"

#include "base/check.h"

namespace cairn::vfio_user {

void Inbox::end(const Error& why) {
  end_ = why;
  came_.set();
  on_end_();
}

task::Task<void> Inbox::fill(task::CancelToken token) {
  while (true) {
    Result<void> outcome;
    if (count_ == slots_.size()) {
      dropped_.reset();
      outcome = co_await dropped_.wait(token);
    } else {
      Message& slot = slots_[(first_ + count_) % slots_.size()];
      outcome = co_await read_message(stream_, slot, token);
      if (outcome) ++count_;
    }
    if (!outcome) co_return end(outcome.error());
    came_.set();
  }
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
  dropped_.set();
}

}  // namespace cairn::vfio_user
