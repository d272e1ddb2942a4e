// SPDX-License-Identifier: Apache-2.0
// ArbiterLink: what whoever uses a volume asks of the control plane, wherever that runs.
//
// Errors of every call besides its own:
//   kUnreachable  no arbiter answers; nothing was done. Another may be elected: ask again
//   kTimedOut, kReset, kCancelled   the same, but it may have been carried out, or may be later.
//                 Every call can be repeated: what was done already is answered as if it had been
//                 done now. Whoever repeats one takes the next turn (Session)
//   kDenied       the session is over: somebody else has opened the volume, or it was closed
//   kNotFound     there is no such volume
// An object belongs to one core; any number of calls may be under way. Waits are bounded by the
// caller's token.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "task/cancel.h"
#include "task/task.h"
#include "volume/map_entry_format.h"
#include "volume/mega_vol.h"
#include "volume/types.h"

namespace cairn::volume {

// One opening of a volume.
struct Session {
  VolumeId volume;
  Epoch epoch;
  // Grows whenever an answer was lost. The arbiter refuses, with kReset, calls of turns before one
  // that it has seen: what the holder believes to be undone is not done behind its back.
  uint64_t turn = 0;
  friend bool operator==(const Session&, const Session&) = default;
};

struct OpenArgs {
  std::string volume;      // its name
  std::string client;      // who opens it: what boxes know it by, for fencing
  bool take_over = false;  // although somebody else has it: they are fenced first
};

struct Opened {
  Session session;
  MegaVolPool pool;
  uint32_t extents = 0;  // the log's included
  uint32_t replicas = 1;
  bool is_snapshot = false;  // its holder may read it, and heal it
  // The last holder closed it. Else replicas may differ where its log of intents says so.
  bool is_clean = true;
  Duration lease;  // from when the call was sent
  std::vector<MegaVolInfo> mega_vols;
  // Of these: to which a former holder may still write. The holder sends nothing there, and takes
  // nothing for granted that comes from there, until a later answer does not name them.
  std::vector<MegaVolId> unfenced;
};

struct Renewed {
  Duration lease;  // from when the call was sent
  uint32_t extents = 0;
  uint32_t replicas = 1;
  std::vector<MegaVolInfo> mega_vols;
  std::vector<MegaVolId> unfenced;
};

struct Mapping {
  uint32_t extent = 0;
  MapEntry entry;
  // A snapshot or a clone has legs of it too: nobody changes what they hold. Whoever writes it
  // copies it first (begin_copies()).
  bool is_shared = false;
};

// Where an extent lies, and where it is to be copied.
struct CopyPlace {
  Mapping now;
  MapEntry target;  // unmapped: nobody else has the extent, so there is nothing to copy
};

// The place of a copy, with legs that lack something marked stale. Unmapped: it is given up.
struct CopyEnd {
  uint32_t extent = 0;
  MapEntry target;
};

// What an operator wants of whoever has the volume open.
struct Asked {
  std::string snapshot;  // freeze() for it; empty: nothing
};

// What is known of a leg.
struct LegReport {
  uint32_t extent = 0;
  MegaVolId mega_vol;
  bool is_stale = false;
};

// Gives an extent another leg, takes one away, or both, in one commit. The one that is dropped is
// cleared and given to others: the holder must not use it once it has asked.
struct Relocation {
  uint32_t extent = 0;
  std::optional<MegaVolId> synced;  // this one is not stale any more
  std::optional<MegaVolId> drop;
  bool add = false;  // a stale one, on a drive that has none of this extent
};

class ArbiterLink {
 public:
  virtual ~ArbiterLink() = default;

  // kExists: somebody has it open, and did not ask to be taken over; kUnreachable also when the old
  // holder can neither be fenced nor has lost its lease.
  virtual task::Task<Result<Opened>> open(OpenArgs args, task::CancelToken token = {}) = 0;
  virtual task::Task<Result<Renewed>> renew(Session session, task::CancelToken token = {}) = 0;
  // The holder does nothing more. `is_clean`: all that was written is durable on every leg that is
  // not stale, also by the holder before; what was acknowledged and lost its user was told of.
  virtual task::Task<Result<void>> close(Session session, bool is_clean,
                                         task::CancelToken token = {}) = 0;

  // Where extents from `first` on lie, as many as there are, kTablePageMax at most; those that lie
  // nowhere too.
  virtual task::Task<Result<std::vector<Mapping>>> table(Session session, uint32_t first,
                                                         task::CancelToken token = {}) = 0;
  // Gives space to those that have none, at most kMappingsMax, in one commit. It reads as zeroes.
  // Where all of them lie now. kNoSpace: nothing was done.
  virtual task::Task<Result<std::vector<Mapping>>> allocate(Session session,
                                                            std::vector<uint32_t> extents,
                                                            task::CancelToken token = {}) = 0;
  // Takes space away. The holder does not use it any more when it asks. At most kMappingsMax.
  virtual task::Task<Result<void>> release(Session session, std::vector<uint32_t> extents,
                                           task::CancelToken token = {}) = 0;
  // Which legs lack writes, or have them all again. Answers where the extents lie now; of legs that
  // are not there any more nothing is done. kInvalid: an extent would be left without a leg that is
  // not stale; of this none was done.
  virtual task::Task<Result<std::vector<Mapping>>> report(Session session,
                                                          std::vector<LegReport> legs,
                                                          task::CancelToken token = {}) = 0;
  // kInvalid as report(); kNoSpace: no drive can take another leg.
  virtual task::Task<Result<Mapping>> relocate(Session session, Relocation what,
                                               task::CancelToken token = {}) = 0;

  // Gives places to those that are shared, at most kCopiesMax. They hold anything. An extent keeps
  // its place until the copy ends, also when it is asked for again. kNoSpace: nothing was done.
  virtual task::Task<Result<std::vector<CopyPlace>>> begin_copies(Session session,
                                                                  std::vector<uint32_t> extents,
                                                                  task::CancelToken token = {}) = 0;
  // The volume's extents are the copies from now on, which hold everything durably; what is given
  // up is cleared. The holder uses neither the old nor the given up any more when it asks. Answers
  // where the extents lie now; those without a copy stay as they are. kInvalid: it is another
  // place.
  virtual task::Task<Result<std::vector<Mapping>>> end_copies(Session session,
                                                              std::vector<CopyEnd> copies,
                                                              task::CancelToken token = {}) = 0;
  // What is asked of the holder, as soon as something is; nothing after so long.
  virtual task::Task<Result<Asked>> asked(Session session, Duration wait,
                                          task::CancelToken token = {}) = 0;
  // Makes the snapshot that was asked for of all extents as they are. The holder has no write under
  // way, all is durable, and from when it asks it counts all extents as shared until an answer says
  // otherwise, also when this one fails. Not `is_ready`: it could not do that, and nothing is done.
  // kInvalid: nobody waits for it any more.
  virtual task::Task<Result<void>> freeze(Session session, std::string snapshot, bool is_ready,
                                          task::CancelToken token = {}) = 0;
};

}  // namespace cairn::volume
