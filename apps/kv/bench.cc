// SPDX-License-Identifier: Apache-2.0
// `cairn kv bench`: YCSB's workloads on a server that runs, or on a store in this process.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/common/output.h"
#include "apps/kv/commands.h"
#include "apps/kv/door_args.h"
#include "base/duration.h"
#include "base/error_text.h"
#include "base/words.h"
#include "config/json_text.h"
#include "config/settings.h"
#include "door/resp/client.h"
#include "env/io.h"
#include "loadgen/key_load.h"
#include "loadgen/meters.h"
#include "server/kv/open_keyspace.h"
#include "server/open/open_stack.h"
#include "task/deadline.h"
#include "world/machine/world.h"

namespace cairn::apps {

namespace {

using door::resp::RespClient;
using door::resp::Value;
using task::Task;

constexpr Duration kConnectTimeout = 10_s;

// A server: each worker has a connection of its own.
class RespTarget final : public loadgen::KeyTarget {
 public:
  Task<Result<void>> connect(env::Env& env, env::Address at, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      task::Deadline deadline(env, env.now() + kConnectTimeout, env.stop_token());
      Result<std::unique_ptr<env::Stream>> stream =
          co_await env::connect_stream(env, at, {}, deadline.token());
      if (!stream) co_return fail(stream.error());
      clients_.push_back(std::make_unique<RespClient>(std::move(*stream)));
    }
    co_return Result<void>();
  }

  Task<Result<std::optional<std::string>>> get(uint32_t worker, std::string_view key) override {
    Result<Value> reply = co_await clients_[worker]->call({"GET", key}, {});
    if (!reply) co_return fail(reply.error());
    if (reply->is_error()) co_return fail(refused(reply->text));
    if (reply->marker == door::resp::Marker::kNull) co_return std::optional<std::string>();
    co_return std::move(reply->text);
  }
  Task<Result<void>> put(uint32_t worker, std::string_view key, std::string_view value) override {
    const Result<Value> reply = co_await clients_[worker]->call({"SET", key, value}, {});
    if (!reply) co_return fail(reply.error());
    if (reply->is_error()) co_return fail(refused(reply->text));
    co_return Result<void>();
  }
  // What the server said when it refused something; empty: it did not.
  const std::string& said() const { return said_; }

 private:
  Error refused(const std::string& text) {
    said_ = text;
    return {Errc::kDenied, "the server refused a command"};
  }
  std::vector<std::unique_ptr<RespClient>> clients_;
  std::string said_;
};

Problem stopped(std::string_view what, const Error& error) {
  return {fmt::format("{} ended: {}", what, error_text(error))};
}

class BenchCommand final : public Command {
 public:
  explicit BenchCommand(CLI::App& app) {
    optional(add_argument(
        app, "STACK", "a drive that nobody serves; a blank one becomes a store (a server is asked)",
        [this](const std::string& text) -> Attempt<void> {
          const auto understood = server::StackPlan::prepare(text, server::LookUp::kWhenOpened);
          if (!understood) return std::unexpected(understood.error());
          keyspace_.stack = text;
          return {};
        }));
    add_value(app, "--at ADDRESS",
              fmt::format("the server that is loaded (127.0.0.1:{})", kRespPort),
              [this](const std::string& text) -> Attempt<void> {
                Attempt<env::Address> at = parse_door_address(text);
                if (!at) return std::unexpected(at.error());
                at_ = std::move(*at);
                return {};
              });
    add_value(app, "--workload NAME", "of YCSB: a, b, c, d, f, or wr, updates alone (a)",
              [this](const std::string& text) { return take_workload(text); });
    add_switch(app, "--uniform", is_uniform_, "all records are as popular; else few are, by Zipf");
    add_number(app, "--zipf EXPONENT", load_.exponent, 0.01, 0.999,
               "of Zipf's law: how few are popular (0.99)");
    add_integer(app, "--records N", records_, {.min = 3, .max = 1'000'000'000},
                "that are there, or are put first (100000)");
    add_switch(app, "--keep", keep_, "put nothing first: the records of an earlier run are there");
    add_size(app, "--value SIZE", value_bytes_, "of each value (256)");
    add_integer(app, "--depth N", depth_, {.min = 1, .max = int{loadgen::kKeyDepthMax}},
                "operations outstanding at most, a connection each (64)");
    add_number(app, "--rate R", load_.rate, 0.001, 1e9,
               "operations per second, due at even distances whatever the store does; latencies "
               "count from then (as fast as it goes)");
    add_number(app, "--seconds S", seconds_, 0.01, 86400, "length of the run (10)");
    add_integer(app, "--seed N", seed_, {.min = 0, .max = INT32_MAX}, "of what is drawn (1)");
    add_switch(app, "--json", json_, "print one JSON object instead of a table");
    add_settings(app, settings_);
    set_examples(app, {"cairn kv bench", "cairn kv bench --workload b --rate 20000 --seconds 30",
                       "cairn kv bench --keep --workload wr --uniform --json",
                       "cairn kv bench file:/srv/kv,size=10G --workload f"});
  }

  Attempt<int> run() override {
    const Attempt<config::Settings> settings = config::resolve(settings_);
    if (!settings) return std::unexpected(settings.error());
    load_.records = static_cast<uint64_t>(records_);
    load_.value_bytes = value_bytes_;
    load_.depth = static_cast<uint32_t>(depth_);
    load_.duration = Duration::from_seconds(seconds_);
    load_.seed = static_cast<uint64_t>(seed_);
    load_.clock = &loadgen::now;
    if (is_uniform_) load_.distribution = loadgen::YcsbDistribution::kUniform;
    if (const Result<void> checked = loadgen::check_key_load(load_); !checked) {
      return refuse(fmt::format("--value: {}", checked.error().text()));
    }
    Attempt<std::unique_ptr<env::World>> world =
        machine::make_world(settings->io, config::world_options(*settings));
    if (!world) return std::unexpected(world.error());
    Attempt<loadgen::KeyLoadResult> outcome;
    const Result<void> ran =
        (*world)->run([&](env::Env& env) -> Task<void> { return run_in(env, outcome); });
    if (!ran) return refuse(ran.error().text());
    if (!outcome) return std::unexpected(outcome.error());
    say(json_ ? config::json_text(json_of(*outcome)) : table_of(*outcome));
    return finish_output() ? kExitOk : kExitFailed;
  }

 private:
  Attempt<void> take_workload(const std::string& text) {
    std::string name = text;
    std::ranges::transform(name, name.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    const loadgen::KeyMix* mix = loadgen::find_key_mix(name);
    if (mix == nullptr) {
      return refuse(fmt::format("{} is none of a, b, c, d, f and wr", in_quotes(text)));
    }
    load_.mix = *mix;
    return {};
  }

  Task<void> run_in(env::Env& env, Attempt<loadgen::KeyLoadResult>& outcome) const {
    if (keyspace_.stack.empty()) {
      outcome = co_await load_server(env);
      co_return;
    }
    server::KeyspaceArgs args = keyspace_;
    args.object_bytes = loadgen::kRecordKeyBytes + load_.value_bytes;
    Attempt<std::unique_ptr<server::OpenKeyspace>> keyspace =
        co_await server::open_keyspace(env, args);
    if (!keyspace) {
      outcome = std::unexpected(keyspace.error());
      co_return;
    }
    loadgen::KeyspaceTarget target((*keyspace)->keys());
    outcome = co_await load(env, target);
    co_await (*keyspace)->close();
  }

  Task<Attempt<loadgen::KeyLoadResult>> load_server(env::Env& env) const {
    RespTarget target;
    const Result<void> connected = co_await target.connect(env, at_, load_.depth);
    if (!connected) {
      co_return refuse(
          fmt::format("no answer from {}: {}: look whether 'cairn kv serve' runs there, or "
                      "name another address with --at",
                      at_.text(), error_text(connected.error())));
    }
    Attempt<loadgen::KeyLoadResult> outcome = co_await load(env, target);
    if (!outcome && !target.said().empty()) {
      co_return refuse(
          fmt::format("the server at {} says: {}", at_.text(), escaped(target.said())));
    }
    co_return outcome;
  }

  Task<Attempt<loadgen::KeyLoadResult>> load(env::Env& env, loadgen::KeyTarget& target) const {
    if (!keep_) {
      const Result<void> filled = co_await loadgen::fill_keys(env, target, load_, env.stop_token());
      if (!filled) co_return std::unexpected(stopped("putting the records", filled.error()));
    }
    Result<loadgen::KeyLoadResult> result =
        co_await loadgen::run_key_load(env, target, load_, env.stop_token());
    if (!result) co_return std::unexpected(stopped("the load", result.error()));
    if (result->error) co_return std::unexpected(stopped("the load", *result->error));
    co_return std::move(*result);
  }

  using Line = std::pair<std::string, double>;
  std::vector<Line> lines_of(const loadgen::KeyLoadResult& result) const {
    std::vector<Line> lines = {{"operations", static_cast<double>(result.operations)},
                               {"seconds", result.measured.seconds()},
                               {"operations_per_second", result.per_second()}};
    for (const auto& [name, latency_ns] : {std::pair{"read", &result.read_latency_ns},
                                           std::pair{"write", &result.write_latency_ns}}) {
      if (latency_ns->count() == 0) continue;
      const auto us = [](uint64_t nanos) { return static_cast<double>(nanos) * 1e-3; };
      lines.emplace_back(fmt::format("{}_p50_us", name), us(latency_ns->p50()));
      lines.emplace_back(fmt::format("{}_p99_us", name), us(latency_ns->p99()));
      lines.emplace_back(fmt::format("{}_p999_us", name), us(latency_ns->p999()));
    }
    return lines;
  }
  nlohmann::ordered_json json_of(const loadgen::KeyLoadResult& result) const {
    nlohmann::ordered_json json = {{"schema_version", 1}, {"workload", load_.mix.name}};
    for (const auto& [name, value] : lines_of(result)) json[name] = value;
    return json;
  }
  std::string table_of(const loadgen::KeyLoadResult& result) const {
    std::string text = fmt::format("workload               {}\n", load_.mix.name);
    for (const auto& [name, value] : lines_of(result)) {
      text += fmt::format("{:<22} {:.1f}\n", name, value);
    }
    return text;
  }

  server::KeyspaceArgs keyspace_;
  env::Address at_ = env::Address::loopback(kRespPort);
  loadgen::KeyLoad load_{.mix = *loadgen::find_key_mix("a")};
  uint64_t value_bytes_ = 256;
  int records_ = 100'000;
  int depth_ = 64;
  int seed_ = 1;
  double seconds_ = 10;
  bool is_uniform_ = false;
  bool keep_ = false;
  bool json_ = false;
  config::SettingsOptions settings_;
};

}  // namespace

std::unique_ptr<Command> make_kv_bench(CLI::App& app) {
  return std::make_unique<BenchCommand>(app);
}

}  // namespace cairn::apps
