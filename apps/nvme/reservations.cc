// SPDX-License-Identifier: Apache-2.0
// `cairn nvme reservations`: who has registered and reserved a namespace, and changing that.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "apps/common/output.h"
#include "apps/nvme/commands.h"
#include "apps/nvme/connect.h"
#include "apps/nvme/fields.h"
#include "base/table.h"
#include "base/uuid.h"
#include "base/words.h"
#include "config/json_text.h"
#include "fabric/host/status_error.h"
#include "nvme/format/reservation_format.h"
#include "server/open/explain.h"

namespace cairn::apps {

namespace {

using Json = nlohmann::ordered_json;
using nvme::ReservationType;

constexpr size_t kRegistrantsMax = 1024;  // that are asked for

struct TypeName {
  ReservationType type;
  const char* name;
};
constexpr std::array kTypes = {
    TypeName{ReservationType::kWriteExclusive, "write-exclusive"},
    TypeName{ReservationType::kExclusiveAccess, "exclusive-access"},
    TypeName{ReservationType::kWriteExclusiveRegistrants, "write-exclusive-registrants"},
    TypeName{ReservationType::kExclusiveAccessRegistrants, "exclusive-access-registrants"},
    TypeName{ReservationType::kWriteExclusiveAll, "write-exclusive-all"},
    TypeName{ReservationType::kExclusiveAccessAll, "exclusive-access-all"},
};

std::string type_name(ReservationType type) {
  const auto found = std::ranges::find(kTypes, type, &TypeName::type);
  if (found != kTypes.end()) return found->name;
  return type == ReservationType::kNone ? "none" : fmt::format("{}", static_cast<int>(type));
}

Attempt<ReservationType> parse_type(const std::string& text) {
  std::vector<std::string> names;
  for (const TypeName& each : kTypes) {
    if (text == each.name) return each.type;
    names.emplace_back(each.name);
  }
  return refuse(fmt::format("takes one of {}, not {}{}", comma_list(names), in_quotes(text),
                            did_you_mean(text, names)));
}

// Decimal, or hexadecimal with 0x.
Attempt<uint64_t> parse_key(const std::string& text) {
  const bool is_hex = text.starts_with("0x");
  const char* begin = text.data() + (is_hex ? 2 : 0);
  uint64_t key = 0;
  const auto [end, error] =
      std::from_chars(begin, text.data() + text.size(), key, is_hex ? 16 : 10);
  if (error != std::errc{} || end != text.data() + text.size() || key == 0) {
    return refuse(fmt::format("takes a key such as 0x1234, not 0, and not {}", in_quotes(text)));
  }
  return key;
}

class ReservationsCommand final : public Command {
 public:
  explicit ReservationsCommand(CLI::App& app) {
    add_place(app, "URI", uri_, server::Needs::kNamespace, "the namespace");
    add_key(app, "--key KEY", key_, "the key this host has registered");
    add_key(app, "--register KEY", new_key_, "register this key; with --key, in its place");
    add_switch(app, "--unregister", unregister_, "take the --key back");
    add_type(app, "--acquire TYPE", acquire_, "reserve: write-exclusive, exclusive-access, ...");
    add_key(app, "--preempt KEY", preempt_, "with --acquire: from the registrant of this key");
    add_type(app, "--release TYPE", release_, "give the reservation up");
    add_switch(app, "--clear", clear_, "end the reservation and all registrations");
    add_nvme_options(app, options_);
    set_examples(
        app, {"cairn nvme reservations nvme-tcp://box1/NQN",
              "cairn nvme reservations nvme-tcp://box1/NQN --register 0x12",
              "cairn nvme reservations nvme-tcp://box1/NQN --key 0x12 --acquire write-exclusive",
              "Registrations belong to this host, by its id, and stay when the command ends."});
  }

  Attempt<int> run() override {
    if (const Attempt<void> sound = check(); !sound) return std::unexpected(sound.error());
    const Attempt<fabric::Uri> uri = server::find_target_uri(uri_, server::Needs::kNamespace);
    if (!uri) return std::unexpected(uri.error());
    const Attempt<void> ran = run_with_link(
        options_, *uri, [&](server::ControllerLink& link) { return work(link, *uri); });
    if (!ran) return std::unexpected(ran.error());
    say(options_.json ? config::json_text(json()) : table());
    return kExitOk;
  }

 private:
  using Key = std::optional<uint64_t>;
  using Type = std::optional<ReservationType>;

  static void add_key(CLI::App& app, std::string_view spec, Key& into, std::string help) {
    add_value(app, spec, std::move(help), [&into](const std::string& text) -> Attempt<void> {
      const Attempt<uint64_t> key = parse_key(text);
      if (!key) return std::unexpected(key.error());
      into = *key;
      return {};
    });
  }
  static void add_type(CLI::App& app, std::string_view spec, Type& into, std::string help) {
    add_value(app, spec, std::move(help), [&into](const std::string& text) -> Attempt<void> {
      const Attempt<ReservationType> type = parse_type(text);
      if (!type) return std::unexpected(type.error());
      into = *type;
      return {};
    });
  }

  Attempt<void> check() const {
    const int actions =
        new_key_.has_value() + unregister_ + acquire_.has_value() + release_.has_value() + clear_;
    if (actions > 1) {
      return refuse("--register, --unregister, --acquire, --release and --clear go one at a time");
    }
    if (preempt_ && !acquire_) return refuse("--preempt goes with --acquire TYPE");
    if (actions == 1 && !new_key_ && !key_) {
      return refuse("the key this host has registered is needed: add --key KEY");
    }
    return {};
  }

  task::Task<Attempt<void>> work(server::ControllerLink& link, const fabric::Uri& uri) {
    const Attempt<uint32_t> nsid = co_await server::nsid_of(link, uri);
    if (!nsid) co_return std::unexpected(nsid.error());
    nsid_ = *nsid;
    Attempt<void> done = co_await act(link);
    if (!done) co_return done;
    Attempt<void> reported = co_await report(link, uri);
    co_return reported;
  }

  task::Task<Attempt<void>> act(server::ControllerLink& link) {
    nvme::RegisterData pair;  // Acquire's data have the same form
    pair.current_key = key_.value_or(0);
    nvme::ReleaseData single;
    single.current_key = key_.value_or(0);
    nvme::Sqe sqe;
    MutableBytes data = nvme::mutable_bytes_of(pair);
    if (new_key_ || unregister_) {
      pair.new_key = new_key_.value_or(0);
      sqe = nvme::Sqe::make(nvme::IoOpcode::kReservationRegister, nsid_);
      nvme::RegisterFields fields;
      if (unregister_) fields.action = nvme::RegisterAction::kUnregister;
      if (new_key_ && key_) fields.action = nvme::RegisterAction::kReplace;
      fields.encode(sqe);
    } else if (acquire_) {
      pair.new_key = preempt_.value_or(0);
      sqe = nvme::Sqe::make(nvme::IoOpcode::kReservationAcquire, nsid_);
      nvme::AcquireFields fields{.type = *acquire_};
      if (preempt_) fields.action = nvme::AcquireAction::kPreempt;
      fields.encode(sqe);
    } else if (release_ || clear_) {
      sqe = nvme::Sqe::make(nvme::IoOpcode::kReservationRelease, nsid_);
      nvme::ReleaseFields fields{.type = release_.value_or(ReservationType::kNone)};
      if (clear_) fields.action = nvme::ReleaseAction::kClear;
      fields.encode(sqe);
      data = nvme::mutable_bytes_of(single);
    } else {
      co_return Attempt<void>{};
    }
    const Result<void> sent = co_await send(link, sqe, data);
    if (sent) co_return Attempt<void>{};
    if (sent.error() == Errc::kDenied) {
      co_return refuse(
          fmt::format("the reservations forbid it ({}): see who holds what with 'cairn "
                      "nvme reservations {}'",
                      server::error_sentence(sent.error()), uri_));
    }
    co_return std::unexpected(server::cannot_do("changing reservations", sent.error()));
  }

  static task::Task<Result<void>> send(server::ControllerLink& link, nvme::Sqe sqe,
                                       MutableBytes data) {
    const Result<nvme::Cqe> answer = co_await link.session().io(sqe, data, link.token());
    if (!answer) co_return fail(answer.error());
    if (!answer->get_status().ok()) co_return fail(fabric::error_of(answer->get_status()));
    co_return Result<void>{};
  }

  task::Task<Attempt<void>> report(server::ControllerLink& link, const fabric::Uri& uri) {
    std::vector<std::byte> page(sizeof(nvme::ReservationStatusExtended) +
                                kRegistrantsMax * sizeof(nvme::RegistrantExtended));
    nvme::Sqe sqe = nvme::Sqe::make(nvme::IoOpcode::kReservationReport, nsid_);
    const nvme::ReportFields fields{.dwords = static_cast<uint32_t>(page.size() / 4 - 1),
                                    .extended = true};
    fields.encode(sqe);
    const Result<void> got = co_await send(link, sqe, page);
    if (!got && got.error() == Errc::kNotFound) {
      const Problem problem = co_await server::missing_namespace(link, uri);
      co_return std::unexpected(problem);
    }
    if (!got) co_return std::unexpected(server::cannot_do("reporting reservations", got.error()));
    Bytes rest = page;
    status_ = load<nvme::ReservationStatusExtended>(rest).status;
    rest = rest.subspan(sizeof(nvme::ReservationStatusExtended));
    const size_t count = std::min<size_t>(status_.registrants, kRegistrantsMax);
    for (size_t i = 0; i < count; ++i) {
      registrants_.push_back(load<nvme::RegistrantExtended>(rest));
      rest = rest.subspan(sizeof(nvme::RegistrantExtended));
    }
    co_return Attempt<void>{};
  }

  Json json() const {
    Json list = Json::array();
    for (const nvme::RegistrantExtended& each : registrants_) {
      list.push_back({{"cntlid", each.controller_id.value()},
                      {"rcsts", each.status},
                      {"rkey", each.key.value()},
                      {"hostid", uuid_text(each.host_id)}});
    }
    return {{"gen", status_.generation.value()}, {"rtype", static_cast<uint8_t>(status_.type)},
            {"type", type_name(status_.type)},   {"regctl", status_.registrants.value()},
            {"ptpls", status_.persist},          {"regctlext", std::move(list)}};
  }

  std::string table() const {
    std::string out = fmt::format("reservation: {}, generation {}\n", type_name(status_.type),
                                  status_.generation.value());
    if (registrants_.empty()) return out + "No host has registered.\n";
    std::vector<std::vector<std::string>> rows = {{"HOST", "KEY", "CONTROLLER", "HOLDS"}};
    for (const nvme::RegistrantExtended& each : registrants_) {
      const bool is_away = each.controller_id == nvme::kNoController;
      rows.push_back({uuid_text(each.host_id), fmt::format("{:#x}", each.key.value()),
                      is_away ? "-" : fmt::to_string(each.controller_id.value()),
                      (each.status & nvme::kHoldsReservation) != 0 ? "yes" : "no"});
    }
    return out + table_text(rows);
  }

  NvmeOptions options_;
  std::string uri_;
  uint32_t nsid_ = 0;
  Key key_;
  Key new_key_;
  Key preempt_;
  bool unregister_ = false;
  bool clear_ = false;
  Type acquire_;
  Type release_;
  nvme::ReservationStatus status_;
  std::vector<nvme::RegistrantExtended> registrants_;
};

}  // namespace

std::unique_ptr<Command> make_nvme_reservations(CLI::App& app) {
  return std::make_unique<ReservationsCommand>(app);
}

}  // namespace cairn::apps
