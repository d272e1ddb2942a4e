// SPDX-License-Identifier: Apache-2.0
#include "plan/flash/flash_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/words.h"
#include "config/files.h"
#include "model/flash/precondition.h"
#include "plan/common/csv.h"
#include "plan/common/gunzip.h"
#include "plan/common/latency_summary.h"
#include "plan/common/trace_file.h"
#include "plan/flash/mqsim_config.h"

namespace cairn::plan {

namespace {

using flash::Completion;
using flash::FlashModel;
using flash::Nanos;
using flash::Op;
using flash::Parameters;
using flash::Synthetic;
using flash::TimedRequest;
using nlohmann::json;

constexpr size_t kFileMax = 1UL << 30;
constexpr double kOpenLoopMean = 0.01;
constexpr double kOpenLoopTail = 0.02;
constexpr double kClosedLoop = 0.01;
constexpr double kPerRequest = 0.001;
constexpr double kGcPrograms = 0.03;
constexpr double kGcLatency = 0.05;
// What the reference's workload files say where its tables are silent.
constexpr uint32_t kSeed = 798;
constexpr double kWorkingSet = 0.5;

struct Outcome {
  std::vector<int64_t> reads;
  std::vector<int64_t> writes;
  Nanos first = -1;
  Nanos last = 0;

  void add(const Completion& c) {
    if (first < 0 || c.arrival < first) first = c.arrival;
    last = std::max(last, c.done);
    (c.op == Op::kRead ? reads : writes).push_back(c.done - c.arrival);
  }
  double iops() const {
    const auto count = static_cast<double>(reads.size() + writes.size());
    return last > first ? count * 1e9 / static_cast<double>(last - first) : 0;
  }
};

class Checker {
 public:
  Checker(std::string path, const FlashCheckOptions& options)
      : path_(std::move(path)), options_(options) {}

  Attempt<std::vector<Comparison>> run();

 private:
  Attempt<std::string> load(const std::string& path) {
    Attempt<std::string> text = config::read_file(path, kFileMax);
    if (!text) return text;
    Attempt<std::string> unpacked = gunzip(std::move(*text), kFileMax);
    if (!unpacked) return refuse(fmt::format("{} {}", in_quotes(path), unpacked.error().text));
    return unpacked;
  }
  // A file that belongs to the reference: beside this one, or in the reference folder; plain or
  // compressed.
  Attempt<std::string> companion(const std::string& name) {
    namespace fs = std::filesystem;
    for (const fs::path& folder :
         {fs::path(path_).parent_path(), fs::path(options_.reference_folder)}) {
      for (const std::string& file : {name, name + ".gz"}) {
        std::error_code ignored;
        if (fs::exists(folder / file, ignored)) return load((folder / file).string());
      }
    }
    return refuse(
        fmt::format("{} needs {}, which is neither beside it nor in {}; say where with "
                    "--reference FOLDER",
                    in_quotes(path_), name, in_quotes(options_.reference_folder)));
  }
  Attempt<json> companion_json(const std::string& name) {
    const Attempt<std::string> text = companion(name);
    if (!text) return std::unexpected(text.error());
    json parsed = json::parse(*text, nullptr, false);
    if (parsed.is_discarded()) return refuse(fmt::format("{} is not JSON", name));
    return parsed;
  }
  Attempt<Parameters> parameters(const json& config) {
    Attempt<Parameters> p = parameters_from_mqsim(config);
    if (!p) return refuse(fmt::format("{}: {}", in_quotes(path_), p.error().text));
    return p;
  }
  Attempt<Parameters> named_parameters();
  void compare(const std::string& name, const char* measure, double ours, double reference,
               double tolerance) {
    found_.push_back(cairn::plan::compare({path_, name, measure}, ours, reference, tolerance));
  }

  Attempt<void> micro(const json& file);
  Attempt<void> micro_case(const json& base, const json& one);
  Attempt<void> per_request(const Csv& csv);
  Attempt<void> open_loop(const Csv& csv);
  Attempt<void> closed_loop(const Csv& csv);
  Attempt<void> collection(const Csv& csv);

  std::string path_;
  const FlashCheckOptions& options_;
  std::vector<Comparison> found_;
};

Attempt<std::vector<Comparison>> Checker::run() {
  const Attempt<std::string> text = load(path_);
  if (!text) return std::unexpected(text.error());
  Attempt<void> done;
  if (text->starts_with("{")) {
    const json file = json::parse(*text, nullptr, false);
    if (file.is_discarded() || !file.contains("cases") || !file.contains("base_config")) {
      return refuse(fmt::format("{} is not JSON with base_config and cases", in_quotes(path_)));
    }
    done = micro(file);
  } else {
    const Attempt<Csv> csv = Csv::parse(*text);
    if (!csv) return refuse(fmt::format("{} {}", in_quotes(path_), csv.error().text));
    if (csv->has("complete_ns")) {
      done = per_request(*csv);
    } else if (csv->has("T_us")) {
      done = open_loop(*csv);
    } else if (csv->has("tech")) {
      done = closed_loop(*csv);
    } else if (csv->has("tag")) {
      done = collection(*csv);
    } else {
      done =
          refuse(fmt::format("{} is none of the reference's tables: its heading has neither "
                             "complete_ns nor T_us, tech or tag",
                             in_quotes(path_)));
    }
  }
  if (!done) return std::unexpected(done.error());
  return std::move(found_);
}

Attempt<void> Checker::micro(const json& file) {
  for (const json& one : file["cases"]) {
    if (!one.is_object() || !one.contains("requests") || !one["requests"].is_array()) {
      return refuse(fmt::format("{}: a case has no requests", in_quotes(path_)));
    }
    if (Attempt<void> done = micro_case(file["base_config"], one); !done) return done;
  }
  return {};
}

Attempt<void> Checker::micro_case(const json& base, const json& one) {
  json config = base;
  if (one.contains("overrides") && one["overrides"].is_object()) config.update(one["overrides"]);
  Attempt<Parameters> p = parameters(config);
  if (!p) return std::unexpected(p.error());
  const std::string name = one.value("name", "?");
  const Attempt<flash::CacheMode> mode =
      cache_mode_from_mqsim(one.value("cache_mode", "WRITE_CACHE"));
  if (!mode) return refuse(fmt::format("{}: cache_mode {}", name, mode.error().text));
  p->streams[0].cache = *mode;
  std::vector<TimedRequest> requests;
  std::vector<Nanos> expected;
  for (const json& r : one["requests"]) {
    const Op op = r.value("op", "R") == "R" ? Op::kRead : Op::kWrite;
    requests.push_back({r.value("arrival_ns", Nanos{0}),
                        {.op = op,
                         .lba = r.value("lba", uint64_t{0}),
                         .sectors = std::max(1U, r.value("sectors", 1U)),
                         .cookie = requests.size()}});
    expected.push_back(r.value("complete_ns", Nanos{-1}));
  }
  FlashModel model(*p);
  std::vector<Nanos> done(requests.size(), -1);
  flash::run_open_loop(model, requests, [&](const Completion& c) { done[c.cookie] = c.done; });
  size_t exact = 0;
  for (size_t i = 0; i < done.size(); ++i) exact += done[i] == expected[i] ? 1 : 0;
  compare(name, "requests exact", static_cast<double>(exact), static_cast<double>(done.size()), 0);
  if (one.contains("end_ns")) {
    compare(name, "end ns", static_cast<double>(model.now()), one["end_ns"].get<double>(), 0);
  }
  if (!one.contains("flash_commands")) return {};
  const flash::Counters& k = model.counters();
  const std::pair<const char*, uint64_t> counts[] = {
      {"Issued_Flash_Read_CMD", k.read_commands},
      {"Issued_Flash_Multiplane_Read_CMD", k.multiplane_read_commands},
      {"Issued_Flash_Program_CMD", k.program_commands},
      {"Issued_Flash_Multiplane_Program_CMD", k.multiplane_program_commands},
      {"Issued_Flash_Erase_CMD", k.erase_commands},
      {"Issued_Flash_Multiplane_Erase_CMD", k.multiplane_erase_commands},
      {"Issued_Flash_Read_CMD_For_Mapping", k.mapping_reads_wanted},
      {"CMT_Hits", k.mapping_hits},
      {"CMT_Misses_For_Read", k.mapping_read_misses},
      {"CMT_Misses_For_Write", k.mapping_write_misses},
      {"Total_CMT_Queries", k.mapping_queries},
  };
  for (const auto& [counter, ours] : counts) {
    const double reference = one["flash_commands"].value(counter, 0.0);
    if (reference != 0 || ours != 0)
      compare(name, counter, static_cast<double>(ours), reference, 0);
  }
  return {};
}

// The configuration that a table's name tells: a_tableI_..._dram800..., ..._authors_..._read20us.
Attempt<Parameters> Checker::named_parameters() {
  const std::string file = std::filesystem::path(path_).filename().string();
  const bool authors = file.contains("authors") || options_.config.starts_with("authors");
  std::string name = options_.config;
  if (name.empty()) {
    if (authors) {
      name = file.contains("read20us") ? "authors_read20us" : "authors_read2us";
    } else {
      name = file.contains("dram800") ? "snis_tableI_dram800x4" : "snis_tableI";
    }
  }
  const Attempt<json> configs = companion_json("configs.json");
  if (!configs) return std::unexpected(configs.error());
  if (!configs->contains(name)) {
    return refuse(fmt::format("configs.json has no configuration {}", in_quotes(name)));
  }
  Attempt<Parameters> p = parameters((*configs)[name]);
  if (p && authors) {
    p->write_back_pages = 300;
    p->cache_evicts_dirty_only = true;
  }
  return p;
}

Attempt<void> Checker::per_request(const Csv& csv) {
  const Attempt<Parameters> p = named_parameters();
  if (!p) return std::unexpected(p.error());
  std::vector<TimedRequest> requests;
  for (size_t row = 0; row < csv.rows(); ++row) {
    requests.push_back({static_cast<Nanos>(csv.number(row, "arrival_ns")),
                        {.op = csv.text(row, "op") == "R" ? Op::kRead : Op::kWrite,
                         .lba = static_cast<uint64_t>(csv.number(row, "lba")),
                         .sectors = std::max(1U, static_cast<uint32_t>(csv.number(row, "sectors"))),
                         .cookie = row}});
  }
  FlashModel model(*p);
  std::vector<Nanos> done(requests.size(), -1);
  flash::run_open_loop(model, requests, [&](const Completion& c) { done[c.cookie] = c.done; });
  size_t exact = 0;
  for (size_t row = 0; row < done.size(); ++row) {
    exact += done[row] == static_cast<Nanos>(csv.number(row, "complete_ns")) ? 1 : 0;
  }
  compare("all", "requests exact", static_cast<double>(exact), static_cast<double>(done.size()),
          kPerRequest);
  return {};
}

Attempt<void> Checker::open_loop(const Csv& csv) {
  const Attempt<Parameters> p = named_parameters();
  if (!p) return std::unexpected(p.error());
  const bool exponential = std::filesystem::path(path_).filename().string().contains("exp");
  for (size_t row = 0; row < csv.rows(); ++row) {
    if (csv.text(row, "status") != "ok") continue;
    const std::string kind = csv.text(row, "kind");
    const std::string trace = fmt::format("traces/{}T{}us_S{}_mix.trace", exponential ? "exp_" : "",
                                          csv.text(row, "T_us"), csv.text(row, "size"));
    const Attempt<std::string> text = companion(trace);
    if (!text) return std::unexpected(text.error());
    Attempt<std::vector<TimedRequest>> requests = parse_mqsim_trace(*text);
    if (!requests) return refuse(fmt::format("{} {}", trace, requests.error().text));
    std::erase_if(*requests, [&](const TimedRequest& r) {
      return (kind == "read" && r.request.op != Op::kRead) ||
             (kind == "write" && r.request.op != Op::kWrite);
    });
    FlashModel model(*p);
    Outcome outcome;
    flash::run_open_loop(model, *requests, [&](const Completion& c) { outcome.add(c); });
    const std::string name =
        fmt::format("T{}us {} B {}", csv.text(row, "T_us"), csv.text(row, "size"), kind);
    const LatencySummary reads = summarise(std::move(outcome.reads));
    const LatencySummary writes = summarise(std::move(outcome.writes));
    if (reads.count > 0) {
      compare(name, "read mean ns", reads.mean, csv.number(row, "read_mean_ns"), kOpenLoopMean);
      compare(name, "read p99 ns", reads.p99, csv.number(row, "read_p99_ns"), kOpenLoopTail);
    }
    if (writes.count > 0) {
      compare(name, "write mean ns", writes.mean, csv.number(row, "write_mean_ns"), kOpenLoopMean);
      compare(name, "write p99 ns", writes.p99, csv.number(row, "write_p99_ns"), kOpenLoopTail);
    }
  }
  return {};
}

Attempt<void> Checker::closed_loop(const Csv& csv) {
  const Attempt<json> configs = companion_json("configs.json");
  if (!configs) return std::unexpected(configs.error());
  for (size_t row = 0; row < csv.rows(); ++row) {
    if (csv.text(row, "status") != "ok") continue;
    const std::string tech = csv.text(row, "tech");
    const std::string work = csv.text(row, "wl");
    json config = configs->value("shipped", json::object());
    if (tech == "TLC") config.update(configs->value("tlc_b", json::object()));
    if (tech.ends_with("idealmap")) config["Ideal_Mapping_Table"] = "true";
    const Attempt<Parameters> p = parameters(config);
    if (!p) return std::unexpected(p.error());
    Synthetic synthetic;
    synthetic.queue_depth = std::max(1U, static_cast<uint32_t>(csv.number(row, "qd")));
    synthetic.working_set = kWorkingSet;
    synthetic.seed = options_.seed != 0 ? options_.seed : kSeed;
    synthetic.requests = static_cast<uint64_t>(csv.number(row, "requests_generated"));
    synthetic.read_fraction = work.contains("rw70") ? 0.7 : work.contains("read") ? 1.0 : 0.0;
    if (work.starts_with("seq")) synthetic.pattern = flash::Pattern::kSequential;
    if (work.ends_with("128k")) synthetic.sectors = 256;
    FlashModel model(*p);
    Outcome outcome;
    flash::run_synthetic(model, synthetic, [&](const Completion& c) { outcome.add(c); });
    compare(fmt::format("{} {} QD{}", tech, work, synthetic.queue_depth), "IOPS", outcome.iops(),
            csv.number(row, "iops"), kClosedLoop);
  }
  return {};
}

Attempt<void> Checker::collection(const Csv& csv) {
  const Attempt<json> configs = companion_json("configs.json");
  if (!configs) return std::unexpected(configs.error());
  const Attempt<json> workloads = companion_json("workloads_b_c.json");
  if (!workloads) return std::unexpected(workloads.error());
  std::map<std::string, json> by_name;
  for (const json& one : workloads->value("c", json::array())) by_name[one.value("name", "")] = one;
  for (size_t row = 0; row < csv.rows(); ++row) {
    if (csv.text(row, "status") != "ok") continue;
    const std::string tag = csv.text(row, "tag");
    const auto found = by_name.find("c_b512_" + tag);
    if (found == by_name.end() || !found->second["flow"].is_object()) {
      return refuse(fmt::format("workloads_b_c.json does not tell the workload of {}", tag));
    }
    json config = configs->value("shipped", json::object());
    config.update(found->second["overrides"]);
    const Attempt<Parameters> p = parameters(config);
    if (!p) return std::unexpected(p.error());
    const json& flow = found->second["flow"];
    Synthetic synthetic;
    synthetic.queue_depth = flow.value("Average_No_of_Reqs_in_Queue", 1U);
    synthetic.working_set = flow.value("Working_Set_Percentage", 100 * kWorkingSet) / 100;
    synthetic.sectors = std::max(1U, flow.value("Average_Request_Size", 16U));
    synthetic.alignment_sectors = std::max(1U, flow.value("Address_Alignment_Unit", 16U));
    synthetic.requests = flow.value("Total_Requests_To_Generate", uint64_t{200'000});
    synthetic.read_fraction = flow.value("Read_Percentage", 0.0) / 100;
    synthetic.seed = options_.seed != 0 ? options_.seed : kSeed;
    FlashModel model(*p);
    flash::precondition(model, synthetic, flow.value("occ", 85.0) / 100);
    Outcome outcome;
    flash::run_synthetic(model, synthetic, [&](const Completion& c) { outcome.add(c); });
    const LatencySummary reads = summarise(std::move(outcome.reads));
    const LatencySummary writes = summarise(std::move(outcome.writes));
    const flash::Counters& k = model.counters();
    const auto programs =
        static_cast<double>(k.program_commands + 2 * k.multiplane_program_commands);
    const double reference_programs = csv.number(row, "Issued_Flash_Program_CMD") +
                                      2 * csv.number(row, "Issued_Flash_Multiplane_Program_CMD");
    compare(tag, "programs per write", programs / static_cast<double>(writes.count),
            reference_programs / csv.number(row, "write_n"), kGcPrograms);
    compare(tag, "write mean ns", writes.mean, csv.number(row, "write_mean_ns"), kGcLatency);
    if (reads.count > 0) {
      compare(tag, "read mean ns", reads.mean, csv.number(row, "read_mean_ns"), kGcLatency);
    }
  }
  return {};
}

}  // namespace

Attempt<std::vector<Comparison>> check_flash_file(const std::string& path,
                                                  const FlashCheckOptions& options) {
  return Checker(path, options).run();
}

}  // namespace cairn::plan
