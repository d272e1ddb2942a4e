// SPDX-License-Identifier: Apache-2.0
#include "server/open/open_volume.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error_text.h"
#include "base/words.h"
#include "server/open/mega_vols.h"
#include "server/open/off_core.h"
#include "server/open/target_uri.h"
#include "volume/steering/steered_source.h"
#include "volume/steering/steering.h"
#include "volume/types.h"
#include "volume/volume_drive.h"

namespace cairn::server {

namespace {

constexpr std::string_view kScheme = "volume:";

// What is said by yes or no.
constexpr std::array<std::pair<std::string_view, bool VolumeUri::*>, 4> kSwitches = {
    {{"take-over", &VolumeUri::take_over},
     {"view", &VolumeUri::notes},
     {"order", &VolumeUri::orders},
     {"shares", &VolumeUri::holds}}};

// What a volume stands on in a process that has nothing else to do with its pool.
class VolumeGround final : public volume::VolumeDrive::Ground {
 public:
  VolumeGround(env::Env& env, std::unique_ptr<arbiter::RemoteArbiter> link,
               volume::SteeringOptions options)
      : link_(std::move(link)),
        drives_(env),
        steering_(env, std::move(options)),
        steered_(drives_.source(), steering_) {}
  arbiter::RemoteArbiter& link() { return *link_; }
  volume::MegaVolSource& source() { return steered_; }
  task::Task<void> close() override {
    co_await steering_.close();
    co_await link_->disconnect();
  }

 private:
  std::unique_ptr<arbiter::RemoteArbiter> link_;
  MegaVols drives_;
  volume::Steering steering_;
  volume::SteeredSource steered_;
};

// Boxes know this opening by it: no other has the same.
std::string client_name(env::Env& env, const std::string& machine) {
  return fmt::format("{}-{:016x}", machine, env.rng().next());
}

Problem cannot_open(const VolumeUri& uri, const Error& error) {
  const std::string what = fmt::format("the volume {} cannot be opened: ", in_quotes(uri.name));
  const std::string at = uri.arbiter.servers_text();
  switch (error.code()) {
    case Errc::kExists:
      return {what +
              fmt::format("somebody else has it open: stop whoever has it, wait until its lease "
                          "ends if it is dead, or take it over with volume:{},take-over=yes",
                          uri.name)};
    case Errc::kNotFound:
      return {what +
              "there is no such volume: 'cairn volume list' names those there are, 'cairn "
              "volume create' makes one"};
    case Errc::kNoSpace:
      return {what + "the pool is full: add drives to it with 'cairn pool add'"};
    case Errc::kUnreachable:
    case Errc::kTimedOut:
    case Errc::kReset:
      return {what + fmt::format("{} ({}): 'cairn arbiter status' says which arbiters run, 'cairn "
                                 "pool list' which drives there are",
                                 error_text(error), at)};
    default:
      return {what + fmt::format("{} (arbiter {})", error_text(error), at)};
  }
}

}  // namespace

bool is_volume(std::string_view text) { return text.starts_with(kScheme); }

Attempt<VolumeUri> VolumeUri::parse(std::string_view text) {
  VolumeUri uri;
  text.remove_prefix(kScheme.size());
  const size_t comma = text.find(',');
  uri.name = text.substr(0, comma);
  if (!volume::check_name(uri.name) && !volume::check_snapshot_name(uri.name)) {
    return refuse(
        fmt::format("{} is no name of a volume: 1 to {} letters, digits, '-', '_' and "
                    "'.', as in volume:vol0, or volume:vol0@monday for a snapshot of it",
                    in_quotes(uri.name), volume::kNameMax));
  }
  std::string arbiters;
  text.remove_prefix(std::min(comma, text.size()));
  while (!text.empty()) {
    text.remove_prefix(1);
    const std::string_view option = text.substr(0, text.find(','));
    text.remove_prefix(option.size());
    const size_t equals = option.find('=');
    const std::string_view value = equals == option.npos ? "" : option.substr(equals + 1);
    const std::string_view key = option.substr(0, equals);
    const auto* const flag =
        std::ranges::find_if(kSwitches, [&](const auto& each) { return each.first == key; });
    if (key == "arbiter" && equals != option.npos) {
      arbiters += fmt::format("{}{}", arbiters.empty() ? "" : ",", value);
    } else if (flag != kSwitches.end() && (value == "yes" || value == "no")) {
      uri.*(flag->second) = value == "yes";
    } else {
      return refuse(
          fmt::format("{} is no option of a volume: it has arbiter=ADDRESS, take-over=yes, and "
                      "view=no, order=no, shares=no",
                      in_quotes(option)));
    }
  }
  Attempt<ArbiterUri> arbiter = ArbiterUri::parse(arbiters.empty() ? default_arbiter() : arbiters);
  if (!arbiter) return std::unexpected(arbiter.error());
  uri.arbiter = std::move(*arbiter);
  return uri;
}

task::Task<Attempt<std::unique_ptr<drive::Drive>>> open_volume(env::Env& env, VolumeUri uri) {
  Attempt<std::unique_ptr<arbiter::RemoteArbiter>> link = make_remote_arbiter(env, uri.arbiter);
  if (!link) co_return std::unexpected(link.error());
  const std::string machine = co_await off_core(env, [] { return gather_host().machine_name; });
  Attempt<rpc::ClientOptions> client = arbiter_client(uri.arbiter);
  if (!client) co_return std::unexpected(client.error());
  auto ground = std::make_unique<VolumeGround>(env, std::move(*link),
                                               volume::SteeringOptions{.client = std::move(*client),
                                                                       .volume = uri.name,
                                                                       .notes = uri.notes,
                                                                       .orders = uri.orders,
                                                                       .holds = uri.holds});
  Result<std::unique_ptr<volume::VolumeDrive>> drive = co_await volume::VolumeDrive::open(
      env, ground->link(), ground->source(), uri.name,
      {.client = client_name(env, machine), .take_over = uri.take_over}, env.stop_token());
  if (drive) {
    (*drive)->own(std::move(ground));
    co_return std::move(*drive);
  }
  co_await ground->close();
  co_return std::unexpected(cannot_open(uri, drive.error()));
}

}  // namespace cairn::server
