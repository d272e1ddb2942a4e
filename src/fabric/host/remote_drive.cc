// SPDX-License-Identifier: Apache-2.0
#include "fabric/host/remote_drive.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/medium_id.h"
#include "base/rng.h"
#include "task/gate.h"

namespace cairn::fabric {

namespace {

// Records are cheap, but not for every combination of options.
constexpr size_t kPartsMax = 16384;

// Parts for what fits into the lanes that are kept for urgent requests, but never so many that
// others could not go on.
size_t kept_for_urgent(const HostOptions& options, size_t parts) {
  size_t lanes = 0;
  for (uint16_t id = 1; id <= options.queues; ++id) lanes += options.is_urgent(id) ? 1 : 0;
  if (lanes == options.queues) return 0;
  return std::min(lanes * options.depth, parts - 2);
}

}  // namespace

RemoteDrive::RemoteDrive(HostPool& pool, const Uri& uri, std::unique_ptr<Admission> admission)
    : env_(pool.env()),
      options_(uri.options),
      admission_(std::move(admission)),
      delay_timer_(&RemoteDrive::on_delay),
      loss_timer_(&RemoteDrive::on_loss) {
  delay_timer_.drive = loss_timer_.drive = this;
  for (const env::Address& address : uri.paths) {
    const HostSession::Options options{.address = address, .nqn = uri.nqn, .host = uri.options};
    const NamespaceName name{.nsid = uri.nsid, .uuid = uri.uuid};
    Path::User& user = *this;
    paths_.add(std::make_unique<Path>(pool, options, name, user));
  }
  // A pair needs two.
  const size_t wanted = uri.paths.size() * uri.options.queues * uri.options.depth;
  for (size_t i = 0; i < std::clamp<size_t>(wanted, 2, kPartsMax); ++i) {
    parts_.push_back(std::make_unique<Part>(*this));
    free_.push_back(*parts_.back());
  }
  free_count_ = parts_.size();
  kept_parts_ = kept_for_urgent(uri.options, parts_.size());
}

RemoteDrive::~RemoteDrive() {
  CHECK(free_count_ == parts_.size() && waiting_.empty() && urgent_.empty(),
        "nothing is in flight when a drive goes");
}

task::Task<Result<std::unique_ptr<RemoteDrive>>> RemoteDrive::open(env::Env& env, Uri uri,
                                                                   task::CancelToken token) {
  auto own = std::make_unique<HostPool>(env);
  HostPool& pool = *own;
  return open_in(pool, std::move(own), std::move(uri), nullptr, token);
}

task::Task<Result<std::unique_ptr<RemoteDrive>>> RemoteDrive::open(HostPool& pool, Uri uri,
                                                                   task::CancelToken token) {
  return open_in(pool, nullptr, std::move(uri), nullptr, token);
}

task::Task<Result<std::unique_ptr<RemoteDrive>>> RemoteDrive::open(
    HostPool& pool, Uri uri, std::unique_ptr<Admission> admission, task::CancelToken token) {
  return open_in(pool, nullptr, std::move(uri), std::move(admission), token);
}

task::Task<Result<std::unique_ptr<RemoteDrive>>> RemoteDrive::open_in(
    HostPool& pool, std::unique_ptr<HostPool> own, Uri uri, std::unique_ptr<Admission> admission,
    task::CancelToken token) {
  if (uri.is_discovery() || uri.paths.empty()) {
    co_return fail(Errc::kInvalid, "the URI names no subsystem");
  }
  pool.name(uri.options);
  std::unique_ptr<RemoteDrive> drive(new RemoteDrive(pool, uri, std::move(admission)));
  drive->own_pool_ = std::move(own);
  drive->paths_.start();
  for (const auto& path : drive->paths_.all()) drive->gate_.spawn(drive->note_attempt(*path));
  Result<void> settled = co_await drive->settled_.wait(token);
  // A path that knows the namespace may still have been refused by it.
  const bool none_works = drive->failed_attempts_ == drive->paths_.size();
  if (settled && none_works) settled = drive->first_failure_;
  if (settled) co_return drive;
  co_await drive->close();
  co_return fail(settled.error());
}

// The first path that works settles the opening, or the last that does not.
task::Task<void> RemoteDrive::note_attempt(Path& path) {
  const Result<void> result = co_await path.first_attempt({});
  if (!result && first_failure_) first_failure_ = result;
  if (result || ++failed_attempts_ == paths_.size()) settled_.set();
}

task::Task<void> RemoteDrive::close() {
  CHECK(waiting_.empty() && urgent_.empty() && free_count_ == parts_.size(),
        "a drive is closed when it is idle");
  is_closing_ = true;
  if (admission_ != nullptr) co_await take_leave();
  co_await paths_.close();
  co_await gate_.close();
  env_.disarm(delay_timer_);
  env_.disarm(loss_timer_);
}

task::Task<void> RemoteDrive::take_leave() {
  Path* path = paths_.pick();
  if (path == nullptr) co_return;
  HostSession& session = path->session();
  if (Result<void> entered = session.gate().enter(); !entered) co_return;
  co_await admission_->leave(session, info_);
  session.gate().leave();
}

// --- requests -----------------------------------------------------------------------------------

task::Task<void> RemoteDrive::serve_copy(drive::DriveOp& op) {
  const Result<void> done = co_await drive::run_on_copy(env_, *this, op);
  op.complete(done);
}

void RemoteDrive::start(drive::DriveOp& op) {
  if (needs_copy(op)) return gate_.spawn(serve_copy(op));
  if (Result<void> possible = commands_.can_do(op.request); !possible) return op.complete(possible);
  if (op.request.kind == drive::Request::Kind::kFlush && !info_.geometry.volatile_cache) {
    return op.complete({});
  }
  if (continuity_.is_replaced()) return op.complete(fail(kReplaced));
  if (is_barred_) return op.complete(fail(kBarred));
  if (is_failing_) return op.complete(fail(paths_.none_usable()));
  new (op.scratch) Progress();
  progress(op).mark = continuity_.mark();
  const bool overtakes = kept_parts_ > 0 && op.request.is_urgent();
  (overtakes ? urgent_ : waiting_).push_back(op);
  issue();
}

void RemoteDrive::cancel(drive::DriveOp& op) {
  if (needs_copy(op)) return;  // the copy has its token
  Progress& progress = RemoteDrive::progress(op);
  const Error why = op.cancelled().error();
  progress.is_cancelled = true;
  op.ListHook<drive::DriveOp>::unlink();
  ++progress.parts;  // so that it stays until all its parts were asked
  for (const auto& part : parts_) {
    if (part->op != &op) continue;
    if (part->state == Part::State::kSent && !part->is_second) {
      HostSession::cancel(*part, why);
    } else if (part->state == Part::State::kReady || part->state == Part::State::kDelayed) {
      give_up(*part, why);
    }
  }
  --progress.parts;
  settle(op);
}

task::Task<Result<nvme::Cqe>> RemoteDrive::execute(nvme::Sqe sqe, MutableBytes data,
                                                   task::CancelToken token) {
  if (continuity_.is_replaced()) co_return fail(kReplaced);
  Path* path = paths_.pick();
  if (path == nullptr) co_return fail(Errc::kUnreachable, "no path to the namespace");
  HostSession& session = path->session();
  if (Result<void> entered = session.gate().enter(); !entered) co_return fail(entered.error());
  Result<nvme::Cqe> answer = co_await session.io(sqe, data, token);
  session.gate().leave();
  co_return answer;
}

// --- paths --------------------------------------------------------------------------------------

Result<void> RemoteDrive::path_described(Path& path, const NamespaceInfo& info) {
  if (!is_known_) {
    info_ = info;
    is_known_ = true;
    continuity_.reached(info.incarnation);
    return {};
  }
  if (!info_.is_same(info) || !continuity_.is_same_medium(info.incarnation)) {
    if (!paths_.has_besides(path)) {
      env_.trace().record("host.replaced", info_.nsid);
      continuity_.replace();
      fail_all(kReplaced);
    }
    if (info_.is_same(info)) return fail(kReplaced);
    return fail(Errc::kInvalid, "the path leads to another namespace of the same number");
  }
  // Commands in flight have the number it had.
  if (info.nsid != info_.nsid) {
    return fail(Errc::kInvalid, "the namespace has another number now: open it again");
  }
  if (info.geometry.block_size != info_.geometry.block_size) {
    return fail(Errc::kInvalid, "the namespace has another block size now");
  }
  continuity_.reached(info.incarnation);
  info_.geometry.blocks = info.geometry.blocks;
  // What one path cannot do is not asked of any.
  info_.command_blocks = std::min(info_.command_blocks, info.command_blocks);
  info_.compare_write_blocks = std::min(info_.compare_write_blocks, info.compare_write_blocks);
  info_.zeroes_blocks = std::min(info_.zeroes_blocks, info.zeroes_blocks);
  info_.discard_blocks = std::min(info_.discard_blocks, info.discard_blocks);
  info_.copy_blocks = std::min(info_.copy_blocks, info.copy_blocks);
  info_.can_compare = info_.can_compare && info.can_compare;
  return {};
}

task::Task<Result<void>> RemoteDrive::admit(HostSession& session, NamespaceInfo info,
                                            task::CancelToken token) {
  if (is_barred_) co_return fail(kBarred);
  if (admission_ == nullptr) co_return Result<void>();
  const Result<void> entered = co_await admission_->enter(session, info, token);
  if (!entered && entered.error() == Errc::kDenied && !is_barred_) {
    env_.trace().record("host.barred", info.nsid);
    is_barred_ = true;
    fail_all(kBarred);
  }
  co_return entered;
}

void RemoteDrive::path_changed(Path&) {
  if (is_closing_) return;
  if (!paths_.has_connected()) continuity_.lost_touch();
  look_for_path();
}

drive::Incarnation RemoteDrive::incarnation() const {
  drive::Incarnation now = continuity_.incarnation();
  if (now.medium != 0) return now;
  // Of a target that does not tell, its name stays while it runs; some draw another one then.
  const auto add = [&now](std::span<const uint8_t> id) {
    for (const uint8_t byte : id) now.medium = byte == 0 ? now.medium : mix64(now.medium ^ byte);
  };
  add(info_.nguid);
  add(info_.uuid);
  add(info_.eui64);
  if (now.medium != 0) now.medium = medium_id_of_name(now.medium);
  return now;
}

// A path came or went: those who wait go on, or begin to count the time.
void RemoteDrive::look_for_path() {
  if (paths_.pick() != nullptr) {
    is_failing_ = false;
    env_.disarm(loss_timer_);
    while (Part* part = ready_.pop_front()) dispatch(*part);
    return issue();
  }
  if (paths_.is_stopped()) {
    is_failing_ = true;
    return fail_all(Error(Errc::kCancelled, "the host stops"));
  }
  if (is_failing_ || loss_timer_.is_armed()) return;
  env_.arm(loss_timer_, env_.now() + options_.loss_timeout);
}

void RemoteDrive::on_loss(task::Timer& timer) {
  RemoteDrive& drive = *static_cast<DriveTimer&>(timer).drive;
  drive.env_.trace().record("host.no_path");
  drive.is_failing_ = true;
  drive.fail_all(drive.paths_.none_usable());
}

}  // namespace cairn::fabric
