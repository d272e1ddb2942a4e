// SPDX-License-Identifier: Apache-2.0
#include "plan/snis/snis_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/words.h"
#include "config/bytes_text.h"
#include "plan/common/trace_file.h"
#include "snis/models.h"
#include "trace/synthetic.h"

namespace cairn::plan {

namespace {

// "MEAN", "MEAN,SCV" or "MEAN,SCV,CORRELATION".
}  // namespace

Attempt<trace::Moments> parse_moments(std::string_view text) {
  trace::Moments moments;
  double* const parts[] = {&moments.mean, &moments.scv, &moments.correlation};
  size_t part = 0;
  while (part < 3) {
    const size_t comma = std::min(text.find(','), text.size());
    const auto [end, error] = std::from_chars(text.data(), text.data() + comma, *parts[part]);
    if (error != std::errc{} || end != text.data() + comma) {
      return refuse(
          "takes a mean, then its SCV and autocorrelation if they are not 1 and 0: 57,8.2");
    }
    ++part;
    if (comma == text.size()) break;
    text.remove_prefix(comma + 1);
    if (part == 3) return refuse("takes at most three numbers: mean, SCV, autocorrelation");
  }
  if (const auto problem = trace::check(moments)) return refuse(*problem);
  return moments;
}

std::vector<std::string> synthetic_names() {
  std::vector<std::string> names = {"custom"};
  for (const trace::PaperTrace& row : trace::paper_traces()) names.emplace_back(row.name);
  return names;
}

Attempt<void> take_placement(const std::string& text, trace::ShapeOptions& shape) {
  const size_t colon = text.find(':');
  const std::string word = text.substr(0, colon);
  if (word == "volume" && colon == std::string::npos) {
    shape.placement = trace::Placement::kByVolume;
    return {};
  }
  if (word != "stripe") return refuse("is 'volume', 'stripe' or 'stripe:BYTES'");
  shape.placement = trace::Placement::kStriped;
  if (colon == std::string::npos) return {};
  const Attempt<uint64_t> bytes = config::parse_bytes(text.substr(colon + 1));
  if (!bytes) return std::unexpected(bytes.error());
  if (*bytes < trace::kSectorBytes) return refuse("needs stripes of at least 512 bytes");
  shape.stripe = *bytes;
  return {};
}

Attempt<void> take_choice(const std::string& text, trace::Choice& into) {
  static const std::vector<std::string> known = {"least-loaded", "volume", "round-robin"};
  const auto found = std::ranges::find(known, text);
  if (found == known.end()) {
    return refuse(fmt::format("is one of {}{}", comma_list(known), did_you_mean(text, known)));
  }
  into = static_cast<trace::Choice>(found - known.begin());
  return {};
}

namespace {

std::optional<trace::Moments> in_nanos(std::optional<trace::Moments> us) {
  if (us) us->mean *= 1e3;
  return us;
}

Attempt<trace::Synthetic> synthetic_load(const SnisLoadOptions& options) {
  const auto seed = static_cast<uint64_t>(options.seed);
  trace::Synthetic load{.seed = seed};
  if (const trace::PaperTrace* row = trace::paper_trace(options.synthetic)) {
    load = trace::synthetic_of(*row, seed);
  } else if (!(options.read_gap_us && options.read_size) &&
             !(options.write_gap_us && options.write_size)) {
    return refuse(
        "--synthetic custom needs --read-gap and --read-size, or --write-gap and --write-size");
  }
  const bool custom = options.synthetic == "custom";
  const int total = options.requests > 0 ? options.requests : options.synthetic_requests;
  const bool reads = !custom || (options.read_gap_us && options.read_size);
  const bool writes = !custom || (options.write_gap_us && options.write_size);
  load.reads.requests = reads ? static_cast<uint64_t>(writes ? (total + 1) / 2 : total) : 0;
  load.writes.requests = static_cast<uint64_t>(total) - load.reads.requests;
  load.reads.gap_ns = in_nanos(options.read_gap_us).value_or(load.reads.gap_ns);
  load.writes.gap_ns = in_nanos(options.write_gap_us).value_or(load.writes.gap_ns);
  load.reads.size_bytes = options.read_size.value_or(load.reads.size_bytes);
  load.writes.size_bytes = options.write_size.value_or(load.writes.size_bytes);
  if (options.shape.space > 0) load.space = options.shape.space;
  if (const auto problem = trace::check(load)) return refuse(*problem);
  return load;
}

Attempt<TraceFile> open_trace(const SnisLoadOptions& options) {
  return TraceFile::open(options.trace, {.format = options.format, .from_zero = options.from_zero});
}

Attempt<SnisLoad> read_trace(const SnisLoadOptions& options) {
  Attempt<TraceFile> file = open_trace(options);
  if (!file) return std::unexpected(file.error());
  const auto max =
      static_cast<size_t>(options.requests > 0 ? options.requests : options.trace_requests);
  SnisLoad load{.requests = {}, .name = fmt::format("the trace {}", options.trace)};
  for (;;) {
    const Attempt<std::optional<trace::Record>> record = file->next();
    if (!record) return std::unexpected(record.error());
    if (!*record) return load;
    if (load.requests.size() == max) {
      load.cut = true;
      return load;
    }
    load.requests.push_back(**record);
  }
}

}  // namespace

Attempt<SnisLoad> load_requests(const SnisLoadOptions& options) {
  if (options.trace.empty() == options.synthetic.empty()) {
    return refuse("say what is asked of the system: either --trace FILE or --synthetic NAME");
  }
  SnisLoad load;
  if (options.trace.empty()) {
    const Attempt<trace::Synthetic> synthetic = synthetic_load(options);
    if (!synthetic) return std::unexpected(synthetic.error());
    load.requests = trace::draw(*synthetic);
    load.name = fmt::format("{}, seed {}", options.synthetic, options.seed);
  } else {
    Attempt<SnisLoad> read = read_trace(options);
    if (!read) return read;
    load = std::move(*read);
  }
  trace::Shaper shaper(options.shape);
  std::vector<bool> used(options.shape.targets);
  for (trace::Record& record : load.requests) {
    record = shaper.shape(record);
    if (record.target < used.size()) used[record.target] = true;
  }
  load.idle_targets = static_cast<uint32_t>(std::ranges::count(used, false));
  if (load.requests.back().arrival > snis::kTimeMax) {
    return refuse(
        "the trace is longer than 53 days; take less of it with --requests, or shrink "
        "its times with --time-scale");
  }
  return load;
}

Attempt<uint64_t> count_requests(const SnisLoadOptions& options,
                                 const std::function<void(double)>& told) {
  Attempt<TraceFile> file = open_trace(options);
  if (!file) return std::unexpected(file.error());
  for (uint64_t count = 0;; ++count) {
    const Attempt<std::optional<trace::Record>> record = file->next();
    if (!record) return std::unexpected(record.error());
    if (!*record) return count;
    if (told) told(file->part_read());
  }
}

}  // namespace cairn::plan
