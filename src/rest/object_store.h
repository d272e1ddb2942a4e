// SPDX-License-Identifier: Apache-2.0
// ObjectStore: the objects of one drive at an HTTP server, and whether somebody else changes them.
//
// Two things tell of a second writer. PATH/label names the owner: whoever opened the drive last. It
// is read again before changes, though not more often than asked for. And each object's ETag, where
// it is known from an earlier request, must still be the same when the object is changed: the
// server checks that (If-Match) where it honours conditions on PUT, else a HEAD just before does,
// which leaves a short time in which another can come between. Once noticed, nothing is changed any
// more: kDenied.
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
#include "rest/object_label.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::rest {

// The objects whose version is remembered, at most.
inline constexpr size_t kVersionsMax = 65536;

// What is known of an object.
struct Version {
  bool is_absent = false;
  std::string etag;  // empty and not absent: nothing is known

  bool is_known() const { return is_absent || !etag.empty(); }
  // A server compares only these for a condition (RFC 9110, 13.1.1).
  bool is_strong() const { return etag.starts_with('"'); }
  friend bool operator==(const Version&, const Version&) = default;
};

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
  // Makes whoever `label` names the owner and finds out whether the server honours conditions.
  // kExists: another did so at the same time.
  task::Task<Result<void>> take(const ObjectLabel& label);
  // Whether the drive is still that of the owner.
  task::Task<Result<void>> check_owner(task::CancelToken token);

  // So many bytes of an object from `offset` on; of one that is absent, zeroes. `size` is that of
  // the whole object. kCorrupt: what is there is no such object.
  task::Task<Result<Version>> read(uint64_t object, uint64_t size, uint64_t offset,
                                   std::span<const MutableBytes> into, task::CancelToken token);
  // The whole object, to be changed: its version is remembered.
  task::Task<Result<Version>> fetch(uint64_t object, MutableBytes into, task::CancelToken token);
  // Replaces the object, whole.
  task::Task<Result<void>> put(uint64_t object, std::span<const Bytes> body,
                               task::CancelToken token);
  task::Task<Result<void>> remove(uint64_t object, task::CancelToken token);
  // Whether an object is there at all, and its version.
  task::Task<Result<Version>> look(uint64_t object, task::CancelToken token);

  bool honours_conditions() const { return conditional_; }
  bool is_lost() const { return lost_; }
  const Counters& counters() const { return counters_; }

 private:
  std::string target(uint64_t object) const;
  std::string label_target() const { return path_ + "/label"; }
  task::Task<Result<HttpAnswer>> put_label(const ObjectLabel& label, std::string condition);
  Version recall(uint64_t object) const;
  void remember(uint64_t object, Version version);
  // The header line that makes a change depend on `version`; where the server ignores it, compares.
  task::Task<Result<std::string>> guard(uint64_t object, Version version, task::CancelToken token);
  // After 412: whether the object is as an earlier attempt of ours left it.
  task::Task<Result<void>> settle_put(uint64_t object, std::span<const Bytes> body);
  Error lose();

  env::Env& env_;
  Client& client_;
  std::string path_;
  Duration check_;
  Time checked_{};
  std::array<uint64_t, 2> owner_{};
  Version label_version_;
  bool conditional_ = false;
  bool lost_ = false;
  std::unordered_map<uint64_t, Version> versions_;
  Counters counters_;
};

}  // namespace cairn::rest
