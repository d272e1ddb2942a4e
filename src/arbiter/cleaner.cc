// SPDX-License-Identifier: Apache-2.0
#include "arbiter/cleaner.h"

#include <utility>

#include "drive/copy_blocks.h"
#include "task/deadline.h"

namespace cairn::arbiter {

using drive::Request;
using task::Task;

namespace {

constexpr Error kUnfenced{Errc::kUnreachable, "somebody may still write to the drive"};

}  // namespace

void Cleaner::start(volume::MegaVolPool pool) {
  pool_ = pool;
  is_started_ = true;
  for (auto& [id, place] : places_) wake(*place);
}

void Cleaner::add(const MegaVolInfo& drive, Cleaning what) {
  auto [found, is_new] = places_.try_emplace(drive.id);
  if (is_new) found->second = std::make_unique<Place>(drive, stop_.token());
  ++waiting_;
  found->second->todo.push_back(std::move(what));
  wake(*found->second);
}

void Cleaner::wake(Place& place) {
  if (!is_started_ || place.is_running || place.todo.empty() || stop_.requested()) return;
  place.is_running = true;
  place.idle.reset();
  gate_.spawn(work(place));
}

Task<void> Cleaner::forget(MegaVolId id) {
  const auto found = places_.find(id);
  if (found == places_.end()) co_return;
  Place& place = *found->second;
  place.stop.request();
  while (place.is_running) {
    const Result<void> idle = co_await place.idle.wait();
    if (!idle) break;
  }
  waiting_ -= place.todo.size();
  places_.erase(id);
}

Task<void> Cleaner::work(Place& place) {
  // More may come while the drive is closed, and nobody else begins while this one runs.
  while (!place.todo.empty() && !place.stop.requested()) {
    const Result<void> done = co_await clean_one(place);
    if (done) {
      place.todo.pop_front();
      --waiting_;
    }
    // The box is away, or another drive is in its place: it is tried until it is back, or removed.
    const bool is_last = !done || place.todo.empty();
    if (is_last && place.drive != nullptr) co_await std::exchange(place.drive, nullptr)->close();
    if (done) continue;
    const Result<void> slept = co_await task::sleep_for(env_, retry_, place.stop.token());
    if (!slept) break;
  }
  if (place.drive != nullptr) co_await std::exchange(place.drive, nullptr)->close();
  place.is_running = false;
  place.idle.set();
}

Task<Result<void>> Cleaner::clean_one(Place& place) {
  if (!may_write_) {
    const Result<void> fenced = co_await owner_.fence_former_writer(place.stop.token());
    if (!fenced) co_return fenced;
    may_write_ = true;
  }
  const MegaVolId id = place.info.id;
  if (!owner_.is_fenced(id)) co_return fail(kUnfenced);
  if (place.drive == nullptr) {
    Result<std::unique_ptr<drive::Drive>> opened =
        co_await volume::open_mega_vol(env_, source_, host_, pool_, place.info, place.stop.token());
    if (!opened) co_return fail(opened.error());
    place.drive = std::move(*opened);
    // Whoever leads now may have fenced this host before its box knew it.
    const Result<void> leading = co_await owner_.confirm_leading();
    if (!leading) co_return leading;
  }
  // Whoever may write to what comes first here lost it before it was given to be cleared.
  if (!owner_.is_fenced(id)) co_return fail(kUnfenced);
  const Cleaning what = place.todo.front();
  const Result<void> cleared = co_await clear(place, what);
  if (!cleared) co_return cleared;
  co_return co_await owner_.commit_cleaned(what.key, what.extents);
}

Task<Result<void>> Cleaner::clear(Place& place, const Cleaning& what) {
  const uint64_t blocks = pool_.extent_bytes / place.drive->geometry().block_size;
  for (size_t i = 0; i < what.extents.size(); ++i) {
    const Request request{.kind = Request::Kind::kWriteZeroes,
                          .durable = true,
                          .lba = Lba(what.extents[i] * blocks),
                          .blocks = blocks};
    const Result<void> done =
        co_await drive::write_holes(env_, *place.drive, request, place.stop.token());
    if (!done) co_return done;
  }
  co_return Result<void>();
}

Task<void> Cleaner::close() {
  stop_.request();
  co_await gate_.close();
}

}  // namespace cairn::arbiter
