// SPDX-License-Identifier: Apache-2.0
// Small simulators for tests: servers that take one request at a time, in order of arrival. Slow
// drives and slow links disturb each other, as large models do.
#pragma once

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "snis/models.h"

namespace cairn::snis {

// One at a time; how long each takes is told when it comes.
class Queue {
 public:
  void push(RequestNumber number, int64_t duration, int64_t now) {
    if (waiting_.empty()) free_at_ = now;
    free_at_ += duration;
    waiting_.push_back({number, free_at_});
  }
  int64_t next() const { return waiting_.empty() ? kNever : waiting_.front().second; }
  template <class Told>
  void advance(int64_t until, const Told& told) {
    while (!waiting_.empty() && waiting_.front().second <= until) {
      const auto [number, at] = waiting_.front();
      waiting_.pop_front();
      told(number, at);
    }
  }

 private:
  std::deque<std::pair<RequestNumber, int64_t>> waiting_;
  int64_t free_at_ = 0;
};

// A nanosecond for each byte, twice as long for writes.
class QueueDrive final : public Drive {
 public:
  void submit(RequestNumber number, const trace::Record& request, Nanos at) override {
    queue_.push(number, int64_t{request.bytes} * (request.write ? 2 : 1), at);
  }
  Nanos next_event() const override { return queue_.next(); }
  void advance(Nanos until, DriveSink& sink) override {
    queue_.advance(until, [&](RequestNumber number, Nanos at) { sink.served(number, at); });
  }

 private:
  Queue queue_;
};

// One wire for all, so that reads and writes wait for each other.
class QueueFabric final : public Fabric {
 public:
  explicit QueueFabric(Picos per_byte) : per_byte_(per_byte) {}
  void start(RequestNumber number, const trace::Record& request, Picos at) override {
    queue_.push(number, request.bytes * per_byte_, at);
  }
  Picos next_event() const override { return queue_.next(); }
  void advance(Picos until, FabricSink& sink) override {
    queue_.advance(until, [&](RequestNumber number, Picos at) { sink.carried(number, at); });
  }
  NetworkFacts facts() const override { return {}; }

 private:
  Picos per_byte_;
  Queue queue_;
};

class QueueModels final : public Models {
 public:
  explicit QueueModels(uint32_t targets, Picos per_byte = 1000)
      : targets_(targets), per_byte_(per_byte) {}
  uint32_t targets() const override { return targets_; }
  std::unique_ptr<Drive> make_drive(uint32_t) const override {
    return std::make_unique<QueueDrive>();
  }
  std::unique_ptr<Fabric> make_fabric() const override {
    return std::make_unique<QueueFabric>(per_byte_);
  }

 private:
  uint32_t targets_;
  Picos per_byte_;
};

}  // namespace cairn::snis
