// SPDX-License-Identifier: Apache-2.0
#include "arbiter/sessions.h"

#include <algorithm>
#include <utility>

namespace cairn::arbiter {

using task::CancelToken;
using task::Task;
using volume::Opened;
using volume::Renewed;
using volume::Session;

namespace {

constexpr Error kOver{Errc::kDenied, "this opening of the volume is over: somebody else has it"};

// Whether it has legs on others.
bool has_drive_beside(const Volume& volume, const std::vector<MegaVolId>& drives) {
  return std::ranges::any_of(volume.legs, [&](const auto& each) {
    return each.second > 0 && std::ranges::find(drives, each.first) == drives.end();
  });
}

}  // namespace

void Sessions::start() {
  for (const auto& [id, volume] : pool_.volumes()) lease_ends_[id] = env_.now() + lease_;
}

Result<Volume*> Sessions::held(Session session) {
  Volume* volume = pool_.volume(session.volume);
  if (volume == nullptr || volume->record.is_leaving) {
    return fail(Errc::kNotFound, "there is no such volume");
  }
  if (volume->record.epoch != session.epoch || volume->record.holder.empty()) return fail(kOver);
  uint64_t& turn = turns_[session.volume];
  if (session.turn < turn) return fail(Errc::kReset, "the holder has asked again since");
  turn = session.turn;
  return volume;
}

bool Sessions::has_lease(const Volume& volume) const {
  const auto found = lease_ends_.find(volume.record.id);
  return found != lease_ends_.end() && env_.now() < found->second;
}

Task<void> Sessions::end_healing(std::string name) {
  const Volume* volume = pool_.volume(name);
  if (tenant_ != nullptr && volume != nullptr) {
    co_await tenant_->give_up(volume->record.id);
  }
}

// From the first commit on the holder may ask for nothing; when it is fenced it can write nothing.
// Drives where it is not are not touched by those who come after it, until it is.
Task<Result<void>> Sessions::expel_holder(VolumeId id, CancelToken token) {
  std::string holder;
  volume::Epoch epoch;
  {
    const Result<task::Units> turn = co_await store_.take_turn();
    if (!turn) co_return fail(turn.error());
    const Volume* volume = pool_.volume(id);
    if (volume == nullptr) co_return fail(Errc::kNotFound, "there is no such volume");
    VolumeRecord record = volume->record;
    if (record.holder.empty()) co_return Result<void>();
    holder = record.holder;
    epoch = record.epoch = volume::Epoch(record.epoch.value() + 1);
    const Result<void> done = co_await store_.commit_record(std::move(record));
    if (!done) co_return done;
  }
  std::vector<MegaVolId> left = co_await fencing_.fence(holder, token);
  if (token.requested()) co_return fail(token.error());
  const Result<task::Units> turn = co_await store_.take_turn();
  if (!turn) co_return fail(turn.error());
  const Volume* volume = pool_.volume(id);
  if (volume == nullptr) co_return fail(Errc::kNotFound, "there is no such volume");
  if (volume->record.epoch != epoch) {
    co_return fail(Errc::kExists, "somebody else is opening the volume");
  }
  // One that lives would read what is old there; nobody reads through a tenant.
  if (!left.empty() && has_lease(*volume) && !is_tenant(holder)) {
    co_return fail(Errc::kUnreachable,
                   "whoever has the volume open cannot be fenced now, and its lease holds");
  }
  if (volume->mapped > 0 && !has_drive_beside(*volume, left)) {
    co_return fail(Errc::kUnreachable,
                   "whoever has the volume open cannot be fenced at any of its drives now");
  }
  const Result<void> recorded = co_await fencing_.record_unfenced(id, holder, std::move(left));
  if (!recorded) co_return recorded;
  VolumeRecord record = pool_.volume(id)->record;
  record.holder.clear();
  co_return co_await store_.commit_record(std::move(record));
}

Task<Result<Opened>> Sessions::open(volume::OpenArgs args, CancelToken token) {
  if (args.client.empty() || args.client.size() > volume::kUriMax) {
    co_return fail(Errc::kInvalid, "a client's name has 1 to 1024 bytes");
  }
  if (!is_tenant(args.client)) co_await end_healing(args.volume);
  const Result<Volume*> found = store_.find(args.volume);
  if (!found) co_return fail(found.error());
  const VolumeId id = (*found)->record.id;
  const std::string& holder = (*found)->record.holder;
  // A client whose answer was lost asks again.
  if (!holder.empty() && holder != args.client) {
    if (has_lease(**found) && !args.take_over && !is_tenant(holder)) {
      co_return fail(Errc::kExists, "somebody else has the volume open, and its lease holds");
    }
    const Result<void> expelled = co_await expel_holder(id, token);
    if (!expelled) co_return fail(expelled.error());
  }
  const Result<task::Units> turn = co_await store_.take_turn();
  if (!turn) co_return fail(turn.error());
  const Result<Volume*> still = store_.find(args.volume);
  if (!still) co_return fail(still.error());
  VolumeRecord record = (*still)->record;
  if (record.id != id || (!record.holder.empty() && record.holder != args.client)) {
    co_return fail(Errc::kExists, "somebody else has opened the volume meanwhile");
  }
  // What the one before was copying is in no map.
  const Result<void> dropped = co_await store_.drop_copies(id);
  if (!dropped) co_return fail(dropped.error());
  const bool is_clean = record.is_clean;
  record.epoch = volume::Epoch(record.epoch.value() + 1);
  record.holder = args.client;
  record.is_clean = false;
  const Result<void> done = co_await store_.commit_record(record);
  if (!done) co_return fail(done.error());
  lease_ends_[id] = env_.now() + lease_;
  turns_.erase(id);
  co_return Opened{.session = {.volume = id, .epoch = record.epoch},
                   .pool = store_.identity(),
                   .extents = record.extents,
                   .replicas = record.replicas,
                   .is_snapshot = record.is_snapshot,
                   .is_clean = is_clean,
                   .lease = lease_,
                   .mega_vols = store_.mega_vols(),
                   .unfenced = fencing_.unfenced_of(id)};
}

Result<Renewed> Sessions::renew(Session session) {
  const Result<Volume*> volume = held(session);
  if (!volume) return fail(volume.error());
  if (!store_.is_working()) return fail(Errc::kUnreachable, "this arbiter does not lead");
  lease_ends_[session.volume] = env_.now() + lease_;
  return Renewed{.lease = lease_,
                 .extents = (*volume)->record.extents,
                 .replicas = (*volume)->record.replicas,
                 .mega_vols = store_.mega_vols(),
                 .unfenced = fencing_.unfenced_of(session.volume)};
}

Task<Result<void>> Sessions::close(Session session, bool is_clean) {
  const Result<task::Units> turn = co_await store_.take_turn();
  if (!turn) co_return fail(turn.error());
  const Volume* volume = pool_.volume(session.volume);
  if (volume == nullptr) co_return fail(Errc::kNotFound, "there is no such volume");
  VolumeRecord record = volume->record;
  if (record.epoch != session.epoch) co_return fail(kOver);
  if (record.holder.empty()) co_return Result<void>();
  const Result<void> dropped = co_await store_.drop_copies(session.volume);
  if (!dropped) co_return dropped;
  record.holder.clear();
  record.is_clean = is_clean;
  co_return co_await store_.commit_record(std::move(record));
}

}  // namespace cairn::arbiter
