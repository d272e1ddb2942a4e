// SPDX-License-Identifier: Apache-2.0
#include "world/posix/shared_memory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "world/posix/pages.h"
#include "world/posix/tear_guard.h"

namespace cairn::posix {

namespace {

constexpr uint32_t kXfsMagic = 0x58465342;

class FileMapping final : public env::SharedMemory {
 public:
  FileMapping(MutableBytes mapped, size_t size, TearGuard guard)
      : mapped_(mapped), guard_(std::in_place, std::move(guard)) {
    bytes_ = mapped.first(size);
  }
  ~FileMapping() override {
    guard_.reset();
    ::munmap(mapped_.data(), mapped_.size());
  }
  bool is_whole() const override { return !guard_->is_torn(); }

 private:
  MutableBytes mapped_;  // whole pages
  std::optional<TearGuard> guard_;
};

// The size of its pages, if it is a file that may be mapped.
Result<size_t> page_size_of(int fd, const struct stat& status) {
  if (!S_ISREG(status.st_mode)) {
    return fail(Errc::kInvalid, "a descriptor to map is neither memory nor a plain file");
  }
  struct statfs system{};
  if (::fstatfs(fd, &system) != 0) return fail(Error::from_errno(errno, "look at shared memory"));
  const auto type = static_cast<uint32_t>(system.f_type);
  if (type == HUGETLBFS_MAGIC) return static_cast<size_t>(system.f_bsize);
  constexpr std::array<uint32_t, 7> kLocal = {
      TMPFS_MAGIC,       RAMFS_MAGIC,      EXT4_SUPER_MAGIC,     kXfsMagic,
      BTRFS_SUPER_MAGIC, F2FS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC};
  if (std::ranges::find(kLocal, type) == kLocal.end()) {
    return fail(Errc::kInvalid, "a file to map is not on a local file system",
                static_cast<int32_t>(type));
  }
  return page_size();
}

}  // namespace

Result<Fd> make_memory_file(uint64_t size) {
  if (size == 0) return fail(Errc::kInvalid, "shared memory of no size");
  if (size > static_cast<uint64_t>(std::numeric_limits<off_t>::max())) {
    return fail(Errc::kLimit, "shared memory");
  }
  Fd fd(::memfd_create("cairn", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.is_open()) return fail(Error::from_errno(errno, "make shared memory"));
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) {
    return fail(Error::from_errno(errno, "size shared memory"));
  }
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return fail(Error::from_errno(errno, "seal shared memory"));
  }
  return fd;
}

Result<std::unique_ptr<env::SharedMemory>> map_memory_file(int fd, const env::SharedRange& range) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) return fail(Error::from_errno(errno, "look at shared memory"));
  const Result<size_t> page_size = page_size_of(fd, status);
  if (!page_size) return fail(page_size.error());
  if (range.offset % *page_size != 0) {
    return fail(Errc::kInvalid, "shared memory is mapped from the begin of a page on");
  }
  const auto size = static_cast<uint64_t>(status.st_size);
  if (range.size == 0 || range.offset > size || range.size > size - range.offset) {
    return fail(Errc::kInvalid, "a range to map is empty or not in the memory");
  }
  const int protection = range.writable ? PROT_READ | PROT_WRITE : PROT_READ;
  // The kernel maps and unmaps whole pages, also large ones.
  const uint64_t length = align_up(range.size, *page_size);
  void* address =
      ::mmap(nullptr, length, protection, MAP_SHARED, fd, static_cast<off_t>(range.offset));
  if (address == MAP_FAILED) return fail(Error::from_errno(errno, "map shared memory"));
  const MutableBytes mapped(static_cast<std::byte*>(address), length);
  Result<TearGuard> guard =
      TearGuard::make({.bytes = mapped, .page_size = *page_size, .protection = protection});
  if (!guard) {
    ::munmap(address, length);
    return fail(guard.error());
  }
  return std::make_unique<FileMapping>(mapped, range.size, std::move(*guard));
}

}  // namespace cairn::posix
