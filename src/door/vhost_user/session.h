// SPDX-License-Identifier: Apache-2.0
// Session: one front end, from its first message until it goes. Messages are taken one at a time,
// and answered before the next is read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.h"
#include "door/vhost_user/blk_disk.h"
#include "door/vhost_user/device.h"
#include "door/vhost_user/message.h"
#include "door/vhost_user/options.h"
#include "env/env.h"
#include "env/sharing.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/task.h"

namespace cairn::door::vhost_user {

// On one core. Everything given outlives it.
class Session {
 public:
  Session(env::Env& env, env::Sharing& sharing, std::unique_ptr<env::LocalStream> stream,
          BlkDisk& disk, const DeviceOptions& options);

  // Done when the front end has gone or was left, and everything it asked for is done. Its memory
  // is used no more then.
  task::Task<void> run();
  // Takes no more messages and no more requests; run() ends when those in flight are done.
  void drain() { stopping_.request(); }
  // And those in flight are to end soon. They stay in flight for the front end's next server.
  void abandon();

  // The drive has another size: the front end is told, if it can be.
  void config_changed();

 private:
  task::Task<Result<void>> take_messages();
  task::Task<Result<void>> read_all(MutableBytes into);
  task::Task<Result<Message>> read_message();
  task::Task<Result<void>> answer(Message message);
  task::Task<Result<void>> act(const Message& message);
  task::Task<Result<void>> act_on_memory(const Message& message);
  task::Task<Result<void>> act_on_vring(const Message& message);
  task::Task<Result<void>> get_config(const Message& message);
  task::Task<Result<void>> get_inflight(const Message& message);
  Result<void> set_protocol_features(uint64_t features);
  Result<void> set_channel();
  template <class Payload>
  task::Task<Result<void>> reply(Request request, Payload payload);
  task::Task<Result<void>> send(std::vector<std::byte> bytes, const env::Descriptor* descriptor);
  task::Task<void> tell_config();
  const env::Descriptor& came() const { return descriptors_[0]; }

  env::Env& env_;
  env::Sharing& sharing_;
  std::unique_ptr<env::LocalStream> stream_;
  BlkDisk& disk_;
  const DeviceOptions options_;
  Device device_;
  uint64_t protocol_features_ = 0;
  // With the message at hand.
  std::array<env::Descriptor, kTableRegionsMax> descriptors_;
  size_t descriptor_count_ = 0;
  bool is_answered_ = false;

  std::unique_ptr<env::LocalStream> channel_;  // for requests of ours
  bool is_telling_ = false;
  bool must_tell_again_ = false;
  task::CancelSource stopping_;
  task::Gate gate_;
};

}  // namespace cairn::door::vhost_user
