// SPDX-License-Identifier: Apache-2.0
#include "plan/flash/fio_points.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "base/words.h"

namespace cairn::plan {

namespace {

using nlohmann::json;

constexpr uint32_t kDepthMax = 65535;
constexpr uint64_t kBlockMax = 64ULL << 20;
constexpr uint64_t kInFlightMax = 4ULL << 30;  // so that a point can be run in a moment

// The kinds of `rw` that are a load of reads, writes or both.
struct Kind {
  std::string_view name;
  flash::Pattern pattern;
  bool reads;
  bool writes;
};
constexpr std::array<Kind, 7> kKinds = {{
    {"read", flash::Pattern::kSequential, true, false},
    {"write", flash::Pattern::kSequential, false, true},
    {"rw", flash::Pattern::kSequential, true, true},
    {"readwrite", flash::Pattern::kSequential, true, true},
    {"randread", flash::Pattern::kRandom, true, false},
    {"randwrite", flash::Pattern::kRandom, false, true},
    {"randrw", flash::Pattern::kRandom, true, true},
}};

// Options that make a load something else than equal requests in a closed loop.
struct Refused {
  std::string_view key;
  std::string_view why;
  std::string_view harmless;  // the value that changes nothing
};
constexpr std::array<Refused, 15> kRefused = {{
    {"bssplit", "the requests of a point have one size; measure each size in a job of its own", ""},
    {"bsrange", "the requests of a point have one size; measure each size in a job of its own", ""},
    {"rate", "a point runs as fast as the drive lets it; leave it out", "0"},
    {"rate_iops", "a point runs as fast as the drive lets it; leave it out", "0"},
    {"thinktime", "a point runs as fast as the drive lets it; leave it out", "0"},
    {"latency_target", "it makes fio change the depth; leave it out", "0"},
    {"fsync", "a point has no flushes; leave it out", "0"},
    {"fdatasync", "a point has no flushes; leave it out", "0"},
    {"sync", "a point has no flushes; leave it out", "0"},
    {"random_distribution", "requests of a point are spread evenly; leave it out", "random"},
    {"percentage_random", "a point is random or sequential; measure each in a job", "100"},
    {"zonemode", "drives with zones are not modelled", "none"},
    {"file_service_type", "a point has one file; leave it out", "roundrobin"},
    {"verify", "reading back what was written is a second load; leave it out", "0"},
    {"trim_percentage", "a point has no trims; leave it out", "0"},
}};

// Engines that have one request in flight whatever `iodepth` says.
constexpr std::array<std::string_view, 7> kBlockingEngines = {"sync",    "psync", "vsync", "pvsync",
                                                              "pvsync2", "mmap",  "posix"};

// A job of the file: what it was asked for, wherever that stands, and what came out.
class Job {
 public:
  Job(std::string name, const json& job, const json* global)
      : name_(std::move(name)), job_(job), global_(global) {}

  const std::string& name() const { return name_; }
  std::unexpected<Problem> refuse_key(std::string_view key, std::string_view why) const {
    return refuse(fmt::format("job {}: {} {}", in_quotes(name_), key, why));
  }
  const json& at(const char* key) const {
    static const json nothing;
    const auto found = job_.find(key);
    return found == job_.end() ? nothing : *found;
  }

  // The option's text, or `otherwise`. Not a text: a Problem.
  Attempt<std::string> option(const char* key, const char* otherwise) const {
    const json& own = at("job options");
    for (const json* options : {&own, global_}) {
      if (options == nullptr || !options->is_object()) continue;
      const auto found = options->find(key);
      if (found == options->end()) continue;
      if (found->is_string()) return found->get<std::string>();
      return refuse_key(key, "is not a text, as fio writes options");
    }
    return otherwise;
  }

  Attempt<uint64_t> whole(const char* key, const char* otherwise, uint64_t min,
                          uint64_t max) const {
    const Attempt<std::string> text = option(key, otherwise);
    if (!text) return std::unexpected(text.error());
    uint64_t number = 0;
    const char* end = text->data() + text->size();
    const auto [stop, error] = std::from_chars(text->data(), end, number);
    if (error != std::errc{} || stop != end || number < min || number > max) {
      return refuse_key(
          key, fmt::format("is a whole number from {} to {}, not {}", min, max, in_quotes(*text)));
    }
    return number;
  }

 private:
  std::string name_;
  const json& job_;
  const json* global_;
};

// "4k", "4096", "1MiB", "2g": fio counts in 1024s unless told otherwise.
std::optional<uint64_t> parse_size(std::string_view text) {
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{}) return std::nullopt;
  std::string unit;
  for (const char letter : std::string_view(stop, static_cast<size_t>(end - stop))) {
    unit += letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  }
  if (unit.empty() || unit == "b") return number;
  const size_t power = std::string_view("kmgtp").find(unit.front());
  const std::string_view rest = std::string_view(unit).substr(1);
  if (power == std::string_view::npos || (rest != "" && rest != "b" && rest != "ib")) {
    return std::nullopt;
  }
  const uint64_t factor = uint64_t{1} << (10 * (power + 1));
  if (number > UINT64_MAX / factor) return std::nullopt;
  return number * factor;
}

Attempt<void> check_refused(const Job& job) {
  for (const Refused& one : kRefused) {
    const Attempt<std::string> text = job.option(std::string(one.key).c_str(), "");
    if (!text) return std::unexpected(text.error());
    if (text->empty() || *text == one.harmless) continue;
    return job.refuse_key(one.key, fmt::format("cannot be fitted: {}", one.why));
  }
  return {};
}

Attempt<void> read_kind(const Job& job, FioPoint& point) {
  const Attempt<std::string> rw = job.option("rw", "read");
  if (!rw) return std::unexpected(rw.error());
  const auto kind = std::ranges::find(kKinds, std::string_view(*rw), &Kind::name);
  if (kind == kKinds.end()) {
    return job.refuse_key(
        "rw", fmt::format("is {}, which cannot be fitted; use read, write, randread, randwrite, rw "
                          "or randrw",
                          in_quotes(*rw)));
  }
  point.pattern = kind->pattern;
  if (kind->reads) point.read.emplace();
  if (kind->writes) point.write.emplace();
  point.read_fraction = kind->reads ? 1 : 0;
  if (!kind->reads || !kind->writes) return {};
  const Attempt<uint64_t> writes = job.whole("rwmixwrite", "50", 0, 100);
  if (!writes) return std::unexpected(writes.error());
  const Attempt<uint64_t> reads =
      job.whole("rwmixread", std::to_string(100 - *writes).c_str(), 0, 100);
  if (!reads) return std::unexpected(reads.error());
  point.read_fraction = static_cast<double>(*reads) / 100;
  if (*reads == 100) point.write.reset();
  if (*reads == 0) point.read.reset();
  return {};
}

Attempt<void> read_block(const Job& job, FioPoint& point) {
  const Attempt<std::string> text = job.option("bs", "4k");
  if (!text) return std::unexpected(text.error());
  std::vector<uint64_t> sizes;  // of reads and of writes
  for (size_t from = 0; from <= text->size();) {
    const size_t comma = std::min(text->find(',', from), text->size());
    const std::optional<uint64_t> size =
        parse_size(std::string_view(*text).substr(from, comma - from));
    if (!size || *size == 0 || *size > kBlockMax || *size % flash::kSectorBytes != 0) {
      return job.refuse_key("bs", fmt::format("is {}; a request has a multiple of 512 bytes, at "
                                              "most 64 MiB",
                                              in_quotes(*text)));
    }
    sizes.push_back(*size);
    from = comma + 1;
  }
  const uint64_t of_writes = sizes.size() > 1 ? sizes[1] : sizes[0];
  if (point.read && point.write && sizes[0] != of_writes) {
    return job.refuse_key(
        "bs", fmt::format("is {}; reads and writes of a point have one size", in_quotes(*text)));
  }
  point.block_bytes = static_cast<uint32_t>(point.read ? sizes[0] : of_writes);
  return {};
}

Attempt<void> read_size(const Job& job, FioPoint& point) {
  const Attempt<std::string> text = job.option("size", "100%");
  if (!text) return std::unexpected(text.error());
  if (text->ends_with('%')) {
    uint32_t percent = 0;
    const char* end = text->data() + text->size() - 1;
    const auto [stop, error] = std::from_chars(text->data(), end, percent);
    if (error == std::errc{} && stop == end && percent >= 1 && percent <= 100) {
      point.size_part = percent / 100.0;
      return {};
    }
  } else if (const std::optional<uint64_t> bytes = parse_size(*text); bytes && *bytes > 0) {
    point.size_bytes = *bytes;
    return {};
  }
  return job.refuse_key(
      "size", fmt::format("is {}; give it in bytes (4g) or percent (100%)", in_quotes(*text)));
}

// Requests in flight in one clone.
Attempt<uint64_t> read_depth(const Job& job) {
  const Attempt<std::string> engine = job.option("ioengine", "psync");
  if (!engine) return std::unexpected(engine.error());
  if (*engine == "null" || *engine == "cpuio") {
    return job.refuse_key(
        "ioengine", fmt::format("is {}, which uses no drive; use io_uring", in_quotes(*engine)));
  }
  const Attempt<uint64_t> depth = job.whole("iodepth", "1", 1, kDepthMax);
  if (!depth) return depth;
  const bool blocking = std::ranges::find(kBlockingEngines, *engine) != kBlockingEngines.end();
  return blocking ? 1 : *depth;
}

Attempt<FioPoint> read_options(const Job& job) {
  FioPoint point;
  point.job = job.name();
  if (Attempt<void> fine = check_refused(job); !fine) return std::unexpected(fine.error());
  if (Attempt<void> read = read_kind(job, point); !read) return std::unexpected(read.error());
  if (Attempt<void> read = read_block(job, point); !read) return std::unexpected(read.error());
  if (Attempt<void> read = read_size(job, point); !read) return std::unexpected(read.error());
  return point;
}

// A number of a result; nothing when it is not there or makes no sense.
std::optional<double> number_at(const json& object, const char* key) {
  if (!object.is_object()) return std::nullopt;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  const double value = found->get<double>();
  if (!std::isfinite(value) || value < 0 || value > 1e15) return std::nullopt;
  return value;
}

Attempt<LoadSide> read_side(const Job& job, const char* name) {
  const json& result = job.at(name);
  if (!result.is_object()) return job.refuse_key(name, "is missing; it has the job's results");
  LoadSide side;
  const std::optional<double> iops = number_at(result, "iops");
  if (!iops) return job.refuse_key(fmt::format("{}.iops", name), "is missing or no number");
  if (*iops == 0) {
    return job.refuse_key(fmt::format("{}.iops", name),
                          "is 0: nothing was done; let the job run longer");
  }
  side.iops = *iops;
  for (const char* key : {"clat_ns", "lat_ns"}) {
    const auto found = result.find(key);
    if (found == result.end() || !found->is_object()) continue;
    const std::optional<double> mean = number_at(*found, "mean");
    if (side.mean_ns == 0 && mean) side.mean_ns = *mean;
    const auto percentiles = found->find("percentile");
    if (side.p99_ns == 0 && percentiles != found->end()) {
      side.p99_ns = number_at(*percentiles, "99.000000").value_or(0);
    }
  }
  if (side.mean_ns == 0) {
    return job.refuse_key(fmt::format("{}.clat_ns.mean", name),
                          "is missing; fio 3 or newer writes it unless latencies are disabled");
  }
  return side;
}

// Clones of a job: throughput adds up, latencies are those of the average request.
void add_clone(LoadSide& sum, const LoadSide& one) {
  const double all = sum.iops + one.iops;
  sum.mean_ns = (sum.mean_ns * sum.iops + one.mean_ns * one.iops) / all;
  sum.p99_ns = (sum.p99_ns * sum.iops + one.p99_ns * one.iops) / all;
  sum.iops = all;
}

Attempt<FioPoint> read_point(const std::vector<Job>& clones) {
  const Job& first = clones.front();
  Attempt<FioPoint> point = read_options(first);
  if (!point) return point;
  const Attempt<uint64_t> depth = read_depth(first);
  if (!depth) return std::unexpected(depth.error());
  const Attempt<uint64_t> numjobs = first.whole("numjobs", "1", 1, kDepthMax);
  if (!numjobs) return std::unexpected(numjobs.error());
  if (clones.size() > 1 && clones.size() != *numjobs) {
    return first.refuse_key("numjobs", fmt::format("is {}, but the file has {} jobs of that name",
                                                   *numjobs, clones.size()));
  }
  if (*depth * *numjobs > kDepthMax) {
    return first.refuse_key("iodepth", fmt::format("times numjobs is above {}", kDepthMax));
  }
  point->depth = static_cast<uint32_t>(*depth * *numjobs);
  if (uint64_t{point->depth} * point->block_bytes > kInFlightMax) {
    return first.refuse_key("iodepth", "times numjobs times bs is above 4 GiB in flight");
  }
  for (const Job& clone : clones) {
    const json& error = clone.at("error");
    if (error.is_number_integer() && error != 0) {
      return clone.refuse_key(
          "error", fmt::format("is {}: the job failed; measure it again", error.get<int64_t>()));
    }
    for (const auto& [name, side] : {std::pair{"read", &point->read}, {"write", &point->write}}) {
      if (!*side) continue;
      const Attempt<LoadSide> one = read_side(clone, name);
      if (!one) return std::unexpected(one.error());
      add_clone(**side, *one);
    }
  }
  return point;
}

// The jobs by groups that ran at the same time, in the order of the file.
Attempt<std::vector<std::vector<Job>>> read_groups(const json& root) {
  const auto jobs = root.find("jobs");
  if (jobs == root.end() || !jobs->is_array() || jobs->empty()) {
    return refuse("has no \"jobs\"; make it with fio --output-format=json");
  }
  const auto global = root.find("global options");
  std::map<int64_t, size_t> index_of;
  std::vector<std::vector<Job>> groups;
  for (const json& job : *jobs) {
    if (!job.is_object()) return refuse("has something in \"jobs\" that is no job");
    const auto name = job.find("jobname");
    if (name == job.end() || !name->is_string()) return refuse("has a job without \"jobname\"");
    const auto group = job.find("groupid");
    const int64_t id = group != job.end() && group->is_number_integer() ? group->get<int64_t>() : 0;
    const auto [place, is_new] = index_of.try_emplace(id, groups.size());
    if (is_new) groups.emplace_back();
    std::vector<Job>& members = groups[place->second];
    members.emplace_back(name->get<std::string>(), job, global == root.end() ? nullptr : &*global);
    if (members.front().name() != members.back().name()) {
      return refuse(fmt::format(
          "job {}: groupid says that it ran together with {}; put stonewall into each job, so that "
          "they run one after another",
          in_quotes(members.back().name()), in_quotes(members.front().name())));
    }
  }
  return groups;
}

}  // namespace

Attempt<FioPoints> parse_fio(std::string_view text) {
  // fio prints its notes before the JSON, which starts on a line of its own.
  size_t start = text.starts_with('{') ? 0 : text.find("\n{");
  if (start == std::string_view::npos) start = 0;
  const json root = json::parse(text.substr(start), nullptr, false);
  if (root.is_discarded() || !root.is_object()) {
    return refuse("is not JSON; make it with fio --output-format=json");
  }
  const Attempt<std::vector<std::vector<Job>>> groups = read_groups(root);
  if (!groups) return std::unexpected(groups.error());
  FioPoints found;
  for (const std::vector<Job>& clones : *groups) {
    Attempt<FioPoint> point = read_point(clones);
    if (!point) return std::unexpected(point.error());
    const Attempt<std::string> direct = clones.front().option("direct", "0");
    if (!direct) return std::unexpected(direct.error());
    if (*direct != "1") {
      found.doubts.push_back(fmt::format(
          "Job {} ran without direct=1: it measured the kernel's page cache too, not only the "
          "drive.",
          in_quotes(point->job)));
    }
    found.points.push_back(std::move(*point));
  }
  return found;
}

std::string load_text(const FioPoint& point) {
  const bool both = point.read && point.write;
  const char* kind = both ? "rw" : point.read ? "read" : "write";
  std::string text = fmt::format("{}{} {} x {}", point.is_sequential() ? "" : "rand", kind,
                                 text_bytes(point.block_bytes), point.depth);
  if (both) text += fmt::format(", {:.0f}% reads", point.read_fraction * 100);
  return text;
}

}  // namespace cairn::plan
