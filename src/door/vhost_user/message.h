// SPDX-License-Identifier: Apache-2.0
// Message: what a front end asked for, read from its bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "door/vhost_user/wire_format.h"

namespace cairn::door::vhost_user {

struct MemoryTable {
  size_t count = 0;
  std::array<MemoryRegion, kTableRegionsMax> regions{};
};

struct Config {
  ConfigHeader header{};
  std::array<std::byte, kConfigSizeMax> bytes{};  // header.size of them
};

// Which vring a signal is for, and whether one came.
struct VringSignal {
  uint32_t index = 0;
  bool has_signal = false;
};

struct Message {
  Request request{};
  bool wants_reply = false;
  std::variant<std::monostate, uint64_t, VringState, VringAddress, VringSignal, MemoryTable,
               MemoryRegion, LogArea, Config, InflightArea>
      payload;
};

// Whether a message of this header can be: its version is ours, and it is not too long. kInvalid.
Result<void> check(const MessageHeader& header);

// Reads the payload of a header that passed check(). `descriptors`: how many came with it.
// kInvalid: it is shorter or longer than its request needs, or has other descriptors;
// kUnsupported: a request that we do not know.
Result<Message> decode(const MessageHeader& header, Bytes payload, size_t descriptors);

// Header and payload of an answer, or of a request of ours.
std::vector<std::byte> encode(uint32_t request, uint32_t flags, Bytes payload);
template <class Payload>
std::vector<std::byte> encode_reply(Request request, const Payload& payload) {
  return encode(static_cast<uint32_t>(request), kVersion | kIsReply,
                std::as_bytes(std::span<const Payload, 1>(&payload, 1)));
}

}  // namespace cairn::door::vhost_user
