// SPDX-License-Identifier: Apache-2.0
#include "loadgen/drive_load.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/rng.h"
#include "env/memory.h"
#include "task/deadline.h"

namespace cairn::loadgen {

namespace {

// The part of a drive that a load uses, in whole requests.
struct Places {
  uint64_t first_block = 0;
  uint64_t request_blocks = 1;
  uint64_t count = 1;
};

Places places_of(const DriveLoad& load, const drive::Geometry& geometry) {
  const uint64_t length = load.length != 0 ? load.length : geometry.bytes() - load.offset;
  return {.first_block = load.offset / geometry.block_size,
          .request_blocks = load.request_size / geometry.block_size,
          .count = length / load.request_size};
}

// One run of a load: `depth` workers that share what is here.
class LoadRun {
 public:
  LoadRun(env::Env& env, drive::Drive& drive, const DriveLoad& load, task::CancelToken token)
      : env_(env),
        drive_(drive),
        load_(load),
        token_(token),
        places_(places_of(load, drive.geometry())),
        rng_(load.seed),
        start_(now()),
        begin_(start_ + load.warm_up),
        end_(begin_ + load.duration) {}

  task::Task<LoadResult> run(MutableBytes memory, LoadWatch watch) {
    watch_ = std::move(watch);
    std::vector<task::Task<void>> workers;
    workers.reserve(load_.depth);
    for (uint32_t i = 0; i < load_.depth; ++i) {
      workers.push_back(work(memory.subspan(i * load_.request_size, load_.request_size)));
    }
    for (task::Task<void>& worker : workers) co_await worker;
    finish();
    co_return std::move(result_);
  }

 private:
  Time now() const { return load_.clock != nullptr ? load_.clock() : env_.now(); }
  bool is_open() const { return load_.rate > 0; }
  bool is_measured(Time at) const { return at >= begin_ && at < end_; }
  Time due(uint64_t index) const {
    return start_ + Duration::from_seconds(static_cast<double>(index) / load_.rate);
  }

  // Notices that the measured time has begun or ended.
  void look_at(Time at) {
    if (!has_begun_ && at >= begin_ && !stopped_at_) {
      has_begun_ = true;
      if (watch_.begins) watch_.begins();
    }
    if (at >= end_) end_watch();
  }
  void end_watch() {
    if (!has_begun_ || std::exchange(has_ended_, true)) return;
    if (watch_.ended) watch_.ended();
  }
  void stop(Time at) {
    if (!stopped_at_) stopped_at_ = std::min(at, end_);
  }
  bool goes_on(Time at) {
    look_at(at);
    if (token_.requested()) stop(at);
    if (stopped_at_ || at >= end_) return false;
    return load_.requests_max == 0 || sent_ < load_.requests_max;
  }

  task::Task<void> work(MutableBytes memory) {
    for (Time from = now(); goes_on(from); from = now()) {
      const uint64_t index = sent_++;
      if (is_open()) {
        from = due(index);
        if (from > env_.now()) {
          const Result<void> slept = co_await task::sleep_until(env_, from, token_);
          if (!slept || !may_send(from)) {
            --sent_;
            break;
          }
        }
      }
      const drive::Request request = next_request();
      const Result<void> done = co_await drive_.submit(request, {&memory, 1}, {}, token_);
      completed(request, done, from);
    }
  }

  // After a wait: others may have ended the load meanwhile, and the time may be over.
  bool may_send(Time due) {
    look_at(now());
    return !stopped_at_ && due < end_;
  }

  drive::Request next_request() {
    const bool reads = rng_.bernoulli(load_.read_share);
    const bool in_order = load_.order == DriveLoad::Order::kSequential;
    const uint64_t place = in_order ? next_place_++ % places_.count : rng_.below(places_.count);
    return {.kind = reads ? drive::Request::Kind::kRead : drive::Request::Kind::kWrite,
            .durable = !reads && load_.durable,
            .lba = Lba(places_.first_block + place * places_.request_blocks),
            .blocks = places_.request_blocks};
  }

  void completed(const drive::Request& request, const Result<void>& done, Time from) {
    const Time at = now();
    look_at(at);
    if (!done) {
      const bool was_cancelled = token_.requested() && done.error() == token_.error().code();
      if (!was_cancelled && !result_.error) {
        result_.error = done.error();
        result_.error_lba = request.lba;
        result_.error_in_write = request.writes();
      }
      return stop(at);
    }
    last_ = at;
    if (is_measured(at)) ++result_.completed;
    if (is_measured(is_open() ? from : at)) count(request.writes(), at - from);
  }
  void count(bool is_write, Duration latency) {
    (is_write ? result_.writes : result_.reads) += 1;
    (is_write ? result_.bytes_written : result_.bytes_read) += load_.request_size;
    record(is_write, latency);
  }
  void record(bool is_write, Duration latency) {
    const auto ns = static_cast<uint64_t>(std::max<int64_t>(latency.ns, 0));
    (is_write ? result_.write_latency_ns : result_.read_latency_ns).record(ns);
  }

  void finish() {
    end_watch();
    const bool all_sent = load_.requests_max != 0 && sent_ >= load_.requests_max;
    const Time end = stopped_at_ ? *stopped_at_ : all_sent ? std::min(last_, end_) : end_;
    result_.request_size = load_.request_size;
    result_.measured = std::max(end - begin_, 0_s);
    if (result_.measured > 0_s) {
      result_.per_second = static_cast<double>(result_.completed) / result_.measured.seconds();
    }
    if (!is_open() || all_sent) return;
    for (uint64_t i = sent_; due(i) < end; ++i) {
      if (due(i) < begin_) continue;
      ++result_.unsent;
      record(!rng_.bernoulli(load_.read_share), end - due(i));
    }
  }

  env::Env& env_;
  drive::Drive& drive_;
  const DriveLoad load_;
  task::CancelToken token_;
  const Places places_;
  Rng rng_;
  const Time start_;
  const Time begin_;
  const Time end_;
  LoadWatch watch_;
  bool has_begun_ = false;
  bool has_ended_ = false;
  uint64_t sent_ = 0;
  uint64_t next_place_ = 0;
  Time last_;  // when the last one completed
  std::optional<Time> stopped_at_;
  LoadResult result_;
};

}  // namespace

Histogram LoadResult::latency_ns() const {
  Histogram all = read_latency_ns;
  all.merge(write_latency_ns);
  return all;
}

void LoadResult::add(const LoadResult& other) {
  reads += other.reads;
  writes += other.writes;
  bytes_read += other.bytes_read;
  bytes_written += other.bytes_written;
  measured = std::max(measured, other.measured);
  completed += other.completed;
  per_second += other.per_second;
  request_size = other.request_size;
  unsent += other.unsent;
  read_latency_ns.merge(other.read_latency_ns);
  write_latency_ns.merge(other.write_latency_ns);
  if (error || !other.error) return;
  error = other.error;
  error_lba = other.error_lba;
  error_in_write = other.error_in_write;
}

Result<void> check_load(const DriveLoad& load, const drive::Geometry& geometry) {
  const uint64_t block = geometry.block_size;
  if (load.request_size == 0 || load.request_size % block != 0) {
    return fail(Errc::kInvalid, "the request is no multiple of the drive's block",
                static_cast<int32_t>(block));
  }
  if (load.request_size / block > geometry.transfer_blocks) {
    return fail(Errc::kInvalid, "the request is larger than the drive takes");
  }
  if (load.offset % block != 0) {
    return fail(Errc::kInvalid, "the range does not begin with a block of the drive",
                static_cast<int32_t>(block));
  }
  const uint64_t size = geometry.bytes();
  if (load.offset >= size || load.length > size - load.offset) {
    return fail(Errc::kInvalid, "the range ends beyond the drive");
  }
  if (places_of(load, geometry).count == 0) {
    return fail(Errc::kInvalid, "the range is smaller than one request");
  }
  if (load.depth < 1 || load.depth > kLoadDepthMax) {
    return fail(Errc::kInvalid, "the depth is none from 1 to 4096");
  }
  const bool is_share = load.read_share >= 0 && load.read_share <= 1;
  if (!is_share) return fail(Errc::kInvalid, "the share of reads is none from 0 to 1");
  if (!(load.rate >= 0)) return fail(Errc::kInvalid, "the rate is below 0");
  return {};
}

task::Task<Result<LoadResult>> run_load(env::Env& env, drive::Drive& drive, DriveLoad load,
                                        task::CancelToken token, LoadWatch watch) {
  if (Result<void> checked = check_load(load, drive.geometry()); !checked) {
    co_return fail(checked.error());
  }
  Result<std::unique_ptr<env::Memory>> memory = env.map_memory(load.depth * load.request_size);
  if (!memory) co_return fail(memory.error());
  if (load.read_share < 1) Rng(load.seed).fill((*memory)->bytes());
  LoadRun run(env, drive, load, token);
  LoadResult result = co_await run.run((*memory)->bytes(), std::move(watch));
  co_return result;
}

}  // namespace cairn::loadgen
