// SPDX-License-Identifier: Apache-2.0
// `cairn kv get|put|del|scan|stats`: asking a server that runs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "apps/common/output.h"
#include "apps/kv/client.h"
#include "apps/kv/commands.h"
#include "base/duration.h"
#include "base/words.h"

namespace cairn::apps {

namespace {

using door::resp::Marker;
using door::resp::Value;

// A positional word.
void add_word(CLI::App& app, std::string_view spec, std::string& into, std::string help) {
  add_value(app, spec, std::move(help), [&into](const std::string& text) -> Attempt<void> {
    into = text;
    return {};
  })->required();
}

class GetCommand final : public Command {
 public:
  explicit GetCommand(CLI::App& app) : client_(app) {
    add_word(app, "KEY", key_, "whose value is printed, as it is");
    set_examples(app, {"cairn kv get greeting", "cairn kv get image > image.png"});
  }
  Attempt<int> run() override {
    return client_.run([this](KvClient::Door& door) { return get(door); });
  }

 private:
  task::Task<Attempt<int>> get(KvClient::Door& door) const {
    const Attempt<Value> value = co_await door.call({"GET", key_});
    if (!value) co_return std::unexpected(value.error());
    if (value->marker == Marker::kNull) {
      co_return refuse(fmt::format("there is no key {}", in_quotes(key_)));
    }
    say(value->text);
    co_return finish_output() ? kExitOk : kExitFailed;
  }

  KvClient client_;
  std::string key_;
};

class PutCommand final : public Command {
 public:
  explicit PutCommand(CLI::App& app) : client_(app) {
    add_word(app, "KEY", key_, "what it is called");
    add_word(app, "VALUE", value_, "what it is to be");
    add_value(app, "--expire TIME", "it goes by itself after so long (never)",
              [this](const std::string& text) -> Attempt<void> {
                const Attempt<Duration> time = parse_duration(text);
                if (!time) return std::unexpected(time.error());
                expire_ms_ = std::to_string(*time / 1_ms);
                return {};
              });
    set_examples(app, {"cairn kv put greeting hello", "cairn kv put session abc --expire 30s"});
  }
  Attempt<int> run() override {
    return client_.run([this](KvClient::Door& door) { return put(door); });
  }

 private:
  task::Task<Attempt<int>> put(KvClient::Door& door) const {
    std::vector<std::string_view> args = {"SET", key_, value_};
    if (!expire_ms_.empty()) args.insert(args.end(), {"PX", expire_ms_});
    const Attempt<Value> done = co_await door.call(std::move(args));
    if (!done) co_return std::unexpected(done.error());
    co_return kExitOk;
  }

  KvClient client_;
  std::string key_;
  std::string value_;
  std::string expire_ms_;
};

class DelCommand final : public Command {
 public:
  explicit DelCommand(CLI::App& app) : client_(app) {
    add_values(app, "KEY", "what is removed; several allowed",
               [this](const std::string& text) -> Attempt<void> {
                 keys_.push_back(text);
                 return {};
               })
        ->required()
        ->expected(-1);
    set_examples(app, {"cairn kv del greeting", "cairn kv del one two three"});
  }
  Attempt<int> run() override {
    return client_.run([this](KvClient::Door& door) { return del(door); });
  }

 private:
  task::Task<Attempt<int>> del(KvClient::Door& door) const {
    std::vector<std::string_view> args = {"DEL"};
    args.insert(args.end(), keys_.begin(), keys_.end());
    const Attempt<Value> erased = co_await door.call(std::move(args));
    if (!erased) co_return std::unexpected(erased.error());
    say(fmt::format("removed {} of {}\n", erased->integer, keys_.size()));
    co_return finish_output() ? kExitOk : kExitFailed;
  }

  KvClient client_;
  std::vector<std::string> keys_;
};

class ScanCommand final : public Command {
 public:
  explicit ScanCommand(CLI::App& app) : client_(app) {
    add_value(app, "--match PATTERN", "only keys like this, as 'user:*' (all)",
              [this](const std::string& text) -> Attempt<void> {
                pattern_ = text;
                return {};
              });
    set_examples(app, {"cairn kv scan", "cairn kv scan --match 'user:*'"});
  }
  Attempt<int> run() override {
    return client_.run([this](KvClient::Door& door) { return scan(door); });
  }

 private:
  task::Task<Attempt<int>> scan(KvClient::Door& door) const {
    std::string cursor = "0";
    do {
      const Attempt<Value> page =
          co_await door.call({"SCAN", cursor, "MATCH", pattern_, "COUNT", "1000"});
      if (!page) co_return std::unexpected(page.error());
      if (page->items.size() != 2)
        co_return refuse("the server does not speak of keys as it should");
      for (const Value& key : page->items[1].items) say(escaped(key.text) + "\n");
      cursor = page->items[0].text;
    } while (cursor != "0");
    co_return finish_output() ? kExitOk : kExitFailed;
  }

  KvClient client_;
  std::string pattern_ = "*";
};

class StatsCommand final : public Command {
 public:
  explicit StatsCommand(CLI::App& app) : client_(app) {
    add_switch(app, "--prometheus", for_prometheus_, "all counters, for Prometheus");
    set_examples(app, {"cairn kv stats", "cairn kv stats --prometheus"});
  }
  Attempt<int> run() override {
    return client_.run([this](KvClient::Door& door) { return tell(door); });
  }

 private:
  task::Task<Attempt<int>> tell(KvClient::Door& door) const {
    std::vector<std::string_view> args = {"INFO"};
    if (for_prometheus_) args = {"CAIRN", "METRICS"};
    const Attempt<Value> text = co_await door.call(std::move(args));
    if (!text) co_return std::unexpected(text.error());
    std::string lines = text->text;
    std::erase(lines, '\r');
    say(lines);
    co_return finish_output() ? kExitOk : kExitFailed;
  }

  KvClient client_;
  bool for_prometheus_ = false;
};

}  // namespace

std::unique_ptr<Command> make_kv_get(CLI::App& app) { return std::make_unique<GetCommand>(app); }
std::unique_ptr<Command> make_kv_put(CLI::App& app) { return std::make_unique<PutCommand>(app); }
std::unique_ptr<Command> make_kv_del(CLI::App& app) { return std::make_unique<DelCommand>(app); }
std::unique_ptr<Command> make_kv_scan(CLI::App& app) { return std::make_unique<ScanCommand>(app); }
std::unique_ptr<Command> make_kv_stats(CLI::App& app) {
  return std::make_unique<StatsCommand>(app);
}

}  // namespace cairn::apps
