// SPDX-License-Identifier: Apache-2.0
#include "lib/handle.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include "drive/pieces.h"
#include "lib/errors.h"
#include "lib/signals_blocked.h"
#include "task/deadline.h"
#include "task/when_all.h"
#include "world/machine/world.h"

namespace cairn::capi {

namespace {

using drive::Request;

constexpr size_t kBatch = 64;  // slots that are filled under one lock
constexpr size_t kPartsAtOnce = 16;
constexpr uint32_t kPiecesMax = 1024;
constexpr Duration kWatch = 1_s;
constexpr uint32_t kFlags = CAIRN_DURABLE | CAIRN_URGENT | CAIRN_KEEP_SPACE;

constexpr Request::Kind kKinds[] = {Request::Kind::kRead,    Request::Kind::kWrite,
                                    Request::Kind::kCompare, Request::Kind::kFlush,
                                    Request::Kind::kDiscard, Request::Kind::kWriteZeroes};

bool moves_data(Request::Kind kind) {
  return kind == Request::Kind::kRead || kind == Request::Kind::kWrite ||
         kind == Request::Kind::kCompare;
}

config::IoChoice choice_of(uint32_t io) {
  if (io == CAIRN_IO_URING) return config::IoChoice::kUring;
  return io == CAIRN_IO_EPOLL ? config::IoChoice::kEpoll : config::IoChoice::kAuto;
}

}  // namespace

std::expected<std::unique_ptr<Handle>, Refusal> Handle::open(const char* stack,
                                                             const HandleOptions& options) {
  Attempt<std::unique_ptr<server::StackPlan>> plan = server::StackPlan::prepare(stack);
  if (!plan) return std::unexpected(Refusal{EINVAL, plan.error().text});
  Attempt<std::unique_ptr<env::World>> world =
      machine::make_world(choice_of(options.io), options.world);
  if (!world) return std::unexpected(Refusal{EOPNOTSUPP, world.error().text});
  posix::Fd event(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!event.is_open()) return std::unexpected(Refusal{errno, "no event descriptor can be made"});
  ForkFlag here = ForkFlag::make();
  if (!here) return std::unexpected(Refusal{ENOMEM, "no page of memory can be had"});

  std::unique_ptr<Handle> handle(
      new Handle(std::move(*plan), std::move(*world), options, std::move(event), std::move(here)));
  std::unique_lock lock(handle->lock_);
  handle->changed_.wait(lock, [&] { return handle->is_opened_; });
  if (!handle->refusal_) return handle;
  lock.unlock();
  Refusal refusal = std::move(*handle->refusal_);
  return std::unexpected(std::move(refusal));
}

Handle::Handle(std::unique_ptr<server::StackPlan> plan, std::unique_ptr<env::World> world,
               const HandleOptions& options, posix::Fd event, ForkFlag here)
    : report_resize_(options.report_resize),
      plan_(std::move(plan)),
      world_(std::move(world)),
      event_(std::move(event)),
      here_(std::move(here)),
      slots_(std::make_unique<Slot[]>(options.depth)),
      depth_(options.depth) {
  close_.handle = this;
  for (uint32_t i = 0; i < depth_; ++i) {
    slots_[i].handle = this;
    free_.push_back(&slots_[i]);
  }
  const SignalsBlocked blocked;
  thread_ = std::thread([this] {
    const Result<void> run = world_->run([this](env::Env& env) { return live(env); });
    if (!run) tell_opened(Refusal{errno_of(run.error()), run.error().text()});
  });
}

Handle::~Handle() { thread_.join(); }

void Handle::close(std::unique_ptr<Handle> handle) {
  if (!handle->is_here()) {
    // Its thread is not here and its lock may be held for ever: nothing of it can be used or freed.
    Handle* lost = handle.release();
    ::close(lost->event_.get());
    return;
  }
  handle->core_->put(handle->close_);
}

bool Handle::is_here() const { return here_.is_set(); }

void Handle::tell_opened(std::optional<Refusal> refusal) {
  const std::scoped_lock lock(lock_);
  if (is_opened_) return;
  refusal_ = std::move(refusal);
  is_opened_ = true;
  changed_.notify_all();
}

task::Task<void> Handle::live(env::Env& env) {
  Attempt<std::unique_ptr<drive::Drive>> drive = co_await plan_->open(env);
  if (!drive) {
    plan_->close();
    tell_opened(Refusal{EIO, drive.error().text});
    co_return;
  }
  drive_ = std::move(*drive);
  geometry_ = drive_->geometry();
  // Every world that make_world makes has such cores.
  core_ = &static_cast<posix::CoreEnv&>(env);
  task::CancelSource ending;
  gate_.spawn(watch_size(env, ending.token()));
  tell_opened(std::nullopt);
  const Result<void> closed = co_await closing_.wait();
  static_cast<void>(closed);  // nobody cancels it
  ending.request();
  co_await gate_.close();
  co_await drive_->close();
  drive_.reset();
  plan_->close();
}

void Handle::on_close(env::Message& message, env::Env&) {
  static_cast<Close&>(message).handle->closing_.set();
}

// Drives across the network can change their size by themselves.
task::Task<void> Handle::watch_size(env::Env& env, task::CancelToken token) {
  while (true) {
    const Result<void> slept = co_await task::sleep_for(env, kWatch, token);
    if (!slept) co_return;
    const std::scoped_lock lock(lock_);
    note_size();
  }
}

void Handle::note_size() {
  const uint64_t blocks = drive_->geometry().blocks;
  if (blocks == geometry_.blocks) return;
  geometry_.blocks = blocks;
  if (!report_resize_ || has_resized_) return;
  has_resized_ = true;
  push({.tag = nullptr, .text = nullptr, .result = 0, .kind = CAIRN_RESIZED});
}

drive::Geometry Handle::geometry() {
  const std::scoped_lock lock(lock_);
  return geometry_;
}

Result<void> Handle::fill(Slot& slot, const cairn_request& request) const {
  if (request.kind >= std::size(kKinds) || (request.flags & ~kFlags) != 0 ||
      request.reserved != 0 || request.iov_count > kPiecesMax) {
    return fail(Errc::kInvalid, "a request of no known kind, flags or number of pieces");
  }
  slot.kind = request.kind;
  slot.tag = request.tag;
  slot.pieces.clear();
  const Request::Kind kind = kKinds[request.kind];
  uint64_t bytes = request.length;
  if (moves_data(kind)) {
    bytes = 0;
    for (uint32_t i = 0; i < request.iov_count; ++i) {
      const iovec& piece = request.iov[i];
      if (piece.iov_len > kTransferMax - bytes) {
        return fail(Errc::kInvalid, "a transfer is longer than 256 MiB");
      }
      bytes += piece.iov_len;
      slot.pieces.emplace_back(static_cast<std::byte*>(piece.iov_base), piece.iov_len);
    }
    if (request.length != 0 && request.length != bytes) {
      return fail(Errc::kInvalid, "the pieces do not add up to the length");
    }
  } else if (request.iov_count != 0) {
    return fail(Errc::kInvalid, "a request of this kind has no memory");
  }
  if (request.offset % geometry_.block_size != 0 || bytes % geometry_.block_size != 0) {
    return fail(Errc::kInvalid, "offset and length are multiples of the drive's block");
  }
  const bool is_flush = kind == Request::Kind::kFlush;
  slot.request = {.kind = kind,
                  .durable = (request.flags & CAIRN_DURABLE) != 0,
                  .no_delay = (request.flags & CAIRN_URGENT) != 0,
                  .keep_space = (request.flags & CAIRN_KEEP_SPACE) != 0,
                  // The program's other threads may write to it.
                  .unstable_memory = true,
                  .lba = Lba(is_flush ? 0 : request.offset / geometry_.block_size),
                  .blocks = is_flush ? 0 : bytes / geometry_.block_size};
  return {};
}

Handle::Slot* Handle::take_slot() {
  const size_t under_way = depth_ - free_.size();
  if (under_way + done_.size() >= depth_) return nullptr;
  Slot* slot = free_.back();
  free_.pop_back();
  return slot;
}

Result<uint32_t> Handle::submit(const cairn_request* requests, uint32_t count) {
  uint32_t taken = 0;
  while (taken < count) {
    std::array<Slot*, kBatch> batch;
    size_t filled = 0;
    Result<void> wrong;
    {
      const std::scoped_lock lock(lock_);
      while (wrong && filled < kBatch && taken + filled < count) {
        Slot* slot = take_slot();
        if (slot == nullptr) {
          wrong = fail(Errc::kLimit, "as many requests are under way as the handle has room for");
          break;
        }
        wrong = fill(*slot, requests[taken + filled]);
        if (wrong) {
          batch[filled++] = slot;
        } else {
          free_.push_back(slot);
        }
      }
    }
    for (size_t i = 0; i < filled; ++i) core_->put(*batch[i]);
    taken += static_cast<uint32_t>(filled);
    if (wrong) continue;
    if (taken == 0) return fail(wrong.error());
    return taken;
  }
  return taken;
}

Result<void> Handle::run(const cairn_request& request) {
  Slot slot;
  {
    const std::scoped_lock lock(lock_);
    const Result<void> filled = fill(slot, request);
    if (!filled) return filled;
  }
  return run_slot(slot);
}

Result<void> Handle::resize(uint64_t bytes) {
  if (bytes % geometry_.block_size != 0) {
    return fail(Errc::kInvalid, "a size is a multiple of the drive's block");
  }
  Slot slot;
  slot.is_resize = true;
  slot.new_bytes = bytes;
  return run_slot(slot);
}

Result<void> Handle::run_slot(Slot& slot) {
  std::optional<Result<void>> done;
  slot.handle = this;
  slot.waiter = &done;
  core_->put(slot);
  std::unique_lock lock(lock_);
  ++waiters_;
  changed_.wait(lock, [&] { return done.has_value(); });
  --waiters_;
  return *done;
}

void Handle::start(env::Message& message, env::Env&) {
  Slot& slot = static_cast<Slot&>(message);
  Handle& handle = *slot.handle;
  if (!slot.is_resize && !handle.needs_parts(slot)) {
    if (const std::optional<Result<void>> now = handle.drive_->try_now(slot.request, slot.pieces)) {
      return handle.finish(slot, *now);
    }
  }
  handle.gate_.spawn(handle.serve(slot));
}

bool Handle::needs_parts(const Slot& slot) const {
  return moves_data(slot.request.kind) && slot.request.blocks > drive_->geometry().transfer_blocks;
}

task::Task<void> Handle::serve(Slot& slot) {
  Result<void> done;
  if (slot.is_resize) {
    done = co_await drive_->resize(slot.new_bytes / geometry_.block_size);
  } else if (needs_parts(slot)) {
    done = co_await run_parts(slot);
  } else {
    done = co_await drive_->submit(slot.request, slot.pieces);
  }
  finish(slot, done);
}

task::Task<Result<void>> Handle::run_parts(const Slot& slot) {
  const uint64_t max = drive_->geometry().transfer_blocks;
  for (uint64_t at = 0; at < slot.request.blocks;) {
    std::vector<task::Task<Result<void>>> parts;
    while (at < slot.request.blocks && parts.size() < kPartsAtOnce) {
      const uint64_t here = std::min(max, slot.request.blocks - at);
      parts.push_back(run_part(slot, at, here));
      at += here;
    }
    const std::vector<Result<void>> done = co_await task::when_all(std::move(parts));
    for (const Result<void>& one : done) {
      if (!one) co_return one;
    }
  }
  co_return Result<void>{};
}

task::Task<Result<void>> Handle::run_part(const Slot& slot, uint64_t first, uint64_t blocks) {
  Request request = slot.request;
  request.lba = Lba(slot.request.lba.value() + first);
  request.blocks = blocks;
  drive::Pieces pieces;
  pieces.add(slot.pieces, first * geometry_.block_size, blocks * geometry_.block_size);
  const Result<void> done = co_await drive_->submit(request, pieces.all());
  co_return done;
}

void Handle::finish(Slot& slot, const Result<void>& done) {
  const std::scoped_lock lock(lock_);
  note_size();
  if (slot.waiter != nullptr) {
    *slot.waiter = done;
    changed_.notify_all();
    return;
  }
  const cairn_completion completion{.tag = slot.tag,
                                    .text = done ? nullptr : done.error().what(),
                                    .result = done ? 0 : -errno_of(done.error()),
                                    .kind = slot.kind};
  free_.push_back(&slot);
  push(completion);
}

void Handle::push(const cairn_completion& completion) {
  done_.push_back(completion);
  if (wants_event_ && done_.size() == 1) ::eventfd_write(event_.get(), 1);
  if (waiters_ > 0) changed_.notify_all();
}

int Handle::event_fd() {
  const std::scoped_lock lock(lock_);
  if (!wants_event_ && !done_.empty()) ::eventfd_write(event_.get(), 1);
  wants_event_ = true;
  return event_.get();
}

uint32_t Handle::wait(cairn_completion* into, uint32_t max, int timeout_ms) {
  std::unique_lock lock(lock_);
  if (done_.empty() && timeout_ms != 0) {
    const auto has_some = [&] { return !done_.empty(); };
    ++waiters_;
    if (timeout_ms < 0) {
      changed_.wait(lock, has_some);
    } else {
      changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms), has_some);
    }
    --waiters_;
  }
  uint32_t count = 0;
  for (; count < max && !done_.empty(); ++count) {
    into[count] = done_.front();
    has_resized_ = has_resized_ && done_.front().kind != CAIRN_RESIZED;
    done_.pop_front();
  }
  if (wants_event_ && count > 0 && done_.empty()) {
    eventfd_t told = 0;
    ::eventfd_read(event_.get(), &told);
  }
  return count;
}

}  // namespace cairn::capi
