// SPDX-License-Identifier: Apache-2.0
// The profiles that come with Cairn. Each is a whole profile file; what it leaves out has the value
// of flash::Parameters. The numbers are our estimates for a class of drive: neither from data
// sheets nor measured on a device.
#pragma once

#include <array>
#include <string_view>

namespace cairn::plan {

struct FlashProfile {
  std::string_view name;
  std::string_view text;
};

inline constexpr std::array<FlashProfile, 11> kFlashProfiles = {{
    {"pm1725a", R"(name = "datacenter TLC, like PM1725a 1.6 TB"
lanes = 8
cache = "write"
cache_bytes = "1 GiB"
mapping_cache_bytes = "2 GiB"
write_back_pages = 4
channels = 16
channel_mt_per_s = 800
chips_per_channel = 4
dies_per_chip = 4
planes_per_die = 2
blocks_per_plane = 916
pages_per_block = 256
page_bytes = "16 KiB"
technology = "tlc"
read = ["60 us", "75 us", "90 us"]
program = ["500 us", "700 us", "900 us"]
erase = "5 ms"
over_provisioning = 0.15
suspend_program = true
)"},
    {"dct983", R"(name = "datacenter TLC, like DCT983 960 GB"
lanes = 4
cache_bytes = "512 MiB"
mapping_cache_bytes = "1 GiB"
write_back_pages = 3
channels = 8
channel_mt_per_s = 800
chips_per_channel = 4
dies_per_chip = 4
planes_per_die = 2
blocks_per_plane = 1100
pages_per_block = 256
page_bytes = "16 KiB"
technology = "tlc"
read = ["55 us", "70 us", "85 us"]
program = ["450 us", "650 us", "850 us"]
erase = "4 ms"
over_provisioning = 0.12
suspend_program = true
)"},
    {"p4600", R"(name = "datacenter TLC, like P4600 1.6 TB"
lanes = 4
cache_bytes = "512 MiB"
mapping_cache_bytes = "2 GiB"
write_back_pages = 4
channels = 12
channel_mt_per_s = 667
chips_per_channel = 4
dies_per_chip = 4
planes_per_die = 4
blocks_per_plane = 612
pages_per_block = 256
page_bytes = "16 KiB"
technology = "tlc"
read = ["70 us", "85 us", "100 us"]
program = ["600 us", "800 us", "1000 us"]
erase = "8 ms"
over_provisioning = 0.2
suspend_program = true
)"},
    {"fs1600", R"(name = "a drive of a 24-slot Ethernet flash box"
lanes = 2
cache_bytes = "512 MiB"
mapping_cache_bytes = "1 GiB"
write_back_pages = 2
channels = 8
channel_mt_per_s = 667
chips_per_channel = 4
dies_per_chip = 4
planes_per_die = 2
blocks_per_plane = 1100
pages_per_block = 256
page_bytes = "16 KiB"
technology = "tlc"
read = ["60 us", "78 us", "96 us"]
program = ["500 us", "750 us", "1000 us"]
erase = "5 ms"
over_provisioning = 0.12
)"},
    {"fs1600-small", R"(name = "fs1600 with a sixteenth of its dies and of its speed, 4 GiB"
lanes = 1
lane_gb_per_s = 0.125
cache_bytes = "32 MiB"
mapping_cache_bytes = "64 MiB"
write_back_pages = 2
channels = 1
channel_mt_per_s = 333
chips_per_channel = 2
dies_per_chip = 4
planes_per_die = 2
blocks_per_plane = 74
pages_per_block = 256
page_bytes = "16 KiB"
technology = "tlc"
read = ["60 us", "78 us", "96 us"]
program = ["500 us", "750 us", "1000 us"]
erase = "5 ms"
over_provisioning = 0.12
)"},
    {"optane", R"(name = "low latency, like Optane P4800X"
lanes = 4
cache = "off"
mapping_cache_bytes = "4 GiB"
ideal_mapping = true
channels = 7
channel_mt_per_s = 1600
chips_per_channel = 4
dies_per_chip = 1
planes_per_die = 1
blocks_per_plane = 3200
pages_per_block = 1024
page_bytes = "4 KiB"
technology = "slc"
read = "5 us"
program = "7 us"
erase = "10 us"
over_provisioning = 0.1
suspend_erase = false
)"},
    {"qlc", R"(name = "capacity QLC, 2 TB class"
lanes = 4
cache_bytes = "512 MiB"
mapping_cache_bytes = "2 GiB"
write_back_pages = 4
channels = 8
channel_mt_per_s = 1200
chips_per_channel = 2
dies_per_chip = 8
planes_per_die = 4
blocks_per_plane = 280
pages_per_block = 1024
page_bytes = "16 KiB"
technology = "qlc"
read = ["85 us", "110 us", "140 us", "170 us"]
program = ["1500 us", "2000 us", "2500 us", "3000 us"]
erase = "15 ms"
over_provisioning = 0.12
suspend_program = true
)"},
    {"laptop-tlc", R"(name = "pm1725a scaled down to 8 GiB"
lanes = 4
cache_bytes = "16 MiB"
mapping_cache_bytes = "16 MiB"
channels = 4
channel_mt_per_s = 800
chips_per_channel = 2
dies_per_chip = 2
planes_per_die = 2
blocks_per_plane = 80
pages_per_block = 256
page_bytes = "16 KiB"
technology = "tlc"
read = ["60 us", "75 us", "90 us"]
program = ["500 us", "700 us", "900 us"]
erase = "5 ms"
over_provisioning = 0.15
suspend_program = true
)"},
    {"laptop-optane", R"(name = "optane scaled down to 4 GiB"
lanes = 4
cache = "off"
ideal_mapping = true
channels = 4
channel_mt_per_s = 1600
chips_per_channel = 2
dies_per_chip = 1
planes_per_die = 1
blocks_per_plane = 144
pages_per_block = 1024
page_bytes = "4 KiB"
technology = "slc"
read = "5 us"
program = "7 us"
erase = "10 us"
over_provisioning = 0.1
suspend_erase = false
)"},
    {"snis", R"(name = "Table I of the SNIS paper, as the reference runs it"
compat = "mqsim"
lanes = 4
gc_policy = "rga"
gc_preemptible = false
dram_mt_per_s = 100
dram_burst_bytes = "1 B"
channels = 8
channel_mt_per_s = 333
page_bytes = "16 KiB"
technology = "mlc"
read = "2 us"
program = "100 us"
erase = "3.8 ms"
)"},
    {"snis-authors", R"(name = "the drive that the authors of SNIS ran"
compat = "mqsim"
lanes = 4
queue_depth = 65534
gc_policy = "rga"
gc_preemptible = false
dram_mt_per_s = 400
dram_burst_bytes = "2 B"
write_back_pages = 300
cache_evicts_dirty_only = true
channels = 8
channel_mt_per_s = 400
page_bytes = "16 KiB"
technology = "tlc"
read = "2 us"
program = "100 us"
erase = "3.8 ms"
)"},
}};

}  // namespace cairn::plan
