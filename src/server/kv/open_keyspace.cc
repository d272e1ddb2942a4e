// SPDX-License-Identifier: Apache-2.0
#include "server/kv/open_keyspace.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/words.h"
#include "drive/blank.h"
#include "kv/memory_keyspace.h"
#include "kv/store/store.h"
#include "server/kv/store_problem.h"
#include "server/open/open_stack.h"

namespace cairn::server {

namespace {

class InMemory final : public OpenKeyspace {
 public:
  InMemory(env::Env& env, uint64_t bytes_max) : keys_(env, {.bytes_max = bytes_max}) {}
  kv::Keyspace& keys() override { return keys_; }
  task::Task<void> close() override { co_return; }
  std::string keeper() const override { return "memory"; }
  std::string durability() const override { return "none"; }

 private:
  kv::MemoryKeyspace keys_;
};

class OnDrive final : public OpenKeyspace {
 public:
  OnDrive(std::unique_ptr<StackPlan> plan, const drive::LiveStack& drive,
          std::unique_ptr<kv::store::Store> store, kv::store::Durability durability)
      : plan_(std::move(plan)), drive_(&drive), store_(std::move(store)), durability_(durability) {}
  kv::Keyspace& keys() override { return *store_; }
  task::Task<void> close() override {
    drive_ = nullptr;
    co_await store_->close();
    store_ = nullptr;
    plan_->close();
  }
  std::string keeper() const override { return "drive"; }
  std::string durability() const override {
    using kv::store::Durability;
    if (durability_ == Durability::kCommit) return "commit";
    return durability_ == Durability::kInterval ? "interval" : "none";
  }
  std::optional<drive::StackHealth> health() const override {
    if (drive_ == nullptr) return std::nullopt;
    return drive_->health();
  }

 private:
  const std::unique_ptr<StackPlan> plan_;  // outlives the drive
  const drive::LiveStack* drive_;          // the store's; null: it closes
  std::unique_ptr<kv::store::Store> store_;
  const kv::store::Durability durability_;
};

// Says what a drive holds that is no store.
task::Task<Problem> holds_something_else(env::Env& env, drive::Drive& drive, std::string stack) {
  const Result<std::optional<drive::Remains>> found = co_await drive::find_remains(env, drive);
  const std::string what =
      found && *found ? fmt::format("{} at byte {}", (**found).what, (**found).byte) : "data";
  co_return Problem{
      fmt::format("{} holds no keys and values but something else, {}, which would be lost; "
                  "--format takes it nevertheless",
                  in_quotes(stack), what)};
}

// Has a store on the drive: the one that is there, or a new one.
task::Task<Attempt<void>> have_store(env::Env& env, drive::Drive& drive, const KeyspaceArgs& args) {
  kv::store::FormatOptions options{.object_bytes = args.object_bytes};
  Result<void> made = co_await kv::store::format(env, drive, options);
  const bool is_other = !made && drive::is_not_blank(made.error());
  if (is_other && !args.may_format) {
    Problem problem = co_await holds_something_else(env, drive, args.stack);
    co_return std::unexpected(std::move(problem));
  }
  options.may_format = true;
  if (is_other) made = co_await kv::store::format(env, drive, options);
  if (!made && made.error() != Errc::kExists) {
    co_return std::unexpected(cannot_use_store(args.stack, made.error()));
  }
  co_return Attempt<void>();
}

task::Task<Attempt<std::unique_ptr<OpenKeyspace>>> open_on_drive(env::Env& env,
                                                                 const KeyspaceArgs& args) {
  Attempt<std::unique_ptr<StackPlan>> plan = StackPlan::prepare(args.stack, LookUp::kWhenOpened);
  if (!plan) co_return std::unexpected(plan.error());
  if (args.may_format) (*plan)->allow_format();
  Attempt<std::unique_ptr<drive::LiveStack>> drive = co_await (*plan)->open(env);
  if (!drive) co_return std::unexpected(drive.error());
  const Attempt<void> there = co_await have_store(env, **drive, args);
  if (!there) {
    co_await (*drive)->close();
    drive->reset();
    (*plan)->close();
    co_return std::unexpected(there.error());
  }
  const drive::LiveStack& opened = **drive;
  Result<std::unique_ptr<kv::store::Store>> store =
      co_await kv::store::Store::open(env, std::move(*drive), {.durability = args.durability});
  if (!store) {
    (*plan)->close();
    co_return std::unexpected(cannot_use_store(args.stack, store.error()));
  }
  co_return std::make_unique<OnDrive>(std::move(*plan), opened, std::move(*store), args.durability);
}

}  // namespace

task::Task<Attempt<std::unique_ptr<OpenKeyspace>>> open_keyspace(env::Env& env,
                                                                 const KeyspaceArgs& args) {
  if (args.stack.empty()) co_return std::make_unique<InMemory>(env, args.memory_max);
  Attempt<std::unique_ptr<OpenKeyspace>> opened = co_await open_on_drive(env, args);
  co_return opened;
}

}  // namespace cairn::server
