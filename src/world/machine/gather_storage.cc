// SPDX-License-Identifier: Apache-2.0
// The current folder's file system, drives, and virtual machines.
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <utility>

#include "config/files.h"
#include "world/machine/facts.h"

namespace cairn::machine {

namespace {

std::string file_system_name(uint64_t magic) {
  static constexpr std::pair<uint64_t, const char*> kNames[] = {
      {EXT4_SUPER_MAGIC, "ext4"},   {0x58465342, "xfs"},  {BTRFS_SUPER_MAGIC, "btrfs"},
      {TMPFS_MAGIC, "tmpfs"},       {0x2FC12FC1, "zfs"},  {OVERLAYFS_SUPER_MAGIC, "overlay"},
      {F2FS_SUPER_MAGIC, "f2fs"},   {0x6969, "nfs"},      {V9FS_MAGIC, "9p"},
      {SQUASHFS_MAGIC, "squashfs"}, {0x65735546, "fuse"}, {RAMFS_MAGIC, "ramfs"},
      {0xCA451A4E, "bcachefs"},
  };
  for (const auto& [known, name] : kNames) {
    if (known == magic) return name;
  }
  return fmt::format("type {:#x}", magic);
}

// A file in `path` that is gone when closed: without a name where the file system can, else made
// and unlinked. Negative errno when it cannot be made.
int open_temporary(const std::string& path) {
  const int fd = ::open(path.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0) return fd;
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) return -errno;
  std::string name = path + "/.cairn-doctor-XXXXXX";
  const int named = ::mkostemp(name.data(), O_CLOEXEC);
  if (named < 0) return -errno;
  ::unlink(name.c_str());
  return named;
}

struct Freer {
  void operator()(void* memory) const { std::free(memory); }
};

// Tries direct writes of 512 and then 4096 bytes.
void probe_direct(int fd, FolderFacts& facts) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (::fcntl(fd, F_SETFL, flags | O_DIRECT) != 0) {
    facts.direct_error = errno;
    return;
  }
  const std::unique_ptr<void, Freer> block(std::aligned_alloc(4096, 4096));
  std::fill_n(static_cast<char*>(block.get()), 4096, '\0');
  for (const uint32_t size : {512U, 4096U}) {
    if (::pwrite(fd, block.get(), size, 0) == static_cast<ssize_t>(size)) {
      facts.direct_error = 0;
      facts.direct_block = size;
      return;
    }
    facts.direct_error = errno;
  }
}

}  // namespace

FolderFacts gather_folder(const std::string& path) {
  FolderFacts facts;
  std::error_code error;
  facts.path = std::filesystem::absolute(path, error).lexically_normal().string();
  if (facts.path.ends_with("/") && facts.path.size() > 1) facts.path.pop_back();
  struct statfs status = {};
  if (::statfs(path.c_str(), &status) == 0) {
    facts.file_system = file_system_name(static_cast<uint64_t>(status.f_type));
    const auto unit = static_cast<uint64_t>(status.f_bsize);
    facts.total_bytes = status.f_blocks * unit;
    facts.free_bytes = status.f_bavail * unit;
  }
  const int fd = open_temporary(path);
  if (fd < 0) {
    facts.create_error = -fd;
    return facts;
  }
  probe_direct(fd, facts);
  ::close(fd);
  return facts;
}

std::vector<NvmeDrive> gather_nvme_drives() {
  std::vector<NvmeDrive> drives;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/block", error)) {
    NvmeDrive drive{.name = entry.path().filename().string()};
    if (!drive.name.starts_with("nvme")) continue;
    drive.model = config::first_line(entry.path() / "device/model").value_or("unknown model");
    drive.model.erase(drive.model.find_last_not_of(' ') + 1);
    const std::string sectors = config::first_line(entry.path() / "size").value_or("0");
    std::from_chars(sectors.data(), sectors.data() + sectors.size(), drive.size_bytes);
    drive.size_bytes *= 512;  // sysfs counts in sectors of 512 whatever the drive's blocks are
    drives.push_back(std::move(drive));
  }
  std::ranges::sort(drives, {}, &NvmeDrive::name);
  return drives;
}

int gather_kvm() {
  const int fd = ::open("/dev/kvm", O_RDWR | O_CLOEXEC);
  if (fd < 0) return errno;
  ::close(fd);
  return 0;
}

}  // namespace cairn::machine
