// SPDX-License-Identifier: Apache-2.0
// `cairn nvme log`: a log page of a controller.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "apps/common/output.h"
#include "apps/nvme/commands.h"
#include "apps/nvme/connect.h"
#include "apps/nvme/fields.h"
#include "apps/nvme/logs.h"
#include "base/words.h"
#include "config/json_text.h"
#include "fabric/host/admin.h"
#include "nvme/format/ana_format.h"
#include "server/open/explain.h"

namespace cairn::apps {

namespace {

// Looking leaves events as they were: what must be told once is told to the host that serves.
constexpr bool kRetain = true;

using nvme::LogPage;

task::Task<Result<std::vector<std::byte>>> get(server::ControllerLink& link, LogPage page,
                                               size_t size) {
  std::vector<std::byte> bytes(size);
  const fabric::LogRequest request{.page = page, .retain_event = kRetain};
  const Result<void> got = co_await fabric::get_log(link.session(), request, bytes, link.token());
  if (!got) co_return fail(got.error());
  co_return bytes;
}

// The size of an ANA page is known from the controller's limits.
size_t ana_size(const nvme::IdentifyController& identity) {
  constexpr uint32_t kMax = 4096;
  const uint32_t groups = std::clamp<uint32_t>(identity.ana_groups, 1, kMax);
  const uint32_t namespaces = std::clamp<uint32_t>(identity.namespaces, 1, kMax);
  return sizeof(nvme::AnaHeader) + groups * sizeof(nvme::AnaGroup) +
         namespaces * sizeof(nvme::Le32);
}

struct LogKind {
  const char* name;
  LogPage page;
  size_t (*size)(const nvme::IdentifyController& identity);
  ShownLog (*show)(Bytes page);
};

template <class Page>
size_t fixed_size(const nvme::IdentifyController&) {
  return sizeof(Page);
}
template <class Page, ShownLog (*kShow)(const Page&)>
ShownLog show_fixed(Bytes page) {
  const auto copy = std::make_unique<Page>(load<Page>(page));
  return kShow(*copy);
}

const LogKind kLogs[] = {
    {"ana", LogPage::kAna, &ana_size, &show_ana},
    {"error", LogPage::kError,
     [](const nvme::IdentifyController& identity) {
       return (identity.error_log_entries + size_t{1}) * sizeof(nvme::ErrorEntry);
     },
     &show_errors},
    {"changed-ns", LogPage::kChangedNamespaces, &fixed_size<nvme::ChangedNamespacesPage>,
     &show_fixed<nvme::ChangedNamespacesPage, &show_changed_namespaces>},
    {"effects", LogPage::kCommandEffects, &fixed_size<nvme::CommandEffectsPage>,
     &show_fixed<nvme::CommandEffectsPage, &show_effects>},
    {"firmware", LogPage::kFirmware, &fixed_size<nvme::FirmwarePage>,
     &show_fixed<nvme::FirmwarePage, &show_firmware>},
    {"reservation", LogPage::kReservation, &fixed_size<nvme::ReservationNoticePage>,
     &show_fixed<nvme::ReservationNoticePage, &show_reservation_notice>},
};

std::vector<std::string> log_names() {
  std::vector<std::string> names;
  for (const LogKind& each : kLogs) names.emplace_back(each.name);
  return names;
}

class LogCommand final : public Command {
 public:
  explicit LogCommand(CLI::App& app) {
    add_place(app, "URI", uri_, server::Needs::kSubsystem, "the subsystem");
    add_argument(app, "LOG", fmt::format("one of {}", comma_list(log_names())),
                 [this](const std::string& name) { return take(name); });
    add_nvme_options(app, options_);
    set_examples(app, {"cairn nvme log nvme-tcp://box1/NQN ana",
                       "cairn nvme log nvme-tcp://box1/NQN error --json",
                       "'cairn nvme smart-log' and 'cairn nvme discover' show the others."});
  }

  Attempt<int> run() override {
    const Attempt<fabric::Uri> uri = server::find_target_uri(uri_, server::Needs::kSubsystem);
    if (!uri) return std::unexpected(uri.error());
    const Attempt<void> ran =
        run_with_link(options_, *uri, [this](server::ControllerLink& link) { return fetch(link); });
    if (!ran) return std::unexpected(ran.error());
    say(options_.json ? config::json_text(shown_.json) : shown_.text);
    return kExitOk;
  }

 private:
  Attempt<void> take(const std::string& name) {
    const auto kind =
        std::ranges::find_if(kLogs, [&](const LogKind& each) { return name == each.name; });
    if (kind == std::end(kLogs)) {
      return refuse(fmt::format("{} is no log: it is one of {}{}", in_quotes(name),
                                comma_list(log_names()), did_you_mean(name, log_names())));
    }
    kind_ = kind;
    return {};
  }

  task::Task<Attempt<void>> fetch(server::ControllerLink& link) {
    const size_t size = kind_->size(link.session().identity());
    const Result<std::vector<std::byte>> page = co_await get(link, kind_->page, size);
    if (!page) {
      co_return std::unexpected(
          server::cannot_do(fmt::format("reading the log '{}'", kind_->name), page.error()));
    }
    shown_ = kind_->show(*page);
    co_return Attempt<void>{};
  }

  NvmeOptions options_;
  std::string uri_;
  const LogKind* kind_ = nullptr;
  ShownLog shown_;
};

}  // namespace

std::unique_ptr<Command> make_nvme_log(CLI::App& app) { return std::make_unique<LogCommand>(app); }

}  // namespace cairn::apps
