// SPDX-License-Identifier: Apache-2.0
// RemoteDrive: a namespace across the network as a Drive, over one path or several.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/list.h"
#include "base/units.h"
#include "drive/drive.h"
#include "drive/stable_memory.h"
#include "env/env.h"
#include "fabric/host/admission.h"
#include "fabric/host/block_commands.h"
#include "fabric/host/command.h"
#include "fabric/host/continuity.h"
#include "fabric/host/host_pool.h"
#include "fabric/host/lane.h"
#include "fabric/host/namespace_info.h"
#include "fabric/host/options.h"
#include "fabric/host/path.h"
#include "fabric/host/path_set.h"
#include "fabric/host/uri.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"
#include "task/timer.h"

namespace cairn::fabric {

// Requests become commands, as many as the controllers' limits ask for, and go to a usable path:
// optimized ones first, in turn among equals. A command that finds no path, or whose path is lost,
// waits for one; it is sent again unless the target may have executed it and doing that twice could
// show (compare-and-write, execute()): then it fails with kReset. Without a usable path for
// loss_timeout requests fail with kUnreachable, until there is one again.
//
// A change that was lost unanswered is sent again only after the quiesce time, because the target
// may still be executing it. One that is not sent again (cancelled, no path for loss_timeout, a
// compare-and-write) fails only then as well: what has ended never appears late.
//
// What it wrote and did not flush may be lost when the target restarts (continuity.h): then the
// flushes that count on it fail with kIo, once. A target whose medium is a new one, or another
// namespace in its place, is never used: everything fails with kIo at once, until the one that was
// is back.
//
// Memory: a record of about 350 bytes per command, paths x queues x depth of them.
class RemoteDrive final : public drive::Drive, private Path::User {
 public:
  // Connects all paths of `uri`; one that works is enough, the others are tried again by
  // themselves. Errors of the first path when none works: those of HostSession::open, kNotFound
  // (no such namespace), kUnsupported (a format that no Drive has). kInvalid: a discovery URI.
  static task::Task<Result<std::unique_ptr<RemoteDrive>>> open(env::Env& env, Uri uri,
                                                               task::CancelToken token = {});
  // The same, over controllers that it shares with the pool's other drives. The pool outlives it.
  static task::Task<Result<std::unique_ptr<RemoteDrive>>> open(HostPool& pool, Uri uri,
                                                               task::CancelToken token = {});
  // The same, for a host that needs an admission wherever it comes. Errors of that too.
  static task::Task<Result<std::unique_ptr<RemoteDrive>>> open(HostPool& pool, Uri uri,
                                                               std::unique_ptr<Admission> admission,
                                                               task::CancelToken token = {});
  ~RemoteDrive() override;

  const drive::Geometry& geometry() const override { return info_.geometry; }
  // It changes when something may be lost, not whenever the target is restarted.
  drive::Incarnation incarnation() const override;
  task::Task<void> close() override;
  // Drives of one pool at one controller of ours (nvme/format/replicate_format.h).
  bool can_replicate_to(const drive::Drive& other) const override;
  // Paths that cannot be used, with why; failing when none is left.
  std::vector<drive::Concern> concerns() const override;

  // Whether a request failed because something else answers in the drive's place.
  static bool is_of_replacement(const Error& error) {
    return std::string_view(error.what()) == kReplaced.what();
  }

  // A command as it is, on a path that is usable now: once, whatever happens. For reservations and
  // the like. kUnreachable: no path; others as CommandOp. A status is the caller's to judge.
  task::Task<Result<nvme::Cqe>> execute(nvme::Sqe sqe, MutableBytes data,
                                        task::CancelToken token = {});

  const NamespaceInfo& info() const { return info_; }
  std::span<const std::unique_ptr<Path>> paths() const { return paths_.all(); }
  // Of the paths that are connected, as they are now; of a pool's drives, all see the same.
  std::vector<HostLane> lanes() const { return paths_.lanes(); }

  struct Counters {
    uint64_t commands = 0;  // sent
    uint64_t resent = 0;    // of those, again
    uint64_t waited = 0;    // that found no path
  };
  const Counters& counters() const { return counters_; }

 private:
  struct QueueTag;
  // One command of a request: a slot of the table.
  struct Part : HostCommand, ListHook<QueueTag> {
    enum class State : uint8_t {
      kFree,
      kReady,    // waits for a path
      kDelayed,  // waits for its time
      kSent,     // a session has it
      kHeld,     // the first of a pair to come back
    };
    explicit Part(RemoteDrive& owner) : HostCommand(&RemoteDrive::on_done), drive(owner) {}
    RemoteDrive& drive;
    State state = State::kFree;
    bool is_second = false;
    bool gives_up = false;  // it only waits until the target cannot execute it any more
    drive::DriveOp* op = nullptr;
    Path* path = nullptr;
    Part* pair = nullptr;   // the other of two fused ones
    uint32_t failures = 0;  // that count against retries_max
    uint32_t losses = 0;    // of connections
    uint32_t detours = 0;   // because of path errors
    Time not_before;
    std::array<std::byte, 16> range;  // the data of a Dataset Management
    MutableBytes range_piece;
  };
  // What is kept in a DriveOp's own room.
  struct Progress {
    uint64_t issued = 0;  // blocks that have a part
    uint32_t parts = 0;   // not yet finished
    bool is_cancelled = false;
    bool has_failed = false;
    Error error{Errc::kIo, ""};
    Continuity::Mark mark;  // of a flush
  };
  static_assert(sizeof(Progress) <= drive::DriveOp::kScratchSize);
  static constexpr Error kReplaced{
      Errc::kIo, "the target has a new medium, or another namespace: what was written is gone"};
  static constexpr Error kBarred{Errc::kDenied, "the target does not admit this host any more"};
  static constexpr Error kAstray{
      Errc::kUnreachable,
      "the target keeps answering with path errors while its ANA log says that the path is good"};
  struct DriveTimer : task::Timer {
    using Timer::Timer;
    RemoteDrive* drive = nullptr;
  };

  RemoteDrive(HostPool& pool, const Uri& uri, std::unique_ptr<Admission> admission);
  static task::Task<Result<std::unique_ptr<RemoteDrive>>> open_in(
      HostPool& pool, std::unique_ptr<HostPool> own, Uri uri, std::unique_ptr<Admission> admission,
      task::CancelToken token);
  task::Task<void> take_leave();
  task::Task<void> note_attempt(Path& path);

  // Drive (remote_drive.cc).
  void start(drive::DriveOp& op) override;
  void cancel(drive::DriveOp& op) override;
  // A digest is of the very bytes that are sent, or came.
  bool needs_copy(const drive::DriveOp& op) const {
    return options_.data_digest && drive::has_unstable_memory(op.request);
  }
  task::Task<void> serve_copy(drive::DriveOp& op);
  // Path::User (remote_drive.cc).
  Result<void> path_described(Path& path, const NamespaceInfo& info) override;
  task::Task<Result<void>> admit(HostSession& session, NamespaceInfo info,
                                 task::CancelToken token) override;
  void path_changed(Path& path) override;

  // Parts for requests (remote_parts.cc).
  void issue();
  void issue_from(List<drive::DriveOp, drive::DriveOp>& waiting, size_t kept);
  void issue_part(drive::DriveOp& op);
  void issue_pair(drive::DriveOp& op);
  Part& take_part(drive::DriveOp& op);
  void fill_part(Part& part, uint64_t first, uint32_t blocks);

  // One command for several namespaces (remote_replicas.cc).
  const NamespaceInfo* known_at(const HostController& controller) const;
  Result<void> address_replicas(Part& part) const;
  void note_replicas(const Part& part);

  // Their way, from being sent to the end of their request (remote_command.cc).
  void dispatch(Part& part);
  static void on_done(HostCommand& command);
  void part_done(Part& part);
  Result<void> note_success(const Part& part);
  void pair_done(Part& first, Part& second);
  void finish(Part& part, const Result<void>& result);
  void free_part(Part& part);
  void settle(drive::DriveOp& op);

  // Those that were lost or refused (remote_retry.cc).
  void part_lost(Part& part);
  Duration quiesce_after(const Error& why) const;
  bool may_come_late(const Part& part) const;
  void give_up(Part& part, const Error& why);
  void dispatch_later(Part& part, Duration pause);
  void fail_all(const Error& why);
  bool may_fail_again(Part& part);
  // A path error was the answer: the way to the namespace is not what the target says it is. False:
  // it was so too often.
  bool try_elsewhere(Part& part);
  Duration retry_pause(const Part& part) const;
  static void on_delay(task::Timer& timer);
  void look_for_path();
  static void on_loss(task::Timer& timer);
  static Progress& progress(drive::DriveOp& op) { return *reinterpret_cast<Progress*>(op.scratch); }

  std::unique_ptr<HostPool> own_pool_;  // of a drive that shares with nobody
  env::Env& env_;
  const HostOptions options_;
  PathSet paths_;
  NamespaceInfo info_;
  BlockCommands commands_{info_};
  Continuity continuity_;
  std::unique_ptr<Admission> admission_;  // null: none is needed
  bool is_barred_ = false;                // by it, for good
  bool is_known_ = false;                 // info_ is filled in
  bool is_closing_ = false;
  // While it is being opened.
  task::Event settled_;
  size_t failed_attempts_ = 0;
  Result<void> first_failure_;
  task::Gate gate_;

  std::vector<std::unique_ptr<Part>> parts_;
  List<Part, QueueTag> free_;
  size_t free_count_ = 0;
  List<Part, QueueTag> ready_;
  List<Part, QueueTag> delayed_;
  size_t kept_parts_ = 0;                         // for urgent requests
  List<drive::DriveOp, drive::DriveOp> waiting_;  // not wholly issued
  List<drive::DriveOp, drive::DriveOp> urgent_;   // the same, where some parts are kept for them
  bool is_failing_ = false;                       // no path for too long
  DriveTimer delay_timer_;
  DriveTimer loss_timer_;
  Counters counters_;
};

}  // namespace cairn::fabric
