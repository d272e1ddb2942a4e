// SPDX-License-Identifier: Apache-2.0
// `cairn nvme features`: what a controller is set to.
#include <fmt/format.h>

#include <array>
#include <utility>

#include "apps/common/output.h"
#include "apps/nvme/commands.h"
#include "apps/nvme/connect.h"
#include "apps/nvme/fields.h"
#include "config/json_text.h"
#include "fabric/host/admin.h"
#include "nvme/format/feature_format.h"
#include "nvme/format/identify_controller_format.h"
#include "server/open/explain.h"

namespace cairn::apps {

namespace {

using nvme::Feature;

struct Known {
  Feature feature;
  const char* name;
  std::string (*meaning)(uint32_t value);
};

// Those whose value says all; the others have data besides.
const std::array kKnown = {
    Known{Feature::kArbitration, "arbitration",
          [](uint32_t value) {
            const uint8_t burst = nvme::Arbitration::decode(value).burst;
            return burst == 7 ? std::string("bursts without limit")
                              : fmt::format("bursts of {}", 1u << burst);
          }},
    Known{Feature::kPowerManagement, "power_management",
          [](uint32_t value) {
            return fmt::format("state {}", nvme::PowerManagement::decode(value).state);
          }},
    Known{Feature::kTemperatureThreshold, "temperature_threshold",
          [](uint32_t value) {
            return fmt::format("{} C", nvme::TemperatureThreshold::decode(value).kelvin - 273);
          }},
    Known{Feature::kErrorRecovery, "error_recovery",
          [](uint32_t value) {
            const uint16_t limit = nvme::ErrorRecovery::decode(value).retry_100ms;
            return limit == 0 ? std::string("tries without limit")
                              : fmt::format("tries for {} ms", limit * 100);
          }},
    Known{Feature::kWriteCache, "volatile_write_cache",
          [](uint32_t value) {
            return std::string((value & nvme::WriteCache::kEnabled) != 0 ? "on" : "off");
          }},
    Known{Feature::kNumberOfQueues, "number_of_queues",
          [](uint32_t value) {
            const auto queues = nvme::NumberOfQueues::decode(value);
            return fmt::format("{} submission, {} completion", queues.submission + 1,
                               queues.completion + 1);
          }},
    Known{Feature::kWriteAtomicity, "write_atomicity",
          [](uint32_t value) {
            return std::string((value & nvme::WriteAtomicity::kPowerFailOnly) != 0
                                   ? "over power loss only"
                                   : "always");
          }},
    Known{Feature::kEventConfiguration, "asynchronous_events",
          [](uint32_t value) {
            using Mask = nvme::EventMask;
            return bit_names(value, {{Mask::kNamespaceAttributes, "namespace attributes"},
                                     {Mask::kAna, "ANA"},
                                     {Mask::kDiscoveryLog, "discovery log"}});
          }},
    Known{Feature::kKeepAlive, "keep_alive",
          [](uint32_t value) {
            return value == 0 ? std::string("none") : fmt::format("{} ms", value);
          }},
};

class FeaturesCommand final : public Command {
 public:
  explicit FeaturesCommand(CLI::App& app) {
    add_place(app, "URI", uri_, server::Needs::kDiscovery, "the subsystem or discovery service");
    add_nvme_options(app, options_);
    set_examples(app, {"cairn nvme features nvme-tcp://box1/NQN"});
  }

  Attempt<int> run() override {
    const Attempt<fabric::Uri> uri = server::find_target_uri(uri_, server::Needs::kDiscovery);
    if (!uri) return std::unexpected(uri.error());
    const Attempt<void> ran =
        run_with_link(options_, *uri, [this](server::ControllerLink& link) { return ask(link); });
    if (!ran) return std::unexpected(ran.error());
    say(options_.json ? config::json_text(table_.json()) : table_.table());
    return kExitOk;
  }

 private:
  // What the controller does not know is left out.
  task::Task<Attempt<void>> ask(server::ControllerLink& link) {
    for (const Known& each : kKnown) {
      const nvme::GetFeaturesFields fields{.feature = each.feature};
      const Result<uint32_t> value =
          co_await fabric::get_feature(link.session(), fields, link.token());
      if (value) {
        table_.bits(each.name, *value, each.meaning(*value));
      } else if (link.session().lost() || link.token().requested()) {
        co_return std::unexpected(server::cannot_do("reading features", value.error()));
      }
    }
    co_return Attempt<void>{};
  }

  NvmeOptions options_;
  std::string uri_;
  FieldTable table_;
};

}  // namespace

std::unique_ptr<Command> make_nvme_features(CLI::App& app) {
  return std::make_unique<FeaturesCommand>(app);
}

}  // namespace cairn::apps
