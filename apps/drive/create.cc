// SPDX-License-Identifier: Apache-2.0
// `cairn drive create|release`: a drive of a rack's spare space, and giving it back.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <optional>
#include <span>
#include <utility>

#include "apps/common/confirm.h"
#include "apps/common/output.h"
#include "apps/rack/client.h"
#include "apps/rack/commands.h"
#include "apps/rack/report.h"
#include "base/words.h"
#include "config/json_text.h"
#include "fabric/host/controller.h"
#include "fabric/host/uri.h"
#include "rack/pledge.h"
#include "rack/space_command.h"
#include "rack/store_text.h"
#include "rack/tenant.h"
#include "server/common/host_nqn.h"
#include "server/open/key_file.h"

namespace cairn::apps {

namespace {

// How a drive's boxes are asked: as whom, and with which keys.
Attempt<fabric::HostOptions> host_of(const std::string& owner, const std::string& connect) {
  std::string text = "nvme-tcp://127.0.0.1/nqn.2026-11.io.cairn:box?nsid=1";
  if (!connect.empty()) text += "&" + connect;
  const std::expected<fabric::Uri, std::string> uri = fabric::Uri::parse(text);
  if (!uri) return refuse(fmt::format("--connect: {}", uri.error()));
  fabric::HostOptions host = uri->options;
  host.host_nqn = owner;
  if (const Attempt<void> loaded = server::load_credentials(host); !loaded) {
    return std::unexpected(loaded.error());
  }
  return host;
}

Attempt<void> take_raid(const std::string& text, rack::Raid& into) {
  if (text != "0" && text != "1") {
    return refuse(fmt::format("takes 0 (stripes) or 1 (copies), not {}", in_quotes(text)));
  }
  into = text == "1" ? rack::Raid::kMirror : rack::Raid::kStripe;
  return {};
}

// A host's name of its own, so that a box knows this drive's owner again.
std::string draw_owner(env::Env& env) {
  fabric::HostOptions named;
  fabric::name_host(env, named);
  return named.host_nqn;
}

std::string draw_name(env::Env& env) {
  std::array<uint8_t, 4> drawn{};
  env.fill_secret(std::as_writable_bytes(std::span(drawn)));
  return fmt::format("drive-{:02x}", fmt::join(drawn, ""));
}

struct CreateErrand {
  rack::DriveWish wish;
  fabric::HostOptions host;
};

task::Task<Attempt<rack::DriveRecord>> create(env::Env& env, meta::Store& store,
                                              CreateErrand errand, task::CancelToken token) {
  if (errand.wish.name.empty()) errand.wish.name = draw_name(env);
  if (errand.wish.owner.empty()) errand.wish.owner = draw_owner(env);
  errand.host.host_nqn = errand.wish.owner;
  rack::NvmePeers peers(env, errand.host);
  rack::Outcome<rack::DriveRecord> made =
      co_await rack::create_drive(env, store, peers, errand.wish, token);
  if (!made) {
    co_return refuse(fmt::format("no drive {}: {}", errand.wish.name, made.error()));
  }
  co_return std::move(*made);
}

class CreateCommand final : public Command {
 public:
  explicit CreateCommand(CLI::App& app) : client_(app) {
    add_value(app, "NAME", "what it is called (a new name)",
              [this](const std::string& text) -> Attempt<void> {
                if (const Result<void> named = rack::check_drive_name(text); !named) {
                  return refuse(named.error().what());
                }
                wish_.name = text;
                return {};
              });
    required(
        add_value(app, "--raid LEVEL", "0: spread over boxes, 1: a copy on each of several boxes",
                  [this](const std::string& text) { return take_raid(text, wish_.wish.raid); }));
    required(add_size(app, "--size SIZE", wish_.wish.amount.bytes, "of the whole drive"));
    add_integer(app, "--legs N", legs_, {.min = 1, .max = rack::kLegsMax},
                "boxes it is made of (2, or as many stripes as it takes)");
    add_integer(app, "--iops N", iops_, {.min = 0, .max = 1 << 30},
                "requests per second that boxes promise, and limit it to");
    add_size(app, "--bandwidth SIZE", wish_.wish.amount.bandwidth,
             "bytes per second, in the same way");
    add_value(app, "--hostnqn NQN", "who owns it, for boxes that know their hosts (a new name)",
              [this](const std::string& text) -> Attempt<void> {
                if (Attempt<void> named = server::check_host_nqn(text); !named) return named;
                wish_.owner = text;
                return {};
              });
    add_value(app, "--connect OPTIONS",
              "options of nvme-tcp URIs for its legs, such as dhchap_key=FILE&queues=4",
              [this](const std::string& text) -> Attempt<void> {
                wish_.connect = text;
                return {};
              });
    set_examples(app, {"cairn drive create vm1 --rack --raid 1 --size 10G",
                       "cairn drive create fast --rack --raid 0 --size 1T --iops 200000",
                       "cairn drive create vm2 --raid 1 --size 10G --rack "
                       "'meta://10.0.0.9:4430?tls_key=vm.key&name=vm'"});
  }

  Attempt<int> run() override {
    wish_.wish.legs = static_cast<size_t>(legs_);
    wish_.wish.amount.iops = static_cast<uint64_t>(iops_);
    Attempt<fabric::HostOptions> host = host_of(wish_.owner, wish_.connect);
    if (!host) return std::unexpected(host.error());
    const CreateErrand errand{.wish = wish_, .host = std::move(*host)};
    const Attempt<rack::DriveRecord> made = client_.run<rack::DriveRecord>(
        [&errand](env::Env& env, meta::Store& store, task::CancelToken token) {
          return create(env, store, errand, token);
        });
    if (!made) return std::unexpected(made.error());
    if (client_.json()) {
      say(config::json_text({{"schema_version", 1}, {"drive", drive_json(*made)}}));
      return kExitOk;
    }
    for (const rack::Leg& leg : made->legs) {
      say(fmt::format("{} of {}/{} at {}\n", text_bytes(leg.amount.bytes), leg.box, leg.shelf,
                      leg.place.address));
    }
    say(fmt::format("drive {} is made; to use it:\n  cairn serve '{}={}'\n", made->name, made->name,
                    rack::stack_of(*made).value_or("")));
    return kExitOk;
  }

 private:
  RackClient client_;
  rack::DriveWish wish_;
  int legs_ = 0;
  int iops_ = 0;
};

// The record of a drive that is there.
task::Task<Attempt<rack::DriveRecord>> look_up(env::Env&, meta::Store& store, std::string name,
                                               task::CancelToken token) {
  const Result<std::optional<rack::KnownDrive>> known =
      co_await rack::get_drive(store, name, token);
  if (!known) {
    co_return refuse(
        fmt::format("drive {} cannot be looked up: {}", name, rack::store_text(known.error())));
  }
  if (*known) co_return (*known)->drive;
  co_return refuse(
      fmt::format("there is no drive {}: 'cairn rack drives' names those there are", name));
}

std::string loss_of(const rack::DriveRecord& drive) {
  std::vector<std::string> legs;
  legs.reserve(drive.legs.size());
  for (const rack::Leg& leg : drive.legs) legs.push_back(fmt::format("{}/{}", leg.box, leg.shelf));
  return fmt::format("drive {} ({}, RAID {}, in {}) is given back, and everything in it is lost",
                     drive.name, text_bytes(drive.bytes), drive.raid == rack::Raid::kMirror ? 1 : 0,
                     fmt::join(legs, " and "));
}

task::Task<Attempt<bool>> release(env::Env& env, meta::Store& store, std::string name,
                                  rack::Release how, task::CancelToken token) {
  const Attempt<rack::DriveRecord> drive = co_await look_up(env, store, name, token);
  if (!drive) co_return std::unexpected(drive.error());
  const Attempt<fabric::HostOptions> host = host_of(drive->owner, drive->connect);
  if (!host) co_return std::unexpected(host.error());
  rack::NvmePeers peers(env, *host);
  const rack::Outcome<void> released = co_await rack::release_drive(store, peers, name, how, token);
  if (!released) co_return refuse(released.error());
  co_return true;
}

class ReleaseCommand final : public Command {
 public:
  explicit ReleaseCommand(CLI::App& app) : client_(app), confirmation_(app) {
    required(add_value(app, "NAME", "a drive, as 'cairn rack drives' names it; its data is lost",
                       [this](const std::string& text) -> Attempt<void> {
                         if (const Result<void> named = rack::check_drive_name(text); !named) {
                           return refuse(named.error().what());
                         }
                         name_ = text;
                         return {};
                       }));
    add_switch(app, "--force", force_,
               "also while it is in use, or some of its boxes do not answer");
    set_examples(app, {"cairn drive release vm1 --rack", "cairn drive release vm1 --rack --yes"});
  }
  Attempt<int> run() override {
    const Attempt<rack::DriveRecord> drive = client_.run<rack::DriveRecord>(
        [this](env::Env& env, meta::Store& store, task::CancelToken token) {
          return look_up(env, store, name_, token);
        });
    if (!drive) return std::unexpected(drive.error());
    const Attempt<void> confirmed = confirmation_.ask(loss_of(*drive));
    if (!confirmed) return std::unexpected(confirmed.error());
    const Attempt<bool> released =
        client_.run<bool>([this](env::Env& env, meta::Store& store, task::CancelToken token) {
          return release(env, store, name_,
                         force_ ? rack::Release::kByForce : rack::Release::kUnused, token);
        });
    if (!released) return std::unexpected(released.error());
    say(client_.json() ? config::json_text({{"schema_version", 1}, {"released", name_}})
                       : fmt::format("drive {} is released\n", name_));
    return kExitOk;
  }

 private:
  RackClient client_;
  Confirmation confirmation_;
  std::string name_;
  bool force_ = false;
};

}  // namespace

std::unique_ptr<Command> make_drive_create(CLI::App& app) {
  return std::make_unique<CreateCommand>(app);
}
std::unique_ptr<Command> make_drive_release(CLI::App& app) {
  return std::make_unique<ReleaseCommand>(app);
}

}  // namespace cairn::apps
