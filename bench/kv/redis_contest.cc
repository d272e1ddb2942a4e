// SPDX-License-Identifier: Apache-2.0
// `cairn kv serve` and redis-server in turn, each asked by redis-benchmark: server on one CPU,
// client on the other, through a local socket.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/contest.h"
#include "bench/drive/server_process.h"
#include "bench/kv/parts.h"
#include "bench/kv/store_job.h"
#include "bench/process.h"
#include "bench/temporary_folder.h"
#include "bench/workload.h"

namespace cairn::bench {

namespace {

constexpr int kConnections = 50;
constexpr int kValueBytes = 256;
constexpr uint64_t kDriveBytes = 1_GiB;
constexpr double kCountMin = 5000;  // requests: they take a few of redis-benchmark's milliseconds
constexpr double kRateMax = 1e8;

enum class Kept : uint8_t { kDurable, kInMemory };

struct Case {
  const char* name;
  const char* test;  // of redis-benchmark
  int pipeline;
  Kept kept;
  const char* ratio;
};
constexpr std::array<Case, 5> kCases = {{
    {"set_durable", "set", 1, Kept::kDurable, "set_durable_vs_redis"},
    {"set", "set", 1, Kept::kInMemory, "redis_benchmark_set_vs_redis"},
    {"set_p16", "set", 16, Kept::kInMemory, "redis_benchmark_set_vs_redis_p16"},
    {"get", "get", 1, Kept::kInMemory, "redis_benchmark_get_vs_redis"},
    {"get_p16", "get", 16, Kept::kInMemory, "redis_benchmark_get_vs_redis_p16"},
}};

struct Figures {
  double per_second = 0;
  double per_cpu_second = 0;  // of the server
};
double per_second(const Figures& figures) { return figures.per_second; }
double per_cpu_second(const Figures& figures) { return figures.per_cpu_second; }

// "SET","123456.78","0.2",...: the second field of the line that begins with the test's name.
Result<double> rate_in(const std::string& path) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t begin = line.find("\",\"");
    if (begin == std::string::npos || line.starts_with("\"test\"")) continue;
    double rate = 0;
    const char* first = line.data() + begin + 3;
    if (std::from_chars(first, line.data() + line.size(), rate).ec == std::errc() && rate > 0) {
      return rate;
    }
  }
  return fail(Errc::kIo, "redis-benchmark said nothing that is understood");
}

class RedisContest {
 public:
  RedisContest(const KvBenchOptions& options, const TemporaryFolder& folder)
      : options_(options), folder_(folder) {}

  Result<void> run(Report& report) {
    for (const Case& each : kCases) {
      contest_.add(each.name, "cairn", [this, &each] { return measure(each, true); });
      contest_.add(each.name, "redis", [this, &each] { return measure(each, false); });
    }
    if (const Result<void> ran = contest_.run(options_.rounds, options_.progress); !ran) return ran;
    for (const auto& each : contest_.contestants()) {
      Measurement line = each.line("op/s", &per_second);
      line.extras.emplace_back("op_per_server_cpu_second", each.line("", &per_cpu_second).value());
      report.add(std::move(line));
    }
    for (const Case& each : kCases) {
      report.add_ratio(
          each.ratio,
          contest_.ratio({each.name, "cairn"}, {each.name, "redis"}, &per_second).value_or(0));
    }
    return {};
  }

 private:
  std::vector<std::string> command_of(const Case& each, bool ours) const {
    const std::string socket = folder_.file("socket");
    if (ours) {
      const std::string drive = each.kept == Kept::kDurable
                                    ? file_drive(options_, folder_.file("store"), kDriveBytes)
                                    : fmt::format("mem:size={},block=512", kDriveBytes);
      return {options_.program, "kv", "serve", drive, "--resp", "unix:" + socket};
    }
    std::vector<std::string> args = {"redis-server",   "--port",       "0", "--unixsocket",
                                     socket,           "--save",       "",  "--dir",
                                     folder_.file(""), "--appendonly", "no"};
    if (each.kept == Kept::kDurable) {
      args.back() = "yes";
      args.insert(args.end(), {"--appendfsync", "always", "--auto-aof-rewrite-percentage", "0"});
    }
    return args;
  }

  // Where a run has begun, the server has all keys.
  Result<Figures> measure(const Case& each, bool ours) const {
    const std::string socket = folder_.file("socket");
    std::error_code ignored;
    for (const char* name : {"socket", "store", "appendonlydir"}) {
      std::filesystem::remove_all(folder_.file(name), ignored);
    }
    const auto server = ServerProcess::start(command_of(each, ours), socket, options_.server_cpu);
    if (!server) return fail(server.error());
    const uint64_t keys = options_.records / 4;
    if (std::string_view(each.test) == "get") {
      const Result<double> filled = ask("set", 16, keys, keys);
      if (!filled) return fail(filled.error());
    }
    const auto few = static_cast<uint64_t>(kCountMin);
    Result<double> tried = ask(each.test, each.pipeline, std::max(keys / 10, few), keys);
    if (!tried) return fail(tried.error());
    // redis-benchmark says "inf" of what it did within a millisecond.
    const double wanted = *tried > kRateMax ? kCountMin : *tried * options_.seconds;
    const auto count = static_cast<uint64_t>(std::max(wanted, kCountMin));
    const Duration before = (*server)->cpu_time();
    const Result<double> rate = ask(each.test, each.pipeline, count, keys);
    if (!rate) return fail(rate.error());
    if (*rate > kRateMax) return fail(Errc::kInvalid, "redis-benchmark was done before it counted");
    const double cpu = ((*server)->cpu_time() - before).seconds();
    return Figures{.per_second = *rate,
                   .per_cpu_second = static_cast<double>(count) / std::max(cpu, 1e-3)};
  }

  // Requests per second of so many requests, of random ones of so many keys.
  Result<double> ask(const std::string& test, int pipeline, uint64_t count, uint64_t keys) const {
    const std::string output = folder_.file("output");
    Result<Process> client = Process::start_program(
        {"redis-benchmark", "-s", folder_.file("socket"), "-t", test, "-n", std::to_string(count),
         "-r", std::to_string(keys), "-d", std::to_string(kValueBytes), "-c",
         std::to_string(kConnections), "-P", std::to_string(pipeline), "--csv"},
        options_.client_cpu, output);
    if (!client) return fail(client.error());
    const Result<Duration> ended = client->wait();
    if (!ended) return fail(ended.error());
    return rate_in(output);
  }

  const KvBenchOptions& options_;
  const TemporaryFolder& folder_;
  ContestOf<Figures> contest_;
};

}  // namespace

Result<void> bench_kv_redis(const KvBenchOptions& options, Report& report) {
  for (const auto& [program, package] :
       {std::pair{"redis-server", "redis-server"}, std::pair{"redis-benchmark", "redis-tools"}}) {
    if (has_program(program)) continue;
    report.skip("redis", fmt::format("{} is not here: apt install {}", program, package));
    return {};
  }
  const Result<TemporaryFolder> folder = TemporaryFolder::make(options.folder);
  if (!folder) return fail(folder.error());
  RedisContest contest(options, *folder);
  return contest.run(report);
}

}  // namespace cairn::bench
