// SPDX-License-Identifier: Apache-2.0
#include "loadgen/key_load.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "task/deadline.h"

namespace cairn::loadgen {

using task::Task;

namespace {

class PutValue final : public kv::Change {
 public:
  explicit PutValue(std::string_view value) : Change(Needs::kNothing), value_(value) {}
  Result<void> decide(std::span<const std::optional<kv::Entry>>,
                      std::span<kv::Edit> edits) override {
    edits[0] = {.kind = kv::Edit::Kind::kPut, .value = std::string(value_), .expires = {}};
    return {};
  }

 private:
  const std::string_view value_;
};

// One run: `depth` workers that share what is here.
class KeyRun {
 public:
  KeyRun(env::Env& env, KeyTarget& target, const KeyLoad& load, task::CancelToken token)
      : env_(env),
        target_(target),
        load_(load),
        token_(token),
        operations_(load.mix, load.draw()),
        start_(now()),
        end_(start_ + load.duration) {}

  Task<KeyLoadResult> run() {
    std::vector<Task<void>> workers;
    workers.reserve(load_.depth);
    for (uint32_t i = 0; i < load_.depth; ++i) workers.push_back(work(i));
    for (Task<void>& worker : workers) co_await worker;
    result_.measured = std::max(last_, start_) - start_;
    co_return result_;
  }

 private:
  Time now() const { return load_.clock != nullptr ? load_.clock() : env_.now(); }
  // When the next operation is to be sent; none: there are no more.
  std::optional<Time> next_time() {
    const bool is_over = token_.requested() || result_.error.has_value();
    if (is_over || (load_.operations_max != 0 && sent_ >= load_.operations_max)) return {};
    Time from = now();
    if (load_.rate > 0) {
      from = start_ + Duration::from_seconds(static_cast<double>(sent_) / load_.rate);
    }
    if (from >= end_) return {};
    ++sent_;
    return from;
  }

  Task<void> work(uint32_t worker) {
    while (const std::optional<Time> from = next_time()) {
      if (*from > env_.now() && load_.rate > 0) {
        const Result<void> slept = co_await task::sleep_until(env_, *from, token_);
        if (!slept) co_return;
      }
      const KeyOperation operation = operations_.next();
      const Result<void> done = co_await carry_out(worker, operation);
      last_ = now();
      if (!done) {
        if (!token_.requested() && !result_.error) result_.error = done.error();
        co_return;
      }
      ++result_.operations;
      const bool reads = operation.kind == KeyOperation::Kind::kRead;
      const auto took = static_cast<uint64_t>(std::max<int64_t>((last_ - *from).ns, 0));
      (reads ? result_.read_latency_ns : result_.write_latency_ns).record(took);
    }
  }

  Task<Result<void>> carry_out(uint32_t worker, KeyOperation operation) {
    using Kind = KeyOperation::Kind;
    const std::string key = key_of_record(operation.record);
    if (operation.kind == Kind::kRead || operation.kind == Kind::kChange) {
      const Result<std::optional<std::string>> value = co_await target_.get(worker, key);
      if (!value) co_return fail(value.error());
      // One that was just inserted may be on its way.
      const bool may_be_missing = operation.record >= load_.records;
      if (*value ? !is_value_of(operation.record, **value) : !may_be_missing) {
        co_return fail(Errc::kCorrupt, "a record that was put is not there, or is another");
      }
    }
    if (operation.kind == Kind::kRead) co_return Result<void>();
    const std::string value = value_of_record(operation.record, load_.value_bytes);
    Result<void> done = co_await target_.put(worker, key, value);
    co_return done;
  }

  env::Env& env_;
  KeyTarget& target_;
  const KeyLoad load_;
  const task::CancelToken token_;
  KeyOperations operations_;
  const Time start_;
  const Time end_;
  uint64_t sent_ = 0;
  Time last_;
  KeyLoadResult result_;
};

struct Filling {
  KeyTarget& target;
  const KeyLoad& load;
  task::CancelToken token;
  uint64_t next = 0;
  Result<void> result = {};
};

Task<void> fill_some(Filling& filling, uint32_t worker) {
  while (filling.next < filling.load.records && filling.result && !filling.token.requested()) {
    const uint64_t record = filling.next++;
    const std::string key = key_of_record(record);
    const std::string value = value_of_record(record, filling.load.value_bytes);
    const Result<void> done = co_await filling.target.put(worker, key, value);
    if (!done && filling.result) filling.result = done;
  }
}

}  // namespace

Task<Result<std::optional<std::string>>> KeyspaceTarget::get(uint32_t /*worker*/,
                                                             std::string_view key) {
  Result<std::optional<kv::Entry>> entry = co_await keyspace_.get(key);
  if (!entry) co_return fail(entry.error());
  if (!*entry) co_return std::optional<std::string>();
  co_return std::move((*entry)->value);
}

Task<Result<void>> KeyspaceTarget::put(uint32_t /*worker*/, std::string_view key,
                                       std::string_view value) {
  PutValue change(value);
  Result<void> done = co_await keyspace_.transact({&key, 1}, change);
  co_return done;
}

Result<void> check_key_load(const KeyLoad& load) {
  if (load.records < 3) return fail(Errc::kInvalid, "a load has three records at least");
  if (load.value_bytes < kRecordValueBytesMin || load.value_bytes > kv::kValueBytesMax) {
    return fail(Errc::kInvalid, "a record's value has 8 bytes to 16 MiB");
  }
  if (load.depth < 1 || load.depth > kKeyDepthMax) {
    return fail(Errc::kInvalid, "the depth is none from 1 to 4096");
  }
  if (!(load.rate >= 0)) return fail(Errc::kInvalid, "the rate is below 0");
  return {};
}

Task<Result<void>> fill_keys(env::Env& /*env*/, KeyTarget& target, KeyLoad load,
                             task::CancelToken token) {
  const Result<void> checked = check_key_load(load);
  if (!checked) co_return checked;
  Filling filling{.target = target, .load = load, .token = token};
  std::vector<Task<void>> workers;
  workers.reserve(load.depth);
  for (uint32_t i = 0; i < load.depth; ++i) workers.push_back(fill_some(filling, i));
  for (Task<void>& worker : workers) co_await worker;
  if (token.requested()) co_return fail(token.error());
  co_return filling.result;
}

Task<Result<KeyLoadResult>> run_key_load(env::Env& env, KeyTarget& target, KeyLoad load,
                                         task::CancelToken token) {
  const Result<void> checked = check_key_load(load);
  if (!checked) co_return fail(checked.error());
  KeyRun run(env, target, load, token);
  KeyLoadResult result = co_await run.run();
  co_return result;
}

}  // namespace cairn::loadgen
