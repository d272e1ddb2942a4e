// SPDX-License-Identifier: Apache-2.0
// Any bytes as the description of a network: refused, or a network through which a flow gets.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "model/net/network.h"
#include "plan/net/net_topology.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cairn;
  struct Done final : net::FlowSink {
    void flow_done(const net::FlowDone&) override { ++flows; }
    int flows = 0;
  };
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Attempt<net::Topology> topology = plan::parse_topology(text);
  if (!topology) {
    CHECK(!topology.error().text.empty());
    return 0;
  }
  if (topology->nodes().size() > 64) return 0;
  for (const net::Link& link : topology->links()) {
    if (link.bits_per_s < 1'000'000) return 0;  // would take a while
  }
  net::Network network(*topology, net::Parameters{});
  const auto last = static_cast<uint32_t>(topology->hosts().size() - 1);
  network.start({.source = 0, .destination = last, .bytes = 5000});
  Done done;
  network.advance(net::kNever, done);
  CHECK(done.flows == 1);
  return 0;
}
