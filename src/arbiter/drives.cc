// SPDX-License-Identifier: Apache-2.0
#include "arbiter/drives.h"

#include <algorithm>
#include <utility>

namespace cairn::arbiter {

using task::CancelToken;
using task::Task;

namespace {

Result<void> check(const AddArgs& args) {
  if (args.uri.empty() || args.uri.size() > volume::kUriMax) {
    return fail(Errc::kInvalid, "a drive's URI has 1 to 1024 bytes");
  }
  for (const std::string* place : {&args.box, &args.rack}) {
    const Result<void> named = place->empty() ? Result<void>() : volume::check_name(*place);
    if (!named) return named;
  }
  if (args.preference < -volume::kWeightMax || args.preference > volume::kWeightMax) {
    return fail(Errc::kInvalid, "the preference of a drive is out of range", args.preference);
  }
  return {};
}

}  // namespace

// Clients remember numbers until they have renewed their lease: one comes back only after all
// others, and not before everybody has done that.
std::optional<MegaVolId> Drives::free_number() {
  std::erase_if(removed_, [this](const auto& each) { return env_.now() - each.second > lease_; });
  for (uint32_t i = 0; i < volume::kMegaVolsMax; ++i) {
    const MegaVolId id(
        static_cast<uint16_t>((pool_.record.next_mega_vol + i) % volume::kMegaVolsMax));
    if (pool_.member(id) == nullptr && !removed_.contains(id)) return id;
  }
  return std::nullopt;
}

// Which of them were taken from drives just before another led is not known. With few drives none
// of those is next.
void Drives::start() {
  if (pool_.members().size() < volume::kMegaVolsMax / 2) return;
  for (uint16_t i = 0; i < volume::kMegaVolsMax; ++i) {
    if (pool_.member(MegaVolId(i)) == nullptr) removed_[MegaVolId(i)] = env_.now();
  }
}

Task<Result<MegaVolInfo>> Drives::add(AddArgs args, CancelToken token) {
  const Result<void> checked = check(args);
  if (!checked) co_return fail(checked.error());
  // One after the other, so that two do not get one number; clearing takes long, so that others
  // change the pool meanwhile.
  const Result<void> adding = co_await adding_.acquire(1, token);
  if (!adding) co_return fail(adding.error());
  const task::Units units(adding_, 1);
  MegaVolInfo info{
      .uri = args.uri, .box = args.box, .rack = args.rack, .preference = args.preference};
  const std::optional<MegaVolId> id = free_number();
  if (!id)
    co_return fail(Errc::kLimit,
                   "a pool has at most 1024 drives, and gives a number anew only after a lease");
  info.id = *id;
  Result<std::unique_ptr<drive::Drive>> drive =
      co_await source_.open(args.uri, store_.host(), token);
  if (!drive) co_return fail(drive.error());
  const Result<void> made = co_await make_member(**drive, args, info, token);
  co_await (*drive)->close();
  if (!made) co_return fail(made.error());
  const Result<task::Units> turn = co_await store_.take_turn();
  if (!turn) co_return fail(turn.error());
  PoolRecord pool = pool_.record;
  pool.next_mega_vol = static_cast<uint16_t>((info.id.value() + 1) % volume::kMegaVolsMax);
  meta::Batch batch;
  batch.put(kPoolKey, encode(pool))
      .put(mega_vol_key(info.id), encode(DriveRecord{.info = info, .unfenced = {}}));
  const Result<void> done = co_await store_.commit(std::move(batch));
  if (!done) co_return fail(done.error());
  pool_.record = pool;
  const Result<void> added = pool_.add(DriveRecord{.info = info, .unfenced = {}});
  if (!added) co_return fail(added.error());
  co_return info;
}

Task<Result<void>> Drives::make_member(drive::Drive& drive, const AddArgs& args, MegaVolInfo& info,
                                       CancelToken token) {
  Result<void> made =
      co_await volume::may_make_mega_vol(env_, drive, store_.identity(), args.may_format);
  bool is_left_over = false;
  if (!made && made.error() == Errc::kExists) {
    // One that a crash kept from becoming a member is made again; nobody else has a label of ours.
    const Result<Uuid> uuid = co_await volume::read_uuid(env_, drive, store_.identity(), token);
    is_left_over = uuid && std::ranges::none_of(pool_.members(), [&](const auto& each) {
                     return each.second.info.uuid == *uuid;
                   });
    if (is_left_over) made = {};
  }
  // The one that led before may be at the same drive. Either it opened the drive, and then saw that
  // it leads, before this one leads: then it is fenced now. Or it sees that it does not lead.
  if (made) made = co_await store_.confirm_leading();
  if (!made) co_return made;
  made = co_await fence_.keep_only({store_.host()}, args.uri, token);
  if (made && is_left_over) made = co_await volume::forget_mega_vol(env_, drive, token);
  if (made) {
    made = co_await volume::make_mega_vol(env_, drive, store_.identity(), info,
                                          args.may_format || is_left_over, token);
  }
  if (made) co_return made;
  [[maybe_unused]] const Result<void> released = co_await fence_.release(args.uri, token);
  co_return made;
}

Task<Result<void>> Drives::drain(MegaVolId id, bool is_leaving) {
  const Result<task::Units> turn = co_await store_.take_turn();
  if (!turn) co_return fail(turn.error());
  const Member* member = pool_.member(id);
  if (member == nullptr)
    co_return fail(Errc::kNotFound,
                   "there is no such drive in the pool: 'cairn pool list' names those it has");
  if (is_leaving && !pool_.can_spare(id)) {
    co_return fail(Errc::kNoSpace,
                   "the other drives have no room for what this one has to hold: add drives with "
                   "'cairn pool add'");
  }
  MegaVolInfo info = member->info;
  info.is_leaving = is_leaving;
  meta::Batch batch;
  batch.put(mega_vol_key(id), encode(DriveRecord{.info = info, .unfenced = member->unfenced}));
  const Result<void> done = co_await store_.commit(std::move(batch));
  if (done) pool_.member(id)->info = std::move(info);
  co_return done;
}

Task<Result<void>> Drives::remove(MegaVolId id, bool is_lost, CancelToken token) {
  if (pool_.member(id) == nullptr) {
    co_return fail(Errc::kNotFound,
                   "there is no such drive in the pool: 'cairn pool list' names those it has");
  }
  if (is_lost) co_await cleaner_.forget(id);
  const Result<task::Units> turn = co_await store_.take_turn();
  if (!turn) co_return fail(turn.error());
  const Member* member = pool_.member(id);
  if (member == nullptr)
    co_return fail(Errc::kNotFound,
                   "there is no such drive in the pool: 'cairn pool list' names those it has");
  if (member->legs > 0 || (member->cleaning > 0 && !is_lost)) {
    co_return fail(Errc::kExists, "extents are on the drive: drain it first");
  }
  if (!member->info.is_leaving && !pool_.can_spare(id)) {
    co_return fail(
        Errc::kNoSpace,
        "the other drives have no room for what is promised: add drives with 'cairn pool add'");
  }
  const MegaVolInfo info = member->info;
  meta::Batch batch;
  batch.remove(mega_vol_key(id));
  // Nothing that is to be cleared names it any more: of a lost drive there may be many records.
  const Result<void> cleanings = co_await store_.remove_cleanings(id, batch);
  if (!cleanings) co_return cleanings;
  const Result<void> done = co_await store_.commit(std::move(batch));
  if (!done) co_return done;
  pool_.remove(id);
  removed_[id] = env_.now();
  // Whoever gets the number next is at another place.
  co_await cleaner_.forget(id);
  if (is_lost) co_return done;
  // It belongs to nobody from here on; a label that stays is in nobody's way but the next owner's.
  Result<std::unique_ptr<drive::Drive>> drive =
      co_await volume::open_mega_vol(env_, source_, store_.host(), store_.identity(), info, token);
  if (!drive) co_return done;
  [[maybe_unused]] const Result<void> forgotten =
      co_await volume::forget_mega_vol(env_, **drive, token);
  co_await (*drive)->close();
  [[maybe_unused]] const Result<void> released = co_await fence_.release(info.uri, token);
  co_return done;
}

}  // namespace cairn::arbiter
