// SPDX-License-Identifier: Apache-2.0
#include "server/control/control_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/words.h"
#include "nvme/format/limits.h"
#include "nvme/format/nqn.h"
#include "stack/stack_text.h"

namespace cairn::server {

namespace {

using Command = ControlRequest::Command;

constexpr std::array<std::pair<std::string_view, Command>, 21> kCommands = {{
    {"status", Command::kStatus},
    {"stats", Command::kStats},
    {"metrics", Command::kMetrics},
    {"events", Command::kEvents},
    {"host.add", Command::kHostAdd},
    {"host.remove", Command::kHostRemove},
    {"drive.list", Command::kDriveList},
    {"drive.show", Command::kDriveShow},
    {"drive.add", Command::kDriveAdd},
    {"drive.remove", Command::kDriveRemove},
    {"drive.edit", Command::kDriveEdit},
    {"drive.tell", Command::kDriveTell},
    {"drive.resize", Command::kDriveResize},
    {"drive.move", Command::kDriveMove},
    {"drive.retry", Command::kDriveRetry},
    {"drive.ana", Command::kDriveAna},
    {"door.add", Command::kDoorAdd},
    {"door.remove", Command::kDoorRemove},
    {"up.status", Command::kUpStatus},
    {"up.down", Command::kUpDown},
    {"up.fail", Command::kUpFail},
}};

constexpr std::array<nvme::AnaState, 5> kAnaStates = {
    nvme::AnaState::kOptimized, nvme::AnaState::kNonOptimized, nvme::AnaState::kInaccessible,
    nvme::AnaState::kPersistentLoss, nvme::AnaState::kChange};

constexpr size_t kDriveTextMax = 4096;
constexpr size_t kArgsMax = 64;
constexpr int kDepthMax = 8;
// That are nanoseconds in 63 bits.
constexpr uint64_t kMillisecondsMax = 9'000'000'000'000;

// The object in `line`, or why there is none. A reply is deeper than a request, but not much.
Attempt<Json> parse_object(std::string_view line) {
  bool too_deep = false;
  const auto watch = [&too_deep](int depth, Json::parse_event_t, Json&) {
    too_deep = too_deep || depth > kDepthMax;
    return !too_deep;
  };
  Json json = Json::parse(line, watch, /*allow_exceptions=*/false);
  if (too_deep || json.is_discarded() || !json.is_object()) {
    return refuse("this is not a JSON object on one line");
  }
  const auto version = json.find("version");
  if (version == json.end() || !version->is_number_integer()) {
    return refuse("there is no version: this is not Cairn's control protocol");
  }
  if (*version != kControlVersion) {
    return refuse(
        fmt::format("version {} is spoken, and this is version {}: use the same cairn on "
                    "both sides",
                    version->dump(), kControlVersion));
  }
  return json;
}

// Reads the fields of a request, and keeps the first thing that is wrong.
class Fields {
 public:
  explicit Fields(const Json& json) : json_(json) { names_.emplace_back("version"); }

  void text(const char* name, std::string& into, size_t size_max) {
    const Json* value = find(name);
    if (value == nullptr) return;
    const auto* text = value->get_ptr<const Json::string_t*>();
    if (text == nullptr) return wrong(fmt::format("'{}' must be text", name));
    if (text->size() > size_max) return wrong(fmt::format("'{}' is too long", name));
    into = *text;
  }
  void texts(const char* name, std::vector<std::string>& into, size_t count_max, size_t size_max) {
    const Json* value = find(name);
    if (value == nullptr) return;
    const auto* list = value->get_ptr<const Json::array_t*>();
    if (list == nullptr || list->size() > count_max) {
      return wrong(fmt::format("'{}' must be a list of at most {} texts", name, count_max));
    }
    for (const Json& one : *list) {
      const auto* text = one.get_ptr<const Json::string_t*>();
      if (text == nullptr) return wrong(fmt::format("'{}' must be a list of texts", name));
      if (text->size() > size_max) return wrong(fmt::format("a text of '{}' is too long", name));
      into.push_back(*text);
    }
  }
  template <class T>
  void number(const char* name, T& into, uint64_t max) {
    const Json* value = find(name);
    if (value == nullptr) return;
    const auto* number = value->get_ptr<const Json::number_unsigned_t*>();
    if (number == nullptr || *number > max) {
      return wrong(fmt::format("'{}' must be a whole number, at most {}", name, max));
    }
    into = static_cast<T>(*number);
  }
  void boolean(const char* name, bool& into) {
    const Json* value = find(name);
    if (value == nullptr) return;
    const auto* flag = value->get_ptr<const Json::boolean_t*>();
    if (flag == nullptr) return wrong(fmt::format("'{}' must be true or false", name));
    into = *flag;
  }
  void wrong(std::string text) {
    if (!wrong_) wrong_ = std::move(text);
  }
  // After all fields were read: what is wrong with them, or an unknown one.
  std::optional<std::string> finish() {
    for (const auto& [name, value] : json_.items()) {
      if (std::ranges::find(names_, name) == names_.end()) {
        wrong(fmt::format("unknown field {}{}", in_quotes(name), did_you_mean(name, names_)));
      }
    }
    return wrong_;
  }

 private:
  const Json* find(const char* name) {
    names_.emplace_back(name);
    const auto found = json_.find(name);
    return found == json_.end() ? nullptr : &*found;
  }
  const Json& json_;
  std::vector<std::string> names_;
  std::optional<std::string> wrong_;
};

void read_command(Fields& fields, Command& into) {
  std::string word;
  fields.text("command", word, 64);
  std::vector<std::string> words;
  for (const auto& [name, command] : kCommands) {
    words.emplace_back(name);
    if (name == word) {
      into = command;
      return;
    }
  }
  fields.wrong(fmt::format("there is no command {}{}", in_quotes(word), did_you_mean(word, words)));
}

}  // namespace

const std::vector<std::string>& ana_state_names() {
  static const std::vector<std::string> kWords = {"optimized", "non-optimized", "inaccessible",
                                                  "persistent-loss", "change"};
  return kWords;
}

std::string_view ana_word(nvme::AnaState state) {
  return ana_state_names()[static_cast<size_t>(std::ranges::find(kAnaStates, state) -
                                               kAnaStates.begin())];
}

Attempt<nvme::AnaState> parse_ana(std::string_view word) {
  const std::vector<std::string>& words = ana_state_names();
  const auto found = std::ranges::find(words, word);
  if (found != words.end()) return kAnaStates[static_cast<size_t>(found - words.begin())];
  return refuse(fmt::format("{} is not one of {}{}", in_quotes(word), comma_list(words),
                            did_you_mean(word, words)));
}

std::string encode_request(const ControlRequest& request) {
  const auto command =
      std::ranges::find(kCommands, request.command, &decltype(kCommands)::value_type::second);
  Json json = {{"version", kControlVersion}, {"command", command->first}};
  const ControlRequest plain;
  if (request.nqn != plain.nqn) json["nqn"] = request.nqn;
  if (request.nsid != plain.nsid) json["nsid"] = request.nsid;
  if (request.drive != plain.drive) json["drive"] = request.drive;
  if (request.size != plain.size) json["size"] = request.size;
  if (request.uuid != plain.uuid) json["uuid"] = request.uuid;
  if (request.group != plain.group) json["group"] = request.group;
  if (request.read_only != plain.read_only) json["read_only"] = request.read_only;
  if (request.format != plain.format) json["format"] = request.format;
  if (request.host != plain.host) json["host"] = request.host;
  if (request.state != plain.state) json["state"] = ana_word(request.state);
  if (request.stack != plain.stack) json["stack"] = request.stack;
  if (request.layer != plain.layer) json["layer"] = request.layer;
  if (request.args != plain.args) json["args"] = request.args;
  if (request.box != plain.box) json["box"] = request.box;
  if (request.via != plain.via) json["via"] = request.via;
  if (request.door != plain.door) json["door"] = request.door;
  if (request.socket != plain.socket) json["socket"] = request.socket;
  if (request.guest_timeout_ms != plain.guest_timeout_ms)
    json["guest_timeout_ms"] = request.guest_timeout_ms;
  if (request.after != plain.after) json["after"] = request.after;
  if (request.after_log != plain.after_log) json["after_log"] = request.after_log;
  if (request.since_ms != plain.since_ms) json["since_ms"] = request.since_ms;
  if (request.wait_ms != plain.wait_ms) json["wait_ms"] = request.wait_ms;
  if (request.count != plain.count) json["count"] = request.count;
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

Attempt<ControlRequest> decode_request(std::string_view line) {
  const Attempt<Json> json = parse_object(line);
  if (!json) return std::unexpected(json.error());
  ControlRequest request;
  Fields fields(*json);
  read_command(fields, request.command);
  fields.text("nqn", request.nqn, nvme::kNqnMax);
  fields.number("nsid", request.nsid, nvme::kNsidMax);
  fields.text("drive", request.drive, kDriveTextMax);
  fields.number("size", request.size, UINT64_MAX);
  fields.text("uuid", request.uuid, 64);
  fields.number("group", request.group, nvme::kAnaGroupsMax);
  fields.boolean("read_only", request.read_only);
  fields.boolean("format", request.format);
  fields.text("host", request.host, nvme::kNqnMax);
  std::string state = "optimized";
  fields.text("state", state, 32);
  if (const Attempt<nvme::AnaState> parsed = parse_ana(state)) {
    request.state = *parsed;
  } else {
    fields.wrong(fmt::format("'state' {}", parsed.error().text));
  }
  fields.text("stack", request.stack, drive::kStackTextMax);
  fields.text("layer", request.layer, kDriveTextMax);
  fields.texts("args", request.args, kArgsMax, kDriveTextMax);
  fields.text("box", request.box, kDriveTextMax);
  fields.text("via", request.via, kDriveTextMax);
  fields.text("door", request.door, 32);
  fields.text("socket", request.socket, kDriveTextMax);
  fields.number("guest_timeout_ms", request.guest_timeout_ms, 86'400'000);
  fields.number("after", request.after, UINT64_MAX);
  fields.text("after_log", request.after_log, 64);
  fields.number("since_ms", request.since_ms, kMillisecondsMax);
  fields.number("wait_ms", request.wait_ms, 86'400'000);
  fields.number("count", request.count, UINT32_MAX);
  if (std::optional<std::string> wrong = fields.finish()) return refuse(std::move(*wrong));
  return request;
}

std::string encode_reply(const Attempt<Json>& reply) {
  Json json = {{"version", kControlVersion}, {"ok", reply.has_value()}};
  if (reply) {
    json["result"] = *reply;
  } else {
    json["error"] = reply.error().text;
  }
  return json.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
}

Attempt<Json> decode_reply(std::string_view line) {
  Attempt<Json> json = parse_object(line);
  if (!json) return refuse(fmt::format("the answer makes no sense: {}", json.error().text));
  const auto ok = json->find("ok");
  const auto result = json->find("result");
  if (ok != json->end() && *ok == true && result != json->end() && result->is_object()) {
    return std::move(*result);
  }
  const auto error = json->find("error");
  if (ok != json->end() && *ok == false && error != json->end() && error->is_string()) {
    return refuse(error->get<std::string>());
  }
  return refuse("the answer makes no sense: it has neither a result nor an error");
}

namespace {

template <class T>
const T* find_at(const Json& json, const char* name) {
  if (!json.is_object()) return nullptr;
  const auto found = json.find(name);
  return found == json.end() ? nullptr : found->get_ptr<const T*>();
}

}  // namespace

std::string text_at(const Json& json, const char* name) {
  const auto* text = find_at<Json::string_t>(json, name);
  return text == nullptr ? "" : *text;
}

uint64_t number_at(const Json& json, const char* name) {
  const auto* number = find_at<Json::number_unsigned_t>(json, name);
  return number == nullptr ? 0 : *number;
}

bool flag_at(const Json& json, const char* name) {
  const auto* flag = find_at<Json::boolean_t>(json, name);
  return flag != nullptr && *flag;
}

std::vector<Json> list_at(const Json& json, const char* name) {
  const auto* list = find_at<Json::array_t>(json, name);
  return list == nullptr ? std::vector<Json>() : *list;
}

}  // namespace cairn::server
