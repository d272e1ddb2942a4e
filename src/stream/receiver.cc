// SPDX-License-Identifier: Apache-2.0
#include "stream/receiver.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace cairn::stream {

Receiver::Receiver(env::Stream& stream, size_t size)
    : stream_(stream), memory_(new std::byte[size]), size_(size) {}

Receiver::~Receiver() {
  if (reserve_ != nullptr) *reserve_ += borrowed_;
}

void Receiver::let_grow(size_t max, size_t& reserve) {
  max_ = max;
  reserve_ = &reserve;
}

void Receiver::grow_if_full() {
  if (end_ < size_ || size_ >= max_ || *reserve_ < max_ - size_) return;
  borrowed_ = max_ - size_;
  *reserve_ -= borrowed_;
  grow(max_);
}

void Receiver::grow(size_t size) {
  if (size <= size_) return;
  std::unique_ptr<std::byte[]> larger(new std::byte[size]);
  std::memcpy(larger.get(), memory_.get() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  memory_ = std::move(larger);
  size_ = size;
}

MutableBytes Receiver::room() {
  if (begin_ == end_) begin_ = end_ = 0;
  // Moved only when little room is left, so that a byte is moved seldom.
  if (begin_ > 0 && size_ - end_ < size_ / 4) {
    std::memmove(memory_.get(), memory_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  return {memory_.get() + end_, size_ - end_};
}

task::Task<Result<void>> Receiver::more(task::CancelToken token) {
  const Result<size_t> got = co_await stream_.read(room(), token);
  if (!got) co_return fail(got.error());
  if (*got == 0) co_return fail(Errc::kClosed, "the peer ended the stream");
  note_read(*got);
  end_ += *got;
  grow_if_full();
  co_return Result<void>{};
}

task::Task<Result<void>> Receiver::wait_for(size_t count, task::CancelToken token) {
  while (end_ - begin_ < count) {
    Result<void> read = co_await more(token);
    if (!read) co_return read;
  }
  co_return Result<void>{};
}

task::Task<Result<void>> Receiver::skip(size_t count, task::CancelToken token) {
  for (;;) {
    const size_t here = std::min(count, end_ - begin_);
    begin_ += here;
    count -= here;
    if (count == 0) co_return Result<void>{};
    Result<void> read = co_await more(token);
    if (!read) co_return read;
  }
}

task::Task<Result<void>> Receiver::read_into(MutableBytes to, task::CancelToken token) {
  if (to.empty()) co_return Result<void>{};
  const size_t here = std::min(to.size(), end_ - begin_);
  std::memcpy(to.data(), memory_.get() + begin_, here);
  begin_ += here;
  to = to.subspan(here);
  while (!to.empty()) {
    const std::array<MutableBytes, 2> pieces = {to, room()};
    const Result<size_t> got = co_await stream_.read(std::span(pieces), token);
    if (!got) co_return fail(got.error());
    if (*got == 0) co_return fail(Errc::kClosed, "the peer ended the stream");
    note_read(*got);
    const size_t direct = std::min(*got, to.size());
    to = to.subspan(direct);
    end_ += *got - direct;
  }
  co_return Result<void>{};
}

}  // namespace cairn::stream
