// SPDX-License-Identifier: Apache-2.0
#include "world/epoll/disk.h"

#include <new>

#include "base/check.h"

namespace cairn::epoll {

// Lives in its operation's scratch from start to finish.
class EpollDisk::Job final : public DiskJob {
 public:
  Job(EpollDisk& disk, env::DiskOp& op) : DiskJob(&Job::returned), disk_(disk), op_(op) {}
  static Job& of(env::DiskOp& op) { return *std::launder(reinterpret_cast<Job*>(op.scratch)); }

  void work() override {
    const Result<void> result = posix::run_blocking(disk_.file_, op_);
    if (!result) error_ = result.error();
    failed_ = !result;
  }

 private:
  static void returned(env::Message& message, env::Env&) {
    auto& job = static_cast<Job&>(message);
    Result<void> result;
    if (job.failed_) result = fail(job.error_);
    job.disk_.finish(job.op_, result);
  }

  EpollDisk& disk_;
  env::DiskOp& op_;
  Error error_ = Error(Errc::kIo, "disk");
  bool failed_ = false;
};

EpollDisk::~EpollDisk() { CHECK(in_flight_ == 0, "no operation is in flight when a disk goes"); }

void EpollDisk::start_disk_op(env::DiskOp& op) {
  static_assert(sizeof(Job) <= env::DiskOp::kScratchSize);
  if (Result<void> allowed = posix::check_access(file_, op.request()); !allowed) {
    return op.complete(allowed);
  }
  ++in_flight_;
  core_.disk_threads().put(*new (op.scratch) Job(*this, op));
}

void EpollDisk::cancel_disk_op(env::DiskOp& op) {
  // One that has begun cannot be stopped; its completion is on the way.
  if (core_.disk_threads().withdraw(Job::of(op))) finish(op, op.cancelled());
}

void EpollDisk::finish(env::DiskOp& op, Result<void> result) {
  Job::of(op).~Job();
  --in_flight_;
  if (result && op.request().kind == env::DiskOp::Kind::kResize) file_.size = op.request().length;
  op.complete(result);
}

}  // namespace cairn::epoll
