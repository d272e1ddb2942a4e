// SPDX-License-Identifier: Apache-2.0
// Drives of boxes for tests: media that outlive the processes that use them, with a volatile cache,
// that lose power, go away, come back empty, fail, and serve those hosts only that registered and
// were not fenced since.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "drive/drive.h"
#include "env/env.h"
#include "task/deadline.h"
#include "task/gate.h"
#include "volume/mega_vol.h"

namespace cairn::volume {

class TestMedium {
 public:
  static constexpr uint32_t kBlock = 4096;
  using Page = std::array<std::byte, kBlock>;
  struct Counters {
    uint64_t reads = 0;
    uint64_t writes = 0;
    uint64_t flushes = 0;
  };

  TestMedium(uint64_t bytes, uint64_t seed) : blocks_(bytes / kBlock), rng_(seed) { renew(); }

  // Of what was not flushed each block stays or goes.
  void lose_power() {
    for (auto& [block, old] : unflushed_) {
      if (rng_.bernoulli(0.5)) put_back(block, old);
    }
    unflushed_.clear();
    incarnation_.opening = rng_.next() | 1;
  }
  // Another medium in its place, without anything.
  void empty() {
    pages_.clear();
    unflushed_.clear();
    was_emptied = true;
    renew();
  }
  // The box serves less of it from now on.
  void shrink(uint64_t bytes) { blocks_ = bytes / kBlock; }
  // As a box does it: a host that registers anew is served again.
  void add_host(const std::string& host) {
    hosts_.insert(host);
    ++registrations_[host];
  }
  void fence(const std::string& host) { hosts_.erase(host); }
  void keep_only(const std::vector<std::string>& hosts) {
    std::erase_if(hosts_, [&](const std::string& each) {
      return std::ranges::find(hosts, each) == hosts.end();
    });
  }
  bool has_host(const std::string& host) const { return hosts_.contains(host); }
  uint64_t registrations(const std::string& host) const {
    const auto found = registrations_.find(host);
    return found == registrations_.end() ? 0 : found->second;
  }

  bool was_emptied = false;
  bool is_down = false;     // nobody answers
  bool is_cut_off = false;  // from arbiters, which cannot fence anybody there
  uint32_t box = 0;         // whose drives write several at once; 0: of one that cannot
  double read_errors = 0;   // probability, of each
  double write_errors = 0;
  Duration latency_max = 50_us;
  Duration close_takes;  // of who has it open
  Counters counters;

  uint64_t blocks() const { return blocks_; }
  drive::Incarnation incarnation() const { return incarnation_; }
  Rng& rng() { return rng_; }

  void read(uint64_t block, MutableBytes into) const {
    const auto found = pages_.find(block);
    if (found == pages_.end()) {
      std::ranges::fill(into, std::byte{0});
    } else {
      std::ranges::copy(found->second, into.begin());
    }
  }
  void write(uint64_t block, Bytes from) {
    keep_old(block);
    std::ranges::copy(from, pages_[block].begin());
  }
  void clear(uint64_t block) {
    if (!pages_.contains(block)) return;
    keep_old(block);
    pages_.erase(block);
  }
  void make_durable(uint64_t block) { unflushed_.erase(block); }
  void flush() { unflushed_.clear(); }
  bool is_zero(uint64_t block) const {
    const auto found = pages_.find(block);
    return found == pages_.end() ||
           std::ranges::all_of(found->second, [](std::byte byte) { return byte == std::byte{0}; });
  }

 private:
  void renew() { incarnation_ = {.medium = rng_.next() | 1, .opening = rng_.next() | 1}; }
  void keep_old(uint64_t block) {
    const auto found = pages_.find(block);
    unflushed_.try_emplace(block,
                           found == pages_.end() ? std::nullopt : std::optional(found->second));
  }
  void put_back(uint64_t block, const std::optional<Page>& old) {
    if (old) {
      pages_[block] = *old;
    } else {
      pages_.erase(block);
    }
  }

  uint64_t blocks_;
  Rng rng_;
  drive::Incarnation incarnation_;
  std::map<uint64_t, Page> pages_;                     // others are zero
  std::map<uint64_t, std::optional<Page>> unflushed_;  // as they were when last durable
  std::set<std::string> hosts_;                        // that registered
  std::map<std::string, uint64_t> registrations_;      // how often each did
};

// A medium as one host has it.
class TestDrive final : public drive::Drive {
 public:
  TestDrive(env::Env& env, TestMedium& medium, std::string host)
      : env_(env), medium_(medium), host_(std::move(host)), seen_(medium.incarnation()) {
    geometry_.blocks = medium.blocks();
    geometry_.discard_blocks = 1;
  }
  const drive::Geometry& geometry() const override { return geometry_; }
  drive::Incarnation incarnation() const override { return medium_.incarnation(); }
  task::Task<void> close() override {
    co_await gate_.close();
    if (medium_.close_takes > Duration{}) {
      [[maybe_unused]] const Result<void> slept =
          co_await task::sleep_for(env_, medium_.close_takes);
    }
    // A process that dies says nothing more.
    if (!env_.stop_token().requested()) medium_.fence(host_);
  }
  bool can_replicate_to(const drive::Drive& other) const override {
    const auto* it = dynamic_cast<const TestDrive*>(&other);
    return it != nullptr && it != this && medium_.box != 0 && it->medium_.box == medium_.box;
  }

 private:
  using Kind = drive::Request::Kind;

  void start(drive::DriveOp& op) override { gate_.spawn(serve(op)); }
  void cancel(drive::DriveOp&) override {}

  task::Task<void> serve(drive::DriveOp& op) {
    const Duration latency{static_cast<int64_t>(
        medium_.rng().between(1000, static_cast<uint64_t>(medium_.latency_max.ns)))};
    const Result<void> slept = co_await task::sleep_for(env_, latency, op.token());
    // A request that is stopped may have come there.
    const bool arrives = slept || medium_.rng().bernoulli(0.5);
    Result<void> done = arrives ? run(op.request, op) : Result<void>();
    for (const drive::Replica& replica : op.request.replicas) {
      drive::Request there = op.request;
      there.lba = replica.lba;
      const Result<void> also =
          arrives ? static_cast<TestDrive&>(*replica.drive).run(there, op) : Result<void>();
      if (done) done = also;
    }
    op.complete(slept ? done : op.cancelled());
  }

  Result<void> run(const drive::Request& request, drive::DriveOp& op) {
    if (medium_.is_down) return fail(Errc::kUnreachable, "the box does not answer");
    if (!medium_.has_host(host_)) return fail(Errc::kDenied, "the host was fenced");
    // A medium that came back empty is not the one that was opened.
    if (seen_.medium != medium_.incarnation().medium) return fail(Errc::kIo, "a new medium");
    if (request.kind == Kind::kFlush) return flush();
    geometry_.blocks = medium_.blocks();
    if (request.lba.value() + request.blocks > geometry_.blocks) {
      return fail(Errc::kInvalid, "out of range");
    }
    if (!request.writes()) {
      ++medium_.counters.reads;
      if (medium_.rng().bernoulli(medium_.read_errors)) return fail(Errc::kIo, "a read error");
      return transfer(request, op);
    }
    ++medium_.counters.writes;
    has_written_ = true;
    // What fails may be there in part.
    if (medium_.rng().bernoulli(medium_.write_errors)) {
      if (medium_.rng().bernoulli(0.5)) {
        const Result<void> torn = transfer(request, op);
        (void)torn;
      }
      return fail(Errc::kIo, "a write error");
    }
    return transfer(request, op);
  }

  Result<void> flush() {
    ++medium_.counters.flushes;
    const bool has_lost = has_written_ && seen_ != medium_.incarnation();
    seen_ = medium_.incarnation();
    has_written_ = false;
    if (has_lost) return fail(Errc::kIo, "the box lost power since");
    medium_.flush();
    return {};
  }

  Result<void> transfer(const drive::Request& request, drive::DriveOp& op) {
    std::vector<std::byte> all(request.blocks * TestMedium::kBlock);
    if (request.kind == Kind::kWrite) gather(op.data(), all);
    for (uint64_t i = 0; i < request.blocks; ++i) {
      const uint64_t block = request.lba.value() + i;
      const MutableBytes bytes =
          MutableBytes(all).subspan(i * TestMedium::kBlock, TestMedium::kBlock);
      switch (request.kind) {
        case Kind::kRead:
          medium_.read(block, bytes);
          break;
        case Kind::kWrite:
          medium_.write(block, bytes);
          break;
        case Kind::kDiscard:
        case Kind::kWriteZeroes:
          medium_.clear(block);
          break;
        default:
          return fail(Errc::kUnsupported, "not in tests");
      }
      if (request.durable) medium_.make_durable(block);
    }
    if (request.kind == Kind::kRead) scatter(all, op.data());
    return {};
  }
  static void gather(std::span<const MutableBytes> pieces, MutableBytes into) {
    for (const MutableBytes piece : pieces) {
      std::ranges::copy(piece, into.begin());
      into = into.subspan(piece.size());
    }
  }
  static void scatter(Bytes from, std::span<const MutableBytes> pieces) {
    for (const MutableBytes piece : pieces) {
      std::ranges::copy(from.first(piece.size()), piece.begin());
      from = from.subspan(piece.size());
    }
  }

  env::Env& env_;
  TestMedium& medium_;
  const std::string host_;
  drive::Incarnation seen_;
  bool has_written_ = false;
  drive::Geometry geometry_;
  task::Gate gate_;
};

// Media by their URIs.
using TestMedia = std::map<std::string, std::unique_ptr<TestMedium>>;

class TestSource final : public MegaVolSource {
 public:
  // `media` outlives it.
  TestSource(env::Env& env, TestMedia& media) : env_(env), media_(media) {}

  task::Task<Result<std::unique_ptr<drive::Drive>>> open(std::string uri, std::string host,
                                                         task::CancelToken) override {
    const auto found = media_.find(uri);
    if (found == media_.end()) co_return fail(Errc::kNotFound, "there is no such medium");
    if (found->second->is_down) co_return fail(Errc::kUnreachable, "the box does not answer");
    found->second->add_host(host);
    co_return std::make_unique<TestDrive>(env_, *found->second, std::move(host));
  }

 private:
  env::Env& env_;
  TestMedia& media_;
};

}  // namespace cairn::volume
