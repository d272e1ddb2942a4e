// SPDX-License-Identifier: Apache-2.0
#include "apps/drive/serve.h"

#include <fmt/format.h>

#include <memory>
#include <set>
#include <utility>

#include "apps/box/advice.h"
#include "apps/box/patience.h"
#include "apps/box_run.h"
#include "apps/words.h"
#include "door/nbd/server.h"
#include "task/sync.h"

namespace cairn::apps {

namespace {

using Sources = std::vector<std::unique_ptr<drive::Source>>;

Problem cannot_export(const DriveWords& words, const Error& error) {
  return {fmt::format("drive {} cannot be served: {}", in_quotes(words.name), error.text())};
}

// Opens a drive; what a process held that has just been killed may take a moment.
task::Task<Attempt<void>> add_drive(env::Env& env, const DriveWords& words, bool read_only,
                                    door::NbdServer& server, Sources& sources) {
  Attempt<std::unique_ptr<drive::Source>> source = open_drive(env, words);
  if (!source) co_return std::unexpected(source.error());
  sources.push_back(std::move(*source));
  const Result<void> added = server.add({.name = words.name,
                                         .description = words.spec.text(),
                                         .read_only = read_only,
                                         .source = sources.back().get()});
  if (!added) co_return std::unexpected(cannot_export(words, added.error()));
  co_return Attempt<void>();
}

task::Task<Attempt<void>> open_doors(env::Env& env, const DriveServeOptions& options,
                                     door::NbdServer& server, Sources& sources) {
  for (const DriveWords& words : options.drives) {
    Attempt<void> added = co_await add_drive(env, words, options.read_only, server, sources);
    if (!added) co_return added;
  }
  std::vector<env::Address> listening;
  for (const env::Address& at : options.nbd) {
    Result<env::Address> local = fail(Errc::kClosed, "not tried");
    Patience patience(env);
    for (bool again = true; again;) {
      local = server.listen(at);
      again = co_await patience.after(local);
    }
    if (!local) co_return std::unexpected(cannot_listen(at, local.error()));
    listening.push_back(std::move(*local));
  }
  if (options.ready) options.ready(listening);
  co_return Attempt<void>();
}

// As a part of a URI: what has a meaning there is written as %NN.
std::string in_uri(std::string_view text) {
  constexpr std::string_view kPlain = "-._~/";
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       kPlain.find(c) != kPlain.npos;
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

}  // namespace

Attempt<void> name_drives(std::vector<DriveWords>& drives) {
  std::set<std::string> taken;
  for (size_t i = 0; i < drives.size(); ++i) {
    if (drives[i].name.empty()) drives[i].name = fmt::format("d{}", i);
    if (!taken.insert(drives[i].name).second) {
      return refuse(fmt::format("two drives are named {}: write another NAME=DRIVE",
                                in_quotes(drives[i].name)));
    }
  }
  return {};
}

task::Task<Attempt<void>> serve_drives(env::Env& env, const DriveServeOptions& options) {
  Sources sources;
  door::NbdOptions door;
  door.keys = options.keys;
  door::NbdServer server(env, door);
  const Attempt<void> outcome = co_await open_doors(env, options, server, sources);
  if (outcome) {
    task::Event never;
    const Result<void> stopped = co_await never.wait(env.stop_token());
    (void)stopped;
    co_await server.drain(env.now() + options.drain_timeout);
  }
  co_await server.close();
  co_return outcome;
}

std::string nbd_uri(const env::Address& at, const std::string& name, const std::string& user) {
  const std::string scheme = user.empty() ? "nbd" : "nbds";
  const std::string who = user.empty() ? "" : in_uri(user) + "@";
  if (at.family == env::Address::Family::kLocal) {
    return fmt::format("{}+unix://{}/{}?socket={}", scheme, who, in_uri(name), in_uri(at.path));
  }
  const Reach near = reach(at);
  const bool is_ip6 = near.host.find(':') != std::string::npos;
  const std::string host = is_ip6 ? fmt::format("[{}]", near.host) : near.host;
  return fmt::format("{}://{}{}:{}/{}", scheme, who, host, near.port, in_uri(name));
}

}  // namespace cairn::apps
