// SPDX-License-Identifier: Apache-2.0
// Peer: a client of a vfio-user server that may say anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "base/rng.h"
#include "door/vfio_user/message.h"
#include "env/sharing.h"
#include "guest_commands.h"
#include "task/deadline.h"
#include "task/task.h"
#include "testing/door/fake_device.h"
#include "testing/guest/client.h"
#include "vfio_user_messages.h"

namespace cairn::fuzz {

class Peer {
 public:
  static constexpr uint64_t kGuestSize = 64 << 10;

  // `is_controller`: the device behind the server is an NVMe controller with a prompt drive; else
  // a fake one, whose orders may take long.
  Peer(env::Env& env, env::Address server, bool is_controller)
      : env_(env),
        sharing_(*env::sharing(env)),
        server_(std::move(server)),
        is_controller_(is_controller) {
    memory_descriptor_ = std::move(sharing_.make_shared_memory(kGuestSize).value());
    memory_ = sharing_.map_shared(memory_descriptor_, {.size = kGuestSize}).value();
    signal_ = std::move(sharing_.make_signal().value());
  }

  // The server may still be putting the last client away.
  task::Task<void> dial() {
    client_ = nullptr;
    for (int i = 0; i < 1000 && client_ == nullptr; ++i) {
      Result<std::unique_ptr<door::vfio_user::Client>> client =
          co_await door::vfio_user::Client::connect(env_, server_);
      if (client) {
        client_ = std::move(*client);
        is_between_messages_ = true;
        co_return;
      }
      const Result<void> slept = co_await task::sleep_for(env_, 1_ms);
      CHECK(slept.has_value());
    }
    CHECK(client_ != nullptr, "the server serves the next client");
  }
  // Of one that has just come: the guest's memory is at 0, and the device is enabled: a fake one
  // with its orders there, a controller with an admin queue of 32 entries there and its completions
  // in the next page.
  task::Task<void> begin() {
    const Result<void> mapped = co_await client_->map(0, memory_descriptor_, {.size = kGuestSize});
    CHECK(mapped.has_value());
    co_await set_register<door::vfio_user::Le64>(0x28, 0);
    co_await set_register<door::vfio_user::Le64>(0x30, 4096);
    co_await set_register<door::vfio_user::Le32>(0x24, (kEntries - 1) << 16 | (kEntries - 1));
    co_await set_register<door::vfio_user::Le32>(door::vfio_user::kEnableAt, 0x0046'0001);
    if (!is_controller_) co_return;
    door::vfio_user::Le32 status;
    for (int i = 0; i < 100 && (status & 1) == 0; ++i) {
      const Result<void> read =
          co_await client_->read(door::vfio_user::kBar0, 0x1c, nvme::mutable_bytes_of(status));
      CHECK(read.has_value());
    }
  }
  void leave() { client_ = nullptr; }
  door::vfio_user::Client& client() { return *client_; }
  MutableBytes memory() { return memory_->bytes(); }

  // Any answer will do, also none.
  task::Task<void> say(door::vfio_user::Command command, std::vector<std::byte> payload,
                       std::vector<const env::Descriptor*> descriptors = {}) {
    ++messages_;
    task::Deadline deadline(env_, env_.now() + 1_s);
    const Result<std::vector<std::byte>> answer = co_await client_->call(
        command, std::move(payload), std::move(descriptors), nullptr, deadline.token());
    if (!answer && answer.error().detail() == 0) co_await dial();
  }

  // Perhaps a part of a message only.
  task::Task<void> say_raw(std::vector<std::byte> bytes) {
    is_between_messages_ = false;
    task::Deadline deadline(env_, env_.now() + 1_s);
    const Result<void> sent = co_await client_->stream().write(bytes, {}, deadline.token());
    if (!sent) co_await dial();
  }

  // Many messages close to what makes sense, of a new client or of the one that is here.
  task::Task<void> burst(uint32_t seed, uint8_t shape) {
    if ((shape & 1) != 0 || !is_between_messages_) {
      co_await dial();
      co_await begin();
    }
    Rng rng(seed);
    MessageMaker maker(
        rng.fork(), {.memory = &memory_descriptor_, .memory_size = kGuestSize, .signal = &signal_});
    CommandMaker commands(
        rng.fork(),
        {.bytes = memory().subspan(kListsAt), .address = kListsAt, .first = 0, .end = kGuestSize});
    const bool is_safe = (shape & 2) != 0;
    for (int round = 0; round < 1 + (shape >> 2); ++round) {
      if (rng.bernoulli(0.5)) submit(commands, rng);
      co_await exchange(maker, is_safe);
    }
  }

  const env::Descriptor* memory_descriptor() const { return &memory_descriptor_; }
  const env::Descriptor* signal() const { return &signal_; }
  uint64_t messages() const { return messages_; }

 private:
  static constexpr uint32_t kEntries = 32;        // of the admin queue
  static constexpr uint64_t kListsAt = 16 << 10;  // behind the queue
  // Before their answers are read. With a slow device, as many as the server reads ahead (Inbox): a
  // client that leaves behind more is noticed when the first of them is done.
  static constexpr size_t kMessagesTogether = 16;
  static constexpr size_t kMessagesTogetherSlow = 7;

  template <class Value>
  task::Task<void> set_register(uint64_t at, uint32_t value) {
    const Value word(value);
    const Result<void> written =
        co_await client_->write(door::vfio_user::kBar0, at, nvme::bytes_of(word));
    CHECK(written.has_value());
  }

  // Commands where the admin queue is, or was, and its doorbell.
  void submit(CommandMaker& commands, Rng& rng) {
    for (uint64_t i = rng.below(4); i > 0; --i) {
      const auto slot = static_cast<uint16_t>(rng.below(kEntries));
      store(memory().subspan(slot * sizeof(nvme::Sqe)), commands.admin(slot));
    }
    env::store_shared(client_->doorbells().data(), static_cast<uint32_t>(rng.below(kEntries)));
  }

  // Some messages, and their answers: one to each that wants one, in order.
  task::Task<void> exchange(MessageMaker& maker, bool is_safe) {
    task::Deadline deadline(env_, env_.now() + 1_s);
    std::vector<door::vfio_user::Header> asked;
    std::vector<std::byte> bytes;
    std::vector<const env::Descriptor*> with;  // they go with the first byte
    bool is_valid = true;
    const size_t max = is_controller_ ? kMessagesTogether : kMessagesTogetherSlow;
    for (size_t i = 0; i < max && is_valid; ++i) {
      MessageMaker::Made made = maker.make(next_id_++, is_safe);
      // The last is answered, so that none is left behind for the next time.
      if (i + 1 == max) made.header.flags = made.header.flags & ~door::vfio_user::kNoReply;
      if (!made.descriptors.empty() && !bytes.empty()) {
        const Result<void> sent = co_await client_->stream().write(bytes, with, deadline.token());
        bytes.clear();
        if (!sent) break;
      }
      if (bytes.empty()) with = made.descriptors;
      const Bytes header = nvme::bytes_of(made.header);
      bytes.insert(bytes.end(), header.begin(), header.end());
      bytes.insert(bytes.end(), made.payload.begin(), made.payload.end());
      if (made.is_answered()) asked.push_back(made.header);
      is_valid = made.is_valid;
      ++messages_;
    }
    if (!bytes.empty()) {
      const Result<void> sent = co_await client_->stream().write(bytes, with, deadline.token());
      (void)sent;  // the answers show it
    }
    for (const door::vfio_user::Header& each : asked) {
      const Result<void> read =
          co_await door::vfio_user::read_message(client_->stream(), reply_, deadline.token());
      // A slow device, or one whose client has said what is no message.
      CHECK(read || !is_valid || (!is_controller_ && deadline.expired()), "a message is answered");
      is_valid = is_valid && read;
      if (!read) break;
      CHECK(
          reply_.is_reply() && reply_.header.id == each.id && reply_.header.command == each.command,
          "answers come in order");
    }
    if (is_valid) co_return;
    co_await dial();
    co_await begin();
  }

  env::Env& env_;
  env::Sharing& sharing_;
  const env::Address server_;
  const bool is_controller_;
  env::Descriptor memory_descriptor_;
  std::unique_ptr<env::SharedMemory> memory_;
  env::Descriptor signal_;
  std::unique_ptr<door::vfio_user::Client> client_;
  door::vfio_user::Message reply_;
  bool is_between_messages_ = true;
  uint16_t next_id_ = 0;
  uint64_t messages_ = 0;
};

}  // namespace cairn::fuzz
