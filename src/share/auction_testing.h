// SPDX-License-Identifier: Apache-2.0
// A market for tests: clients that always want more, drives and ports that do so much and no more,
// an auction, and a network between clients and auction that may lose, repeat and delay. In virtual
// time, in steps of half a millisecond.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "share/auction.h"
#include "share/slices.h"

namespace cairn::share {

inline constexpr uint64_t kMB = 1'000'000;

struct Buyer {
  std::string volume;
  Terms terms;
  uint32_t port = 0;
  std::vector<uint32_t> drives = {0};
  IoType type = IoType::kRead;
  uint32_t bytes = 65536;
  size_t depth = 32;
  bool wants = true;
};

class Market {
 public:
  static constexpr Duration kStep = 500_us;
  static constexpr uint32_t kWriteCost = 30;  // in tenths

  Market(uint64_t seed, std::vector<uint64_t> drives, std::vector<uint64_t> ports)
      : rng_(seed), drive_rates_(std::move(drives)), port_rates_(std::move(ports)) {
    drives_.resize(drive_rates_.size());
    ports_.resize(port_rates_.size());
    start_auction();
  }

  void start_auction() {
    auction = std::make_unique<Auction>(next_auction_++, now);
    for (uint32_t i = 0; i < drive_rates_.size(); ++i) {
      auction->set_drive(DriveId(i), {.name = "b1/d" + std::to_string(i),
                                      .rate = drive_rates_[i],
                                      .pipe = drive_rates_[i],
                                      .guaranteed = drive_rates_[i]});
    }
    for (uint32_t i = 0; i < port_rates_.size(); ++i) {
      auction->set_port(PortId(i), "b1/port" + std::to_string(i), port_rates_[i]);
    }
    for (Client& client : clients) open(client);
  }
  void stop_auction() { auction.reset(); }

  size_t add(Buyer buyer) {
    Client& client = clients.emplace_back();
    client.buyer = std::move(buyer);
    for (const uint32_t drive : client.buyer.drives) client.slices.emplace(drive, DriveId(drive));
    if (auction) open(client);
    return clients.size() - 1;
  }
  // The client's process dies and starts again: what it was granted it does not know any more.
  void restart(size_t which) {
    Client& client = clients[which];
    client.waiting.clear();
    client.outstanding = client.in_box;
    for (auto& [drive, slices] : client.slices) slices = Slices(DriveId(drive));
    ++client.life;
    if (auction) open(client);
  }

  void run(Duration time) {
    for (const Time end = now + time; now < end; now = now + kStep) step();
  }
  // Weighted bytes in a second that a client was served since the last time.
  void mark() {
    marked_ = now;
    for (Client& client : clients) client.served = client.weighted_served = 0;
  }
  double bytes_per_s(size_t which) const { return rate(clients[which].served); }
  double weighted_per_s(size_t which) const { return rate(clients[which].weighted_served); }
  double all_per_s() const {
    double all = 0;
    for (size_t i = 0; i < clients.size(); ++i) all += weighted_per_s(i);
    return all;
  }

  struct Job {
    size_t client = 0;
    uint32_t drive = 0;
    uint64_t bytes = 0;
    uint64_t cost = 0;
    Time made;
    uint64_t life = 0;
  };
  struct Waiting {
    std::deque<Job> jobs;
    uint64_t cost = 0;
    uint64_t bytes = 0;
  };
  struct Client {
    Buyer buyer;
    std::map<uint32_t, Slices> slices;
    std::optional<TenantId> tenant;
    uint64_t life = 0;
    std::map<uint32_t, Waiting> waiting;  // by drive
    size_t outstanding = 0;
    size_t in_box = 0;
    uint64_t served = 0;
    uint64_t weighted_served = 0;
    Duration longest_wait{};  // for room
  };

  Time now{(1_s).ns};
  std::unique_ptr<Auction> auction;
  std::deque<Client> clients;
  // What the network does to messages between clients and auction.
  double loses = 0;
  double repeats = 0;
  Duration delays{};
  // Of each drive, weighted bytes that clients took room for, by step since the beginning.
  std::map<uint32_t, std::vector<uint64_t>> taken;

  // The most that was taken of a drive in any time so long, beyond what it does in it.
  int64_t max_beyond(uint32_t drive, Duration window, size_t first_step = 0) {
    std::vector<uint64_t>& steps = taken[drive];
    steps.resize(step_ + 1);
    const auto size = static_cast<size_t>(window / kStep);
    const auto does = static_cast<int64_t>(drive_rates_[drive] / 1000 * size / 2);
    int64_t most = INT64_MIN;
    int64_t sum = 0;
    for (size_t i = first_step; i < steps.size(); ++i) {
      sum += static_cast<int64_t>(steps[i]);
      if (i >= first_step + size) sum -= static_cast<int64_t>(steps[i - size]);
      most = std::max(most, sum - does);
    }
    return most;
  }
  size_t steps() const { return step_; }

 private:
  struct Message {
    Time at;
    size_t client = 0;
    uint64_t life = 0;
    std::optional<SliceRequest> request;
    std::optional<SliceGrant> grant;
  };
  struct Stage {
    std::deque<Job> jobs;
    uint64_t done = 0;  // of the first
  };

  double rate(uint64_t amount) const {
    return static_cast<double>(amount) / (now - marked_).seconds();
  }
  void open(Client& client) {
    std::vector<DriveId> drives;
    for (const uint32_t drive : client.buyer.drives) drives.emplace_back(drive);
    const Attempt<TenantId> opened =
        auction->open(client.buyer.volume, client.buyer.terms,
                      Auction::behind(PortId(client.buyer.port), drives));
    ASSERT_TRUE(opened) << opened.error().text;
    client.tenant = *opened;
  }
  void send(Message message) {
    if (rng_.bernoulli(loses)) return;
    message.at =
        now + Duration{delays.ns == 0
                           ? 0
                           : static_cast<int64_t>(rng_.below(static_cast<uint64_t>(delays.ns)))};
    if (rng_.bernoulli(repeats)) wire_.push_back(message);
    wire_.push_back(std::move(message));
  }
  void deliver() {
    for (bool any = true; any;) {
      any = false;
      for (size_t i = 0; i < wire_.size(); ++i) {
        if (wire_[i].at > now) continue;
        const Message message = std::move(wire_[i]);
        wire_.erase(wire_.begin() + static_cast<std::ptrdiff_t>(i));
        any = true;
        Client& client = clients[message.client];
        if (message.life != client.life) break;
        if (message.grant) {
          client.slices.at(message.grant->drive.value()).granted(*message.grant, now);
        } else if (auction) {
          const Result<SliceGrant> grant = auction->request(*client.tenant, *message.request, now);
          if (grant)
            send({.at = {},
                  .client = message.client,
                  .life = message.life,
                  .request = {},
                  .grant = *grant});
        }
        break;
      }
    }
  }
  void fill(size_t which) {
    Client& client = clients[which];
    const Buyer& buyer = client.buyer;
    while (buyer.wants && client.outstanding < buyer.depth) {
      const uint32_t drive = buyer.drives[rng_.below(buyer.drives.size())];
      const uint64_t cost = weighted(buyer.type, buyer.bytes, kWriteCost);
      Waiting& waiting = client.waiting[drive];
      waiting.jobs.push_back({.client = which,
                              .drive = drive,
                              .bytes = buyer.bytes,
                              .cost = cost,
                              .made = now,
                              .life = client.life});
      waiting.cost += cost;
      waiting.bytes += buyer.bytes;
      ++client.outstanding;
    }
    if (buyer.wants) return;
    for (const auto& [drive, waiting] : client.waiting) client.outstanding -= waiting.jobs.size();
    client.waiting.clear();
  }
  void issue(size_t which) {
    Client& client = clients[which];
    const bool writes = client.buyer.type == IoType::kWrite;
    for (auto& [drive, slices] : client.slices) {
      Waiting& waiting = client.waiting[drive];
      while (!waiting.jobs.empty() && slices.take(waiting.jobs.front().cost, now)) {
        const Job job = waiting.jobs.front();
        waiting.jobs.pop_front();
        waiting.cost -= job.cost;
        waiting.bytes -= job.bytes;
        client.longest_wait = std::max(client.longest_wait, now - job.made);
        ports_[client.buyer.port].jobs.push_back(job);
        ++client.in_box;
        std::vector<uint64_t>& steps = taken[drive];
        steps.resize(step_ + 1);
        steps[step_] += job.cost;
      }
      slices.set_waiting(waiting.cost, writes ? waiting.bytes : 0, writes ? 0 : waiting.bytes);
      if (std::optional<SliceRequest> request = slices.request(now)) {
        send({.at = {}, .client = which, .life = client.life, .request = *request, .grant = {}});
      }
    }
  }
  // Serves a stage for a step. Calls done(job) for each that is through.
  template <class Size, class Done>
  static void serve(Stage& stage, uint64_t rate, Size size, Done done) {
    uint64_t budget = rate / 2000;
    while (!stage.jobs.empty()) {
      const uint64_t needs = size(stage.jobs.front()) - stage.done;
      if (needs > budget) {
        stage.done += budget;
        return;
      }
      budget -= needs;
      stage.done = 0;
      done(stage.jobs.front());
      stage.jobs.pop_front();
    }
  }
  void step() {
    for (size_t i = 0; i < clients.size(); ++i) {
      fill(i);
      issue(i);
    }
    if (auction) auction->advance(now);
    deliver();
    for (size_t i = 0; i < clients.size(); ++i) issue(i);
    for (size_t i = 0; i < ports_.size(); ++i) {
      serve(
          ports_[i], port_rates_[i], [](const Job& job) { return job.bytes; },
          [&](const Job& job) { drives_[job.drive].jobs.push_back(job); });
    }
    for (size_t i = 0; i < drives_.size(); ++i) {
      serve(
          drives_[i], drive_rates_[i], [](const Job& job) { return job.cost; },
          [&](const Job& job) {
            Client& client = clients[job.client];
            client.served += job.bytes;
            client.weighted_served += job.cost;
            if (job.life == client.life) client.slices.at(job.drive).done();
            --client.outstanding;
            --client.in_box;
          });
    }
    ++step_;
  }

  Rng rng_;
  std::vector<uint64_t> drive_rates_;
  std::vector<uint64_t> port_rates_;
  std::vector<Stage> drives_;
  std::vector<Stage> ports_;
  std::deque<Message> wire_;
  uint64_t next_auction_ = 1;
  size_t step_ = 0;
  Time marked_{};
};

}  // namespace cairn::share
