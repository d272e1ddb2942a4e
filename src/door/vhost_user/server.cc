// SPDX-License-Identifier: Apache-2.0
#include "door/vhost_user/server.h"

#include <optional>
#include <utility>

#include "base/once_per_reason.h"
#include "door/vhost_user/blk_disk.h"
#include "door/vhost_user/session.h"
#include "env/call.h"
#include "env/sharing.h"
#include "task/cancel.h"
#include "task/deadline.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/when_all.h"

namespace cairn::door::vhost_user {

// A drive at its socket. Everything but the constructor is on its core.
class VhostServer::ServedDrive {
 public:
  ServedDrive(VhostDrive drive, uint32_t cores, const VhostOptions& options)
      : options_(options),
        log_(options.log),
        waiting_(drive.waiting),
        at_(std::move(drive.at)),
        core_(drive.core),
        shared_(std::move(drive.drive), cores) {}

  const std::string& name() const { return shared_.options.name; }
  CoreId core() const { return core_; }
  bool is_leaving = false;  // the server's

  task::Task<Result<void>> open(env::Env& env) {
    env_ = &env;
    if (log_) options_.log = [this](std::string_view text) { say(text); };
    sharing_ = env::sharing(env);
    if (sharing_ == nullptr) co_return fail(Errc::kUnsupported, "memory shared with a guest");
    Result<std::unique_ptr<drive::Drive>> opened = shared_.options.source->open(env);
    if (!opened) co_return fail(opened.error());
    export_.emplace(env, shared_.options, shared_.ranges, std::move(*opened));
    disk_.emplace(env, *export_);
    Result<std::unique_ptr<env::Listener>> listener = env.listen(at_, {});
    if (!listener) co_return fail(listener.error());
    listener_ = std::move(*listener);
    accepting_.spawn(accept_loop());
    co_return Result<void>{};
  }

  task::Task<Result<void>> resize(uint64_t bytes) {
    const uint32_t block = export_->block_size();
    if (bytes == 0 || !is_aligned(bytes, block)) {
      co_return fail(Errc::kInvalid, "a size is a multiple of the block size",
                     static_cast<int>(block));
    }
    const Result<void> done = co_await export_->drive().resize(bytes / block);
    if (done && session_ != nullptr) session_->config_changed();
    co_return done;
  }

  task::Task<void> expect_other_writers() { return shared_.expect_other_writers(*env_); }

  VhostFigures figures() const {
    const BlkDisk::Figures& disk = disk_->figures();
    return {.front_ends = front_ends_,
            .requests = disk.requests,
            .errors = disk.errors,
            .copied_bytes = disk.copied_bytes};
  }

  task::Task<void> drain(Time until) {
    stop_.request();
    if (session_ != nullptr) session_->drain();
    task::Deadline deadline(*env_, until);
    const Result<void> left = co_await left_.wait(deadline.token());
    (void)left;
  }
  task::Task<void> close() {
    stop_.request();
    if (session_ != nullptr) session_->abandon();
    co_await accepting_.close();
    listener_.reset();
    disk_.reset();
    if (export_) co_await export_->drive().close();
    export_.reset();
  }

 private:
  void say(std::string_view text) {
    const std::optional<std::string> more = lines_.take(text, env_->now());
    if (more) log_(std::string(text) + *more);
  }
  task::Task<void> accept_loop() {
    while (!stop_.requested()) {
      Result<env::Connection> connection = co_await listener_->accept(stop_.token());
      if (connection) {
        co_await serve(std::move(*connection));
      } else if (connection.error() == Errc::kLimit) {
        // Out of descriptors: the front end waits in the backlog until some are free.
        const Result<void> slept = co_await task::sleep_for(*env_, 50_ms, stop_.token());
        if (!slept) break;
      } else {
        break;
      }
    }
    left_.set();
  }
  task::Task<void> serve(env::Connection connection) {
    Result<std::unique_ptr<env::LocalStream>> stream = sharing_->open_local(std::move(connection));
    if (!stream) co_return;
    ++front_ends_;
    Session session(*env_, *sharing_, std::move(*stream), *disk_,
                    {.door = options_, .waiting = waiting_});
    session_ = &session;
    if (stop_.requested()) session.drain();
    co_await session.run();
    session_ = nullptr;
  }

  VhostOptions options_;  // whose log goes through say()
  const std::function<void(std::string_view)> log_;
  OncePerReason lines_;
  const Waiting waiting_;
  env::Address at_;
  CoreId core_;
  SharedExport shared_;
  env::Env* env_ = nullptr;
  env::Sharing* sharing_ = nullptr;
  std::optional<Export> export_;
  std::optional<BlkDisk> disk_;
  std::unique_ptr<env::Listener> listener_;
  Session* session_ = nullptr;
  uint64_t front_ends_ = 0;
  task::CancelSource stop_;
  task::Event left_;  // nobody is served any more
  task::Gate accepting_;
};

VhostServer::VhostServer(env::Env& env, VhostOptions options)
    : env_(env), options_(std::move(options)) {}

VhostServer::~VhostServer() = default;

task::Task<Result<void>> VhostServer::serve(VhostDrive drive) {
  if (drive.at.family != env::Address::Family::kLocal) {
    co_return fail(Errc::kInvalid, "an address that is no local socket");
  }
  served_.push_back(std::make_unique<ServedDrive>(std::move(drive), env_.core_count(), options_));
  ServedDrive& served = *served_.back();
  const Result<void> opened = co_await env::call_on(
      env_, served.core(), [&served](env::Env& there) { return served.open(there); });
  if (!opened) {
    co_await env::call_on(env_, served.core(), [&served](env::Env&) { return served.close(); });
    std::erase_if(served_, [&served](const auto& each) { return each.get() == &served; });
  }
  co_return opened;
}

VhostServer::ServedDrive* VhostServer::find(std::string_view name) {
  for (const auto& each : served_) {
    if (each->name() == name && !each->is_leaving) return each.get();
  }
  return nullptr;
}

task::Task<Result<void>> VhostServer::resize(std::string_view name, uint64_t bytes) {
  ServedDrive* served = find(name);
  if (served == nullptr) co_return fail(Errc::kNotFound, "no drive of that name");
  const Result<void> done = co_await env::call_on(
      env_, served->core(), [served, bytes](env::Env&) { return served->resize(bytes); });
  co_return done;
}

task::Task<Result<VhostFigures>> VhostServer::figures(std::string_view name) {
  ServedDrive* served = find(name);
  if (served == nullptr) co_return fail(Errc::kNotFound, "no drive of that name");
  const VhostFigures figures = co_await env::call_on(
      env_, served->core(), [served](env::Env&) { return served->figures(); });
  co_return figures;
}

task::Task<Result<void>> VhostServer::expect_other_writers(std::string_view name) {
  ServedDrive* served = find(name);
  if (served == nullptr) co_return fail(Errc::kNotFound, "no drive of that name");
  co_await env::call_on(env_, served->core(),
                        [served](env::Env&) { return served->expect_other_writers(); });
  co_return Result<void>{};
}

task::Task<Result<void>> VhostServer::remove(std::string_view name, Time until) {
  ServedDrive* served = find(name);
  if (served == nullptr) co_return fail(Errc::kNotFound, "no drive of that name");
  served->is_leaving = true;
  co_await env::call_on(env_, served->core(),
                        [served, until](env::Env&) { return served->drain(until); });
  co_await env::call_on(env_, served->core(), [served](env::Env&) { return served->close(); });
  std::erase_if(served_, [served](const auto& each) { return each.get() == served; });
  co_return Result<void>{};
}

task::Task<void> VhostServer::drain(Time until) {
  std::vector<task::Task<void>> calls;
  for (const auto& each : served_) {
    ServedDrive* served = each.get();
    calls.push_back(env::call_on(env_, served->core(),
                                 [served, until](env::Env&) { return served->drain(until); }));
  }
  co_await task::when_all(std::move(calls));
}

task::Task<void> VhostServer::close() {
  for (const auto& each : served_) {
    ServedDrive* served = each.get();
    co_await env::call_on(env_, served->core(), [served](env::Env&) { return served->close(); });
  }
  served_.clear();
}

}  // namespace cairn::door::vhost_user
