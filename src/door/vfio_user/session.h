// SPDX-License-Identifier: Apache-2.0
// Session: one client and its device, from the first message to the last.
//
// Commands are done one after the other, in the order they came. What makes no sense is refused
// with an errno, and the session goes on; what is no message ends it. The client's memory, signals
// and device live as long as the session: who comes next finds a new device. A client that leaves
// is noticed also while a command waits for the device, and what the device does for it is given
// up.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/units.h"
#include "door/common/guest_memory.h"
#include "door/vfio_user/capabilities.h"
#include "door/vfio_user/config_space.h"
#include "door/vfio_user/device.h"
#include "door/vfio_user/dirty_log.h"
#include "door/vfio_user/dma_table.h"
#include "door/vfio_user/inbox.h"
#include "door/vfio_user/interrupts.h"
#include "door/vfio_user/message.h"
#include "door/vfio_user/migration.h"
#include "door/vfio_user/pacer.h"
#include "env/env.h"
#include "env/sharing.h"
#include "task/cancel.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::door::vfio_user {

struct SessionOptions {
  Pace pace = Pace::kAdaptive;
  Duration greeting_timeout = 10_s;  // for the first message
  std::string device;                // what people call it
  // A sentence for people: why a client was turned away. One a second at most for each reason.
  std::function<void(std::string_view)> log;
};

// On one core. All it is given outlives it.
class Session {
 public:
  Session(env::Env& env, env::Sharing& sharing, Glances& glances, const SessionOptions& options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Until the client has gone, was turned away, or stop(). Once.
  task::Task<void> run(env::LocalStream& stream, const DeviceMaker& maker);
  // Ends it in order: no more messages are taken, and what the device does is finished first.
  void stop() { stop_.request(); }
  // Ends it soon: what the device does is given up.
  void abort();
  // Asks the client to give the device back, which it does by leaving. False: it does not listen.
  bool ask_back();
  // Set when the client has left, or was turned away: the device is about to be free.
  task::Event& leaving() { return leaving_; }

 private:
  struct Reply {
    std::vector<std::byte> payload;
    std::vector<const env::Descriptor*> descriptors;
  };

  Result<void> make_doorbells();
  static OutgoingMessage reply_to(const Header& command, Result<void> outcome, Reply reply);
  task::Task<Result<void>> greet(env::LocalStream& stream, MessageWriter& writer,
                                 const DeviceMaker& maker);
  task::Task<Result<void>> serve(env::LocalStream& stream, MessageWriter& writer);
  task::Task<Result<void>> obey_all(Inbox& inbox, MessageWriter& writer);
  void give_up();
  task::Task<Result<void>> obey(Message& message);
  Result<void> obey_at_once(Message& message);
  task::Task<Result<void>> make_device(const DeviceMaker& maker);
  task::Task<void> put_away();
  void wake();

  Result<void> get_info(Bytes payload);
  Result<void> get_region_info(Bytes payload);
  Result<void> get_region_io_fds(Bytes payload);
  Result<void> get_irq_info(Bytes payload);
  Result<void> set_irqs(Message& message);
  Result<void> map(Message& message);
  task::Task<Result<void>> unmap(Message& message);
  task::Task<Result<void>> reset();

  Result<void> read_region(Bytes payload);
  task::Task<Result<void>> write_region(Bytes payload);
  task::Task<Result<void>> write_regions(Bytes payload);
  task::Task<Result<void>> write_to(uint32_t region, uint64_t offset, Bytes data);
  void read_bar0(uint64_t offset, MutableBytes into);
  void write_bar0(uint64_t offset, Bytes from);

  Result<void> dirty_pages(Bytes payload);
  task::Task<Result<void>> feature(Message& message);
  task::Task<Result<void>> migration_feature(const Feature& request, Bytes data);
  Result<void> logging_feature(const Feature& request, Bytes data);
  Result<void> report_dirty(const Feature& request, Bytes data);
  Result<void> read_state(Bytes payload);
  Result<void> write_state(Bytes payload);

  template <class Layout>
  void answer(const Layout& layout) {
    answer_bytes(bytes_of(layout));
  }
  void answer_bytes(Bytes bytes) {
    reply_.payload.insert(reply_.payload.end(), bytes.begin(), bytes.end());
  }
  void say(std::string_view text) const;

  env::Env& env_;
  env::Sharing& sharing_;
  Glances& glances_;
  const SessionOptions& options_;
  task::CancelSource stop_;
  bool is_over_ = false;  // it is being put away
  bool is_aborted_ = false;
  task::Event leaving_;

  Capabilities client_;
  door::GuestMemory memory_;
  DirtyLog dirty_{memory_, [this] { device_->note_writes(); }};
  DmaTable dma_{sharing_, memory_};
  ConfigSpace config_;
  Interrupts interrupts_{sharing_, config_};
  env::Descriptor bar0_;
  std::unique_ptr<env::SharedMemory> doorbells_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Pacer> pacer_;
  std::unique_ptr<Migration> migration_;
  Reply reply_;
};

}  // namespace cairn::door::vfio_user
