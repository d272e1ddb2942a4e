// SPDX-License-Identifier: Apache-2.0
// `cairn nvme id-ctrl`, `id-ns` and `smart-log`: one page of a controller each.
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "apps/common/output.h"
#include "apps/nvme/commands.h"
#include "apps/nvme/connect.h"
#include "apps/nvme/pages.h"
#include "base/words.h"
#include "config/json_text.h"
#include "fabric/host/admin.h"
#include "nvme/format/identify_format.h"
#include "server/open/explain.h"

namespace cairn::apps {

namespace {

using Show = task::Task<Attempt<FieldTable>> (*)(server::ControllerLink&, const fabric::Uri&);

task::Task<Attempt<FieldTable>> controller_fields(server::ControllerLink& link,
                                                  const fabric::Uri&) {
  const fabric::HostSession& session = link.session();
  co_return fields_of(session.identity(), 4096u << session.capabilities().page_size_min);
}

task::Task<Attempt<FieldTable>> namespace_fields(server::ControllerLink& link,
                                                 const fabric::Uri& uri) {
  auto page = std::make_unique<nvme::IdentifyNamespace>();
  const Attempt<uint32_t> nsid = co_await server::nsid_of(link, uri);
  if (!nsid) co_return std::unexpected(nsid.error());
  const fabric::IdentifyRequest request{.fields = {.cns = nvme::Cns::kNamespace}, .nsid = *nsid};
  const Result<void> got = co_await fabric::identify(link.session(), request,
                                                     nvme::mutable_bytes_of(*page), link.token());
  const bool is_missing = got ? page->size == 0 : got.error() == Errc::kNotFound;
  if (is_missing) {
    const Problem problem = co_await server::missing_namespace(link, uri);
    co_return std::unexpected(problem);
  }
  if (!got) co_return std::unexpected(server::cannot_do("identifying the namespace", got.error()));
  co_return fields_of(*page);
}

task::Task<Attempt<FieldTable>> health_fields(server::ControllerLink& link, const fabric::Uri&) {
  auto page = std::make_unique<nvme::HealthPage>();
  const fabric::LogRequest request{.page = nvme::LogPage::kHealth, .retain_event = true};
  const Result<void> got = co_await fabric::get_log(link.session(), request,
                                                    nvme::mutable_bytes_of(*page), link.token());
  if (!got) co_return std::unexpected(server::cannot_do("reading the health page", got.error()));
  co_return fields_of(*page);
}

class ShowCommand final : public Command {
 public:
  ShowCommand(CLI::App& app, server::Needs needs, Show show) : needs_(needs), show_(show) {
    add_place(app, "URI", uri_, needs,
              needs == server::Needs::kNamespace ? "the namespace" : "the subsystem");
    add_nvme_options(app, options_);
    const std::string name = name_of(app);
    set_examples(app, {fmt::format("cairn nvme {} nvme-tcp://127.0.0.1:4420/NQN", name),
                       fmt::format("cairn nvme {} nvme-tcp://box1/NQN?nsid=2 --json", name)});
  }

  Attempt<int> run() override {
    const Attempt<fabric::Uri> uri = server::find_target_uri(uri_, needs_);
    if (!uri) return std::unexpected(uri.error());
    FieldTable table;
    const Attempt<void> ran = run_with_link(
        options_, *uri, [&](server::ControllerLink& link) { return fill(link, *uri, table); });
    if (!ran) return std::unexpected(ran.error());
    say(options_.json ? config::json_text(table.json()) : table.table());
    return kExitOk;
  }

 private:
  task::Task<Attempt<void>> fill(server::ControllerLink& link, const fabric::Uri& uri,
                                 FieldTable& table) {
    Attempt<FieldTable> shown = co_await show_(link, uri);
    if (!shown) co_return std::unexpected(shown.error());
    table = std::move(*shown);
    co_return Attempt<void>{};
  }

  NvmeOptions options_;
  std::string uri_;
  server::Needs needs_;
  Show show_;
};

}  // namespace

std::unique_ptr<Command> make_nvme_id_ctrl(CLI::App& app) {
  // A discovery controller identifies itself too.
  return std::make_unique<ShowCommand>(app, server::Needs::kDiscovery, &controller_fields);
}
std::unique_ptr<Command> make_nvme_id_ns(CLI::App& app) {
  return std::make_unique<ShowCommand>(app, server::Needs::kNamespace, &namespace_fields);
}
std::unique_ptr<Command> make_nvme_smart_log(CLI::App& app) {
  return std::make_unique<ShowCommand>(app, server::Needs::kSubsystem, &health_fields);
}

}  // namespace cairn::apps
