// SPDX-License-Identifier: Apache-2.0
// How a contract becomes binding: one commit of the metadata store decides for all its boxes.
//
// A box reserves space for a client, for a term. The drive exists when its record is in the store,
// under drive/NAME, with the ids of its contracts. At the end of the term the box reads the record:
// a contract in it is confirmed. For any other contract the box puts void/ID, provided that the
// record has not changed meanwhile, and frees the space. The record in turn is put provided that
// none of its contracts is void. So either all boxes keep their part or the drive never existed,
// whichever process dies in between; a box that cannot reach the store keeps the reservation and
// retries.
//
// Voids are removed after a day. No client commits a record that late.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "meta/store.h"
#include "rack/types.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::rack {

std::string drive_key(std::string_view name);

// What the store says of a contract.
enum class Verdict : uint8_t { kConfirmed, kVoid };

// The box's side, at the end of a term. After kVoid no record will ever name the contract. Errors
// as meta::Store; ask again later.
task::Task<Result<Verdict>> settle(meta::Store& store, Contract contract, task::CancelToken token);

// The side of the client that makes the drive. On success it exists. kExists: another drive has the
// name; kMismatch: a contract is void by now; kDenied: the store does not let us; nothing was done.
// Any other error: it is not known whether the drive is there, and the boxes will find out.
task::Task<Result<void>> put_drive(meta::Store& store, DriveRecord drive, task::CancelToken token);

// A record and its place in the order of commits.
struct KnownDrive {
  DriveRecord drive;
  meta::Revision modified;
};
// None: there is no such drive. kCorrupt, kUnsupported: there is something else.
task::Task<Result<std::optional<KnownDrive>>> get_drive(meta::Store& store, std::string name,
                                                        task::CancelToken token);
// All of them, by name. Records that cannot be read are counted.
struct Drives {
  std::vector<DriveRecord> drives;
  size_t unreadable = 0;
};
task::Task<Result<Drives>> list_drives(meta::Store& store, task::CancelToken token);

// Replaces a record, or removes it when no leg is left. False: somebody else changed it first.
task::Task<Result<bool>> replace_drive(meta::Store& store, KnownDrive known, DriveRecord by,
                                       task::CancelToken token);

}  // namespace cairn::rack
