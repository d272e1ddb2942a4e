// SPDX-License-Identifier: Apache-2.0
// Agent: what a client knows of boxes, and tells of its requests (Flint, sections 3.3 and 3.4). No
// I/O: whoever has it sends what it wants to have sent, and gives the answers back.
//
// A request costs one note(), which stores 40 bytes. Batches leave at kBatchMax vectors or
// kBatchAge. While nobody takes them the newest kKept vectors are kept; older ones are dropped and
// counted. One batch is under way at a time; the same one goes again until it is answered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/ring.h"
#include "base/units.h"
#include "view/messages.h"
#include "view/types.h"
#include "view/view.h"

namespace cairn::view {

class Agent {
 public:
  static constexpr size_t kKept = 4096;

  explicit Agent(uint64_t incarnation) : incarnation_(incarnation), ring_(kKept) {}

  // kLimit: kSessionsMax are open. The controller hears of it by the next attach().
  Result<SessionId> open_session(SessionInfo info);
  void close_session(SessionId id);

  // A request is done. Cheap: nothing is allocated.
  void note(const IoVector& vector) {
    if (ring_.full()) {
      ring_.pop();
      ++dropped_;
    }
    const bool is_kept = ring_.push(IoVector(vector));
    dropped_ += is_kept ? 0 : 1;
  }

  // When something is to be sent: now, or never.
  Time due_at() const;
  // What is to be sent first: sessions changed, or the controller does not know us.
  bool must_attach() const { return must_attach_; }
  AttachRequest attach_request() const;
  void attached(const AttachReply& reply);
  // None: nothing is due. The same batch as before if that was not answered.
  std::optional<ReportRequest> report_request(Time now);
  // The answer to it. What other clients changed meanwhile is stale from now on.
  void reported(const ReportReply& reply);
  // The controller refused it so. kNotFound: attach. Others: it makes no sense to the controller,
  // and is given up.
  void refused(Errc code);

  // The components whose view is old; what is asked for by view_sync, kSyncMax at most. Empty:
  // nothing is stale.
  SyncRequest stale() const;
  void synced(const SyncReply& reply);
  // Of its part of the view. Null: never seen.
  const ComponentView* find(ComponentId id) const;
  bool is_stale(ComponentId id) const;

  uint64_t controller() const { return controller_; }
  // None: not attached, or closed.
  std::optional<BoxId> box_of(SessionId id) const;
  size_t noted() const { return ring_.size(); }
  struct Counters {
    uint64_t dropped = 0;  // vectors that nobody took
    uint64_t late = 0;     // that came too late
    uint64_t refused = 0;
  };
  Counters counters() const { return {.dropped = dropped_, .late = late_, .refused = refused_}; }

 private:
  struct Session {
    SessionInfo info;
    std::optional<BoxId> box;
  };
  struct Held {
    uint64_t counter = 0;
    bool is_stale = true;
    std::optional<ComponentView> view;
  };

  const uint64_t incarnation_;
  Ring<IoVector> ring_;
  std::map<SessionId, Session> sessions_;
  uint32_t next_session_ = 1;
  bool must_attach_ = true;
  uint64_t controller_ = 0;
  uint64_t number_ = 0;  // of the last batch that is over
  std::optional<ReportRequest> batch_;
  std::map<ComponentId, Held> held_;
  uint64_t dropped_ = 0;
  uint64_t late_ = 0;
  uint64_t refused_ = 0;
};

}  // namespace cairn::view
