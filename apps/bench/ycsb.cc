// SPDX-License-Identifier: Apache-2.0
#include "apps/lab/commands.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/bench/options.h"
#include "apps/common/output.h"
#include "base/words.h"
#include "bench/rocksdb/ycsb.h"
#include "config/json_text.h"

namespace cairn::apps {

namespace {

constexpr int kRecordsMin = 100;
constexpr int kThreadsMax = 100;
static_assert(kThreadsMax <= kRecordsMin);

Attempt<void> take_distribution(const std::string& text, bench::YcsbDistribution& into) {
  if (text == "uniform") {
    into = bench::YcsbDistribution::kUniform;
  } else if (text == "zipfian") {
    into = bench::YcsbDistribution::kZipfian;
  } else {
    return refuse(fmt::format("is uniform or zipfian, not {}", in_quotes(text)));
  }
  return {};
}

class BenchYcsbCommand final : public Command {
 public:
  explicit BenchYcsbCommand(CLI::App& app) {
    bench::YcsbPlace& place = options_.place;
    required(add_text(app, "--folder DIR", place.folder,
                      "where the database is made, as DIR/ycsb, and stays"));
    CLI::Option* keys = add_integer(app, "--keys N", keys_,
                                    {.min = kRecordsMin, .max = int{bench::kYcsbRecordsMax}},
                                    "records of 1000 bytes to load (100000)");
    not_both(add_switch(app, "--keep", options_.keep,
                        "load nothing: use the database of an earlier run"),
             keys);
    add_choices(app, "--workload NAME", options_.workloads, bench::ycsb_workloads(),
                "only this, a: half updates, b: one in 20, c: none");
    add_value(
        app, "--distribution WORD", "of keys: uniform (the default) or zipfian",
        [this](const std::string& text) { return take_distribution(text, options_.distribution); });
    add_values(app, "--threads N", "of RocksDB's user, several allowed (1, 4 and 16)",
               [this](const std::string& text) { return take_threads(text); });
    CLI::Option* operations =
        add_integer(app, "--operations N", operations_, {.min = 1, .max = 1'000'000'000},
                    "of one run, all threads together (20000)");
    not_both(
        add_number(app, "--seconds S", options_.seconds, 0.001, 86400, "length of one run instead"),
        operations);
    add_integer(app, "--rounds N", options_.rounds, {.min = 1, .max = 1000},
                "how often each is measured (1); medians count");
    add_size(app, "--cache SIZE", place.cache_bytes, "RocksDB's cache of blocks (8M); 0: none");
    add_switch(app, "--sync", place.syncs_updates, "updates wait until they are on the drive");
    add_switch(app, "--buffered", buffered_, "read tables through the page cache");
    add_switch(app, "--json", json_, "print one JSON object instead of a table");
    set_examples(app, {"cairn bench ycsb --folder /mnt",
                       "cairn bench ycsb --folder /mnt --keep --workload a --threads 32 --json",
                       "cairn bench ycsb --folder /mnt --keys 1000000 --distribution zipfian"});
  }

  Attempt<int> run() override {
    std::error_code error;
    const std::string& folder = options_.place.folder;
    if (!std::filesystem::is_directory(folder, error)) {
      return refuse(
          fmt::format("there is no folder {}: make it, or mount a drive there", in_quotes(folder)));
    }
    options_.place.direct = !buffered_;
    options_.records = static_cast<uint64_t>(keys_);
    options_.operations = static_cast<uint64_t>(operations_);
    options_.progress = progress_on_terminal();
    const Result<bench::Report> report = bench::bench_ycsb(options_);
    if (!report) return stopped(report.error());
    say(json_ ? config::json_text(report->json()) : report->table());
    return kExitOk;
  }

 private:
  Attempt<void> take_threads(const std::string& text) {
    int count = 0;
    const auto end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, count);
    if (parsed.ec != std::errc() || parsed.ptr != end || count < 1 || count > kThreadsMax) {
      return refuse(
          fmt::format("takes a whole number from 1 to {}, not {}", kThreadsMax, in_quotes(text)));
    }
    if (!threads_were_given_) options_.threads.clear();
    threads_were_given_ = true;
    options_.threads.push_back(count);
    return {};
  }

  std::unexpected<Problem> stopped(const Error& error) const {
    const std::string& folder = options_.place.folder;
    if (error == Errc::kNotFound) {
      return refuse(fmt::format("{} has no database to keep ({}): run once without --keep",
                                in_quotes(folder), error.text()));
    }
    if (error == Errc::kCorrupt) {
      return refuse(fmt::format("the drive below {} or its file system gave back wrong data: {}",
                                in_quotes(folder), error.text()));
    }
    return refuse(fmt::format(
        "RocksDB could not work in {} and has said why; about direct I/O, which some file systems "
        "cannot do: --buffered goes without it",
        in_quotes(folder)));
  }

  bench::YcsbOptions options_;
  int keys_ = 100'000;
  int operations_ = 20'000;
  bool threads_were_given_ = false;
  bool buffered_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_bench_ycsb(CLI::App& app) {
  return std::make_unique<BenchYcsbCommand>(app);
}

}  // namespace cairn::apps
