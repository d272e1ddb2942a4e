// SPDX-License-Identifier: Apache-2.0
#include "world/uring/disk.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <new>
#include <vector>

#include "base/check.h"
#include "base/units.h"

namespace cairn::uring {

namespace {

using Kind = env::DiskOp::Kind;

// What is written where a file system cannot zero a range by command.
constexpr size_t kZeroesSize = 64_KiB;
alignas(4096) constinit std::array<std::byte, kZeroesSize> zeroes{};

static_assert(sizeof(MutableBytes) == sizeof(iovec), "a span of bytes reads as an iovec");

}  // namespace

// Lives in its operation's scratch from start to finish.
class UringDisk::Job final : public Completion {
 public:
  Job(UringDisk& disk, env::DiskOp& op) : disk_(disk), op_(op) {}
  static Job& of(env::DiskOp& op) { return *std::launder(reinterpret_cast<Job*>(op.scratch)); }
  ~Job() = default;

  void submit() {
    disk_.core_.ring().request(this, [&](io_uring_sqe* sqe) { prepare(sqe); });
  }

 private:
  void prepare(io_uring_sqe* sqe) {
    const env::DiskOp::Request& request = op_.request();
    const int fd = disk_.file_.fd.get();
    if (syncing_ || request.kind == Kind::kFlush) {
      return ::io_uring_prep_fsync(sqe, fd, IORING_FSYNC_DATASYNC);
    }
    if (zeroing_) {
      const auto length = static_cast<unsigned>(std::min(request.length - done_, kZeroesSize));
      return ::io_uring_prep_write(sqe, fd, zeroes.data(), length, request.offset + done_);
    }
    if (request.kind == Kind::kDiscard || request.kind == Kind::kWriteZeroes) {
      return ::io_uring_prep_fallocate(sqe, fd, posix::fallocate_mode(request.kind),
                                       static_cast<off_t>(request.offset),
                                       static_cast<off_t>(request.length));
    }
    prepare_transfer(sqe, fd);
  }

  void prepare_transfer(io_uring_sqe* sqe, int fd) {
    const env::DiskOp::Request& request = op_.request();
    const auto* pieces = reinterpret_cast<const iovec*>(op_.into().data());
    size_t count = op_.into().size();
    if (rest_ != nullptr) {
      pieces = rest_->data();
      count = rest_->size();
    }
    const auto iovecs = static_cast<unsigned>(std::min<size_t>(count, UIO_MAXIOV));
    const auto length = static_cast<unsigned>(std::min<size_t>(pieces->iov_len, 1_GiB));
    const uint64_t offset = request.offset + done_;
    if (request.kind == Kind::kRead) {
      if (iovecs == 1) {
        ::io_uring_prep_read(sqe, fd, pieces->iov_base, length, offset);
      } else {
        ::io_uring_prep_readv(sqe, fd, pieces, iovecs, offset);
      }
      return;
    }
    if (iovecs == 1) {
      ::io_uring_prep_write(sqe, fd, pieces->iov_base, length, offset);
    } else {
      ::io_uring_prep_writev(sqe, fd, pieces, iovecs, offset);
    }
    if (request.durable) sqe->rw_flags = RWF_DSYNC;
  }

  void on_complete(int32_t result, uint32_t) override {
    const env::DiskOp::Request& request = op_.request();
    if (result == -EINTR || result == -EAGAIN) return submit();
    if (result == -ECANCELED) return disk_.finish(op_, op_.cancelled());
    const bool clearing = request.kind == Kind::kDiscard || request.kind == Kind::kWriteZeroes;
    if (clearing && result == -EOPNOTSUPP && !zeroing_ && !syncing_) {
      zeroing_ = true;
      return submit();
    }
    if (result < 0) return disk_.finish(op_, fail(Error::from_errno(-result, "disk")));
    const bool transfer = request.kind == Kind::kRead || request.kind == Kind::kWrite;
    if ((transfer || zeroing_) && !syncing_) {
      if (result == 0) return disk_.finish(op_, fail(Errc::kIo, "the file is shorter than it was"));
      done_ += static_cast<uint64_t>(result);
      if (done_ < request.length) {
        if (transfer) skip(static_cast<size_t>(result));
        return submit();
      }
    }
    if (clearing && request.durable && !syncing_) {
      syncing_ = true;
      return submit();
    }
    disk_.finish(op_, {});
  }

  // After a short transfer: the list that begins where the kernel stopped.
  void skip(size_t moved) {
    if (rest_ == nullptr) {
      const auto* pieces = reinterpret_cast<const iovec*>(op_.into().data());
      rest_ = std::make_unique<std::vector<iovec>>(pieces, pieces + op_.into().size());
    }
    auto first = rest_->begin();
    while (moved >= first->iov_len) {
      moved -= first->iov_len;
      ++first;
    }
    first->iov_base = static_cast<char*>(first->iov_base) + moved;
    first->iov_len -= moved;
    rest_->erase(rest_->begin(), first);
  }

  UringDisk& disk_;
  env::DiskOp& op_;
  uint64_t done_ = 0;
  std::unique_ptr<std::vector<iovec>> rest_;
  bool zeroing_ = false;  // by writing, after the command was not supported
  bool syncing_ = false;  // the last step of a durable write-zeroes
};

UringDisk::~UringDisk() { CHECK(in_flight_ == 0, "no operation is in flight when a disk goes"); }

void UringDisk::start_disk_op(env::DiskOp& op) {
  static_assert(sizeof(Job) <= env::DiskOp::kScratchSize);
  if (Result<void> allowed = posix::check_access(file_, op.request()); !allowed) {
    return op.complete(allowed);
  }
  if (op.request().kind == Kind::kResize) {
    // No asynchronous form before 6.9; on a quiet disk it only changes the inode.
    const Result<void> resized = posix::run_blocking(file_, op);
    if (resized) file_.size = op.request().length;
    return op.complete(resized);
  }
  ++in_flight_;
  (new (op.scratch) Job(*this, op))->submit();
}

void UringDisk::cancel_disk_op(env::DiskOp& op) { core_.ring().cancel(Job::of(op)); }

void UringDisk::finish(env::DiskOp& op, Result<void> result) {
  Job::of(op).~Job();
  --in_flight_;
  op.complete(result);
}

}  // namespace cairn::uring
