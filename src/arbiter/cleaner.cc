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

void Cleaner::start() {
  is_started_ = true;
  for (auto& [id, queue] : queues_) wake(*queue);
}

void Cleaner::add(const MegaVolInfo& drive, Cleaning what) {
  auto [found, is_new] = queues_.try_emplace(drive.id);
  if (is_new) found->second = std::make_unique<CleaningQueue>(drive, stop_.token());
  ++waiting_;
  found->second->todo.push_back(std::move(what));
  wake(*found->second);
}

void Cleaner::wake(CleaningQueue& queue) {
  if (!is_started_ || queue.is_running || queue.todo.empty() || stop_.requested()) return;
  queue.is_running = true;
  queue.idle.reset();
  gate_.spawn(work(queue));
}

Task<void> Cleaner::forget(MegaVolId id) {
  const auto found = queues_.find(id);
  if (found == queues_.end()) co_return;
  CleaningQueue& queue = *found->second;
  queue.stop.request();
  while (queue.is_running) {
    const Result<void> idle = co_await queue.idle.wait();
    if (!idle) break;
  }
  waiting_ -= queue.todo.size();
  queues_.erase(id);
}

Task<void> Cleaner::work(CleaningQueue& queue) {
  // More may come while the drive is closed, and nobody else begins while this one runs.
  while (!queue.todo.empty() && !queue.stop.requested()) {
    const Result<void> done = co_await clean_one(queue);
    if (done) {
      queue.todo.pop_front();
      --waiting_;
    }
    // The box is away, or another drive is in its place: it is tried until it is back, or removed.
    const bool is_last = !done || queue.todo.empty();
    if (is_last && queue.drive != nullptr) co_await std::exchange(queue.drive, nullptr)->close();
    if (done) continue;
    const Result<void> slept = co_await task::sleep_for(env_, retry_, queue.stop.token());
    if (!slept) break;
  }
  if (queue.drive != nullptr) co_await std::exchange(queue.drive, nullptr)->close();
  queue.is_running = false;
  queue.idle.set();
}

Task<Result<void>> Cleaner::clean_one(CleaningQueue& queue) {
  if (!may_write_) {
    const Result<void> fenced = co_await fencing_.fence_former_writer(queue.stop.token());
    if (!fenced) co_return fenced;
    may_write_ = true;
  }
  const MegaVolId id = queue.info.id;
  if (!fencing_.is_fenced(id)) co_return fail(kUnfenced);
  if (queue.drive == nullptr) {
    Result<std::unique_ptr<drive::Drive>> opened = co_await volume::open_mega_vol(
        env_, source_, store_.host(), store_.identity(), queue.info, queue.stop.token());
    if (!opened) co_return fail(opened.error());
    queue.drive = std::move(*opened);
    // Whoever leads now may have fenced this host before its box knew it.
    const Result<void> leading = co_await store_.confirm_leading();
    if (!leading) co_return leading;
  }
  // Whoever may write to what comes first here lost it before it was given to be cleared.
  if (!fencing_.is_fenced(id)) co_return fail(kUnfenced);
  const Cleaning what = queue.todo.front();
  const Result<void> cleared = co_await clear(queue, what);
  if (!cleared) co_return cleared;
  co_return co_await store_.commit_cleaned(what.key, what.extents);
}

Task<Result<void>> Cleaner::clear(CleaningQueue& queue, const Cleaning& what) {
  const uint64_t blocks = store_.identity().extent_bytes / queue.drive->geometry().block_size;
  for (size_t i = 0; i < what.extents.size(); ++i) {
    const Request request{.kind = Request::Kind::kWriteZeroes,
                          .durable = true,
                          .lba = Lba(what.extents[i] * blocks),
                          .blocks = blocks};
    const Result<void> done =
        co_await drive::write_holes(env_, *queue.drive, request, queue.stop.token());
    if (!done) co_return done;
  }
  co_return Result<void>();
}

Task<void> Cleaner::close() {
  stop_.request();
  co_await gate_.close();
}

}  // namespace cairn::arbiter
