// SPDX-License-Identifier: Apache-2.0
#include "server/serve/move.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/uuid.h"
#include "base/words.h"
#include "server/common/reach.h"
#include "server/control/control_client.h"
#include "server/control/control_format.h"
#include "task/deadline.h"

namespace cairn::server {

namespace {

using Verb = ControlRequest::Command;

// Opening a stack takes as long as its slowest leaf; requests wait meanwhile.
constexpr Duration kTimeout = 30_s;
constexpr Duration kListTimeout = 10_s;
constexpr Duration kPause = 100_ms;
// For the box's word that the layers are closed: on their way back they stay where they are without
// it; on a way there that failed, nobody has them.
constexpr Duration kBackTimeout = 3_s;
constexpr Duration kLostTimeout = 10_s;

Uuid draw_uuid(env::Env& env) {
  Uuid uuid{};
  env.fill_secret(std::as_writable_bytes(std::span(uuid)));
  uuid[6] = static_cast<uint8_t>((uuid[6] & 0x0f) | 0x40);
  uuid[8] = static_cast<uint8_t>((uuid[8] & 0x3f) | 0x80);
  return uuid;
}

ControlRequest about(const BoxPlace& place, Verb verb) {
  return {.command = verb, .nqn = place.uri.nqn};
}

// The name of the drive with the place's UUID; empty: the box says that it has none. The Problem:
// it does not say.
task::Task<Attempt<std::string>> find_drive(env::Env& env, const BoxPlace& place) {
  const Attempt<Json> list =
      co_await ask_server(env, place.control, about(place, Verb::kDriveList), kListTimeout);
  if (!list) co_return std::unexpected(list.error());
  for (const Json& each : list_at(*list, "drives")) {
    if (text_at(each, "uuid") == place.uuid) co_return text_at(each, "name");
  }
  co_return std::string();
}

// Done when the box has said that the layers are not open there; asks again for `timeout`.
task::Task<Attempt<void>> close_in_box(env::Env& env, BoxPlace& place, Duration timeout) {
  const Time until = env.now() + timeout;
  for (;;) {
    const Attempt<std::string> name = co_await find_drive(env, place);
    if (name && name->empty()) {
      place.may_be_open = false;
      co_return Attempt<void>();
    }
    std::string why = name ? "" : name.error().text;
    if (name) {
      ControlRequest removal = about(place, Verb::kDriveRemove);
      removal.drive = *name;
      const Attempt<Json> removed = co_await ask_server(env, place.control, removal, kTimeout);
      if (removed) continue;  // now it says so
      why = removed.error().text;
    }
    const Result<void> slept = co_await task::sleep_for(env, kPause, env.stop_token());
    if (!slept) co_return refuse("the drive is being closed");
    if (env.now() < until) continue;
    co_return refuse(fmt::format(
        "the box at {} does not say that it has closed the layers, and they are never opened "
        "twice: {}. When 'cairn drive list --control {}' answers again, repeat 'cairn drive move "
        "--back'",
        in_quotes(place.control), why, place.control));
  }
}

// Nobody was there to hear it.
bool was_not_heard(const Error& error) {
  return error == Errc::kUnreachable || error == Errc::kNotFound || error == Errc::kDenied;
}

task::Task<Attempt<void>> open_in_box(env::Env& env, BoxPlace& place, uint32_t nsid) {
  ControlRequest addition = about(place, Verb::kDriveAdd);
  addition.nsid = nsid;
  addition.stack = place.layers;
  addition.uuid = place.uuid;
  const Result<std::string> reply =
      co_await exchange_lines(env, place.control, encode_request(addition) + "\n", kTimeout);
  if (reply || !was_not_heard(reply.error())) place.may_be_open = true;
  Attempt<Json> added = refuse("");
  if (reply) {
    added = decode_reply(*reply);
  } else {
    added = refuse(reply.error().text());
  }
  if (!added) {
    co_return refuse(fmt::format("the box at {} does not open {}: {}", in_quotes(place.control),
                                 place.layers, added.error().text));
  }
  place.uri.nsid = static_cast<uint32_t>(number_at(*added, "nsid"));
  co_return Attempt<void>();
}

// How a host on this machine reaches the box, by what its status says.
Attempt<fabric::Uri> uri_from_status(const Json& status, const std::string& control) {
  const std::vector<Json> subsystems = list_at(status, "subsystems");
  const std::vector<Json> listeners = list_at(status, "listeners");
  if (subsystems.size() != 1 || listeners.empty()) {
    return refuse(
        fmt::format("the box at {} has {} subsystems and {} addresses: say which to use "
                    "with --via nvme-tcp://ADDR:PORT/NQN",
                    in_quotes(control), subsystems.size(), listeners.size()));
  }
  const Result<env::Address> at = env::Address::parse(listeners[0].get<std::string>());
  if (!at) return refuse(fmt::format("the box at {} listens nowhere", in_quotes(control)));
  const Reach near = reach(*at);
  const bool is_ip6 = near.host.find(':') != std::string::npos;
  const std::string text =
      fmt::format("nvme-tcp://{}:{}/{}", is_ip6 ? fmt::format("[{}]", near.host) : near.host,
                  near.port, text_at(subsystems[0], "nqn"));
  const std::expected<fabric::Uri, std::string> uri = fabric::Uri::parse(text);
  if (!uri) return refuse(uri.error());
  return *uri;
}

}  // namespace

task::Task<Attempt<BoxPlace>> find_place_in_box(env::Env& env, std::string control, std::string via,
                                                std::string layers) {
  const Attempt<Json> status =
      co_await ask_server(env, control, {.command = Verb::kStatus}, kTimeout);
  if (!status) co_return std::unexpected(status.error());
  const Uuid uuid = draw_uuid(env);
  BoxPlace place{.control = control, .uuid = uuid_text(uuid), .layers = std::move(layers)};
  if (via.empty()) {
    const Attempt<fabric::Uri> uri = uri_from_status(*status, control);
    if (!uri) co_return std::unexpected(uri.error());
    place.uri = *uri;
  } else {
    const std::expected<fabric::Uri, std::string> uri = fabric::Uri::parse(via);
    if (!uri) co_return refuse(uri.error());
    if (uri->is_discovery()) co_return refuse(fmt::format("{} names no subsystem", in_quotes(via)));
    const std::vector<Json> subsystems = list_at(*status, "subsystems");
    const bool is_served = std::ranges::any_of(
        subsystems, [&uri](const Json& each) { return text_at(each, "nqn") == uri->nqn; });
    if (!is_served) {
      co_return refuse(
          fmt::format("the box at {} does not serve {}: 'cairn drive status --control "
                      "{}' names what it serves",
                      in_quotes(control), in_quotes(uri->nqn), control));
    }
    place.uri = *uri;
  }
  place.uri.uuid = uuid;  // another namespace may have the nsid one day
  co_return place;
}

task::Task<Attempt<std::unique_ptr<StackPlan>>> MoveToBox::give(env::Env& env) {
  const Attempt<void> opened = co_await open_in_box(env, place_, 0);
  if (!opened) co_return std::unexpected(opened.error());
  co_return StackPlan::prepare(place_.uri.text());
}

// Also when the box did not answer: it may have been too slow, and open them later.
task::Task<bool> MoveToBox::take_back(env::Env& env) {
  if (!place_.may_be_open) co_return true;
  const Attempt<void> closed = co_await close_in_box(env, place_, kLostTimeout);
  co_return closed.has_value();
}

task::Task<Attempt<std::unique_ptr<StackPlan>>> MoveFromBox::give(env::Env& env) {
  Attempt<std::unique_ptr<StackPlan>> plan = StackPlan::prepare(place_.layers);
  if (!plan) co_return plan;
  const Attempt<void> closed = co_await close_in_box(env, place_, kBackTimeout);
  if (!closed) co_return std::unexpected(closed.error());
  co_return plan;
}

// What is opened here again is the way to the box, whatever runs there.
task::Task<bool> MoveFromBox::take_back(env::Env& env) {
  const Attempt<void> opened = co_await open_in_box(env, place_, place_.uri.nsid);
  (void)opened;  // the way to the box then says what is wrong
  co_return true;
}

}  // namespace cairn::server
