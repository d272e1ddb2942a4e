// SPDX-License-Identifier: Apache-2.0
// Agents that report steady traffic to a controller, in virtual time and without a network.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "view/agent.h"
#include "view/controller.h"

namespace cairn::view {

// Two ports of 1 GB/s and four drives of 1 GB/s.
inline BoxSpec test_box(std::string name = "b1") {
  BoxSpec box{.name = std::move(name), .ports = 2, .port_bytes_per_s = 1'000'000'000, .drives = {}};
  for (int i = 0; i < 4; ++i) {
    box.drives.push_back(
        {.name = "d" + std::to_string(i), .profile = {.bytes_per_s = 1'000'000'000}});
  }
  return box;
}

// Requests of one kind at one drive, evenly spaced.
struct Stream {
  uint16_t drive = 0;
  IoType type = IoType::kRead;
  uint32_t bytes = 4096;
  Duration every = 1_ms;
  Duration rtt = 100_us;
};

// A client with one session.
struct TestClient {
  TestClient(std::string its_name, const std::string& volume, uint16_t port, uint64_t incarnation)
      : name(std::move(its_name)), agent(incarnation) {
    const Result<SessionId> opened =
        agent.open_session({.id = {}, .volume = volume, .box = "b1", .port = port});
    EXPECT_TRUE(opened);
    session = opened.value_or(SessionId());
  }
  std::string name;
  Agent agent;
  SessionId session;
  std::vector<Stream> streams;
  std::vector<Time> next;
  Duration clock_ahead{};  // of the controller's
};

struct TestView {
  explicit TestView(BoxSpec box = test_box())
      : controller(std::make_unique<Controller>(1, std::vector{std::move(box)})) {}

  TestClient& add(const std::string& name, const std::string& volume, uint16_t port = 0) {
    return clients.emplace_back(name, volume, port, 100 + clients.size());
  }
  // All requests of that time, and what agents then send.
  void run(Duration time) {
    for (const Time end = now + time; now < end; now = now + 5_ms) {
      for (TestClient& client : clients) {
        issue(client);
        if (is_connected) send(client);
      }
      controller->advance(now);
    }
  }
  void issue(TestClient& client) const {
    client.next.resize(client.streams.size(), now);
    for (size_t i = 0; i < client.streams.size(); ++i) {
      const Stream& stream = client.streams[i];
      for (; client.next[i] < now + 5_ms; client.next[i] = client.next[i] + stream.every) {
        client.agent.note({.session = client.session,
                           .drive = stream.drive,
                           .type = stream.type,
                           .bytes = stream.bytes,
                           .rtt = stream.rtt,
                           .completed = client.next[i] + client.clock_ahead});
      }
    }
  }
  void send(TestClient& client) const {
    for (int i = 0; i < 100; ++i) {
      if (client.agent.must_attach()) {
        const Result<AttachReply> reply =
            controller->attach(client.name, client.agent.attach_request(), now);
        ASSERT_TRUE(reply) << reply.error().text();
        client.agent.attached(*reply);
      }
      const Time its_now = now + client.clock_ahead + 5_ms;
      const std::optional<ReportRequest> batch = client.agent.report_request(its_now);
      if (!batch) break;
      const Result<ReportReply> reply = controller->report(client.name, *batch, now + 5_ms);
      if (reply) {
        client.agent.reported(*reply);
      } else {
        client.agent.refused(reply.error().code());
      }
    }
    client.agent.synced(controller->sync(client.agent.stale(), now));
  }

  Time now{(1_s).ns};
  std::unique_ptr<Controller> controller;
  std::deque<TestClient> clients;
  bool is_connected = true;
};

inline ComponentId drive_id(uint16_t index) { return {BoxId(0), Kind::kDrive, index}; }

}  // namespace cairn::view
