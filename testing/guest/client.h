// SPDX-License-Identifier: Apache-2.0
// Client: the other end of a session, as a virtual machine has it. For tests and benchmarks: what a
// guest's driver stands on.
//
//   Result<std::unique_ptr<Client>> client = co_await Client::connect(env, address);
//   co_await (*client)->map(0x1000'0000, memory, {.offset = 0, .size = 1 << 20});
//   co_await (*client)->write(kBar0, 0x14, bytes_of(Le32(1)));
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "door/vfio_user/capabilities.h"
#include "door/vfio_user/message.h"
#include "door/vfio_user/wire_format.h"
#include "env/address.h"
#include "env/env.h"
#include "env/sharing.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::door::vfio_user {

// On one core. Calls of several tasks are made one after the other. Every call fails with kReset,
// kClosed or kCancelled once the server is gone, and with the server's refusal (detail() is its
// errno) when it refuses. Destroying it leaves; no call may be in flight then.
class Client {
 public:
  // Connects, agrees on a version and learns what the device has. kUnsupported: this world shares
  // nothing; others as Env::connect.
  static task::Task<Result<std::unique_ptr<Client>>> connect(env::Env& env, env::Address at,
                                                             task::CancelToken token = {});

  const Capabilities& server() const { return server_; }
  env::Sharing& sharing() { return sharing_; }

  // Lists memory of the guest, and takes it out again.
  task::Task<Result<void>> map(uint64_t address, const env::Descriptor& memory,
                               env::SharedRange range, task::CancelToken token = {});
  task::Task<Result<void>> unmap(uint64_t address, uint64_t size, task::CancelToken token = {});

  task::Task<Result<void>> read(uint32_t region, uint64_t offset, MutableBytes into,
                                task::CancelToken token = {});
  task::Task<Result<void>> write(uint32_t region, uint64_t offset, Bytes from,
                                 task::CancelToken token = {});

  // The page of doorbells, to be written word by word; empty: each is written by write().
  MutableBytes doorbells() const {
    return doorbells_ == nullptr ? MutableBytes{} : doorbells_->bytes();
  }

  // A signal that the device raises for this vector from now on.
  task::Task<Result<std::unique_ptr<env::Signal>>> listen(uint32_t index, uint32_t vector,
                                                          task::CancelToken token = {});
  // Masks or unmasks a vector, or raises it as if by the device.
  task::Task<Result<void>> set_irq(uint32_t index, uint32_t vector, uint32_t action,
                                   task::CancelToken token = {});

  task::Task<Result<void>> reset(task::CancelToken token = {});

  // Moves the device's state out or in; see Migration.
  task::Task<Result<void>> change_state(DeviceState to, task::CancelToken token = {});
  task::Task<Result<std::vector<std::byte>>> read_state(task::CancelToken token = {});
  task::Task<Result<void>> write_state(Bytes state, task::CancelToken token = {});

  // Any command, and the payload of its reply. Descriptors of the reply go to `received`.
  task::Task<Result<std::vector<std::byte>>> call(
      Command command, std::vector<std::byte> payload,
      std::vector<const env::Descriptor*> descriptors = {},
      std::vector<env::Descriptor>* received = nullptr, task::CancelToken token = {});

  // The stream itself, for those who want to break it.
  env::LocalStream& stream() { return *stream_; }

 private:
  Client(env::Sharing& sharing, std::unique_ptr<env::LocalStream> stream)
      : sharing_(sharing), stream_(std::move(stream)), writer_(*stream_) {}
  task::Task<Result<void>> greet(task::CancelToken token);
  task::Task<Result<void>> find_doorbells(task::CancelToken token);

  env::Sharing& sharing_;
  std::unique_ptr<env::LocalStream> stream_;
  MessageWriter writer_;
  task::Semaphore turn_{1};
  Message reply_;
  uint16_t next_id_ = 0;
  Capabilities server_;
  std::unique_ptr<env::SharedMemory> doorbells_;
};

// Layouts one after the other: how payloads are written.
template <class... Layouts>
std::vector<std::byte> payload_of(const Layouts&... layouts) {
  std::vector<std::byte> payload;
  const auto append = [&](Bytes bytes) {
    payload.insert(payload.end(), bytes.begin(), bytes.end());
  };
  (append(bytes_of(layouts)), ...);
  return payload;
}

}  // namespace cairn::door::vfio_user
