// SPDX-License-Identifier: Apache-2.0
#include "door/vhost_user/driver_messages.h"

namespace cairn::door::vhost_user {

task::Task<Result<void>> DriverMessages::write(Request request, uint32_t flags, Bytes payload,
                                               std::span<const env::Descriptor* const> descriptors,
                                               task::CancelToken token) {
  const std::vector<std::byte> bytes =
      encode(static_cast<uint32_t>(request), kVersion | flags, payload);
  const Result<void> sent = co_await stream_->write(bytes, descriptors, token);
  co_return sent;
}

task::Task<Result<std::vector<std::byte>>> DriverMessages::read(Request request,
                                                                env::Descriptor* came,
                                                                task::CancelToken token) {
  std::vector<std::byte> room(sizeof(MessageHeader));
  const std::span<env::Descriptor> descriptors(came, came != nullptr ? 1 : 0);
  size_t filled = 0;
  bool has_header = false;
  while (filled < room.size()) {
    const Result<env::Received> got =
        co_await stream_->read(MutableBytes(room).subspan(filled),
                               filled == 0 ? descriptors : std::span<env::Descriptor>(), token);
    if (!got) co_return fail(got.error());
    if (got->bytes == 0) co_return fail(Errc::kClosed, "the server has gone");
    filled += got->bytes;
    if (!has_header && filled == sizeof(MessageHeader)) {
      has_header = true;
      const auto header = load<MessageHeader>(room);
      if (header.request != static_cast<uint32_t>(request) || (header.flags & kIsReply) == 0 ||
          header.size > kPayloadMax) {
        co_return fail(Errc::kInvalid, "an answer to another question");
      }
      room.resize(sizeof(MessageHeader) + header.size);
    }
  }
  room.erase(room.begin(), room.begin() + sizeof(MessageHeader));
  co_return room;
}

task::Task<Result<uint64_t>> DriverMessages::ask(Request request, task::CancelToken token) {
  const Result<void> sent = co_await write(request, 0, {}, {}, token);
  if (!sent) co_return fail(sent.error());
  const Result<std::vector<std::byte>> reply = co_await read(request, nullptr, token);
  if (!reply) co_return fail(reply.error());
  if (reply->size() != sizeof(uint64_t)) co_return fail(Errc::kInvalid, "an answer of odd size");
  co_return load<uint64_t>(*reply);
}

task::Task<Result<uint64_t>> DriverMessages::send(Request request, Bytes payload,
                                                  const env::Descriptor* descriptor,
                                                  task::CancelToken token) {
  const env::Descriptor* const list[] = {descriptor};
  const std::span<const env::Descriptor* const> descriptors(list, descriptor != nullptr ? 1 : 0);
  const Result<void> sent = co_await write(request, kNeedReply, payload, descriptors, token);
  if (!sent) co_return fail(sent.error());
  const Result<std::vector<std::byte>> reply = co_await read(request, nullptr, token);
  if (!reply) co_return fail(reply.error());
  if (reply->size() != sizeof(uint64_t)) co_return fail(Errc::kInvalid, "an answer of odd size");
  co_return load<uint64_t>(*reply);
}

task::Task<Result<uint64_t>> DriverMessages::tell(Request request, uint64_t value,
                                                  task::CancelToken token) {
  const Result<uint64_t> answer = co_await send(
      request, std::as_bytes(std::span<const uint64_t, 1>(&value, 1)), nullptr, token);
  if (answer && *answer != 0) co_return fail(Errc::kInvalid, "the server refused");
  co_return answer;
}

}  // namespace cairn::door::vhost_user
