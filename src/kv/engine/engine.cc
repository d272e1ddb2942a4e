// SPDX-License-Identifier: Apache-2.0
#include "kv/engine/engine.h"

#include <algorithm>
#include <utility>

#include "task/deadline.h"

namespace cairn::kv::engine {

using task::Task;

// The tokens of one command, from its turn to its end.
class Engine::Active {
 public:
  Active(Engine& engine, uint64_t cost) : engine_(engine), cost_(cost), began_(engine.env_.now()) {}
  Active(const Active&) = delete;
  Active& operator=(const Active&) = delete;
  ~Active() { engine_.scheduler_.done(engine_.tenant_, cost_, engine_.env_.now() - began_); }

  void lower_to(uint64_t cost) {
    if (cost >= cost_) return;
    const uint64_t before = std::exchange(cost_, cost);
    engine_.scheduler_.give_back(engine_.tenant_, before - cost);
  }

 private:
  Engine& engine_;
  uint64_t cost_;
  const Time began_;
};

Task<Result<void>> Engine::wait(uint64_t cost) {
  task::Deadline deadline(env_, env_.now() + options_.wait_max);
  const Result<void> turn = co_await scheduler_.take(tenant_, cost, deadline.token());
  co_return turn;
}

Task<Result<std::optional<Entry>>> Engine::get(std::string_view key) {
  const Result<void> turn = co_await wait(kGetTokens);
  if (!turn) co_return fail(turn.error());
  const Active active(*this, kGetTokens);
  Result<std::optional<Entry>> entry = co_await below_.get(key);
  co_return entry;
}

Task<Result<std::optional<Meta>>> Engine::look(std::string_view key) {
  const Result<void> turn = co_await wait(kGetTokens);
  if (!turn) co_return fail(turn.error());
  const Active active(*this, kGetTokens);
  Result<std::optional<Meta>> meta = co_await below_.look(key);
  co_return meta;
}

Task<Result<void>> Engine::transact(std::span<const std::string_view> keys, Change& change) {
  // Lowers the cost of what only erases, once that is known.
  class Watched final : public Change {
   public:
    Watched(Change& inner, Active& active) : Change(inner.needs), inner_(inner), active_(active) {}
    Result<void> decide(std::span<const std::optional<Entry>> now, std::span<Edit> edits) override {
      const Result<void> decided = inner_.decide(now, edits);
      const bool puts = std::ranges::any_of(
          edits, [](const Edit& edit) { return edit.kind == Edit::Kind::kPut; });
      if (!puts) active_.lower_to(kDelTokens * edits.size());
      return decided;
    }

   private:
    Change& inner_;
    Active& active_;
  };
  const uint64_t cost = kPutTokens * keys.size();
  const Result<void> turn = co_await wait(cost);
  if (!turn) co_return turn;
  Active active(*this, cost);
  Watched watched(change, active);
  Result<void> done = co_await below_.transact(keys, watched);
  co_return done;
}

Task<Result<ScanPage>> Engine::scan(uint64_t cursor, size_t count) {
  const uint64_t cost = kGetTokens * std::clamp<uint64_t>(count, 1, 16);
  const Result<void> turn = co_await wait(cost);
  if (!turn) co_return fail(turn.error());
  const Active active(*this, cost);
  Result<ScanPage> page = co_await below_.scan(cursor, count);
  co_return page;
}

Task<Result<std::optional<std::string>>> Engine::random_key() {
  const Result<void> turn = co_await wait(kGetTokens);
  if (!turn) co_return fail(turn.error());
  const Active active(*this, kGetTokens);
  Result<std::optional<std::string>> key = co_await below_.random_key();
  co_return key;
}

Task<Result<void>> Engine::clear() {
  const Result<void> turn = co_await wait(kPutTokens);
  if (!turn) co_return turn;
  const Active active(*this, kPutTokens);
  Result<void> done = co_await below_.clear();
  co_return done;
}

}  // namespace cairn::kv::engine
