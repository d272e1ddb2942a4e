// SPDX-License-Identifier: Apache-2.0
#include "door/vhost_user/message.h"

#include <algorithm>

namespace cairn::door::vhost_user {

namespace {

Result<void> want_descriptors(size_t got, size_t wanted) {
  if (got == wanted) return {};
  return fail(Errc::kInvalid, "a message comes with another number of descriptors than it needs",
              static_cast<int32_t>(got));
}

std::unexpected<Error> wrong_size(size_t size) {
  return fail(Errc::kInvalid, "a message is shorter or longer than its request needs",
              static_cast<int32_t>(size));
}

template <class T>
Result<void> read(Bytes payload, Message& message) {
  if (payload.size() != sizeof(T)) return wrong_size(payload.size());
  message.payload = load<T>(payload);
  return {};
}

Result<void> read_signal(Bytes payload, size_t descriptors, Message& message) {
  if (payload.size() != sizeof(uint64_t)) return wrong_size(payload.size());
  const auto word = load<uint64_t>(payload);
  const bool has_signal = (word & kSignalNone) == 0;
  message.payload = VringSignal{.index = static_cast<uint32_t>(word & kSignalVringMask),
                                .has_signal = has_signal};
  return want_descriptors(descriptors, has_signal ? 1 : 0);
}

// A count of 32 bits, padding of as many, then the regions.
Result<void> read_table(Bytes payload, size_t descriptors, Message& message) {
  constexpr size_t kHead = 8;
  if (payload.size() < kHead) return wrong_size(payload.size());
  const auto count = load<uint32_t>(payload);
  if (count > kTableRegionsMax) {
    return fail(Errc::kInvalid, "a memory table of too many regions", static_cast<int32_t>(count));
  }
  if (payload.size() < kHead + count * sizeof(MemoryRegion)) return wrong_size(payload.size());
  MemoryTable table{.count = count, .regions = {}};
  for (size_t i = 0; i < count; ++i) {
    table.regions[i] = load<MemoryRegion>(payload.subspan(kHead + i * sizeof(MemoryRegion)));
  }
  message.payload = table;
  return want_descriptors(descriptors, count);
}

// Padding of 64 bits before the region.
Result<void> read_region(Bytes payload, Message& message) {
  constexpr size_t kHead = 8;
  if (payload.size() != kHead + sizeof(MemoryRegion)) return wrong_size(payload.size());
  message.payload = load<MemoryRegion>(payload.subspan(kHead));
  return {};
}

Result<void> read_config(Bytes payload, Message& message) {
  if (payload.size() < sizeof(ConfigHeader)) return wrong_size(payload.size());
  Config config{.header = load<ConfigHeader>(payload), .bytes = {}};
  const Bytes bytes = payload.subspan(sizeof(ConfigHeader));
  if (config.header.size > kConfigSizeMax || bytes.size() > kConfigSizeMax ||
      bytes.size() < config.header.size) {
    return wrong_size(payload.size());
  }
  std::ranges::copy(bytes, config.bytes.begin());
  message.payload = config;
  return {};
}

Result<void> read_inflight(Bytes payload, Message& message) {
  if (payload.size() != kInflightAreaBytes && payload.size() != sizeof(InflightArea)) {
    return wrong_size(payload.size());
  }
  std::array<std::byte, sizeof(InflightArea)> whole{};
  std::ranges::copy(payload, whole.begin());
  message.payload = load<InflightArea>(whole);
  return {};
}

Result<void> read_payload(Bytes payload, size_t descriptors, Message& message) {
  switch (message.request) {
    case Request::kGetFeatures:
    case Request::kSetOwner:
    case Request::kResetOwner:
    case Request::kGetProtocolFeatures:
    case Request::kGetQueueNum:
    case Request::kResetDevice:
    case Request::kGetMaxMemSlots:
    case Request::kGetStatus:
      return want_descriptors(descriptors, 0);
    case Request::kSetFeatures:
    case Request::kSetProtocolFeatures:
    case Request::kSetStatus:
      if (Result<void> none = want_descriptors(descriptors, 0); !none) return none;
      return read<uint64_t>(payload, message);
    case Request::kSetVringNum:
    case Request::kSetVringBase:
    case Request::kGetVringBase:
    case Request::kSetVringEnable:
      if (Result<void> none = want_descriptors(descriptors, 0); !none) return none;
      return read<VringState>(payload, message);
    case Request::kSetVringAddr:
      if (Result<void> none = want_descriptors(descriptors, 0); !none) return none;
      return read<VringAddress>(payload, message);
    case Request::kSetVringKick:
    case Request::kSetVringCall:
    case Request::kSetVringErr:
      return read_signal(payload, descriptors, message);
    case Request::kSetMemTable:
      return read_table(payload, descriptors, message);
    case Request::kAddMemReg:
      if (Result<void> one = want_descriptors(descriptors, 1); !one) return one;
      return read_region(payload, message);
    case Request::kRemMemReg:
      // One may come, from front ends that are wrong about it; it is closed unused.
      if (descriptors > 1) return want_descriptors(descriptors, 0);
      return read_region(payload, message);
    case Request::kSetLogBase:
      if (Result<void> one = want_descriptors(descriptors, 1); !one) return one;
      return read<LogArea>(payload, message);
    case Request::kSetLogFd:
    case Request::kSetBackendReqFd:
      return want_descriptors(descriptors, 1);
    case Request::kGetConfig:
    case Request::kSetConfig:
      if (Result<void> none = want_descriptors(descriptors, 0); !none) return none;
      return read_config(payload, message);
    case Request::kGetInflightFd:
      if (Result<void> none = want_descriptors(descriptors, 0); !none) return none;
      return read_inflight(payload, message);
    case Request::kSetInflightFd:
      if (Result<void> one = want_descriptors(descriptors, 1); !one) return one;
      return read_inflight(payload, message);
  }
  return fail(Errc::kUnsupported, "a request that this back end does not know",
              static_cast<int32_t>(message.request));
}

}  // namespace

Result<void> check(const MessageHeader& header) {
  if ((header.flags & kVersionMask) != kVersion) {
    return fail(Errc::kInvalid, "a message of another version of vhost-user",
                static_cast<int32_t>(header.flags & kVersionMask));
  }
  if ((header.flags & kIsReply) != 0) return fail(Errc::kInvalid, "a reply that nobody asked for");
  if (header.size > kPayloadMax) {
    return fail(Errc::kInvalid, "a message of too many bytes", static_cast<int32_t>(header.size));
  }
  return {};
}

Result<Message> decode(const MessageHeader& header, Bytes payload, size_t descriptors) {
  Message message{.request = static_cast<Request>(header.request),
                  .wants_reply = (header.flags & kNeedReply) != 0,
                  .payload = {}};
  const Result<void> done = read_payload(payload, descriptors, message);
  if (!done) return fail(done.error());
  return message;
}

std::vector<std::byte> encode(uint32_t request, uint32_t flags, Bytes payload) {
  const MessageHeader header{
      .request = request, .flags = flags, .size = static_cast<uint32_t>(payload.size())};
  std::vector<std::byte> bytes(sizeof(header) + payload.size());
  store(bytes, header);
  std::ranges::copy(payload, bytes.begin() + sizeof(header));
  return bytes;
}

}  // namespace cairn::door::vhost_user
