// SPDX-License-Identifier: Apache-2.0
// `cairn kv get|put|del|scan|stats`: asking a server that runs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "apps/common/output.h"
#include "apps/kv/client.h"
#include "apps/kv/commands.h"
#include "base/duration.h"
#include "base/words.h"
#include "config/json_text.h"

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

// Bytes that are text under `name`, others in hex under `name`_hex.
void put_bytes(nlohmann::ordered_json& json, const std::string& name, const std::string& bytes) {
  using Json = nlohmann::ordered_json;
  const std::string strict = Json(bytes).dump(-1, ' ', false, Json::error_handler_t::replace);
  if (Json::parse(strict).get<std::string>() == bytes) {
    json[name] = bytes;
    return;
  }
  std::string hex;
  for (const char c : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  json[name + "_hex"] = hex;
}

class GetCommand final : public Command {
 public:
  explicit GetCommand(CLI::App& app) : client_(app) {
    add_word(app, "KEY", key_, "whose value is printed, as it is");
    add_switch(app, "--json", json_, "for programs: as text, or in hex where it is none");
    set_examples(app, {"cairn kv get greeting", "cairn kv get image > image.png",
                       "cairn kv get greeting --json"});
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
    if (json_) {
      nlohmann::ordered_json json = {{"schema_version", 1}};
      put_bytes(json, "key", key_);
      put_bytes(json, "value", value->text);
      say(config::json_text(json));
    } else {
      say(value->text);
    }
    co_return finish_output() ? kExitOk : kExitFailed;
  }

  KvClient client_;
  std::string key_;
  bool json_ = false;
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
    add_switch(app, "--json", json_, "for programs");
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
    say(json_ ? config::json_text(
                    {{"schema_version", 1}, {"removed", erased->integer}, {"asked", keys_.size()}})
              : fmt::format("removed {} of {}\n", erased->integer, keys_.size()));
    co_return finish_output() ? kExitOk : kExitFailed;
  }

  KvClient client_;
  std::vector<std::string> keys_;
  bool json_ = false;
};

class ScanCommand final : public Command {
 public:
  explicit ScanCommand(CLI::App& app) : client_(app) {
    add_value(app, "--match PATTERN", "only keys like this, as 'user:*' (all)",
              [this](const std::string& text) -> Attempt<void> {
                pattern_ = text;
                return {};
              });
    add_switch(app, "--json", json_, "a line of JSON for each key, for programs");
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
      for (const Value& key : page->items[1].items) say(line_of(key.text));
      cursor = page->items[0].text;
    } while (cursor != "0");
    co_return finish_output() ? kExitOk : kExitFailed;
  }

  std::string line_of(const std::string& key) const {
    if (!json_) return escaped(key) + "\n";
    nlohmann::ordered_json json = {{"schema_version", 1}};
    put_bytes(json, "key", key);
    return json.dump() + "\n";
  }

  KvClient client_;
  std::string pattern_ = "*";
  bool json_ = false;
};

class StatsCommand final : public Command {
 public:
  explicit StatsCommand(CLI::App& app) : client_(app) {
    add_switch(app, "--prometheus", for_prometheus_, "all counters, for Prometheus");
    add_switch(app, "--json", json_, "for programs");
    set_examples(app, {"cairn kv stats", "cairn kv stats --json", "cairn kv stats --prometheus"});
  }
  Attempt<int> run() override {
    if (json_ && for_prometheus_) {
      return refuse("--json and --prometheus exclude each other: take one");
    }
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
    say(json_ ? json_of(lines) : lines);
    co_return finish_output() ? kExitOk : kExitFailed;
  }

  // "# Section", and below it "name:value".
  static std::string json_of(const std::string& lines) {
    nlohmann::ordered_json json = {{"schema_version", 1}};
    std::string section = "server";
    for (size_t at = 0; at < lines.size();) {
      const size_t end = std::min(lines.find('\n', at), lines.size());
      const std::string line = lines.substr(at, end - at);
      at = end + 1;
      const size_t colon = line.find(':');
      if (line.starts_with("# ")) {
        section = line.substr(2);
        for (char& c : section) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      } else if (colon != std::string::npos) {
        const std::string value = line.substr(colon + 1);
        auto number = nlohmann::ordered_json::parse(value, nullptr, /*allow_exceptions=*/false);
        json[section][line.substr(0, colon)] =
            number.is_number() ? number : nlohmann::ordered_json(value);
      }
    }
    return config::json_text(json);
  }

  KvClient client_;
  bool for_prometheus_ = false;
  bool json_ = false;
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
