// SPDX-License-Identifier: Apache-2.0
#include "bench/drive/service_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/check.h"
#include "bench/temporary_folder.h"
#include "bench/workload.h"
#include "crypto/base64.h"
#include "loadgen/drive_load.h"
#include "service/common/files.h"
#include "service/integrity/encrypt.h"
#include "stack/services.h"
#include "stack/stack.h"

namespace cairn::bench {

namespace {

constexpr std::string_view kBare = "bare";
constexpr std::string_view kPassThrough = "priority";
constexpr std::string_view kLeaf = "mem:size=64M";
constexpr uint64_t kRange = 16_MiB;
constexpr uint64_t kFillSize = 64_KiB;
constexpr uint32_t kDepth = 32;
constexpr std::string_view kWrittenFile = "to";  // of `trace`
constexpr double kNanosPerMicro = 1e3;

// The example of `limit` would be measured by its limit; this one holds nothing back.
constexpr std::string_view kEndless = "limit({}, iops=1000000000)";

std::string stack_of(const drive::Service& service) {
  drive::Service as_example = service;
  if (service.name == "limit") as_example.example = kEndless;
  return drive::example_over(as_example, [] { return std::string(kLeaf); });
}

// Whatever key a service names, it gets this one.
class LeavesWithKey final : public drive::SourceLeaves {
 public:
  std::expected<drive::FileContent, std::string> read_file(const std::string&) override {
    const std::vector<std::byte> key(drive::kDriveKeySize, std::byte{7});
    return drive::FileContent(as_bytes(crypto::to_base64(key)));
  }
};

// One drive and what its requests cost in each round.
struct Subject {
  std::string name;
  std::string stack;
  std::unique_ptr<drive::Drive> drive;  // null: it failed
  struct Costs {
    std::vector<double> ns;
    std::vector<double> cpu_ns;
  };
  Costs reads = {};
  Costs writes = {};
};

struct Cost {
  double ns = 0;
  double cpu_ns = 0;
};

class ServiceBench {
 public:
  ServiceBench(const DriveBenchOptions& options, const TemporaryFolder& folder, Report& report)
      : options_(options), folder_(folder), report_(report) {}

  task::Task<void> run(env::Env& env) {
    subjects_.push_back({.name = std::string(kBare), .stack = std::string(kLeaf), .drive = {}});
    for (const drive::Service* service : drive::services()) {
      // One that stands on modelled drives alone is as slow as those are.
      if (!service->leaf_only.empty()) continue;
      subjects_.push_back(
          {.name = std::string(service->name), .stack = stack_of(*service), .drive = {}});
    }
    for (Subject& subject : subjects_) co_await open(env, subject);
    for (int round = 0; round < options_.rounds; ++round) {
      if (options_.progress) {
        options_.progress(fmt::format("services: round {} of {}", round + 1, options_.rounds));
      }
      for (Subject& subject : subjects_) co_await take_turn(env, subject);
    }
    for (Subject& subject : subjects_) {
      if (subject.drive != nullptr) co_await subject.drive->close();
    }
    put_results();
    subjects_.clear();
    leaves_.close();
  }

 private:
  loadgen::DriveLoad load_on(const drive::Drive& drive, double read_share) const {
    return {.read_share = read_share,
            .depth = kDepth,
            .length = range_of(drive),
            .duration = 3600_s,
            .requests_max = options_.requests,
            .seed = seed_};
  }
  // What is used of a drive: some services keep a part for themselves.
  static uint64_t range_of(const drive::Drive& drive) {
    return std::min(kRange, align_down(drive.geometry().bytes() / 2, kFillSize));
  }

  // Examples name files as users would; what is written here goes to the folder of this run.
  drive::Stack with_own_files(const Subject& subject) const {
    std::expected<drive::Stack, drive::StackError> stack = drive::Stack::parse(subject.stack);
    CHECK(stack.has_value(), "examples in the table of services parse");
    for (drive::Stack::Option& option : stack->options) {
      if (option.key == kWrittenFile) option.value = folder_.file(option.value);
    }
    return std::move(*stack);
  }

  // Opened and filled, so that reads find data.
  task::Task<void> open(env::Env& env, Subject& subject) {
    drive::Opened opened = co_await drive::open_stack(env, with_own_files(subject), leaves_);
    if (!opened) {
      report_.skip(subject.name, opened.error().text);
      co_return;
    }
    subject.drive = std::move(*opened);
    loadgen::DriveLoad fill = load_on(*subject.drive, 0);
    fill.order = loadgen::DriveLoad::Order::kSequential;
    fill.request_size = kFillSize;
    fill.requests_max = fill.length / kFillSize;
    const std::optional<Cost> filled = co_await measure(env, subject, fill);
    if (!filled) co_await give_up(subject);
  }

  task::Task<void> take_turn(env::Env& env, Subject& subject) {
    if (subject.drive == nullptr) co_return;
    ++seed_;
    const loadgen::DriveLoad reading = load_on(*subject.drive, 1);
    const std::optional<Cost> read = co_await measure(env, subject, reading);
    std::optional<Cost> written;
    if (read) {
      const loadgen::DriveLoad writing = load_on(*subject.drive, 0);
      written = co_await measure(env, subject, writing);
    }
    if (!read || !written) {
      co_await give_up(subject);
      co_return;
    }
    subject.reads.ns.push_back(read->ns);
    subject.reads.cpu_ns.push_back(read->cpu_ns);
    subject.writes.ns.push_back(written->ns);
    subject.writes.cpu_ns.push_back(written->cpu_ns);
  }

  // Nothing when a request failed; the report says which.
  task::Task<std::optional<Cost>> measure(env::Env& env, Subject& subject,
                                          loadgen::DriveLoad load) {
    const Time start = now();
    const Duration cpu = cpu_time();
    const Result<loadgen::LoadResult> done = co_await loadgen::run_load(env, *subject.drive, load);
    const Duration cpu_used = cpu_time() - cpu;
    const Duration took = now() - start;
    const std::optional<Error> error = done ? done->error : std::optional<Error>(done.error());
    if (error) {
      report_.skip(subject.name, fmt::format("a request failed: {}", error->text()));
      co_return std::nullopt;
    }
    const auto requests = static_cast<double>(std::max<uint64_t>(load.requests_max, 1));
    co_return Cost{.ns = took.us() * kNanosPerMicro / requests,
                   .cpu_ns = cpu_used.us() * kNanosPerMicro / requests};
  }
  static task::Task<void> give_up(Subject& subject) {
    co_await subject.drive->close();
    subject.drive.reset();
  }

  static double above(const std::vector<double>& one, const std::vector<double>& bare) {
    std::vector<double> differences;
    for (size_t i = 0; i < std::min(one.size(), bare.size()); ++i) {
      differences.push_back(one[i] - bare[i]);
    }
    return median(std::move(differences));
  }
  void put(std::string_view load, const Subject& subject, const Subject::Costs& costs,
           const Subject::Costs& bare) {
    Measurement line{.name = std::string(load), .variant = subject.name, .unit = "ns"};
    line.samples = costs.ns;
    line.extras = {{"cpu_ns", median(costs.cpu_ns)}};
    if (subject.name != kBare) {
      line.extras.emplace_back("above_bare_ns", above(costs.ns, bare.ns));
      line.extras.emplace_back("above_bare_cpu_ns", above(costs.cpu_ns, bare.cpu_ns));
    }
    report_.add(std::move(line));
  }
  void put_results() {
    const Subject& bare = subjects_.front();
    for (const Subject& subject : subjects_) {
      if (subject.drive == nullptr) continue;
      put("read4k", subject, subject.reads, bare.reads);
      put("write4k", subject, subject.writes, bare.writes);
    }
    double min = 1;
    for (const std::string_view load : {"read4k", "write4k"}) {
      const Measurement* alone = report_.find(load, kBare);
      const Measurement* passed = report_.find(load, kPassThrough);
      if (alone == nullptr || passed == nullptr) return;
      min = std::min(min, paired_ratio(*alone, *passed));
    }
    report_.add_ratio("passthrough_iops_vs_bare", min);
  }

  const DriveBenchOptions& options_;
  const TemporaryFolder& folder_;
  Report& report_;
  LeavesWithKey leaves_;
  std::vector<Subject> subjects_;
  uint64_t seed_ = 0;
};

}  // namespace

Result<void> bench_services(const DriveBenchOptions& options, Report& report) {
  Result<std::unique_ptr<env::World>> world = options.world({.cpus = {options.server_cpu}});
  if (!world) return fail(world.error());
  const Result<TemporaryFolder> folder = TemporaryFolder::make(options.folder);
  if (!folder) return fail(folder.error());
  ServiceBench bench(options, *folder, report);
  return (*world)->run([&bench](env::Env& env) { return bench.run(env); });
}

}  // namespace cairn::bench
