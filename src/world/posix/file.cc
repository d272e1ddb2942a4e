// SPDX-License-Identifier: Apache-2.0
#include "world/posix/file.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <span>

#include "base/bytes.h"
#include "base/medium_id.h"
#include "base/rng.h"
#include "base/units.h"

namespace cairn::posix {

namespace {

constexpr uint32_t kBlockSizeMin = 512;
constexpr uint32_t kDirectBlockSize = 4096;  // where the kernel does not tell
constexpr uint32_t kBlockSizeMax = 65536;
constexpr size_t kIovecsPerCall = 64;

uint32_t direct_alignment(int fd) {
#ifdef STATX_DIOALIGN
  struct statx info{};
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &info) == 0 &&
      (info.stx_mask & STATX_DIOALIGN) != 0 && info.stx_dio_offset_align != 0) {
    return std::max({info.stx_dio_offset_align, info.stx_dio_mem_align, kBlockSizeMin});
  }
#else
  (void)fd;
#endif
  return kDirectBlockSize;
}

// Of these a file may have another number each time they are mounted.
bool has_numbers_that_stay(int fd) {
  struct statfs info{};
  if (::fstatfs(fd, &info) != 0) return false;
  const auto type = static_cast<uint64_t>(info.f_type);
  return type != FUSE_SUPER_MAGIC && type != MSDOS_SUPER_MAGIC && type != EXFAT_SUPER_MAGIC;
}

// A file is known by its number and the time it was made, which a file made anew in its place does
// not share; not by its file system's number, which another start of the machine may change. Of a
// device there is only the name, which another one may have next time.
uint64_t medium_id_of(int fd, const env::DiskOptions& options) {
  struct statx info{};
  constexpr unsigned kWanted = STATX_TYPE | STATX_INO | STATX_BTIME;
  if (::statx(fd, "", AT_EMPTY_PATH, kWanted, &info) != 0) return 0;
  uint64_t id = 1;
  const auto add = [&id](uint64_t value) { id = mix64(id ^ value); };
  if (S_ISBLK(info.stx_mode)) {
    for (const char c : options.path) add(static_cast<uint8_t>(c));
  } else {
    add(info.stx_ino);
    if ((info.stx_mask & STATX_BTIME) != 0) {
      add(static_cast<uint64_t>(info.stx_btime.tv_sec));
      add(info.stx_btime.tv_nsec);
    }
  }
  return !S_ISBLK(info.stx_mode) && has_numbers_that_stay(fd) ? medium_id_of_one(id)
                                                              : medium_id_of_name(id);
}

Result<void> fit_size(DiskFile& file, const env::DiskOptions& options) {
  struct stat info{};
  if (::fstat(file.fd.get(), &info) != 0) return fail(Error::from_errno(errno, "inspect the file"));
  if (S_ISBLK(info.st_mode)) {
    file.is_device = true;
    if (::ioctl(file.fd.get(), BLKGETSIZE64, &file.size) != 0) {
      return fail(Error::from_errno(errno, "ask the device for its size"));
    }
    if (options.size != 0 && options.size > file.size) {
      return fail(Errc::kInvalid, "the device is smaller than the size asked for");
    }
    if (options.size != 0) file.size = options.size;
    return {};
  }
  if (!S_ISREG(info.st_mode)) return fail(Errc::kInvalid, "neither a file nor a block device");
  file.size = static_cast<uint64_t>(info.st_size);
  if (file.size == 0 && options.size != 0 && !options.read_only) {
    if (::ftruncate(file.fd.get(), static_cast<off_t>(options.size)) != 0) {
      return fail(Error::from_errno(errno, "set the size of the file"));
    }
    file.size = options.size;
  } else if (options.size != 0 && options.size != file.size) {
    return fail(Errc::kInvalid, "the file exists with another size; resize it or leave size out");
  }
  return {};
}

}  // namespace

Result<DiskFile> open_disk_file(const env::DiskOptions& options) {
  DiskFile file;
  file.read_only = options.read_only;
  const int access = options.read_only ? O_RDONLY : O_RDWR;
  const int create = options.create && !options.read_only ? O_CREAT : 0;
  const int direct = options.direct ? O_DIRECT : 0;
  file.fd = Fd(::open(options.path.c_str(), access | create | direct | O_CLOEXEC, 0600));
  if (!file.fd.is_open()) {
    if (errno == EINVAL && direct != 0) {
      return fail(Errc::kUnsupported, "direct access on this file system", EOPNOTSUPP);
    }
    return fail(Error::from_errno(errno, "open the file"));
  }
  if (options.lock &&
      ::flock(file.fd.get(), (options.read_only ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0) {
    return fail(Errc::kExists, "the file is in use by another drive or process");
  }
  if (Result<void> sized = fit_size(file, options); !sized) return fail(sized.error());
  file.medium_id = medium_id_of(file.fd.get(), options);
  const uint32_t needed = options.direct ? direct_alignment(file.fd.get()) : kBlockSizeMin;
  file.block_size = options.block_size == 0 ? needed : options.block_size;
  if (file.block_size < needed || file.block_size > kBlockSizeMax ||
      !std::has_single_bit(file.block_size)) {
    return fail(Errc::kInvalid, "block size (a power of two the medium can do, at most 64 KiB)");
  }
  if (!is_aligned(file.size, file.block_size)) {
    return fail(Errc::kInvalid, "the size is not a multiple of the block size");
  }
  return file;
}

Result<void> check_access(const DiskFile& file, const env::DiskOp::Request& request) {
  using Kind = env::DiskOp::Kind;
  const bool changes = request.kind != Kind::kRead && request.kind != Kind::kFlush;
  if (changes && file.read_only) return fail(Errc::kDenied, "change a disk opened read-only");
  // What is written to a file without a name cannot be found after a restart: it is not durable.
  struct stat info{};
  if (request.kind == Kind::kFlush && !file.is_device && ::fstat(file.fd.get(), &info) == 0 &&
      info.st_nlink == 0) {
    return fail(Errc::kIo, "the file was deleted");
  }
  return {};
}

int fallocate_mode(env::DiskOp::Kind kind) {
  return kind == env::DiskOp::Kind::kDiscard ? FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE
                                             : FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE;
}

env::Disk::Extent next_data(const DiskFile& file, uint64_t offset) {
  const env::Disk::Extent none{.offset = file.size, .length = 0};
  if (offset >= file.size) return none;
  const off_t data = ::lseek(file.fd.get(), static_cast<off_t>(offset), SEEK_DATA);
  if (data < 0 && errno == ENXIO) return none;
  const off_t hole = data < 0 ? -1 : ::lseek(file.fd.get(), data, SEEK_HOLE);
  if (hole < 0) return {.offset = offset, .length = file.size - offset};
  const uint64_t begin = static_cast<uint64_t>(data) & ~uint64_t{file.block_size - 1};
  const uint64_t end = std::min(align_up(static_cast<uint64_t>(hole), file.block_size), file.size);
  if (begin >= end) return none;
  return {.offset = begin, .length = end - begin};
}

Result<void> zero_by_writing(const DiskFile& file, uint64_t offset, uint64_t length) {
  constexpr size_t kStep = 128_KiB;
  const std::unique_ptr<void, decltype(&std::free)> zeroes(std::aligned_alloc(4096, kStep),
                                                           &std::free);
  if (zeroes == nullptr) return fail(Errc::kLimit, "memory");
  std::memset(zeroes.get(), 0, kStep);
  while (length > 0) {
    const size_t step = std::min<uint64_t>(length, kStep);
    const ssize_t wrote = ::pwrite(file.fd.get(), zeroes.get(), step, static_cast<off_t>(offset));
    if (wrote <= 0) return fail(Error::from_errno(wrote == 0 ? EIO : errno, "write zeroes"));
    offset += static_cast<uint64_t>(wrote);
    length -= static_cast<uint64_t>(wrote);
  }
  return {};
}

namespace {

// Where the kernel has no durable writes, because it is old or emulated, a flush is due after all
// of them.
ssize_t write_pieces(int fd, std::span<const iovec> pieces, off_t at, bool durable,
                     bool& is_flush_due) {
  const int count = static_cast<int>(pieces.size());
  if (durable && !is_flush_due) {
    const ssize_t wrote = ::pwritev2(fd, pieces.data(), count, at, RWF_DSYNC);
    if (wrote >= 0 || (errno != EOPNOTSUPP && errno != ENOSYS)) return wrote;
    is_flush_due = true;
  }
  return ::pwritev(fd, pieces.data(), count, at);
}

// Moves all bytes of a read or write, however the kernel cuts it.
Result<void> transfer(const DiskFile& file, const env::DiskOp& op) {
  const env::DiskOp::Request& request = op.request();
  const bool reading = request.kind == env::DiskOp::Kind::kRead;
  const std::span<const MutableBytes> pieces = op.into();
  size_t piece = 0;   // whole pieces moved,
  size_t within = 0;  // and bytes of the next one
  uint64_t offset = request.offset;
  bool is_flush_due = false;
  while (piece < pieces.size()) {
    std::array<iovec, kIovecsPerCall> rest;
    const size_t count = std::min(pieces.size() - piece, rest.size());
    for (size_t i = 0; i < count; ++i) {
      const MutableBytes left = pieces[piece + i].subspan(i == 0 ? within : 0);
      rest[i] = {left.data(), left.size()};
    }
    const auto at = static_cast<off_t>(offset);
    const ssize_t moved = reading
                              ? ::preadv(file.fd.get(), rest.data(), static_cast<int>(count), at)
                              : write_pieces(file.fd.get(), std::span(rest).first(count), at,
                                             request.durable, is_flush_due);
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0) return fail(Error::from_errno(errno, reading ? "read" : "write"));
    if (moved == 0) return fail(Errc::kIo, "the file is shorter than it was");
    offset += static_cast<uint64_t>(moved);
    within += static_cast<size_t>(moved);
    while (piece < pieces.size() && within >= pieces[piece].size()) {
      within -= pieces[piece].size();
      ++piece;
    }
  }
  if (is_flush_due && ::fdatasync(file.fd.get()) != 0) {
    return fail(Error::from_errno(errno, "flush"));
  }
  return {};
}

}  // namespace

Result<void> run_blocking(const DiskFile& file, const env::DiskOp& op) {
  using Kind = env::DiskOp::Kind;
  const env::DiskOp::Request& request = op.request();
  switch (request.kind) {
    case Kind::kRead:
    case Kind::kWrite:
      return transfer(file, op);
    case Kind::kFlush:
      if (::fdatasync(file.fd.get()) != 0) return fail(Error::from_errno(errno, "flush"));
      return {};
    case Kind::kDiscard:
    case Kind::kWriteZeroes: {
      if (::fallocate(file.fd.get(), fallocate_mode(request.kind),
                      static_cast<off_t>(request.offset),
                      static_cast<off_t>(request.length)) != 0) {
        if (errno != EOPNOTSUPP) return fail(Error::from_errno(errno, "clear a range"));
        if (Result<void> zeroed = zero_by_writing(file, request.offset, request.length); !zeroed) {
          return zeroed;
        }
      }
      if (request.durable && ::fdatasync(file.fd.get()) != 0) {
        return fail(Error::from_errno(errno, "flush"));
      }
      return {};
    }
    case Kind::kResize:
      if (file.is_device) return fail(Errc::kUnsupported, "a device keeps its size");
      if (::ftruncate(file.fd.get(), static_cast<off_t>(request.length)) != 0) {
        return fail(Error::from_errno(errno, "resize the file"));
      }
      return {};
  }
  return fail(Errc::kInvalid, "disk request");
}

}  // namespace cairn::posix
