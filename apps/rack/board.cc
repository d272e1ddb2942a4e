// SPDX-License-Identifier: Apache-2.0
// `cairn rack offers|drives|stack`: what a rack has to spare, and what was made of it.
#include <fmt/format.h>

#include <utility>

#include "apps/common/output.h"
#include "apps/rack/client.h"
#include "apps/rack/commands.h"
#include "apps/rack/report.h"
#include "config/json_text.h"
#include "rack/billboard.h"
#include "rack/pledge.h"
#include "rack/store_text.h"
#include "rack/tenant.h"

namespace cairn::apps {

namespace {

struct Read {
  rack::Board board;
  uint64_t now_ms = 0;
};

task::Task<Attempt<Read>> ask_offers(env::Env& env, meta::Store& store, task::CancelToken token) {
  const uint64_t now = rack::wall_ms(env);
  Result<rack::Board> board = co_await rack::read_board(store, now, token);
  if (!board) co_return refuse(rack::store_text(board.error()));
  co_return Read{.board = std::move(*board), .now_ms = now};
}

task::Task<Attempt<rack::Drives>> ask_drives(env::Env&, meta::Store& store,
                                             task::CancelToken token) {
  Result<rack::Drives> drives = co_await rack::list_drives(store, token);
  if (!drives) co_return refuse(rack::store_text(drives.error()));
  co_return std::move(*drives);
}

class OffersCommand final : public Command {
 public:
  explicit OffersCommand(CLI::App& app) : client_(app) {
    set_examples(app,
                 {"cairn rack offers",
                  "cairn rack offers --rack 'meta://10.0.0.9:4430?tls_key=admin.key&name=admin'",
                  "cairn rack offers --rack "
                  "'etcd://10.0.0.1:2379?ca=ca.pem&cert=admin.pem&key=admin.key'"});
  }
  Attempt<int> run() override {
    const Attempt<Read> read = client_.run<Read>(ask_offers);
    if (!read) return std::unexpected(read.error());
    say(client_.json() ? config::json_text(board_json(read->board))
                       : board_text(read->board, read->now_ms));
    return kExitOk;
  }

 private:
  RackClient client_;
};

class DrivesCommand final : public Command {
 public:
  explicit DrivesCommand(CLI::App& app) : client_(app) {
    set_examples(app, {"cairn rack drives", "cairn rack drives --json"});
  }
  Attempt<int> run() override {
    const Attempt<rack::Drives> all = client_.run<rack::Drives>(ask_drives);
    if (!all) return std::unexpected(all.error());
    if (client_.json()) {
      nlohmann::ordered_json drives = nlohmann::ordered_json::array();
      for (const rack::DriveRecord& each : all->drives) drives.push_back(drive_json(each));
      say(config::json_text(
          {{"schema_version", 1}, {"drives", drives}, {"unreadable", all->unreadable}}));
    } else {
      say(drives_text(all->drives));
    }
    return kExitOk;
  }

 private:
  RackClient client_;
};

class StackCommand final : public Command {
 public:
  explicit StackCommand(CLI::App& app) : client_(app) {
    required(add_text(app, "NAME", name_, "a drive, as 'cairn rack drives' names it"));
    set_examples(app, {"cairn serve \"$(cairn rack stack vm1)\" --nbd unix:/tmp/vm1.sock"});
  }
  Attempt<int> run() override {
    const Attempt<rack::Drives> all = client_.run<rack::Drives>(ask_drives);
    if (!all) return std::unexpected(all.error());
    for (const rack::DriveRecord& each : all->drives) {
      if (each.name != name_) continue;
      if (each.is_leaving) {
        return refuse(
            fmt::format("drive {} is being released: run 'cairn drive release {}' again "
                        "to finish that",
                        name_, name_));
      }
      const rack::Outcome<std::string> stack = rack::stack_of(each);
      if (!stack) return refuse(stack.error());
      say(client_.json() ? config::json_text(drive_json(each))
                         : fmt::format("{}={}\n", name_, *stack));
      return kExitOk;
    }
    return refuse(
        fmt::format("there is no drive {}: 'cairn rack drives' names those there are", name_));
  }

 private:
  RackClient client_;
  std::string name_;
};

}  // namespace

std::unique_ptr<Command> make_rack_offers(CLI::App& app) {
  return std::make_unique<OffersCommand>(app);
}
std::unique_ptr<Command> make_rack_drives(CLI::App& app) {
  return std::make_unique<DrivesCommand>(app);
}
std::unique_ptr<Command> make_rack_stack(CLI::App& app) {
  return std::make_unique<StackCommand>(app);
}

}  // namespace cairn::apps
