// SPDX-License-Identifier: Apache-2.0
// Messages on a local stream, in both directions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "door/vfio_user/limits.h"
#include "door/vfio_user/wire_format.h"
#include "env/sharing.h"
#include "task/cancel.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::door::vfio_user {

struct Message {
  Header header;
  std::vector<std::byte> payload;

  std::span<env::Descriptor> descriptors() { return std::span(held).first(held_count); }
  bool is_reply() const { return (header.flags & kTypeMask) == kTypeReply; }
  // Keeps the payload's room.
  void clear();

  std::array<env::Descriptor, kDescriptorsMax> held;
  size_t held_count = 0;
};

// The next message. kClosed: the peer has finished, between two messages; kCorrupt: what came is no
// message, and nothing after it can be found; others as LocalStream::read.
task::Task<Result<void>> read_message(env::LocalStream& stream, Message& into,
                                      task::CancelToken token = {});

// The header's size is filled in here.
struct OutgoingMessage {
  Header header;
  std::vector<std::byte> payload;
  std::vector<const env::Descriptor*> descriptors;  // live until it is written
};

// Puts messages of several tasks on one stream, one after the other.
class MessageWriter {
 public:
  explicit MessageWriter(env::LocalStream& stream) : stream_(stream) {}
  // Done when it is accepted for sending. Errors as LocalStream::write.
  task::Task<Result<void>> write(OutgoingMessage message, task::CancelToken token = {});

 private:
  env::LocalStream& stream_;
  task::Semaphore turn_{1};
};

// What a refusal says on the wire, and back.
uint32_t errno_of(const Error& error);
Error error_of(uint32_t number);

}  // namespace cairn::door::vfio_user
