// SPDX-License-Identifier: Apache-2.0
// `cairn plan net`: a load on a modelled network.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "apps/common/command.h"
#include "apps/common/output.h"
#include "base/table.h"
#include "base/words.h"
#include "config/json_text.h"
#include "model/net/network.h"
#include "model/net/workload.h"
#include "plan/common/latency_summary.h"
#include "plan/net/net_topology.h"

namespace cairn::apps {

namespace {

const std::map<std::string, net::Control> kControls = {{"none", net::Control::kNone},
                                                       {"dcqcn", net::Control::kDcqcn},
                                                       {"dctcp", net::Control::kDctcp},
                                                       {"cubic", net::Control::kCubic}};

struct Outcome final : net::FlowSink {
  void flow_done(const net::FlowDone& done) override {
    times_ns.push_back(done.finished / net::kNanosecond);
    last = std::max(last, done.received);
  }
  std::vector<int64_t> times_ns;
  net::Picos last = 0;
};

class PlanNetCommand final : public Command {
 public:
  explicit PlanNetCommand(CLI::App& app) {
    add_value(app, "--topology NAME",
              "star:HOSTS, leaf-spine:LEAVESxHOSTSxSPINES, clos256 or a TOML file (star:11)",
              [this](const std::string& text) -> Attempt<void> {
                Attempt<net::Topology> loaded = plan::load_topology(text);
                if (!loaded) return std::unexpected(loaded.error());
                topology_ = std::move(*loaded);
                return {};
              });
    add_value(app, "--load KIND",
              "incast (all to the first host) or permutation (each to one other); incast",
              [this](const std::string& text) -> Attempt<void> {
                if (text != "incast" && text != "permutation") {
                  return refuse("is incast or permutation");
                }
                incast_ = text == "incast";
                return {};
              });
    add_value(app, "--control KIND", "none, dcqcn, dctcp or cubic (dcqcn)",
              [this](const std::string& text) -> Attempt<void> {
                const auto found = kControls.find(text);
                if (found == kControls.end()) return refuse("is none, dcqcn, dctcp or cubic");
                control_ = found->second;
                return {};
              });
    add_integer(app, "--bytes N", bytes_, {.min = 1, .max = 1'000'000'000}, "of a flow (1000000)");
    add_integer(app, "--buffer KIB", buffer_kib_, {.min = 16, .max = 1 << 20},
                "of a switch (12288)");
    add_integer(app, "--seed N", seed_, {.min = 0, .max = 1'000'000'000},
                "what the permutation and the marks are drawn from (1)");
    add_switch(app, "--fluid", fluid_, "flows as rates instead of packets");
    add_switch(app, "--json", json_, "print one JSON object");
    set_examples(app, {"cairn plan net --topology star:11 --load incast",
                       "cairn plan net --topology clos256 --load permutation --fluid --json"});
  }

  Attempt<int> run() override {
    net::Parameters p = control_ == net::Control::kDctcp || control_ == net::Control::kCubic
                            ? net::tcp_parameters(control_)
                            : net::Parameters{};
    p.control = control_;
    p.mode = fluid_ ? net::Mode::kFluid : net::Mode::kPacket;
    p.buffer_bytes = static_cast<uint64_t>(buffer_kib_) * 1024;
    p.seed = static_cast<uint64_t>(seed_);
    if (const auto problem = net::check(p)) {
      return refuse(fmt::format("{} {}", problem->member, problem->text));
    }
    net::Network network(topology_, p);
    for (const net::Flow& flow : flows()) network.start(flow);
    Outcome outcome;
    network.advance(net::kNever, outcome);
    say(json_ ? json_of(outcome, network.counters()) : text_of(outcome, network.counters()));
    return kExitOk;
  }

 private:
  std::vector<net::Flow> flows() const {
    const auto hosts = static_cast<uint32_t>(topology_.hosts().size());
    const auto bytes = static_cast<uint64_t>(bytes_);
    return incast_ ? net::incast(hosts, bytes, 0)
                   : net::permutation(hosts, bytes, 0, static_cast<uint64_t>(seed_));
  }

  static uint64_t deepest(const net::Counters& k) {
    uint64_t bytes = 0;
    for (const net::PortCounters& port : k.ports) bytes = std::max(bytes, port.queue_bytes_max);
    return bytes;
  }

  std::string text_of(Outcome& outcome, const net::Counters& k) const {
    const double seconds = static_cast<double>(outcome.last) / static_cast<double>(net::kSecond);
    const plan::LatencySummary fct = plan::summarise(std::move(outcome.times_ns));
    const auto us = [](double ns) { return fmt::format("{:.1f} us", ns / 1000); };
    const auto count = [](uint64_t number) { return fmt::format("{}", number); };
    return table_text(
        {{"flows", count(fct.count)},
         {"mean time", us(fct.mean)},
         {"p50", us(fct.p50)},
         {"p99", us(fct.p99)},
         {"last", us(fct.max)},
         {"throughput", fmt::format("{:.2f} Gb/s", static_cast<double>(k.payload_bytes_delivered) *
                                                       8e-9 / seconds)},
         {"packets", count(k.data_packets)},
         {"sent again", count(k.repeated_packets)},
         {"dropped", count(k.drops)},
         {"marked", count(k.marks)},
         {"PAUSE at hosts", count(k.pauses_at_hosts)},
         {"PAUSE at switches", count(k.pauses_at_switches)},
         {"deepest queue", fmt::format("{} bytes", deepest(k))}});
  }

  static std::string json_of(Outcome& outcome, const net::Counters& k) {
    const plan::LatencySummary fct = plan::summarise(std::move(outcome.times_ns));
    return config::json_text({{"schema_version", 1},
                              {"flows", fct.count},
                              {"fct_ns",
                               {{"min", fct.min},
                                {"mean", fct.mean},
                                {"p50", fct.p50},
                                {"p99", fct.p99},
                                {"max", fct.max}}},
                              {"payload_bytes", k.payload_bytes_delivered},
                              {"data_packets", k.data_packets},
                              {"repeated_packets", k.repeated_packets},
                              {"link_packets", k.link_packets},
                              {"drops", k.drops},
                              {"marks", k.marks},
                              {"pauses_at_hosts", k.pauses_at_hosts},
                              {"pauses_at_switches", k.pauses_at_switches},
                              {"queue_bytes_max", deepest(k)},
                              {"events", k.events}});
  }

  net::Topology topology_ = net::star(11);
  bool incast_ = true;
  net::Control control_ = net::Control::kDcqcn;
  int bytes_ = 1'000'000;
  int buffer_kib_ = 12'288;
  int seed_ = 1;
  bool fluid_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_plan_net(CLI::App& app) {
  return std::make_unique<PlanNetCommand>(app);
}

}  // namespace cairn::apps
