// SPDX-License-Identifier: Apache-2.0
// `cairn volume snapshot|clone`: what a volume held at one moment, and volumes that begin as that.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "apps/common/output.h"
#include "apps/volume/client.h"
#include "apps/volume/commands.h"
#include "apps/volume/report.h"
#include "base/units.h"
#include "base/words.h"

namespace cairn::apps {

namespace {

using arbiter::VolumeView;

// The moment, in UTC: names of one volume sort by it.
std::string name_of(WallTime now) {
  const std::chrono::sys_seconds seconds{std::chrono::seconds(now.ns / 1'000'000'000)};
  return fmt::format("{:%Y%m%d-%H%M%S}", seconds);
}

Attempt<void> take_name(const std::string& text, std::string& name) {
  if (!volume::check_name(text)) {
    return refuse(
        fmt::format("{} is no name: 1 to {} letters, digits, '-', '_' and '.', as in vol0",
                    in_quotes(text), volume::kNameMax));
  }
  name = text;
  return {};
}

class SnapshotCommand final : public Command {
 public:
  explicit SnapshotCommand(CLI::App& app) : client_(app) {
    required(add_argument(app, "VOLUME", "of what",
                          [this](const std::string& text) { return take_name(text, volume_); }));
    optional(add_argument(app, "NAME", "what the snapshot is called (the time, in UTC)",
                          [this](const std::string& text) { return take_name(text, name_); }));
    set_examples(app, {"cairn volume snapshot vol0 before-upgrade", "cairn volume snapshot vol0"});
  }
  Attempt<int> run() override {
    const Attempt<VolumeView> made = client_.run<VolumeView>(
        [this](env::Env& env, ArbiterClient::Arbiter& arbiter, task::CancelToken token) {
          const std::string name = name_.empty() ? name_of(env.wall_now()) : name_;
          return client_.ask_one<VolumeView>(
              arbiter, arbiter::SnapshotRequest{.volume = volume_, .name = name}, token);
        });
    if (!made) return std::unexpected(made.error());
    const std::string full = made->record.name;
    client_.print(volume_json(*made),
                  fmt::format("made {}: {} of {}, which it shares with {}\n"
                              "  cairn serve volume:{}\n  cairn volume clone {} NAME\n",
                              full, text_bytes(made->mapped * made->extent_bytes),
                              text_bytes(made->bytes), volume_, full, full));
    return kExitOk;
  }

 private:
  ArbiterClient client_;
  std::string volume_;
  std::string name_;
};

class CloneCommand final : public Command {
 public:
  explicit CloneCommand(CLI::App& app) : client_(app) {
    required(add_argument(app, "SNAPSHOT", "of what, as vol0@monday",
                          [this](const std::string& text) -> Attempt<void> {
                            if (!volume::check_snapshot_name(text)) {
                              return refuse(fmt::format(
                                  "{} is no snapshot: it is called VOLUME@NAME, and 'cairn volume "
                                  "list --snapshots' names those there are",
                                  in_quotes(text)));
                            }
                            snapshot_ = text;
                            return {};
                          }));
    required(add_argument(app, "NAME", "what the new volume is called",
                          [this](const std::string& text) { return take_name(text, name_); }));
    set_examples(app, {"cairn volume clone vol0@monday vol1"});
  }
  Attempt<int> run() override {
    const Attempt<VolumeView> made =
        client_.ask<VolumeView>(arbiter::CloneRequest{.snapshot = snapshot_, .name = name_});
    if (!made) return std::unexpected(made.error());
    client_.print(volume_json(*made),
                  fmt::format("made {}: {}, of which {} are as in {}\n  cairn serve volume:{}\n",
                              name_, text_bytes(made->bytes),
                              text_bytes(made->mapped * made->extent_bytes), snapshot_, name_));
    return kExitOk;
  }

 private:
  ArbiterClient client_;
  std::string snapshot_;
  std::string name_;
};

}  // namespace

std::unique_ptr<Command> make_volume_snapshot(CLI::App& app) {
  return std::make_unique<SnapshotCommand>(app);
}
std::unique_ptr<Command> make_volume_clone(CLI::App& app) {
  return std::make_unique<CloneCommand>(app);
}

}  // namespace cairn::apps
