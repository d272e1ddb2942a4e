// SPDX-License-Identifier: Apache-2.0
// ObjectStore: the objects of one drive at an HTTP server. Detects a second writer.
//
// Two mechanisms detect a second writer. PATH/label names the owner: the process that opened the
// drive last. It is read again before changes, at most as often as configured. And each object is
// changed only if it has its known version: the server checks that (If-Match, If-None-Match) if it
// honours conditions; otherwise a HEAD just before does, which leaves a short time in which another
// process can write. Once a second writer is detected, nothing is changed any more: kDenied.
//
// The same conditions make our own late requests harmless: a request that was given up, retried and
// acknowledged finds another version when its first attempt arrives at last. If the server's
// conditions do not order changes, a change that was given up is not retried, and the object is not
// changed any more (kIo) until that change is seen to have happened.
//
// An absent object reads as zeroes only while the label is still there.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>

#include "base/bytes.h"
#include "base/error.h"
#include "env/env.h"
#include "rest/client.h"
#include "rest/object_label_format.h"
#include "rest/unanswered.h"
#include "rest/version.h"
#include "task/cancel.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::rest {

// The objects whose version is remembered, at most.
inline constexpr size_t kVersionsMax = 65536;

// One core. Objects are changed by one caller at a time each.
class ObjectStore {
 public:
  struct Counters {
    uint64_t gets = 0;
    uint64_t puts = 0;
    uint64_t removes = 0;
  };
  ObjectStore(env::Env& env, Client& client, std::string path, Duration check)
      : env_(env), client_(client), path_(std::move(path)), check_(check) {}

  // None: there is no label. Errors as ObjectLabel::decode and of the server.
  task::Task<Result<std::optional<ObjectLabel>>> read_label(task::CancelToken token);
  // Makes the process that `label` names the owner, and tests whether the server honours
  // conditions. kExists: another process did so at the same time.
  task::Task<Result<void>> take(const ObjectLabel& label);
  // Whether the drive is still that of the owner.
  task::Task<Result<void>> check_owner(task::CancelToken token);

  // So many bytes of an object from `offset` on; of one that is absent, zeroes. `size` is that of
  // the whole object. kCorrupt: what is there is no such object. kIo: it is absent, and so is the
  // drive.
  task::Task<Result<Version>> read(uint64_t object, uint64_t size, uint64_t offset,
                                   std::span<const MutableBytes> into, task::CancelToken token);
  // The whole object, to be changed: its version is remembered.
  task::Task<Result<Version>> fetch(uint64_t object, MutableBytes into, task::CancelToken token);
  // Replaces the object, whole.
  task::Task<Result<void>> put(uint64_t object, std::span<const Bytes> body,
                               task::CancelToken token);
  // Of an object of `size` bytes. Not if keeps(object).
  task::Task<Result<void>> remove(uint64_t object, uint64_t size, task::CancelToken token);
  // Whether the object must exist from now on: an earlier change, never answered, would be carried
  // out if it were absent. Zeroes are put in place of removing it, and of leaving it absent.
  bool keeps(uint64_t object) const { return unanswered_.awaits_absence(object); }
  // Whether an object is there at all, and its version.
  task::Task<Result<Version>> look(uint64_t object, task::CancelToken token);

  // Whether conditions bring changes into an order.
  bool honours_conditions() const { return ordered_; }
  bool is_lost() const { return lost_; }
  const Counters& counters() const { return counters_; }

 private:
  struct Change {
    Method method = Method::kPut;
    uint64_t object = 0;
    uint64_t size = 0;            // of the object
    std::span<const Bytes> body;  // of a PUT
    bool is_removal() const { return method == Method::kDelete; }
  };
  enum class Settled : uint8_t { kDone, kAnotherOfOurs };

  std::string target(uint64_t object) const;
  std::string label_target() const { return path_ + "/label"; }
  task::Task<Result<HttpAnswer>> put_label(const ObjectLabel& label, std::string condition);
  Version recall(uint64_t object) const;
  void remember(uint64_t object, Version version);
  task::Task<Result<void>> apply(Change change, task::CancelToken token);
  // What the object is before a change, compared with what is remembered where the server does not.
  task::Task<Result<Version>> version_before(const Change& change, task::CancelToken token);
  void complete(const Change& change, const Version& before, const Outcome& outcome);
  void note_unanswered(const Change& change, const Version& before, const Outcome& outcome);
  // After 412: whether the object is as this change left it, or as an earlier one of ours did.
  task::Task<Result<Settled>> settle(const Change& change, bool was_unanswered);
  // Where there is no order: whether what was given up has happened. kIo: not yet.
  task::Task<Result<void>> see_landed(const Change& change, task::CancelToken token);
  task::Task<Result<void>> await_landed(const Change& change, task::CancelToken token);
  // Whether this drive's label is there, seen after the call. One request answers all who wait.
  task::Task<Result<void>> check_label(task::CancelToken token);
  task::Task<Result<void>> see_label(task::CancelToken token);
  Error lose();

  env::Env& env_;
  Client& client_;
  std::string path_;
  Duration check_;
  Time checked_{};
  std::array<uint64_t, 2> id_{};
  std::array<uint64_t, 2> owner_{};
  Version label_version_;
  task::Semaphore label_turn_{1};
  uint64_t label_looks_ = 0;  // begun
  uint64_t label_seen_ = 0;   // the last of them that found it
  bool conditional_ = false;  // PUT honours conditions
  bool ordered_ = false;      // and DELETE does, and no ETag comes again
  bool lost_ = false;
  std::unordered_map<uint64_t, Version> versions_;
  Unanswered unanswered_;
  Counters counters_;
};

}  // namespace cairn::rest
