// SPDX-License-Identifier: Apache-2.0
// TargetConnection: one NVMe/TCP connection of a target, which is one queue of a controller.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/list.h"
#include "env/env.h"
#include "fabric/target/data_share.h"
#include "fabric/target/lane_book.h"
#include "fabric/target/options.h"
#include "fabric/target/owed_data.h"
#include "fabric/target/tcp_command.h"
#include "fabric/wire/doorbell.h"
#include "nvme/controller/io_queue.h"
#include "nvme/controller/registry.h"
#include "nvme/format/pdu.h"
#include "nvme/format/pdu_build.h"
#include "stream/buffer_lines.h"
#include "stream/buffer_queue.h"
#include "stream/command_ids.h"
#include "stream/receiver.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"
#include "task/timer.h"

namespace cairn::fabric {

// What a connection stands on; lives as long as its core serves.
struct TargetCore {
  env::Env& env;
  nvme::Registry& registry;  // on the control core: reached by call_on only
  CoreId control;
  const TargetOptions& options;
  stream::BufferLines& buffers;     // for data that moves by data PDUs
  stream::BufferLines& unproven;    // the same, of hosts that have proven nothing
  stream::BufferQueue& in_capsule;  // for data that came in a capsule
  task::Event& drained;  // set when a connection has nothing in flight any more, while draining
  LaneBook& lanes;
  stream::Reception& reception;  // on the control core
  size_t staging_reserve = kStagingReserve;
};

// The connection's part on the control core, and touched there only.
struct ControlSide {
  task::CancelSource cancel;
  task::Gate gate;
};

// Runs on one core from accept to end. Bad input ends it with a TermReq; a dead or slow host ends
// it by a deadline; neither touches any other connection. Memory: docs/fabric.md, "Memory".
class TargetConnection final : public nvme::QueueLink, public nvme::IoControl {
 public:
  // How it came.
  struct Origin {
    uint32_t listener = 0;                // the number of the one that accepted it
    stream::Reception::Visitor& visitor;  // on the control core; outlives it
    std::unique_ptr<const nvme::TlsIdentity>
        tls;  // who the stream's key was for; none: it is plain
  };
  TargetConnection(TargetCore& core, std::unique_ptr<env::Stream> stream, Origin origin);
  ~TargetConnection();

  // The whole life; then it can be destroyed.
  task::Task<void> run();
  // Takes no more commands; those in flight go on.
  void drain();
  // Nothing is in flight but requests for events.
  bool is_idle() const;
  // Ends it in good order: the host reads the end after the last answer, and ends its side.
  void finish();
  // Ends it soon: commands are cancelled, the stream is reset.
  void stop(const char* why);

  env::Address peer() const { return peer_; }
  // As it is now.
  TargetLane lane() const;
  // Whether it is a controller's admin queue.
  bool is_admin() const { return controller_ != nullptr && queue_id_ == 0; }
  // The most memory one takes with a queue of so many entries, without the stream, data in flight
  // and the frames of its tasks.
  static size_t memory_max(uint16_t queue_entries);

  // QueueLink, called by the registry on this core.
  void disconnect(const char* why) override { stop(why); }
  bool abort(uint16_t cid) override;
  task::Task<void> abort_namespace(uint32_t nsid) override;
  bool take_traffic() override { return std::exchange(traffic_, false); }
  void set_authenticated(bool authenticated) override {
    set_proven(authenticated);
    if (io_queue_ != nullptr) io_queue_->set_authenticated(authenticated);
  }
  // IoControl.
  task::Task<nvme::Status> reservation(const nvme::Sqe& sqe, nvme::Pieces data) override;
  void drive_changed() override { stop("a drive has lost something: the host must ask what"); }

 private:
  friend class TcpCommand;

  // Reading (connection_read.cc). An error ends the connection.
  enum class Step : uint8_t {
    kTaken,     // on to the next PDU
    kReadMore,  // what is here is no whole PDU
    kWait,      // front_ cannot be taken without waiting
    kFailed,    // with failure_
  };
  task::Task<Result<void>> read_pdus();
  // Takes all that is here, then waits for what that needs: bytes, a buffer, an answer.
  task::Task<Result<void>> take_some(task::CancelToken token);
  Step take_what_is_here();
  Step take_pdu(const nvme::Pdu& pdu);
  void take_ic_req(const nvme::IcReq& request);
  Step take_capsule(const nvme::Pdu& pdu);
  // False: it was refused, and answered.
  bool begin_command(TcpCommand& command, const nvme::Pdu& pdu);
  // Puts in-capsule data where they stay when the staging is used again.
  void keep_data(TcpCommand& command, const nvme::Pdu& pdu, Buffer buffer);
  task::Task<Result<void>> take_waiting_capsule(task::CancelToken token);
  task::Task<Result<void>> take_data(const nvme::Pdu& pdu, task::CancelToken token);
  task::Task<Result<void>> take_owed_data(const nvme::Pdu& pdu, task::CancelToken token);
  task::Task<Result<void>> failed();
  task::Task<void> note_client_hello();
  // Notes the fault to be reported with the header that had it, and gives the error to end with.
  std::unexpected<Error> fault(nvme::PduFault fault, Bytes header);
  Step fail_with(std::unexpected<Error> error);
  task::Task<void> note_fault();

  void set_proven(bool proven);
  task::Task<void> tell_proven();

  // Commands (connection.cc).
  // Of front_, which it takes.
  task::Task<Result<void>> connect(TcpCommand& command);
  task::Task<void> execute_admin(TcpCommand& command);
  // A request for events that holds this id on an admin queue gives it up, and is never answered:
  // SPDK's host uses such ids again when it shuts down. False: another command has it.
  bool supersede_event_request(uint16_t cid);
  task::Task<void> end_event_request(uint16_t cid);
  void dispatch(TcpCommand& command);
  // The first half of a fused pair waits for its second for as long as a command for its data.
  struct FirstHalf : task::Timer {
    using Timer::Timer;
    TcpCommand* command = nullptr;
  };
  void await_second(TcpCommand& first);
  static void on_second_missing(task::Timer& timer);
  // For data that moves by data PDUs.
  stream::BufferLines& buffers() { return share_.is_proven() ? core_.buffers : core_.unproven; }
  TcpCommand* take_slot();
  void free_slot(TcpCommand& command);
  // A command that ran does so no longer, whether it is answered or not. Whoever waits for it to
  // end is told.
  void end_running(TcpCommand& command);
  // Asks a running command to end.
  void cancel(TcpCommand& command);
  // The command ends although its host was asked for data.
  void abandon_data(TcpCommand& command);
  task::Task<void> close_down(task::Task<void> writer);
  task::Task<void> linger();

  // Writing (connection_write.cc).
  void queue_out(TcpCommand& command);
  static void on_ring(void* connection);
  void ask_for_data(TcpCommand& command);
  task::Task<void> write_loop();
  void gather();
  void gather_response(TcpCommand& command);
  void add_piece(Bytes piece);
  // Hands over what the stream takes without waiting; the rest stays in pieces_, in memory that
  // nobody else waits for.
  Result<void> send_now();
  void keep_rest(size_t sent);
  void sent();
  void drop_output();
  // Not while the stream waits for the host. Nor when other cores may write between the digest and
  // the sending.
  bool can_borrow() const {
    return !writing_ && !(style_.data_digest && core_.env.core_count() > 1);
  }

  TargetCore& core_;
  std::unique_ptr<env::Stream> stream_;
  env::Address peer_;
  stream::Reception::Visitor& visitor_;
  std::unique_ptr<const nvme::TlsIdentity> tls_;
  stream::Receiver receiver_;
  nvme::PduRules rules_;
  nvme::PduStyle style_;

  nvme::Controller* controller_ = nullptr;  // on the control core
  LaneBook::Account* account_;
  uint64_t commands_ = 0;
  uint64_t failures_ = 0;  // as LaneWork counts them
  ControlSide control_side_;
  uint16_t controller_id_ = 0;
  uint16_t queue_id_ = 0;
  uint16_t queue_entries_ = 0;
  uint16_t sq_head_ = 0;
  bool flow_control_ = true;
  bool traffic_ = false;
  std::unique_ptr<nvme::IoQueue> io_queue_;
  task::Gate admin_gate_;

  nvme::Pdu front_;                                 // being taken
  TcpCommand* begun_ = nullptr;                     // of front_, waits for a buffer
  std::optional<Error> failure_;                    // of reading
  std::optional<nvme::PduFault> fault_;             // of the host
  nvme::PduType faulty_type_{};                     // where it was
  bool spoke_tls_ = false;                          // the host did, to a listener that does not
  std::vector<std::unique_ptr<TcpCommand>> slots_;  // made when they are needed first
  size_t slots_max_;
  List<TcpCommand, FreeTag> free_;
  stream::CommandIds cids_;        // in use
  TcpCommand* filling_ = nullptr;  // whose memory H2CData is being read into
  OwedData owed_;
  size_t preempted_ = 0;  // commands that abort_namespace() waits for
  task::Event preempted_ended_;
  DataShare share_;
  FirstHalf first_half_{&TargetConnection::on_second_missing};  // the last one that came

  Doorbell doorbell_;
  size_t running_ = 0;                // commands that are not complete
  List<TcpCommand, OutTag> out_;      // to be sent
  List<TcpCommand, OutTag> sending_;  // being sent
  std::vector<Bytes> pieces_;         // what is being sent, in order
  size_t piece_bytes_ = 0;            // in all of them
  size_t piece_messages_ = 0;         // PDUs in it
  std::array<std::byte, sizeof(nvme::IcResp)> greeting_;
  size_t greeting_size_ = 0;
  std::array<std::byte, nvme::kTermReqMax> farewell_;  // a TermReq: nothing is sent after it
  size_t farewell_size_ = 0;
  bool has_said_farewell_ = false;
  task::Event out_ready_;
  task::Event sent_all_;  // of a write: its slots are free again
  bool writing_ = false;  // the stream has pieces_ and waits for the host
  bool reading_ended_ = false;
  bool draining_ = false;
  bool finishing_ = false;
  task::CancelSource ending_;                        // in both directions, at once
  task::CancelSource reading_end_{ending_.token()};  // what is to be sent still goes out
  const char* why_ended_ = "the host ended it";
};

}  // namespace cairn::fabric
