// SPDX-License-Identifier: Apache-2.0
#include "door/vfio_user/message.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

namespace cairn::door::vfio_user {

namespace {

// Fills all of `into`; 0 bytes when the peer has finished before the first.
task::Task<Result<size_t>> fill(env::LocalStream& stream, Message& message, MutableBytes into,
                                task::CancelToken token) {
  size_t done = 0;
  while (done < into.size()) {
    const auto room = std::span(message.held).subspan(message.held_count);
    const Result<env::Received> got = co_await stream.read(into.subspan(done), room, token);
    if (!got && got.error() == Errc::kLimit) {
      co_return fail(Errc::kCorrupt, "more descriptors in a message than were agreed on");
    }
    if (!got) co_return fail(got.error());
    if (got->bytes == 0 && done == 0) co_return size_t{0};
    if (got->bytes == 0) co_return fail(Errc::kReset, "the peer left within a message");
    done += got->bytes;
    message.held_count += got->descriptors;
  }
  co_return done;
}

}  // namespace

void Message::clear() {
  for (env::Descriptor& descriptor : descriptors()) descriptor = {};
  held_count = 0;
  payload.clear();
}

task::Task<Result<void>> read_message(env::LocalStream& stream, Message& into,
                                      task::CancelToken token) {
  into.clear();
  const Result<size_t> header = co_await fill(stream, into, mutable_bytes_of(into.header), token);
  if (!header) co_return fail(header.error());
  if (*header == 0) co_return fail(Errc::kClosed, "the peer has finished");
  const uint32_t size = into.header.size;
  if (size < sizeof(Header) || size > kMessageMax) {
    co_return fail(Errc::kCorrupt, "the size of a message", static_cast<int>(size));
  }
  if ((into.header.flags & kTypeMask) > kTypeReply) {
    co_return fail(Errc::kCorrupt, "a message that is neither command nor reply");
  }
  if (size == sizeof(Header)) co_return Result<void>{};
  into.payload.resize(size - sizeof(Header));
  const Result<size_t> payload = co_await fill(stream, into, into.payload, token);
  if (!payload) co_return fail(payload.error());
  if (*payload == 0) co_return fail(Errc::kReset, "the peer left within a message");
  co_return Result<void>{};
}

task::Task<Result<void>> MessageWriter::write(OutgoingMessage message, task::CancelToken token) {
  const Result<void> mine = co_await turn_.acquire(1, token);
  if (!mine) co_return mine;
  const task::Units held(turn_, 1);
  message.header.size = static_cast<uint32_t>(sizeof(Header) + message.payload.size());
  std::vector<std::byte> bytes(sizeof(Header) + message.payload.size());
  store(bytes, message.header);
  std::ranges::copy(message.payload, bytes.begin() + sizeof(Header));
  Result<void> written = co_await stream_.write(bytes, message.descriptors, token);
  co_return written;
}

namespace {

struct Number {
  Errc code;
  uint32_t number;
};
// The first of a code, or of a number, counts.
constexpr Number kNumbers[] = {
    {Errc::kInvalid, EINVAL},
    {Errc::kNotFound, ENOENT},
    {Errc::kExists, EEXIST},
    {Errc::kDenied, EACCES},
    {Errc::kUnsupported, ENOTSUP},
    {Errc::kLimit, ENOMEM},
    {Errc::kNoSpace, ENOSPC},
    {Errc::kTimedOut, ETIMEDOUT},
    {Errc::kCancelled, ECANCELED},
    {Errc::kUnreachable, EBUSY},
    {Errc::kIo, EIO},
};

}  // namespace

uint32_t errno_of(const Error& error) {
  const auto* found = std::ranges::find(kNumbers, error.code(), &Number::code);
  return found == std::end(kNumbers) ? EIO : found->number;
}

Error error_of(uint32_t number) {
  const auto* found = std::ranges::find(kNumbers, number, &Number::number);
  const Errc code = found == std::end(kNumbers) ? Errc::kIo : found->code;
  return {code, "the server refused", static_cast<int>(number)};
}

}  // namespace cairn::door::vfio_user
