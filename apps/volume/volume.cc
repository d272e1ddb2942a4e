// SPDX-License-Identifier: Apache-2.0
// `cairn volume create|list|show|resize|update|destroy`: elastic volumes.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/common/confirm.h"
#include "apps/common/output.h"
#include "apps/volume/client.h"
#include "apps/volume/commands.h"
#include "apps/volume/report.h"
#include "base/units.h"
#include "base/words.h"

namespace cairn::apps {

namespace {

using arbiter::VolumeDetail;
using arbiter::VolumePage;
using arbiter::VolumeView;
using Json = nlohmann::ordered_json;

constexpr uint64_t kBytesMax = uint64_t{volume::kVolumeExtentsMax} * volume::kExtentBytes;

// With `or_snapshot`, VOLUME@NAME too.
void add_name(CLI::App& app, std::string& name, bool or_snapshot = false) {
  required(add_argument(
      app, "NAME",
      or_snapshot ? "what the volume is called, or VOLUME@SNAPSHOT" : "what the volume is called",
      [&name, or_snapshot](const std::string& text) -> Attempt<void> {
        const bool is_snapshot = or_snapshot && volume::check_snapshot_name(text);
        if (!is_snapshot && !volume::check_name(text)) {
          return refuse(
              fmt::format("{} is no name of a volume: 1 to {} letters, digits, '-', '_' and "
                          "'.', as in vol0",
                          in_quotes(text), volume::kNameMax));
        }
        name = text;
        return {};
      }));
}

Attempt<void> check_size(uint64_t bytes) {
  if (bytes > 0 && bytes <= kBytesMax) return {};
  return refuse(
      fmt::format("a volume has 1 byte to {}: say how large with --size", text_bytes(kBytesMax)));
}

CLI::Option* add_policy(CLI::App& app, volume::Weights& weights) {
  return add_value(app, "--policy POLICY",
                   "how extents are placed: spread over all drives, pack onto few, or factors as "
                   "in used=2,busy=0.5 (spread)",
                   [&weights](const std::string& text) -> Attempt<void> {
                     Attempt<volume::Weights> parsed = parse_policy(text);
                     if (!parsed) return std::unexpected(parsed.error());
                     weights = *parsed;
                     return {};
                   });
}

// What a volume has of drives' bandwidth.
class TermsOptions {
 public:
  explicit TermsOptions(CLI::App& app) {
    floor_ = add_size(app, "--floor RATE", terms_.floor,
                      "bytes a second that it gets whatever others do, as 100M; 0: none");
    cap_ = add_size(app, "--cap RATE", terms_.cap, "bytes a second that it gets at most; 0: any");
    weight_ = add_integer(app, "--weight N", number_,
                          {.min = 1, .max = static_cast<int>(share::kWeightMax)},
                          "its part of what drives do, against those of others (1)");
  }
  bool are_given() const { return was_given(*floor_) || was_given(*cap_) || was_given(*weight_); }
  // Those that were said, the others as they are.
  share::Terms over(share::Terms terms) const {
    if (was_given(*floor_)) terms.floor = terms_.floor;
    if (was_given(*cap_)) terms.cap = terms_.cap;
    if (was_given(*weight_)) terms.weight = static_cast<uint32_t>(number_);
    return terms;
  }

 private:
  share::Terms terms_;
  int number_ = 1;
  CLI::Option* floor_ = nullptr;
  CLI::Option* cap_ = nullptr;
  CLI::Option* weight_ = nullptr;
};

class CreateCommand final : public Command {
 public:
  explicit CreateCommand(CLI::App& app) : client_(app), terms_(app) {
    add_name(app, args_.name);
    required(add_size(app, "--size SIZE", args_.bytes, "what its user sees, as 100G; it is thin"));
    add_integer(app, "--replicas N", replicas_, {.min = 1, .max = volume::kReplicasMax},
                "on so many drives everything is (1)");
    add_policy(app, args_.weights);
    set_examples(app, {"cairn volume create vol0 --size 1T --replicas 3",
                       "cairn volume create scratch --size 100G --policy pack",
                       "cairn volume create db --size 1T --floor 200M --weight 4"});
  }
  Attempt<int> run() override {
    if (const Attempt<void> sized = check_size(args_.bytes); !sized) {
      return std::unexpected(sized.error());
    }
    args_.replicas = static_cast<uint32_t>(replicas_);
    args_.terms = terms_.over({});
    const Attempt<VolumeView> made = client_.ask<VolumeView>(args_);
    if (!made) return std::unexpected(made.error());
    client_.print(volume_json(*made),
                  fmt::format("made {}: {}, {} replica{}\n  cairn serve volume:{}\n",
                              made->record.name, text_bytes(made->bytes), made->record.replicas,
                              made->record.replicas == 1 ? "" : "s", made->record.name));
    return kExitOk;
  }

 private:
  ArbiterClient client_;
  TermsOptions terms_;
  arbiter::CreateArgs args_;
  int replicas_ = 1;
};

class ListCommand final : public Command {
 public:
  explicit ListCommand(CLI::App& app) : client_(app) {
    add_switch(app, "--snapshots", with_snapshots_, "with the snapshots of each");
    set_examples(app, {"cairn volume list", "cairn volume list --snapshots --json"});
  }
  Attempt<int> run() override {
    Attempt<std::vector<VolumeView>> all = client_.run<std::vector<VolumeView>>(
        [this](env::Env&, ArbiterClient::Arbiter& arbiter, task::CancelToken token) {
          return ask_all(arbiter, token);
        });
    if (!all) return std::unexpected(all.error());
    if (!with_snapshots_) {
      std::erase_if(*all, [](const VolumeView& each) { return each.record.is_snapshot; });
    }
    Json volumes = Json::array();
    for (const VolumeView& each : *all) volumes.push_back(volume_json(each));
    client_.print({{"schema_version", 1}, {"volumes", std::move(volumes)}}, volumes_text(*all));
    return kExitOk;
  }

 private:
  task::Task<Attempt<std::vector<VolumeView>>> ask_all(ArbiterClient::Arbiter& arbiter,
                                                       task::CancelToken token) const {
    std::vector<VolumeView> all;
    for (;;) {
      const arbiter::VolumesRequest request{.after = all.empty() ? "" : all.back().record.name};
      Attempt<VolumePage> page = co_await client_.ask_one<VolumePage>(arbiter, request, token);
      if (!page) co_return std::unexpected(page.error());
      const bool is_last = !page->more || page->volumes.empty();
      for (VolumeView& each : page->volumes) all.push_back(std::move(each));
      if (is_last) co_return all;
    }
  }

  ArbiterClient client_;
  bool with_snapshots_ = false;
};

class ShowCommand final : public Command {
 public:
  explicit ShowCommand(CLI::App& app) : client_(app) {
    add_name(app, name_, true);
    add_switch(app, "--why", why_, "with the scores of the last placements");
    set_examples(app, {"cairn volume show vol0", "cairn volume show vol0 --why"});
  }
  Attempt<int> run() override {
    const Attempt<VolumeDetail> detail =
        client_.ask<VolumeDetail>(arbiter::VolumeRequest{.name = name_});
    if (!detail) return std::unexpected(detail.error());
    client_.print(detail_json(*detail), detail_text(*detail, why_));
    return kExitOk;
  }

 private:
  ArbiterClient client_;
  std::string name_;
  bool why_ = false;
};

// What is asked before something of a volume goes.
class OneVolume : public Command {
 public:
  explicit OneVolume(CLI::App& app) : client_(app), confirmation_(app) {
    add_name(app, name_, true);
    add_switch(app, "--dry-run", is_dry_, "say what would be done");
  }

 protected:
  Attempt<VolumeDetail> find() const {
    return client_.ask<VolumeDetail>(arbiter::VolumeRequest{.name = name_});
  }
  // Carries it out, unless it was asked what would be done alone. `loss`: empty, nothing is lost.
  Attempt<int> change(const arbiter::CallArgs& request, std::string_view what,
                      std::string_view loss) const {
    if (!is_dry_ && !loss.empty()) {
      if (const Attempt<void> sure = confirmation_.ask(loss); !sure) {
        return std::unexpected(sure.error());
      }
    }
    if (!is_dry_) {
      if (const Attempt<void> told = client_.ask<void>(request); !told) {
        return std::unexpected(told.error());
      }
    }
    client_.print({{"schema_version", 1}, {"name", name_}, {"dry_run", is_dry_}},
                  fmt::format("{}{}\n", is_dry_ ? "would be done: " : "", what));
    return kExitOk;
  }

  ArbiterClient client_;
  Confirmation confirmation_;
  std::string name_;
  bool is_dry_ = false;
};

class ResizeCommand final : public OneVolume {
 public:
  explicit ResizeCommand(CLI::App& app) : OneVolume(app) {
    required(add_size(app, "--size SIZE", bytes_, "what its user sees from now on"));
    set_examples(app, {"cairn volume resize vol0 --size 2T"});
  }
  Attempt<int> run() override {
    if (const Attempt<void> sized = check_size(bytes_); !sized) {
      return std::unexpected(sized.error());
    }
    const Attempt<VolumeDetail> detail = find();
    if (!detail) return std::unexpected(detail.error());
    const uint64_t before = detail->volume.bytes;
    return change(
        arbiter::ResizeRequest{.name = name_, .bytes = bytes_},
        fmt::format("{} has {} instead of {}", name_, text_bytes(bytes_), text_bytes(before)),
        bytes_ >= before
            ? ""
            : fmt::format("what is behind the first {} of {} is lost", text_bytes(bytes_), name_));
  }

 private:
  uint64_t bytes_ = 0;
};

class UpdateCommand final : public OneVolume {
 public:
  explicit UpdateCommand(CLI::App& app) : OneVolume(app), terms_(app) {
    add_integer(app, "--replicas N", replicas_, {.min = 1, .max = volume::kReplicasMax},
                "on so many drives everything is; whoever opens it next moves data");
    policy_ = add_policy(app, weights_);
    set_examples(app,
                 {"cairn volume update vol0 --policy pack", "cairn volume update vol0 --replicas 2",
                  "cairn volume update vol0 --cap 500M --weight 2"});
  }
  Attempt<int> run() override {
    const bool has_policy = was_given(*policy_);
    if (!has_policy && replicas_ == 0 && !terms_.are_given()) {
      return refuse(
          "say what is to be another: --replicas N, --policy POLICY, --floor RATE, --cap RATE or "
          "--weight N");
    }
    const Attempt<VolumeDetail> detail = find();
    if (!detail) return std::unexpected(detail.error());
    if (terms_.are_given()) {
      const share::Terms terms = terms_.over(detail->volume.terms);
      Attempt<int> changed = change(arbiter::TermsRequest{.name = name_, .terms = terms},
                                    fmt::format("{} has {}", name_, terms_text(terms)), "");
      if (!changed || (!has_policy && replicas_ == 0)) return changed;
    }
    if (has_policy) {
      Attempt<int> changed =
          change(arbiter::WeightsRequest{.name = name_, .weights = weights_},
                 fmt::format("the next extents of {} are placed by the new policy", name_), "");
      if (!changed || replicas_ == 0) return changed;
    }
    const auto replicas = static_cast<uint32_t>(replicas_);
    return change(arbiter::ReplicasRequest{.name = name_, .replicas = replicas},
                  fmt::format("{} has {} replicas instead of {}", name_, replicas,
                              detail->volume.record.replicas),
                  "");
  }

 private:
  TermsOptions terms_;
  int replicas_ = 0;
  volume::Weights weights_;
  CLI::Option* policy_ = nullptr;
};

class DestroyCommand final : public OneVolume {
 public:
  explicit DestroyCommand(CLI::App& app) : OneVolume(app) {
    add_switch(app, "--force", by_force_, "although somebody has it open, who loses it");
    set_examples(app, {"cairn volume destroy vol0 --dry-run", "cairn volume destroy vol0 --yes",
                       "cairn volume destroy vol0@monday --yes"});
  }
  Attempt<int> run() override {
    const Attempt<VolumeDetail> detail = find();
    if (!detail) return std::unexpected(detail.error());
    const VolumeView& volume = detail->volume;
    const std::string data = text_bytes(volume.mapped * volume.extent_bytes);
    const std::string own = text_bytes((volume.mapped - volume.shared) * volume.extent_bytes);
    return change(
        arbiter::DestroyRequest{.name = name_, .by_force = by_force_},
        fmt::format("{} is destroyed, and {} become free when they are cleared", name_, own),
        volume.shared == 0
            ? fmt::format("all {} of {} are lost", data, name_)
            : fmt::format("{} is lost: of its {} snapshots or clones have all but {}", name_, data,
                          own));
  }

 private:
  bool by_force_ = false;
};

}  // namespace

std::unique_ptr<Command> make_volume_create(CLI::App& app) {
  return std::make_unique<CreateCommand>(app);
}
std::unique_ptr<Command> make_volume_list(CLI::App& app) {
  return std::make_unique<ListCommand>(app);
}
std::unique_ptr<Command> make_volume_show(CLI::App& app) {
  return std::make_unique<ShowCommand>(app);
}
std::unique_ptr<Command> make_volume_resize(CLI::App& app) {
  return std::make_unique<ResizeCommand>(app);
}
std::unique_ptr<Command> make_volume_update(CLI::App& app) {
  return std::make_unique<UpdateCommand>(app);
}
std::unique_ptr<Command> make_volume_destroy(CLI::App& app) {
  return std::make_unique<DestroyCommand>(app);
}

}  // namespace cairn::apps
