// SPDX-License-Identifier: Apache-2.0
// What file systems, volume managers and images put at the beginning or the end of a medium. Known
// only to name what would be lost: whatever is not zero is not blank.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/units.h"
#include "drive/blank.h"

namespace cairn::drive {

namespace {

using namespace std::string_view_literals;

struct Signature {
  uint64_t byte;
  std::string_view bytes;
  const char* what;
};

// The more particular ones first: the boot sector of a file system ends as one with partitions.
constexpr Signature kAtStart[] = {
    {0, "CrnLabel"sv, "data of another service of a stack"},
    {0, "CnMirror"sv, "a leg of a mirror of a stack"},
    {512, "CrnLabel"sv, "data of another service of a stack"},
    {512, "CnMirror"sv, "a leg of a mirror of a stack"},
    {4096, "CrnLabel"sv, "data of another service of a stack"},
    {4096, "CnMirror"sv, "a leg of a mirror of a stack"},
    {0, "LUKS\xba\xbe"sv, "a LUKS volume"},
    {0, "XFSB"sv, "an XFS file system"},
    {0, "QFI\xfb"sv, "a qcow2 image"},
    {0, "KDMV"sv, "a VMDK image"},
    {0, "vhdxfile"sv, "a VHDX image"},
    {0, "conectix"sv, "a VHD image"},
    {3, "NTFS    "sv, "an NTFS file system"},
    {3, "EXFAT   "sv, "an exFAT file system"},
    {3, "-FVE-FS-"sv, "a BitLocker volume"},
    {54, "FAT"sv, "a FAT file system"},
    {82, "FAT32"sv, "a FAT file system"},
    {512, "EFI PART"sv, "a GPT partition table"},
    {4096, "EFI PART"sv, "a GPT partition table"},
    {0, "LABELONE"sv, "an LVM2 physical volume"},
    {512, "LABELONE"sv, "an LVM2 physical volume"},
    {1024, "LABELONE"sv, "an LVM2 physical volume"},
    {1536, "LABELONE"sv, "an LVM2 physical volume"},
    {1024 + 56, "\x53\xef"sv, "an ext2, ext3 or ext4 file system"},
    {1024, "\x10\x20\xf5\xf2"sv, "an F2FS file system"},
    {0, "\xfc\x4e\x2b\xa9"sv, "a Linux RAID member"},
    {4096, "\xfc\x4e\x2b\xa9"sv, "a Linux RAID member"},
    {4096 + 24, "\xc6\x85\x73\xf6\x4e\x1a\x45\xca"sv, "a bcache or bcachefs device"},
    {4096 - 10, "SWAPSPACE2"sv, "a swap area"},
    {65536 - 10, "SWAPSPACE2"sv, "a swap area"},
    {32769, "CD001"sv, "an ISO 9660 file system"},
    {65536 + 64, "_BHRfS_M"sv, "a btrfs file system"},
    {65536 + 52, "ReIsEr"sv, "a ReiserFS file system"},
    {510, "\x55\xaa"sv, "a partition table or a boot sector"},
};

constexpr uint64_t kZfsLabel = 256_KiB;  // two at each end
constexpr uint64_t kZfsRing = 128_KiB;   // of uberblocks, in each label
constexpr uint64_t kZfsStep = 1_KiB;
constexpr std::string_view kZfsMagic[] = {"\x0c\xb1\xba\x00\x00\x00\x00\x00"sv,
                                          "\x00\x00\x00\x00\x00\xba\xb1\x0c"sv};

bool has(Bytes bytes, uint64_t at, std::string_view wanted) {
  return at <= bytes.size() && bytes.size() - at >= wanted.size() &&
         as_text(bytes.subspan(at, wanted.size())) == wanted;
}

bool has_zfs(Bytes label) {
  for (uint64_t at = kZfsRing; at + kZfsStep <= label.size(); at += kZfsStep) {
    if (std::ranges::any_of(kZfsMagic, [&](auto magic) { return has(label, at, magic); })) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::optional<Remains> find_signature(Bytes head, Bytes tail, uint64_t size) {
  for (const Signature& one : kAtStart) {
    if (has(head, one.byte, one.bytes)) return Remains{one.what, one.byte};
  }
  if (has_zfs(head.first(std::min<uint64_t>(head.size(), kZfsLabel)))) {
    return Remains{"a ZFS pool", kZfsRing};
  }
  const uint64_t tail_at = size - tail.size();
  const auto in_tail = [&](uint64_t byte, std::string_view wanted) {
    return byte >= tail_at && has(tail, byte - tail_at, wanted);
  };
  for (const uint64_t sector : {uint64_t{512}, uint64_t{4096}}) {
    if (size >= sector && in_tail(size - sector, "EFI PART"sv)) {
      return Remains{"a GPT partition table", size - sector};
    }
  }
  // Version 1.0 lies 8 to 12 KiB before the end, 0.90 in the last whole 64 KiB.
  for (const uint64_t at :
       {align_down(size - std::min<uint64_t>(size, 8_KiB), 4_KiB),
        align_down(size, 64_KiB) - std::min<uint64_t>(align_down(size, 64_KiB), 64_KiB)}) {
    if (in_tail(at, "\xfc\x4e\x2b\xa9"sv)) return Remains{"a Linux RAID member", at};
  }
  const uint64_t zfs = align_down(size, kZfsLabel);
  if (zfs >= kZfsLabel && zfs - kZfsLabel >= tail_at &&
      has_zfs(tail.subspan(zfs - kZfsLabel - tail_at, kZfsLabel))) {
    return Remains{"a ZFS pool", zfs - kZfsLabel + kZfsRing};
  }
  return std::nullopt;
}

}  // namespace cairn::drive
