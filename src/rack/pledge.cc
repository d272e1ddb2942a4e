// SPDX-License-Identifier: Apache-2.0
#include "rack/pledge.h"

#include <algorithm>
#include <utility>

#include "base/uuid.h"
#include "rack/record_format.h"

namespace cairn::rack {

namespace {

constexpr std::string_view kDrives = "drive/";
constexpr int kCommitTries = 3;

std::string void_key(const ContractId& id) { return "void/" + uuid_text(id); }

bool names(const DriveRecord& drive, const ContractId& id) {
  return std::ranges::any_of(drive.legs, [&id](const Leg& leg) { return leg.id == id; });
}

// Of a record that nobody can read: it may name anything.
bool is_unreadable(const Error& error) {
  return error == Errc::kCorrupt || error == Errc::kUnsupported;
}

}  // namespace

std::string drive_key(std::string_view name) { return std::string(kDrives) + std::string(name); }

task::Task<Result<std::optional<KnownDrive>>> get_drive(meta::Store& store, std::string name,
                                                        task::CancelToken token) {
  const Result<std::optional<meta::Entry>> entry = co_await store.get(drive_key(name), token);
  if (!entry) co_return fail(entry.error());
  if (!*entry) co_return std::nullopt;
  Result<DriveRecord> drive = decode_drive(as_bytes((*entry)->value));
  if (!drive) co_return fail(drive.error());
  if (drive->name != name) co_return fail(Errc::kCorrupt, "a drive's record has another name");
  co_return KnownDrive{.drive = std::move(*drive), .modified = (*entry)->modified};
}

task::Task<Result<Verdict>> settle(meta::Store& store, Contract contract, task::CancelToken token) {
  const Result<std::optional<KnownDrive>> known = co_await get_drive(store, contract.drive, token);
  if (!known && is_unreadable(known.error())) {
    co_return fail(Errc::kIo, "the drive's record cannot be read");
  }
  if (!known) co_return fail(known.error());
  if (*known && names((*known)->drive, contract.id)) co_return Verdict::kConfirmed;
  const Result<meta::Lease> lease = co_await store.grant(meta::kLeaseTtlMax, token);
  if (!lease) co_return fail(lease.error());
  meta::Batch batch;
  const std::string key = drive_key(contract.drive);
  if (*known) {
    batch.if_modified(key, (*known)->modified);
  } else {
    batch.if_absent(key);
  }
  batch.put(void_key(contract.id), contract.drive, lease->id);
  const Result<meta::Committed> committed = co_await store.commit(std::move(batch), token);
  if (!committed) co_return fail(committed.error());
  if (committed->done()) co_return Verdict::kVoid;
  [[maybe_unused]] const Result<void> revoked = co_await store.revoke(lease->id, token);
  co_return fail(Errc::kMismatch, "the drive's record changed meanwhile");
}

task::Task<Result<void>> put_drive(meta::Store& store, DriveRecord drive, task::CancelToken token) {
  meta::Batch batch;
  batch.if_absent(drive_key(drive.name));
  for (const Leg& leg : drive.legs) batch.if_absent(void_key(leg.id));
  batch.put(drive_key(drive.name), encode(drive));
  Result<void> outcome;
  for (int tries = 0; tries < kCommitTries; ++tries) {
    const Result<meta::Committed> committed = co_await store.commit(batch, token);
    if (!committed) {
      // An earlier try may have been carried out, if one was not answered.
      if (committed.error() == Errc::kDenied && tries > 0) co_return outcome;
      if (committed.error() == Errc::kDenied) co_return fail(committed.error());
      outcome = fail(committed.error());
      continue;
    }
    if (committed->done()) co_return Result<void>{};
    if (*committed->failed > 0) co_return fail(Errc::kMismatch, "a contract's term is over");
    // It may be ours, of a try that was not answered.
    const Result<std::optional<KnownDrive>> known = co_await get_drive(store, drive.name, token);
    if (known && *known && (*known)->drive == drive) co_return Result<void>{};
    if (!known && !is_unreadable(known.error())) {
      outcome = fail(known.error());
      continue;
    }
    co_return fail(Errc::kExists, "another drive has this name");
  }
  co_return outcome;
}

task::Task<Result<Drives>> list_drives(meta::Store& store, task::CancelToken token) {
  Drives found;
  meta::ListOptions options{.range = meta::Range::prefix(kDrives)};
  for (bool more = true; more;) {
    const Result<meta::Page> page = co_await store.list(options, token);
    if (!page) co_return fail(page.error());
    for (const meta::Entry& entry : page->entries) {
      Result<DriveRecord> drive = decode_drive(as_bytes(entry.value));
      if (drive && drive_key(drive->name) == entry.key) {
        found.drives.push_back(std::move(*drive));
      } else {
        ++found.unreadable;
      }
    }
    more = page->more && !page->entries.empty();
    if (more) options.range = options.range.behind(page->entries.back().key);
    options.at = page->revision;
  }
  co_return found;
}

task::Task<Result<bool>> replace_drive(meta::Store& store, KnownDrive known, DriveRecord by,
                                       task::CancelToken token) {
  const std::string key = drive_key(known.drive.name);
  meta::Batch batch;
  batch.if_modified(key, known.modified);
  if (by.legs.empty()) {
    batch.remove(key);
  } else {
    batch.put(key, encode(by));
  }
  const Result<meta::Committed> committed = co_await store.commit(std::move(batch), token);
  if (!committed) co_return fail(committed.error());
  co_return committed->done();
}

}  // namespace cairn::rack
