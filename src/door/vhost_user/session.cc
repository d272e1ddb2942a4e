// SPDX-License-Identifier: Apache-2.0
#include "door/vhost_user/session.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "task/deadline.h"

namespace cairn::door::vhost_user {

namespace {

constexpr uint64_t kProtocol = kProtocolMultiQueue | kProtocolLogMemory | kProtocolReplyAck |
                               kProtocolConfig | kProtocolInflight | kProtocolResetDevice |
                               kProtocolMemorySlots | kProtocolStatus | kProtocolBackendReq;

template <class T>
const T& of(const Message& message) {
  return std::get<T>(message.payload);
}

}  // namespace

Session::Session(env::Env& env, env::Sharing& sharing, std::unique_ptr<env::LocalStream> stream,
                 BlkDisk& disk, const DeviceOptions& options)
    : env_(env),
      sharing_(sharing),
      stream_(std::move(stream)),
      disk_(disk),
      options_(options),
      device_(env, sharing, disk, options) {}

task::Task<void> Session::run() {
  const Result<void> ended = co_await take_messages();
  const bool went = !ended && (ended.error() == Errc::kClosed || ended.error() == Errc::kReset ||
                               ended.error() == Errc::kCancelled);
  if (!ended && !went && options_.door.log) {
    options_.door.log("the front end of " + disk_.exported().options().name +
                      " was left: " + ended.error().text());
  }
  co_await device_.stop();
  stopping_.request();
  co_await gate_.close();
}

void Session::abandon() {
  drain();
  device_.abandon();
}

// ---- messages

task::Task<Result<void>> Session::take_messages() {
  for (;;) {
    Result<Message> message = co_await read_message();
    if (!message) co_return fail(message.error());
    const Result<void> answered = co_await answer(std::move(*message));
    for (env::Descriptor& each : descriptors_) each = env::Descriptor();
    if (!answered) co_return answered;
  }
}

task::Task<Result<void>> Session::read_all(MutableBytes into) {
  task::Deadline deadline(env_, env_.now() + options_.door.stall_timeout, stopping_.token());
  while (!into.empty()) {
    const Result<env::Received> got = co_await stream_->read(into, {}, deadline.token());
    if (!got) co_return fail(got.error());
    if (got->bytes == 0) co_return fail(Errc::kInvalid, "a message that is not whole");
    into = into.subspan(got->bytes);
  }
  co_return Result<void>{};
}

// The descriptors come with the first byte. Between messages a front end takes all its time.
task::Task<Result<Message>> Session::read_message() {
  std::array<std::byte, sizeof(MessageHeader) + kPayloadMax> room{};
  const MutableBytes head = MutableBytes(room).first(sizeof(MessageHeader));
  const Result<env::Received> got = co_await stream_->read(head, descriptors_, stopping_.token());
  if (!got) co_return fail(got.error());
  if (got->bytes == 0) co_return fail(Errc::kClosed, "the front end has gone");
  descriptor_count_ = got->descriptors;
  const Result<void> rest = co_await read_all(head.subspan(got->bytes));
  if (!rest) co_return fail(rest.error());
  const auto header = load<MessageHeader>(head);
  if (const Result<void> checked = check(header); !checked) co_return fail(checked.error());
  const MutableBytes payload = MutableBytes(room).subspan(sizeof(header), header.size);
  const Result<void> body = co_await read_all(payload);
  if (!body) co_return fail(body.error());
  co_return decode(header, payload, descriptor_count_);
}

// A request that has no answer of its own gets one when the front end asks for it; without that, a
// refusal can only end the session.
task::Task<Result<void>> Session::answer(Message message) {
  is_answered_ = false;
  const Result<void> done = co_await act(message);
  const bool wants = message.wants_reply && (protocol_features_ & kProtocolReplyAck) != 0;
  if (is_answered_ || !wants) co_return done;
  if (!done && options_.door.log) {
    options_.door.log("a request of the front end of " + disk_.exported().options().name +
                      " was refused: " + done.error().text());
  }
  const uint64_t answer = done ? 0 : 1;
  const Result<void> sent = co_await reply(message.request, answer);
  co_return sent;
}

template <class Payload>
task::Task<Result<void>> Session::reply(Request request, Payload payload) {
  is_answered_ = true;
  return send(encode_reply(request, payload), nullptr);
}

task::Task<Result<void>> Session::send(std::vector<std::byte> bytes,
                                       const env::Descriptor* descriptor) {
  task::Deadline deadline(env_, env_.now() + options_.door.stall_timeout, stopping_.token());
  const env::Descriptor* const list[] = {descriptor};
  const std::span<const env::Descriptor* const> sent(list, descriptor != nullptr ? 1 : 0);
  const Result<void> done = co_await stream_->write(bytes, sent, deadline.token());
  co_return done;
}

task::Task<Result<void>> Session::act(const Message& message) {
  Result<void> done;
  switch (message.request) {
    case Request::kGetFeatures:
      done = co_await reply(message.request, device_.features());
      co_return done;
    case Request::kSetFeatures:
      co_return device_.set_features(of<uint64_t>(message));
    case Request::kSetOwner:
      co_return Result<void>{};
    case Request::kResetOwner:
      co_await device_.disable();
      co_return Result<void>{};
    case Request::kResetDevice:
      co_await device_.reset();
      co_return Result<void>{};
    case Request::kGetProtocolFeatures:
      done = co_await reply(message.request, kProtocol);
      co_return done;
    case Request::kSetProtocolFeatures:
      co_return set_protocol_features(of<uint64_t>(message));
    case Request::kGetQueueNum:
      done = co_await reply(message.request, uint64_t{kQueuesMax});
      co_return done;
    case Request::kGetMaxMemSlots:
      done = co_await reply(message.request, uint64_t{FrontMemory::kSlotsMax});
      co_return done;
    case Request::kSetBackendReqFd:
      co_return set_channel();
    case Request::kGetConfig:
      done = co_await get_config(message);
      co_return done;
    case Request::kSetConfig:
      co_return device_.set_config(of<Config>(message));
    case Request::kGetStatus:
      done = co_await reply(message.request, device_.status());
      co_return done;
    case Request::kSetStatus:
      done = co_await device_.set_status(of<uint64_t>(message));
      co_return done;
    case Request::kGetInflightFd:
      done = co_await get_inflight(message);
      co_return done;
    case Request::kSetInflightFd:
      co_return device_.set_inflight(of<InflightArea>(message), came());
    case Request::kSetLogFd:
      // A signal that the log has changed; the front end looks without one.
      co_return Result<void>{};
    case Request::kSetMemTable:
    case Request::kAddMemReg:
    case Request::kRemMemReg:
    case Request::kSetLogBase:
      done = co_await act_on_memory(message);
      co_return done;
    default:
      done = co_await act_on_vring(message);
      co_return done;
  }
}

task::Task<Result<void>> Session::act_on_memory(const Message& message) {
  Result<void> done;
  if (message.request == Request::kSetMemTable) {
    done = co_await device_.set_memory(of<MemoryTable>(message), descriptors_);
  } else if (message.request == Request::kAddMemReg) {
    done = device_.add_memory(of<MemoryRegion>(message), came());
  } else if (message.request == Request::kRemMemReg) {
    done = co_await device_.remove_memory(of<MemoryRegion>(message));
  } else {
    done = device_.set_log(of<LogArea>(message), came());
    if (done && (protocol_features_ & kProtocolLogMemory) != 0) {
      done = co_await reply(message.request, uint64_t{0});
    }
  }
  co_return done;
}

task::Task<Result<void>> Session::act_on_vring(const Message& message) {
  Result<void> done;
  switch (message.request) {
    case Request::kSetVringNum:
      co_return device_.set_size(of<VringState>(message));
    case Request::kSetVringAddr:
      co_return device_.set_address(of<VringAddress>(message));
    case Request::kSetVringBase:
      co_return device_.set_base(of<VringState>(message));
    case Request::kSetVringEnable:
      done = co_await device_.set_enabled(of<VringState>(message));
      co_return done;
    case Request::kSetVringKick:
      done = co_await device_.set_kick(of<VringSignal>(message), came());
      co_return done;
    case Request::kSetVringCall:
      co_return device_.set_call(of<VringSignal>(message), came());
    case Request::kSetVringErr:
      co_return device_.set_error(of<VringSignal>(message), came());
    case Request::kGetVringBase: {
      const Result<VringState> base = co_await device_.stop_vring(of<VringState>(message));
      if (!base) co_return fail(base.error());
      done = co_await reply(message.request, *base);
      co_return done;
    }
    default:
      co_return fail(Errc::kUnsupported, "a request that this back end does not know");
  }
}

Result<void> Session::set_protocol_features(uint64_t features) {
  if ((features & ~kProtocol) != 0) {
    return fail(Errc::kInvalid, "features of the protocol that were not offered");
  }
  protocol_features_ = features;
  return {};
}

// What lies beyond our configuration is zeroes; beyond what can be asked for is nothing.
task::Task<Result<void>> Session::get_config(const Message& message) {
  const ConfigHeader& wanted = of<Config>(message).header;
  std::array<std::byte, kConfigSizeMax> space{};
  store(space, device_.config());
  std::vector<std::byte> payload;
  if (wanted.offset <= space.size() && wanted.size <= space.size() - wanted.offset) {
    payload.resize(sizeof(wanted) + wanted.size);
    store(payload, wanted);
    std::ranges::copy(Bytes(space).subspan(wanted.offset, wanted.size),
                      payload.begin() + sizeof(wanted));
  }
  is_answered_ = true;
  const Result<void> sent = co_await send(
      encode(static_cast<uint32_t>(message.request), kVersion | kIsReply, payload), nullptr);
  co_return sent;
}

task::Task<Result<void>> Session::get_inflight(const Message& message) {
  const Result<Device::Inflight> made = device_.make_inflight(of<InflightArea>(message));
  if (!made) co_return fail(made.error());
  is_answered_ = true;
  const Result<void> sent = co_await send(encode_reply(message.request, made->area), &made->memory);
  co_return sent;
}

// ---- our own requests

Result<void> Session::set_channel() {
  if (channel_ != nullptr) return fail(Errc::kInvalid, "a second channel for our requests");
  Result<std::unique_ptr<env::LocalStream>> channel =
      sharing_.open_local(std::move(descriptors_[0]));
  if (!channel) return fail(channel.error());
  channel_ = std::move(*channel);
  return {};
}

void Session::config_changed() {
  constexpr uint64_t kNeeded = kProtocolBackendReq | kProtocolConfig;
  if (channel_ == nullptr || (protocol_features_ & kNeeded) != kNeeded || gate_.is_closed()) return;
  must_tell_again_ = true;
  if (!is_telling_) gate_.spawn(tell_config());
}

// No answer is asked for: the front end reads the configuration when it has time.
task::Task<void> Session::tell_config() {
  is_telling_ = true;
  while (std::exchange(must_tell_again_, false)) {
    const std::vector<std::byte> bytes =
        encode(static_cast<uint32_t>(BackendRequest::kConfigChange), kVersion, {});
    task::Deadline deadline(env_, env_.now() + options_.door.stall_timeout, stopping_.token());
    const Result<void> sent = co_await channel_->write(bytes, {}, deadline.token());
    if (!sent) break;
  }
  is_telling_ = false;
}

}  // namespace cairn::door::vhost_user
