// SPDX-License-Identifier: Apache-2.0
// HostQueue: one NVMe/TCP connection of a host, which is one queue of a controller.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/list.h"
#include "base/units.h"
#include "env/env.h"
#include "fabric/host/command.h"
#include "fabric/host/lane.h"
#include "fabric/host/options.h"
#include "fabric/host/piece_cursor.h"
#include "fabric/host/tls.h"
#include "fabric/wire/doorbell.h"
#include "nvme/format/pdu.h"
#include "nvme/format/pdu_build.h"
#include "stream/receiver.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"
#include "task/timer.h"

namespace cairn::fabric {

// One life of one connection, on one core: opened, used, ended, closed, destroyed. What the target
// sends is never trusted: a PDU that breaks the rules ends the connection with a TermReq. Every
// command comes back exactly once, at the latest when the connection has ended. Memory:
// kHostStagingSize and about 300 bytes per slot, fixed when made; data goes to and from the
// commands' own memory.
class HostQueue {
 public:
  // Who has the queue. Calls come from inside its reading and writing and must not destroy it.
  class Owner {
   public:
    // Nothing more will be answered. Commands come back soon after.
    virtual void queue_ended(HostQueue& queue, const Error& why) = 0;
    // After a command has come back.
    virtual void queue_has_room(HostQueue& queue) = 0;
    // A command that changes something was cancelled after it was sent.
    virtual void queue_wants_abort(HostQueue& queue, uint16_t command_id) = 0;

   protected:
    ~Owner() = default;
  };
  struct Options {
    env::Address address;
    uint16_t id = 0;
    uint16_t slots = 1;  // commands outstanding at once, kHostDepthMax at most
    bool header_digest = false;
    bool data_digest = false;
    Duration connect_timeout;
    Duration command_timeout;
    Duration cancel_timeout;
    DoorbellOptions doorbell;
    std::optional<HostTls> tls;  // none: the connection is plain
  };

  HostQueue(env::Env& env, const Options& options, Owner& owner);
  ~HostQueue();
  HostQueue(const HostQueue&) = delete;
  HostQueue& operator=(const HostQueue&) = delete;

  // Connects and exchanges ICReq and ICResp. kUnreachable, kReset, kClosed, kTimedOut, kCancelled,
  // kInvalid (what came is no NVMe/TCP), kDenied, kUnsupported (TLS: tls.h). Commands may be
  // submitted afterwards. Once.
  task::Task<Result<void>> open(task::CancelToken token);
  // Ends the connection soon; commands then come back with `why`.
  void stop(const Error& why);
  // Ends it and waits for everything that runs. Then it can be destroyed. Once, also when open()
  // failed.
  task::Task<void> close();

  uint16_t id() const { return options_.id; }
  bool is_open() const { return open_; }
  // How many commands can be submitted now.
  uint32_t room() const { return open_ ? free_count_ : 0; }
  uint32_t outstanding() const { return static_cast<uint32_t>(slots_.size()) - free_count_; }
  Time last_heard() const { return last_heard_; }
  // As it is now; also after it has ended.
  HostLane lane() const;

  // Takes a command; there must be room for it and its second.
  void submit(HostCommand& command);
  // Asks for an early end: with `why`, unless its answer is faster. A command that was not sent, or
  // that only reads, comes back at once or as soon as its memory is free. One that changes
  // something waits for its answer; when that takes longer than cancel_timeout the connection ends.
  void cancel(HostCommand& command, const Error& why);

  // In-capsule data that commands of this queue may bring (IOCCSZ); at first what Connect may.
  void set_in_capsule_max(uint32_t bytes) { in_capsule_max_ = bytes; }

 private:
  struct FreeTag;
  struct OutTag;
  struct SendingTag;
  struct AgeTag;
  // One entry of the command table. Its index is the low part of the command id; the rest counts
  // the slot's commands, so that an answer that comes twice is noticed.
  struct Slot : ListHook<FreeTag>, ListHook<OutTag>, ListHook<SendingTag>, ListHook<AgeTag> {
    enum class State : uint8_t {
      kFree,
      kReady,      // its capsule is to be sent
      kSent,       // its capsule was handed to the stream; what follows is up to the target
      kAbandoned,  // the same, but the command was cancelled and has come back
    };
    State state = State::kFree;
    uint16_t cid = 0;
    bool answered = false;   // completes when no write uses its memory any more
    bool last_came = false;  // no more data from the target
    HostCommand* command = nullptr;
    std::optional<Error> cancelled;
    Time cancelled_at;
    Time since;           // when it was submitted
    PieceCursor cursor;   // over the command's data, as they move
    uint32_t length = 0;  // of the command's data, also when it is abandoned
    bool reads = false;
    uint32_t next = 0;  // offset of the data to come, or to be asked for next
    // The R2T being answered.
    uint16_t ttag = 0;
    uint32_t window_next = 0;
    uint32_t window_end = 0;
    // The PDU being sent.
    uint32_t pdu_left = 0;  // data of it not yet handed to the stream
    bool pdu_has_digest = false;
    std::array<std::byte, nvme::kPduPrefixMax> prefix;
    std::array<std::byte, nvme::kDigestSize> digest;
  };
  struct QueueTimer : task::Timer {
    using Timer::Timer;
    HostQueue* queue = nullptr;
  };

  // Life (queue.cc).
  task::Task<Result<void>> connect(task::CancelToken token);
  task::Task<void> run();
  void hand_back(const Error& why);
  void submit_one(HostCommand& command, bool no_delay);
  Slot& take_slot(HostCommand& command);
  void free_slot(Slot& slot);
  void answered(Slot& slot);
  void finish(Slot& slot);
  void abandon(Slot& slot, const Error& why);
  bool is_being_sent(const Slot& slot) const;
  static void on_age(task::Timer& timer);
  static void on_grace(task::Timer& timer);
  static void on_linger(task::Timer& timer);
  void arm_age();

  // Reading (queue_read.cc).
  enum class Step : uint8_t { kMore, kFill, kEnd };
  task::Task<Result<void>> read_pdus();
  Step take_what_is_here();
  bool take_pdu(const nvme::Pdu& pdu, Step& step);
  bool take_response(const nvme::Pdu& pdu);
  bool take_data(const nvme::Pdu& pdu, Step& step);
  bool take_r2t(const nvme::Pdu& pdu);
  bool take_term_req(const nvme::Pdu& pdu);
  bool take_ic_resp(const nvme::Pdu& pdu);
  task::Task<Result<void>> fill();
  bool fill_from_here();
  void data_came();
  bool refuse(nvme::PduFault fault, Bytes header);
  Slot* find(uint16_t cid);

  // Writing (queue_write.cc).
  task::Task<void> write_loop();
  Result<void> send_now();
  void gather();
  void begin_pdu(Slot& slot);
  void begin_capsule(Slot& slot);
  void begin_data(Slot& slot);
  bool gather_data();
  void add_piece(Slot& slot, Bytes piece);
  void write_done();
  void enqueue(Slot& slot, size_t bytes, bool no_delay);
  // Commands that the target has.
  size_t with_target() const { return outstanding() - ready_count_; }
  static void on_ring(void* queue);

  env::Env& env_;
  const Options options_;
  Owner& owner_;
  std::unique_ptr<env::Stream> stream_;
  std::optional<stream::Receiver> receiver_;
  nvme::PduRules rules_;
  nvme::PduStyle style_;
  uint32_t in_capsule_max_ = nvme::kAdminInCapsuleMax;
  uint32_t h2c_data_max_ = 0;

  std::vector<std::unique_ptr<Slot>> slots_;
  List<Slot, FreeTag> free_;
  uint32_t free_count_ = 0;
  List<Slot, AgeTag> by_age_;  // all that can time out, oldest first

  // The data PDU being read.
  Slot* filling_ = nullptr;
  uint32_t fill_skip_ = 0;  // header and padding
  uint32_t fill_left_ = 0;
  uint32_t fill_crc_ = 0;
  bool fill_has_digest_ = false;
  bool fill_succeeds_ = false;  // it stands for the response too

  Doorbell doorbell_;
  uint32_t ready_count_ = 0;        // slots whose capsule is still to be sent
  List<Slot, OutTag> out_;          // with something to send
  List<Slot, SendingTag> sending_;  // with bytes in the write under way
  Slot* current_ = nullptr;         // whose PDU is not wholly handed over yet
  std::vector<Bytes> pieces_;       // the write under way
  size_t piece_bytes_ = 0;          // in all of them
  size_t piece_messages_ = 0;       // PDUs in it
  std::array<std::byte, sizeof(nvme::IcReq)> greeting_;
  size_t greeting_size_ = 0;
  std::array<std::byte, nvme::kTermReqMax> farewell_;
  size_t farewell_size_ = 0;
  bool is_at_fault_ = false;  // the target is, and is told so before the connection ends
  task::Event out_ready_;
  bool reading_ended_ = false;

  bool open_ = false;
  task::Event established_;  // ICResp has come, or nothing more will
  Time last_heard_;
  task::CancelSource ending_;
  std::optional<Error> why_;
  task::Gate gate_;
  task::Gate lingering_;  // what the stream leaves behind
  QueueTimer age_timer_;
  QueueTimer grace_timer_;
  QueueTimer linger_timer_;
};

}  // namespace cairn::fabric
