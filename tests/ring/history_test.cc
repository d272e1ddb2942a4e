// SPDX-License-Identifier: Apache-2.0
// Histories that a store which does one thing at a time could have given, and others.
#include "testing/kv/history.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"

namespace cairn::kv {
namespace {

using Kind = KeyOp::Kind;

KeyOp put(std::string value, int64_t began, std::optional<int64_t> ended) {
  return {.kind = Kind::kPut, .value = std::move(value), .began = began, .ended = ended};
}
KeyOp get(std::string value, int64_t began, int64_t ended) {
  return {
      .kind = Kind::kGet, .value = std::move(value), .began = began, .ended = ended, .done = true};
}
KeyOp miss(int64_t began, int64_t ended) {
  return {.kind = Kind::kGet, .began = began, .ended = ended, .done = false};
}
KeyOp erase(bool was_there, int64_t began, std::optional<int64_t> ended) {
  return {.kind = Kind::kDelete, .began = began, .ended = ended, .done = was_there};
}
KeyOp add(int64_t amount, int64_t number, int64_t began, std::optional<int64_t> ended) {
  return {.kind = Kind::kAdd, .amount = amount, .began = began, .ended = ended, .number = number};
}
KeyOp put_new(std::string value, bool done, int64_t began, std::optional<int64_t> ended) {
  return {.kind = Kind::kPutNew,
          .value = std::move(value),
          .began = began,
          .ended = ended,
          .done = done};
}

bool is_good(std::vector<KeyOp> ops, bool versions_grow = false) {
  History history;
  for (KeyOp& op : ops) history.add("k", std::move(op));
  const HistoryVerdict verdict = history.check({.versions_grow = versions_grow});
  EXPECT_NE(verdict.kind, HistoryVerdict::Kind::kTooHard);
  return verdict.kind == HistoryVerdict::Kind::kGood;
}

TEST(History, AReadSeesTheLastWriteThatEndedBeforeIt) {
  EXPECT_TRUE(is_good({put("a", 0, 1), put("b", 2, 3), get("b", 4, 5)}));
  EXPECT_FALSE(is_good({put("a", 0, 1), put("b", 2, 3), get("a", 4, 5)}));
  EXPECT_FALSE(is_good({put("a", 0, 1), miss(2, 3)}));
  EXPECT_FALSE(is_good({get("a", 0, 1), put("a", 2, 3)}));
}

TEST(History, WhatHappensAtOnceMayHaveEitherOrderButOnlyOne) {
  EXPECT_TRUE(is_good({put("a", 0, 10), put("b", 0, 10), get("a", 11, 12)}));
  EXPECT_TRUE(is_good({put("a", 0, 10), put("b", 0, 10), get("b", 11, 12)}));
  EXPECT_FALSE(is_good({put("a", 0, 10), put("b", 0, 10), get("b", 11, 12), get("a", 13, 14)}));
  EXPECT_TRUE(is_good({put("a", 0, 1), put("b", 2, 9), get("a", 3, 4), get("b", 5, 6)}));
  EXPECT_FALSE(is_good({put("a", 0, 1), put("b", 2, 9), get("b", 3, 4), get("a", 5, 6)}));
}

TEST(History, AWriteOfUnknownEndMayHappenLateOrNever) {
  EXPECT_TRUE(is_good({put("a", 0, 1), put("b", 2, std::nullopt), get("a", 50, 51)}));
  EXPECT_TRUE(is_good({put("a", 0, 1), put("b", 2, std::nullopt), get("a", 3, 4), get("b", 5, 6)}));
  EXPECT_FALSE(
      is_good({put("a", 0, 1), put("b", 2, std::nullopt), get("b", 3, 4), get("a", 5, 6)}));
  EXPECT_FALSE(is_good({get("b", 0, 1), put("b", 2, std::nullopt)}));
}

TEST(History, AnAdditionHappensOnce) {
  EXPECT_TRUE(is_good({add(1, 1, 0, 1), add(1, 2, 2, 3), get("2", 4, 5)}));
  EXPECT_FALSE(is_good({add(1, 1, 0, 1), add(1, 3, 2, 3)}));
  EXPECT_TRUE(is_good({add(1, 0, 0, std::nullopt), add(1, 2, 2, 3)}));
  EXPECT_FALSE(is_good({add(1, 0, 0, std::nullopt), add(1, 3, 2, 3)}));
  EXPECT_FALSE(is_good({add(1, 0, 0, std::nullopt), get("1", 1, 2), get("2", 3, 4)}));
}

TEST(History, ConditionsAreJudgedByWhatIsThere) {
  EXPECT_TRUE(is_good({put_new("a", true, 0, 1), put_new("b", false, 2, 3), get("a", 4, 5)}));
  EXPECT_FALSE(is_good({put_new("a", true, 0, 1), put_new("b", true, 2, 3)}));
  EXPECT_TRUE(is_good({put_new("a", true, 0, 9), put_new("b", false, 0, 9)}));
  EXPECT_FALSE(is_good({put_new("a", false, 0, 9), put_new("b", false, 0, 9)}));
  EXPECT_TRUE(is_good({put("a", 0, 1), erase(true, 2, 3), erase(false, 4, 5), miss(6, 7)}));
  EXPECT_FALSE(is_good({put("a", 0, 1), erase(true, 2, 9), erase(true, 2, 9)}));
}

TEST(History, AReplacementNeedsTheVersionThatIsThere) {
  KeyOp first = put("a", 0, 1);
  first.version = 7;
  KeyOp second{.kind = Kind::kReplace, .value = "b", .expected = 7, .began = 2, .ended = 3};
  second.done = true;
  second.version = 8;
  KeyOp third{.kind = Kind::kReplace, .value = "c", .expected = 7, .began = 4, .ended = 5};
  EXPECT_TRUE(is_good({first, second, third, get("b", 6, 7)}));
  third.done = true;
  EXPECT_FALSE(is_good({first, second, third}));
  KeyOp other = get("b", 6, 7);
  other.version = 9;
  EXPECT_FALSE(is_good({first, second, other}));
}

TEST(History, VersionsThatShouldGrowDo) {
  KeyOp first = put("a", 0, 1);
  first.version = 7;
  KeyOp second = put("b", 2, 3);
  second.version = 6;
  EXPECT_TRUE(is_good({first, second}));
  EXPECT_FALSE(is_good({first, second}, true));
  second.version = 8;
  EXPECT_TRUE(is_good({first, second}, true));
}

TEST(History, SaysWhichKeyAndWhatCannotBeExplained) {
  History history;
  history.add("fine", put("a", 0, 1));
  history.add("odd", put("a", 0, 1));
  history.add("odd", get("b", 2, 3));
  const HistoryVerdict verdict = history.check();
  EXPECT_EQ(verdict.kind, HistoryVerdict::Kind::kBad);
  EXPECT_EQ(verdict.key, "odd");
  EXPECT_NE(verdict.text.find("get 'b' -> yes, 2 to 3"), std::string::npos) << verdict.text;
}

// A key, told as plainly as can be.
struct PlainKey {
  std::optional<std::string> value;
  uint64_t version = 0;
  uint64_t last = 0;

  void set(std::string text) {
    value = std::move(text);
    version = ++last;
  }
  // Carries `op` out and fills in what is said.
  void carry_out(KeyOp& op) {
    op.done = value.has_value();
    switch (op.kind) {
      case Kind::kGet:
        op.value = value.value_or("");
        op.version = value ? version : 0;
        return;
      case Kind::kPut:
        set(op.value);
        break;
      case Kind::kDelete:
        if (!value) return;
        value.reset();
        op.version = ++last;
        return;
      case Kind::kPutNew:
        op.done = !value;
        if (!op.done) return;
        set(op.value);
        break;
      case Kind::kAdd: {
        int64_t number = 0;
        if (value) {
          const char* end = value->data() + value->size();
          op.was_error = std::from_chars(value->data(), end, number).ptr != end || value->empty();
          if (op.was_error) return;
        }
        op.number = number + op.amount;
        set(fmt::format("{}", op.number));
        break;
      }
      case Kind::kReplace:
        op.done = value && version == op.expected;
        if (!op.done) return;
        set(op.value);
        break;
    }
    op.version = version;
  }
};

KeyOp draw_op(Rng& rng, uint64_t number, uint64_t values, uint64_t version_max) {
  KeyOp op{.kind = static_cast<Kind>(rng.below(6))};
  if (rng.bernoulli(0.3)) op.kind = Kind::kGet;
  const uint64_t value = values == 0 ? number : rng.below(values);
  if (op.kind != Kind::kGet && op.kind != Kind::kDelete) op.value = fmt::format("{}", value);
  if (op.kind == Kind::kAdd) op.amount = 1;
  if (op.kind == Kind::kAdd) op.value.clear();
  if (op.kind == Kind::kReplace) op.expected = 1 + rng.below(version_max);
  return op;
}

// Every order of every choice of unknown operations.
bool brute_force(const std::vector<KeyOp>& ops) {
  std::vector<size_t> order(ops.size());
  std::iota(order.begin(), order.end(), size_t{0});
  do {
    for (uint64_t left_out = 0; left_out < (1ULL << ops.size()); ++left_out) {
      PlainKey key;
      // What the store would call its versions is told by those who saw them.
      std::map<uint64_t, uint64_t> names;
      bool fits = true;
      for (size_t at = 0; at < order.size() && fits; ++at) {
        const KeyOp& said = ops[order[at]];
        const bool is_out = (left_out >> order[at] & 1) != 0;
        if (is_out && said.ended) fits = false;
        for (size_t later = at + 1; later < order.size(); ++later) {
          const KeyOp& other = ops[order[later]];
          fits = fits && (!other.ended || *other.ended >= said.began);
        }
        if (!fits || is_out) continue;
        KeyOp op = said;
        op.was_error = false;
        op.version = 0;
        if (op.kind == Kind::kGet) op.value.clear();
        key.carry_out(op);
        if (!said.ended) continue;
        const bool is_add = said.kind == Kind::kAdd;
        fits = (is_add || said.kind == Kind::kPut || op.done == said.done) &&
               (!is_add || (op.was_error == said.was_error && op.number == said.number)) &&
               (said.kind != Kind::kGet || op.value == said.value);
      }
      if (fits) return true;
    }
  } while (std::ranges::next_permutation(order).found);
  return false;
}

TEST(History, AgreesWithATrialOfAllOrders) {
  Rng rng(7);
  int good = 0;
  int bad = 0;
  for (int round = 0; round < 3000; ++round) {
    const size_t count = 2 + rng.below(4);
    std::vector<KeyOp> ops;
    PlainKey key;
    for (size_t i = 0; i < count; ++i) {
      KeyOp op = draw_op(rng, i, 2, 3);
      if (op.kind == Kind::kReplace) op.kind = Kind::kPut;  // versions have a test of their own
      key.carry_out(op);
      op.version = 0;
      op.client = i;
      op.began = static_cast<int64_t>(rng.below(10));
      op.ended = op.began + 1 + static_cast<int64_t>(rng.below(8));
      if (op.kind != Kind::kGet && rng.bernoulli(0.25)) op.ended.reset();
      if (op.kind == Kind::kGet && rng.bernoulli(0.3)) {
        op.done = rng.bernoulli(0.7);
        op.value = op.done ? fmt::format("{}", rng.below(3)) : "";
      }
      ops.push_back(op);
    }
    const bool expected = brute_force(ops);
    (expected ? good : bad) += 1;
    EXPECT_EQ(is_good(ops), expected) << "round " << round;
  }
  EXPECT_GT(good, 300);
  EXPECT_GT(bad, 300);
}

// What `clients` clients would see of one key if each operation happened at some moment within it.
std::vector<KeyOp> draw_history(Rng& rng, size_t count, size_t clients, double unknown) {
  std::vector<std::pair<int64_t, KeyOp>> moments;
  std::vector<int64_t> free(clients);
  for (size_t i = 0; i < count; ++i) {
    const size_t client = rng.below(clients);
    KeyOp op = draw_op(rng, i, 0, count);
    if (rng.bernoulli(0.35)) op.kind = Kind::kGet;
    if (op.kind == Kind::kGet) op.value.clear();
    if (op.kind == Kind::kDelete && rng.bernoulli(0.8)) {
      op.kind = Kind::kPut;
      op.value = fmt::format("{}", i);
    }
    op.client = client;
    op.began = free[client] + static_cast<int64_t>(rng.below(50));
    const int64_t moment = op.began + static_cast<int64_t>(rng.below(300));
    op.ended = moment + static_cast<int64_t>(rng.below(300));
    free[client] = *op.ended + 1;
    moments.emplace_back(moment, op);
  }
  std::ranges::sort(moments, {},
                    [](const auto& each) { return std::pair(each.first, each.second.client); });
  PlainKey key;
  std::vector<KeyOp> ops;
  for (auto& [moment, op] : moments) {
    const bool is_unknown = op.kind != Kind::kGet && rng.bernoulli(unknown);
    if (!is_unknown || rng.bernoulli(0.5)) key.carry_out(op);
    if (is_unknown) {
      op.ended.reset();
      op.version = 0;
    }
    ops.push_back(op);
  }
  return ops;
}

TEST(History, FindsTheOrderOfWhatHappened) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed);
    const std::vector<KeyOp> ops = draw_history(rng, 300, 2 + rng.below(8), 0.05);
    EXPECT_TRUE(is_good(ops)) << "seed " << seed;
    EXPECT_TRUE(is_good(ops, true)) << "seed " << seed;
  }
}

TEST(History, FindsOneReadOfTheWrongTimeAmongThousands) {
  int found = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Rng rng(seed);
    std::vector<KeyOp> ops = draw_history(rng, 2000, 4, 0.002);
    // A read long after a write was overwritten sees that write.
    size_t early = 400;
    while (ops[early].kind != Kind::kPut || !ops[early].ended) ++early;
    size_t late = 1400;
    while (ops[late].kind != Kind::kGet || !ops[late].done) ++late;
    ops[late].value = ops[early].value;
    ops[late].version = ops[early].version;
    found += is_good(ops, true) ? 0 : 1;
  }
  EXPECT_EQ(found, 40);
}

TEST(History, JudgesAHundredThousandOperationsOfOneHotKeyAndOfMany) {
  for (const size_t keys : {1, 8}) {
    Rng rng(keys);
    History history;
    for (size_t key = 0; key < keys; ++key) {
      for (KeyOp& op : draw_history(rng, 100'000 / keys, 8, 0.0005)) {
        history.add(fmt::format("key{}", key), std::move(op));
      }
    }
    EXPECT_EQ(history.size(), 100'000u);
    const HistoryVerdict verdict = history.check({.versions_grow = true});
    EXPECT_EQ(verdict.kind, HistoryVerdict::Kind::kGood) << verdict.text;
    // Next to nothing is tried twice.
    EXPECT_LT(verdict.steps, 400'000u);
  }
}

}  // namespace
}  // namespace cairn::kv
