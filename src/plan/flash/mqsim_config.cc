// SPDX-License-Identifier: Apache-2.0
#include "plan/flash/mqsim_config.h"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <string>

#include "base/words.h"
#include "config/files.h"
#include "plan/common/json_number.h"

namespace cairn::plan {

namespace {

using flash::Parameters;
using nlohmann::json;

// The words of the reference's enumerations are few enough to be listed.
template <class T>
Attempt<T> one_of(const std::string& text, const std::map<std::string, T>& choices) {
  const auto found = choices.find(text);
  if (found != choices.end()) return found->second;
  std::string known;
  for (const auto& [word, value] : choices) known += (known.empty() ? "" : ", ") + word;
  return refuse(fmt::format("is one of {}, not {}", known, in_quotes(text)));
}

Attempt<bool> flag_of(const json& value) {
  return one_of<bool>(text_of(value), {{"true", true}, {"false", false}});
}

// Latencies are named by bit; which of them a cell has depends on its technology, known last.
struct Latencies {
  double lsb = 0;
  double csb = 0;
  double msb = 0;
};

std::array<flash::Nanos, 4> by_type(const Latencies& latencies, flash::Technology technology) {
  const auto lsb = static_cast<flash::Nanos>(latencies.lsb);
  const auto csb = static_cast<flash::Nanos>(latencies.csb);
  const auto msb = static_cast<flash::Nanos>(latencies.msb);
  if (technology == flash::Technology::kTlc) return {lsb, csb, msb, msb};
  return {lsb, msb, msb, msb};
}

struct Reader {
  Parameters p;
  Latencies read{75'000, 75'000, 75'000};
  Latencies program{750'000, 750'000, 750'000};

  using Take = std::function<Attempt<void>(const json&)>;

  template <class T>
  Take number(T& into) {
    return [&into](const json& value) -> Attempt<void> {
      const Attempt<double> number = number_of(value);
      if (!number) return std::unexpected(number.error());
      if (std::is_integral_v<T> && *number > 4e18) return refuse("is too large");
      into = static_cast<T>(*number);
      return {};
    };
  }
  Take flag(bool& into) {
    return [&into](const json& value) -> Attempt<void> {
      const Attempt<bool> flag = flag_of(value);
      if (!flag) return std::unexpected(flag.error());
      into = *flag;
      return {};
    };
  }
  template <class T>
  Take word(T& into, std::map<std::string, T> choices) {
    return [&into, choices = std::move(choices)](const json& value) -> Attempt<void> {
      const Attempt<T> found = one_of(text_of(value), choices);
      if (!found) return std::unexpected(found.error());
      into = *found;
      return {};
    };
  }
  // What the model has only one way of.
  Take only(const std::string& supported) {
    return [supported](const json& value) -> Attempt<void> {
      if (text_of(value) == supported) return {};
      return refuse(fmt::format("can only be {}, not {}", supported, in_quotes(text_of(value))));
    };
  }
  static Attempt<void> ignore(const json& value) {
    static_cast<void>(value);
    return {};
  }

  std::map<std::string, Take> keys();
  Attempt<void> spread(const json& value);
  Attempt<void> suspension(const json& value);
};

Attempt<void> Reader::spread(const json& value) {
  const std::optional<flash::Spread> order = flash::parse_spread(text_of(value));
  if (!order) {
    return refuse(
        fmt::format("is an order of C, W, D and P like CWDP, not {}", in_quotes(text_of(value))));
  }
  p.spread = *order;
  return {};
}

Attempt<void> Reader::suspension(const json& value) {
  const Attempt<int> mode = one_of<int>(
      text_of(value), {{"NONE", 0}, {"PROGRAM", 1}, {"ERASE", 2}, {"PROGRAM_ERASE", 3}});
  if (!mode) return std::unexpected(mode.error());
  p.suspend_program = (*mode & 1) != 0;
  p.suspend_erase = (*mode & 2) != 0;
  return {};
}

std::map<std::string, Reader::Take> Reader::keys() {
  using flash::GcPolicy;
  using flash::Technology;
  return {
      {"PCIe_Lane_Bandwidth", number(p.lane_gb_per_s)},
      {"PCIe_Lane_Count", number(p.lanes)},
      {"SATA_Processing_Delay", ignore},
      {"Enable_ResponseTime_Logging", ignore},
      {"ResponseTime_Logging_Period_Length", ignore},
      {"Seed", number(p.seed)},
      {"Enabled_Preconditioning", ignore},
      {"Memory_Type", only("FLASH")},
      {"HostInterface_Type", only("NVME")},
      {"IO_Queue_Depth", number(p.queue_depth)},
      {"Queue_Fetch_Size", number(p.queue_fetch)},
      {"Caching_Mechanism", only("ADVANCED")},
      {"Data_Cache_Sharing_Mode", only("SHARED")},
      {"Data_Cache_Capacity", number(p.cache_bytes)},
      {"Data_Cache_DRAM_Row_Size", number(p.dram_row_bytes)},
      {"Data_Cache_DRAM_Data_Rate", number(p.dram_mt_per_s)},
      {"Data_Cache_DRAM_Data_Busrt_Size", number(p.dram_burst_bytes)},
      {"Data_Cache_DRAM_tRCD", number(p.dram_trcd_ns)},
      {"Data_Cache_DRAM_tCL", number(p.dram_tcl_ns)},
      {"Data_Cache_DRAM_tRP", number(p.dram_trp_ns)},
      {"Address_Mapping", only("PAGE_LEVEL")},
      {"Ideal_Mapping_Table", flag(p.ideal_mapping)},
      {"CMT_Capacity", number(p.mapping_cache_bytes)},
      {"CMT_Sharing_Mode", ignore},
      {"Plane_Allocation_Scheme", [this](const json& v) { return spread(v); }},
      {"Transaction_Scheduling_Policy", ignore},  // with one stream both orders are one
      {"Overprovisioning_Ratio", number(p.over_provisioning)},
      {"GC_Exec_Threshold", number(p.gc_threshold)},
      {"GC_Block_Selection_Policy", word<GcPolicy>(p.gc_policy, {{"GREEDY", GcPolicy::kGreedy},
                                                                 {"RGA", GcPolicy::kRga},
                                                                 {"RANDOM", GcPolicy::kRandom},
                                                                 {"RANDOM_P", GcPolicy::kRandomP},
                                                                 {"RANDOM_PP", GcPolicy::kRandomPp},
                                                                 {"FIFO", GcPolicy::kFifo}})},
      {"Use_Copyback_for_GC", flag(p.copyback)},
      {"Preemptible_GC_Enabled", flag(p.gc_preemptible)},
      {"GC_Hard_Threshold", number(p.gc_hard_threshold)},
      {"Dynamic_Wearleveling_Enabled", flag(p.dynamic_wear_levelling)},
      {"Static_Wearleveling_Enabled", flag(p.static_wear_levelling)},
      {"Static_Wearleveling_Threshold", number(p.static_wear_threshold)},
      {"Preferred_suspend_erase_time_for_read", number(p.worth_suspending_erase_ns)},
      {"Preferred_suspend_erase_time_for_write", ignore},
      {"Preferred_suspend_write_time_for_read", number(p.worth_suspending_program_ns)},
      {"Flash_Channel_Count", number(p.channels)},
      {"Flash_Channel_Width", number(p.channel_width_bytes)},
      {"Channel_Transfer_Rate", number(p.channel_mt_per_s)},
      {"Chip_No_Per_Channel", number(p.chips_per_channel)},
      {"Flash_Comm_Protocol", only("NVDDR2")},
      {"Flash_Technology", word<Technology>(p.technology, {{"SLC", Technology::kSlc},
                                                           {"MLC", Technology::kMlc},
                                                           {"TLC", Technology::kTlc}})},
      {"CMD_Suspension_Support", [this](const json& v) { return suspension(v); }},
      {"Page_Read_Latency_LSB", number(read.lsb)},
      {"Page_Read_Latency_CSB", number(read.csb)},
      {"Page_Read_Latency_MSB", number(read.msb)},
      {"Page_Program_Latency_LSB", number(program.lsb)},
      {"Page_Program_Latency_CSB", number(program.csb)},
      {"Page_Program_Latency_MSB", number(program.msb)},
      {"Block_Erase_Latency", number(p.erase_ns)},
      {"Block_PE_Cycles_Limit", number(p.pe_cycles)},
      {"Suspend_Erase_Time", number(p.suspend_erase_ns)},
      {"Suspend_Program_Time", number(p.suspend_program_ns)},
      {"Die_No_Per_Chip", number(p.dies_per_chip)},
      {"Plane_No_Per_Die", number(p.planes_per_die)},
      {"Block_No_Per_Plane", number(p.blocks_per_plane)},
      {"Page_No_Per_Block", number(p.pages_per_block)},
      {"Page_Capacity", number(p.page_bytes)},
      {"Page_Metadat_Capacity", ignore},
  };
}

}  // namespace

Attempt<flash::Parameters> parameters_from_mqsim(const json& config) {
  if (!config.is_object()) return refuse("a configuration is a JSON object of parameters");
  Reader reader;
  reader.p.mqsim = true;
  reader.p.gc_policy = flash::GcPolicy::kRga;
  reader.p.gc_preemptible = false;
  const std::map<std::string, Reader::Take> keys = reader.keys();
  for (const auto& [name, value] : config.items()) {
    const auto key = keys.find(name);
    if (key == keys.end()) return refuse(fmt::format("there is no parameter {}", in_quotes(name)));
    if (const Attempt<void> taken = key->second(value); !taken) {
      return refuse(fmt::format("{} {}", name, taken.error().text));
    }
  }
  reader.p.read_ns = by_type(reader.read, reader.p.technology);
  reader.p.program_ns = by_type(reader.program, reader.p.technology);
  if (reader.p.copyback) {
    return refuse(
        "Use_Copyback_for_GC can only be false: how the reference copies pages back is not known. "
        "A profile of your own without compat may have copyback = true");
  }
  if (const auto problem = flash::check(reader.p)) {
    return refuse(fmt::format("{} {}", problem->member, problem->text));
  }
  return reader.p;
}

Attempt<flash::CacheMode> cache_mode_from_mqsim(const std::string& name) {
  using flash::CacheMode;
  return one_of<CacheMode>(name, {{"WRITE_CACHE", CacheMode::kWrite},
                                  {"READ_CACHE", CacheMode::kRead},
                                  {"WRITE_READ_CACHE", CacheMode::kReadWrite},
                                  {"TURNED_OFF", CacheMode::kOff}});
}

Attempt<flash::Parameters> load_mqsim_config(const std::string& path) {
  const Attempt<std::string> text = config::read_file(path, 1 << 20);
  if (!text) return std::unexpected(text.error());
  const nlohmann::json parsed = nlohmann::json::parse(*text, nullptr, false);
  if (parsed.is_discarded()) return refuse(fmt::format("{} is not JSON", in_quotes(path)));
  Attempt<flash::Parameters> p = parameters_from_mqsim(parsed);
  if (!p) return refuse(fmt::format("{}: {}", in_quotes(path), p.error().text));
  return p;
}

}  // namespace cairn::plan
