// SPDX-License-Identifier: Apache-2.0
// Identify Namespace for people and scripts (NVM Command Set 1.0, 4.1.5.1).
#include <fmt/format.h>

#include <string>

#include "apps/nvme/pages.h"
#include "base/units.h"

namespace cairn::apps {

namespace {

// The size of `blocks`; empty when the format has none or it does not fit.
std::string blocks_text(uint64_t blocks, uint8_t block_shift) {
  if (block_shift == 0 || block_shift > 63 || blocks > UINT64_MAX >> block_shift) return "";
  return text_bytes(blocks << block_shift);
}

void add_size(FieldTable& table, const nvme::IdentifyNamespace& page) {
  const uint8_t shift = page.lba_formats[nvme::format_index(page)].block_shift;
  table.number("nsze", page.size, blocks_text(page.size, shift));
  table.number("ncap", page.capacity, blocks_text(page.capacity, shift));
  table.number("nuse", page.used, blocks_text(page.used, shift));
  using Feat = nvme::Nsfeat;
  table.bits("nsfeat", page.features,
             bit_names(page.features, {{Feat::kThin, "thin"},
                                       {Feat::kAtomic, "own atomic sizes"},
                                       {Feat::kDeallocatedError, "deallocated blocks may fail"},
                                       {Feat::kIdsNotReused, "ids are not reused"},
                                       {Feat::kOptimal, "optimal sizes"}}));
  table.number("nlbaf", page.formats, counted(page.formats + 1u, "format"));
  table.bits("flbas", page.format, fmt::format("format {} in use", nvme::format_index(page)));
  table.bits("mc", page.metadata);
  table.bits("dpc", page.protection_capabilities);
  table.bits("dps", page.protection, (page.protection & 7) == 0 ? "no protection information" : "");
  table.bits("nmic", page.multipath,
             (page.multipath & nvme::Nmic::kShared) != 0 ? "shared by controllers" : "private");
  using Res = nvme::Rescap;
  table.bits("rescap", page.reservations,
             bit_names(page.reservations,
                       {{Res::kPersist, "persist"},
                        {Res::kWriteExclusive, "write exclusive"},
                        {Res::kExclusiveAccess, "exclusive access"},
                        {Res::kWriteExclusiveRegistrants, "write exclusive registrants"},
                        {Res::kExclusiveAccessRegistrants, "exclusive access registrants"},
                        {Res::kWriteExclusiveAll, "write exclusive all"},
                        {Res::kExclusiveAccessAll, "exclusive access all"}}));
  table.bits("fpi", page.format_progress);
}

void add_limits(FieldTable& table, const nvme::IdentifyNamespace& page) {
  const uint8_t reads_as = page.deallocate & 7;
  table.bits("dlfeat", page.deallocate,
             fmt::format("deallocated blocks read as {}{}",
                         reads_as == nvme::Dlfeat::kReadsZeroes ? "zeroes"
                         : reads_as == nvme::Dlfeat::kReadsOnes ? "ones"
                                                                : "anything",
                         (page.deallocate & nvme::Dlfeat::kWriteZeroesDeallocates) != 0
                             ? ", write zeroes can deallocate"
                             : ""));
  table.number("nawun", page.atomic_write);
  table.number("nawupf", page.atomic_write_power_fail);
  table.number("nacwu", page.atomic_compare_write);
  table.number("nabsn", page.atomic_boundary);
  table.number("nabo", page.atomic_boundary_offset);
  table.number("nabspf", page.atomic_boundary_power_fail);
  table.number("noiob", page.optimal_io_boundary);
  table.large("nvmcap", page.nvm_capacity,
              page.nvm_capacity.high == 0 ? text_bytes(page.nvm_capacity.low) : "");
  table.number("npwg", page.write_granularity);
  table.number("npwa", page.write_alignment);
  table.number("npdg", page.deallocate_granularity);
  table.number("npda", page.deallocate_alignment);
  table.number("nows", page.optimal_write);
  table.number("mssrl", page.copy_range_blocks_max, "blocks in a range of a copy");
  table.number("mcl", page.copy_blocks_max, "blocks in a copy");
  table.number("msrc", page.copy_ranges_max, "ranges in a copy, less one");
}

}  // namespace

FieldTable fields_of(const nvme::IdentifyNamespace& page) {
  FieldTable table;
  add_size(table, page);
  add_limits(table, page);
  table.number("anagrpid", page.ana_group);
  table.bits(
      "nsattr", page.attributes,
      (page.attributes & nvme::Nsattr::kWriteProtected) != 0 ? "write protected" : "writable");
  table.number("nvmsetid", page.nvm_set);
  table.number("endgid", page.endurance_group);
  table.text("nguid", hex_text(page.nguid));
  table.text("eui64", hex_text(page.eui64));
  nlohmann::ordered_json formats = nlohmann::ordered_json::array();
  for (size_t i = 0; i <= page.formats && i < page.lba_formats.size(); ++i) {
    const nvme::LbaFormat& format = page.lba_formats[i];
    formats.push_back({{"ms", format.metadata_size.value()},
                       {"ds", format.block_shift},
                       {"rp", format.performance & 3}});
    const bool in_use = i == nvme::format_index(page);
    table.line(fmt::format("lbaf {}: blocks of {} bytes, {} of metadata{}", i,
                           format.block_shift < 64 ? uint64_t{1} << format.block_shift : 0,
                           format.metadata_size.value(), in_use ? " (in use)" : ""));
  }
  table.json_only("lbafs", std::move(formats));
  return table;
}

}  // namespace cairn::apps
