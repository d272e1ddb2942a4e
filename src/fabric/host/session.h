// SPDX-License-Identifier: Apache-2.0
// HostSession: one association with a controller, from Connect to its end.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/list.h"
#include "env/env.h"
#include "fabric/host/command.h"
#include "fabric/host/lane.h"
#include "fabric/host/options.h"
#include "fabric/host/queue.h"
#include "nvme/format/event_format.h"
#include "nvme/format/fabrics_format.h"
#include "nvme/format/identify_controller_format.h"
#include "nvme/format/property_format.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/operation.h"
#include "task/task.h"
#include "tls/context.h"

namespace cairn::fabric {

class HostSession;

// One command as something to await: `Result<Cqe> answer = co_await session.admin(sqe, page);`.
// Success means that the target answered; the answer's status may still be a failure. kCorrupt: the
// data did not match their digest. Others as HostCommand::transport.
class CommandOp final : public task::Operation<nvme::Cqe> {
 public:
  // `queue` null: any I/O queue. Data are lent until completion.
  CommandOp(HostSession& session, HostQueue* queue, const nvme::Sqe& sqe, MutableBytes data,
            task::CancelToken token);

  // After completion: bytes of data that moved, and whether the target may have seen it.
  uint32_t moved() const { return command_.moved; }
  bool sent() const { return command_.sent; }

  // Before it is awaited.
  CommandOp& never_times_out() {
    command_.never_times_out = true;
    return *this;
  }

 private:
  struct Command : HostCommand {
    using HostCommand::HostCommand;
    CommandOp* op = nullptr;
  };
  static void on_done(HostCommand& command);
  void start() override;
  void cancel() override;

  HostSession& session_;
  HostQueue* queue_;
  MutableBytes piece_;
  Command command_;
};

// An admin queue and, unless the controller only does discovery, I/O queues: all on one core, all
// lost together. Opened, used, lost or not, closed, destroyed.
class HostSession final : private HostQueue::Owner {
 public:
  class User {
   public:
    // Once, after open() succeeded and before close(), which is to follow. Commands come back
    // unanswered from now on.
    virtual void session_lost(const Error& why) = 0;
    // To be followed by reading the event's log page, without which it is not told again.
    virtual void session_event(const nvme::AsynchronousEvent& event) = 0;

   protected:
    ~User() = default;
  };
  struct Options {
    env::Address address;
    std::string nqn;
    HostOptions host;           // with its names filled in
    bool flow_control = false;  // for targets that cannot do without
  };

  HostSession(env::Env& env, const Options& options, User& user);
  ~HostSession();
  HostSession(const HostSession&) = delete;
  HostSession& operator=(const HostSession&) = delete;

  // Connects the admin queue, enables the controller, learns what it can do, connects its I/O
  // queues and asks for events. Errors of HostQueue::open, and: kDenied (this host may not),
  // kDenied, kUnsupported (authentication: authenticate.h), kNotFound (no such subsystem), kLimit
  // (busy: try later), kUnsupported, kInvalid, kIo. Once.
  task::Task<Result<void>> open(task::CancelToken token);
  // Shuts the controller down if it still answers, ends every connection and waits for all that
  // uses the session.
  // Once, also when open() failed.
  task::Task<void> close();

  env::Env& env() { return env_; }
  const HostOptions& options() const { return options_.host; }
  const std::string& nqn() const { return options_.nqn; }
  // Why it can no longer be used; none while it can.
  const std::optional<Error>& lost() const { return lost_; }
  // After open() failed: the target says that trying again is pointless.
  bool is_refused() const { return refused_; }
  // After open() failed: it might do with flow control.
  bool wants_flow_control() const { return wants_flow_control_; }

  // Tasks that use the session belong here: close() waits for them. Their waits take the token.
  task::Gate& gate() { return gate_; }
  task::CancelToken closing_token() { return closing_.token(); }

  uint16_t controller_id() const { return controller_id_; }
  const nvme::Capabilities& capabilities() const { return capabilities_; }
  nvme::Version version() const { return version_; }
  const nvme::IdentifyController& identity() const { return *identity_; }
  // The most data of one command, in bytes.
  uint32_t transfer_max() const { return transfer_max_; }
  bool can_fuse() const;
  // Commands that can be outstanding on all I/O queues together.
  uint32_t capacity() const;
  size_t io_queues() const { return io_.size(); }
  // The admin queue, then the others.
  std::vector<HostLane> lanes() const;

  // A command for an I/O queue; while all are full it waits in line. Not after lost().
  void submit(HostCommand& command);
  // See HostQueue::cancel. The command must have been submitted to a session and not be done.
  static void cancel(HostCommand& command, const Error& why);

  CommandOp admin(const nvme::Sqe& sqe, MutableBytes data = {}, task::CancelToken token = {}) {
    return {*this, admin_.get(), sqe, data, token};
  }
  CommandOp io(const nvme::Sqe& sqe, MutableBytes data = {}, task::CancelToken token = {}) {
    return {*this, nullptr, sqe, data, token};
  }

 private:
  friend class CommandOp;
  // HostQueue::Owner
  void queue_ended(HostQueue& queue, const Error& why) override;
  void queue_has_room(HostQueue& queue) override;
  void queue_wants_abort(HostQueue& queue, uint16_t command_id) override;

  // Opening (session_open.cc).
  task::Task<Result<void>> connect_admin(task::CancelToken token);
  task::Task<Result<void>> enable(task::CancelToken token);
  task::Task<Result<void>> wait_until_ready(task::CancelToken token);
  task::Task<Result<void>> identify(task::CancelToken token);
  task::Task<Result<void>> go_by_incarnations(task::CancelToken token);
  task::Task<Result<void>> connect_io(task::CancelToken token);
  task::Task<Result<nvme::ConnectResult>> connect_queue(HostQueue& queue, uint16_t size,
                                                        task::CancelToken token);
  task::Task<Result<void>> authenticate_queue(HostQueue& queue, nvme::ConnectResult connected,
                                              task::CancelToken token);
  Error connect_error(const nvme::Cqe& cqe);
  task::Task<Result<void>> ask_for_events(task::CancelToken token);
  task::Task<Result<uint64_t>> get_property(nvme::PropertyOffset offset, task::CancelToken token);
  task::Task<Result<void>> set_property(nvme::PropertyOffset offset, uint64_t value,
                                        task::CancelToken token);
  std::unique_ptr<HostQueue> make_queue(uint16_t id, uint16_t slots);

  // Living (session.cc).
  void lose(const Error& why);
  static void hand_back(HostCommand& command, const Error& why);
  void hand_back_waiting();
  task::Task<void> event_loop();
  task::Task<void> keep_alive_loop();
  task::Task<void> reauthenticate_loop();
  task::Task<void> shut_down();
  task::Task<void> send_abort(uint16_t queue_id, uint16_t command_id);
  HostQueue* pick(const HostCommand& command);
  HostQueue* pick_among(bool urgent, uint32_t room);
  bool is_urgent(const HostQueue& queue) const { return options_.host.is_urgent(queue.id()); }
  void serve(List<HostCommand, HostCommand>& waiting, HostQueue& queue);
  void submit_to(HostQueue* queue, HostCommand& command);

  env::Env& env_;
  const Options options_;
  User& user_;
  std::unique_ptr<HostQueue> admin_;
  std::vector<std::unique_ptr<HostQueue>> io_;
  size_t urgent_queues_ = 0;  // of io_
  size_t next_queue_ = 0;
  List<HostCommand, HostCommand> waiting_;         // for room on an I/O queue
  List<HostCommand, HostCommand> urgent_waiting_;  // the same, where some queues are kept for them
  List<HostCommand, HostCommand> admin_waiting_;   // for room on the admin queue

  std::shared_ptr<const tls::Context> tls_;  // of all queues, if they need it

  uint16_t controller_id_ = 0;
  nvme::Capabilities capabilities_;
  nvme::Version version_;
  std::unique_ptr<nvme::IdentifyController> identity_;
  uint32_t transfer_max_ = 0;

  bool is_open_ = false;
  bool refused_ = false;
  bool wants_flow_control_ = false;
  uint32_t aborts_ = 0;  // under way
  std::optional<Error> lost_;
  task::CancelSource closing_;
  task::Gate gate_;
};

}  // namespace cairn::fabric
