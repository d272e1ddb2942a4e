// SPDX-License-Identifier: Apache-2.0
#include "fabric/host/namespace_info.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <numeric>

#include "fabric/host/admin.h"
#include "nvme/format/identify_format.h"
#include "nvme/format/io_format.h"

namespace cairn::fabric {

namespace {

constexpr uint8_t kBlockShiftMin = 9;
constexpr uint8_t kBlockShiftMax = 16;

// More than a target of sound mind has.
constexpr size_t kActiveMax = 65536;

template <size_t N>
bool is_given(const std::array<uint8_t, N>& id) {
  return std::ranges::any_of(id, [](uint8_t byte) { return byte != 0; });
}

// What survives a power failure whole. A boundary that begins elsewhere than at block 0, or is no
// multiple, leaves less than the target could do, never more.
uint32_t atomic_blocks(const NamespacePages& pages, uint32_t command_blocks) {
  const nvme::IdentifyNamespace& space = pages.space;
  const bool own = (space.features & nvme::Nsfeat::kAtomic) != 0;
  uint32_t blocks =
      (own ? space.atomic_write_power_fail : pages.controller.atomic_write_power_fail) + 1u;
  if (own && space.atomic_boundary_power_fail != 0) {
    if (space.atomic_boundary_offset != 0) return 1;
    blocks = std::gcd(blocks, space.atomic_boundary_power_fail + 1u);
  }
  return std::min(blocks, command_blocks);
}

uint32_t limited(uint64_t limit) {
  return static_cast<uint32_t>(limit == 0 ? UINT32_MAX : std::min<uint64_t>(limit, UINT32_MAX));
}

// WZSL: a power of two in pages; 0 is no limit but that of the field.
uint32_t zeroes_blocks(const NamespacePages& pages, uint32_t block_size) {
  if ((pages.controller.nvm_commands & nvme::Oncs::kWriteZeroes) == 0) return 0;
  const uint8_t shift = pages.limits.write_zeroes_max;
  if (shift == 0 || shift > 32) return nvme::kBlocksPerCommandMax;
  const uint64_t blocks = (uint64_t{pages.page_size} << shift) / block_size;
  return static_cast<uint32_t>(std::clamp<uint64_t>(blocks, 1, nvme::kBlocksPerCommandMax));
}

uint32_t discard_blocks(const NamespacePages& pages) {
  if ((pages.controller.nvm_commands & nvme::Oncs::kDatasetManagement) == 0) return 0;
  return std::min(limited(pages.limits.deallocate_range_blocks_max),
                  limited(pages.limits.deallocate_blocks_max));
}

// Copy with one source range of format 0.
uint32_t copy_blocks(const NamespacePages& pages) {
  const bool can_copy = (pages.controller.nvm_commands & nvme::Oncs::kCopy) != 0 &&
                        (pages.controller.copy_formats & nvme::Ocfs::kFormat0) != 0;
  if (!can_copy) return 0;
  return std::min({static_cast<uint32_t>(pages.space.copy_range_blocks_max),
                   static_cast<uint32_t>(pages.space.copy_blocks_max), nvme::kBlocksPerCommandMax});
}

}  // namespace

bool NamespaceInfo::is_same(const NamespaceInfo& other) const {
  if (is_given(nguid) || is_given(other.nguid)) return nguid == other.nguid;
  if (is_given(uuid) || is_given(other.uuid)) return uuid == other.uuid;
  if (is_given(eui64) || is_given(other.eui64)) return eui64 == other.eui64;
  return nsid == other.nsid;
}

Result<NamespaceInfo> describe(uint32_t nsid, const NamespacePages& pages) {
  const nvme::IdentifyNamespace& space = pages.space;
  if (space.size == 0) return fail(Errc::kNotFound, "the controller has no such namespace");
  const nvme::LbaFormat format = space.lba_formats[nvme::format_index(space)];
  if (format.block_shift < kBlockShiftMin || format.block_shift > kBlockShiftMax) {
    return fail(Errc::kUnsupported, "the namespace's block size", format.block_shift);
  }
  if (format.metadata_size != 0 || (space.protection & 7) != 0) {
    return fail(Errc::kUnsupported, "the namespace has metadata with its blocks");
  }
  const uint32_t block_size = uint32_t{1} << format.block_shift;
  NamespaceInfo info{.nsid = nsid};
  info.command_blocks = std::min(pages.transfer_max / block_size, nvme::kBlocksPerCommandMax);
  if (info.command_blocks == 0) {
    return fail(Errc::kUnsupported, "the controller takes less than a block at once");
  }
  const bool has_optimum = (space.features & nvme::Nsfeat::kOptimal) != 0;
  info.geometry = {.blocks = std::min<uint64_t>(space.size, UINT64_MAX / block_size),
                   .block_size = block_size,
                   .optimal_blocks = has_optimum ? space.write_granularity + 1u : 1u,
                   .discard_blocks = has_optimum ? space.deallocate_granularity + 1u : 1u,
                   .atomic_blocks = atomic_blocks(pages, info.command_blocks),
                   .transfer_blocks = std::max(kRemoteRequestMax / block_size, 1u),
                   .volatile_cache = (pages.controller.write_cache & nvme::Vwc::kPresent) != 0};
  info.nguid = space.nguid;
  info.eui64 = space.eui64;
  info.ana_group = space.ana_group;
  info.is_shared = (space.multipath & nvme::Nmic::kShared) != 0;
  if (space.incarnation_magic == nvme::kIncarnationMagic && space.incarnation_opening != 0) {
    info.incarnation = {.medium = space.incarnation_medium, .opening = space.incarnation_opening};
  }

  const uint16_t commands = pages.controller.nvm_commands;
  info.can_compare = (commands & nvme::Oncs::kCompare) != 0;
  if (pages.can_fuse && info.can_compare) {
    const bool own = (space.features & nvme::Nsfeat::kAtomic) != 0;
    const uint32_t blocks =
        (own ? space.atomic_compare_write : pages.controller.atomic_compare_write) + 1u;
    info.compare_write_blocks = std::min(blocks, info.command_blocks);
  }
  info.zeroes_blocks = zeroes_blocks(pages, block_size);
  info.discard_blocks = discard_blocks(pages);
  info.copy_blocks = copy_blocks(pages);
  info.zeroes_can_deallocate = (space.deallocate & nvme::Dlfeat::kWriteZeroesDeallocates) != 0;
  info.deallocated_reads_zero = (space.deallocate & 7) == nvme::Dlfeat::kReadsZeroes;
  if ((commands & nvme::Oncs::kReservations) != 0) info.reservations = space.reservations;
  return info;
}

namespace {

// Names as CNS 03h gives them, which are newer than those of CNS 00h and may say more.
void take_names(Bytes page, NamespaceInfo& info) {
  nvme::NamespaceDescriptorReader reader(page);
  while (const auto descriptor = reader.next()) {
    const auto take = [&](auto& id) {
      if (descriptor->id.size() == id.size()) {
        std::memcpy(id.data(), descriptor->id.data(), id.size());
      }
    };
    switch (descriptor->type) {
      case nvme::NamespaceIdType::kEui64:
        take(info.eui64);
        break;
      case nvme::NamespaceIdType::kNguid:
        take(info.nguid);
        break;
      case nvme::NamespaceIdType::kUuid:
        take(info.uuid);
        break;
      case nvme::NamespaceIdType::kCsi:
        break;
    }
  }
}

// A page that older controllers do not have: zeroes then. An error: the session is lost.
task::Task<Result<void>> identify_if_there(HostSession& session, IdentifyRequest request,
                                           MutableBytes page, task::CancelToken token) {
  const Result<void> got = co_await identify(session, request, page, token);
  if (got) co_return Result<void>{};
  if (session.lost()) co_return fail(*session.lost());
  if (token.requested()) co_return fail(token.error());
  std::ranges::fill(page, std::byte{0});
  co_return Result<void>{};
}

}  // namespace

task::Task<Result<NamespaceInfo>> read_namespace(HostSession& session, uint32_t nsid,
                                                 task::CancelToken token) {
  auto space = std::make_unique<nvme::IdentifyNamespace>();
  auto limits = std::make_unique<nvme::IdentifyControllerNvm>();
  const IdentifyRequest space_request{.fields = {.cns = nvme::Cns::kNamespace}, .nsid = nsid};
  Result<void> got =
      co_await identify(session, space_request, nvme::mutable_bytes_of(*space), token);
  if (!got) co_return fail(got.error());
  const IdentifyRequest limits_request{.fields = {.cns = nvme::Cns::kCommandSetController}};
  got = co_await identify_if_there(session, limits_request, nvme::mutable_bytes_of(*limits), token);
  if (!got) co_return fail(got.error());
  Result<NamespaceInfo> info =
      describe(nsid, {.controller = session.identity(),
                      .limits = *limits,
                      .space = *space,
                      .transfer_max = session.transfer_max(),
                      .page_size = 4096u << session.capabilities().page_size_min,
                      .can_fuse = session.can_fuse()});
  if (!info) co_return info;
  // The page has served its purpose and has the right size for the next.
  const MutableBytes names = nvme::mutable_bytes_of(*space);
  const IdentifyRequest names_request{.fields = {.cns = nvme::Cns::kNamespaceDescriptors},
                                      .nsid = nsid};
  got = co_await identify_if_there(session, names_request, names, token);
  if (!got) co_return fail(got.error());
  take_names(names, *info);
  co_return info;
}

task::Task<Result<std::vector<uint32_t>>> active_namespaces(HostSession& session,
                                                            task::CancelToken token) {
  auto page = std::make_unique<nvme::NamespaceList>();
  std::vector<uint32_t> nsids;
  while (nsids.size() < kActiveMax) {
    const uint32_t last = nsids.empty() ? 0 : nsids.back();
    const IdentifyRequest request{.fields = {.cns = nvme::Cns::kActiveNamespaces}, .nsid = last};
    const Result<void> got =
        co_await identify(session, request, nvme::mutable_bytes_of(*page), token);
    if (!got) co_return fail(got.error());
    for (const nvme::Le32& nsid : page->nsids) {
      // Ascending, then zeroes: what is not ends the list.
      if (nsid == 0 || (!nsids.empty() && nsid <= nsids.back())) co_return nsids;
      nsids.push_back(nsid);
    }
  }
  co_return nsids;
}

task::Task<Result<uint32_t>> find_nsid(HostSession& session, NamespaceName name,
                                       task::CancelToken token) {
  if (!name.has_uuid()) co_return name.nsid;
  const Result<std::vector<uint32_t>> active = co_await active_namespaces(session, token);
  if (!active) co_return fail(active.error());
  std::vector<std::byte> page(nvme::kIdentifySize);
  for (const uint32_t nsid : *active) {
    const IdentifyRequest request{.fields = {.cns = nvme::Cns::kNamespaceDescriptors},
                                  .nsid = nsid};
    const Result<void> got = co_await identify_if_there(session, request, page, token);
    if (!got) co_return fail(got.error());
    NamespaceInfo named;
    take_names(page, named);
    if (named.uuid == name.uuid) co_return nsid;
  }
  co_return fail(Errc::kNotFound, "the target has no namespace with this UUID for this host");
}

task::Task<Result<NamespaceInfo>> read_namespace(HostSession& session, NamespaceName name,
                                                 task::CancelToken token) {
  const Result<uint32_t> nsid = co_await find_nsid(session, name, token);
  if (!nsid) co_return fail(nsid.error());
  Result<NamespaceInfo> info = co_await read_namespace(session, *nsid, token);
  if (info && name.has_uuid() && info->uuid != name.uuid) {
    co_return fail(Errc::kNotFound, "the namespace with this UUID has just gone");
  }
  co_return info;
}

}  // namespace cairn::fabric
