// SPDX-License-Identifier: Apache-2.0
#include "plan/net/hpcc_config.h"

#include <fmt/format.h>

#include <charconv>
#include <functional>
#include <map>
#include <sstream>
#include <string>

#include "base/words.h"
#include "plan/common/json_number.h"

namespace cairn::plan {

namespace {

using nlohmann::json;

constexpr double kNumberMax = 1e15;

using Take = std::function<Attempt<void>(const json&)>;
using Put = std::function<void(double)>;

Take number(Put put) {
  return [put = std::move(put)](const json& value) -> Attempt<void> {
    const Attempt<double> read = number_of(value, kNumberMax);
    if (!read) return std::unexpected(read.error());
    put(*read);
    return {};
  };
}

Take rate(uint64_t& into) {
  return [&into](const json& value) -> Attempt<void> {
    const Attempt<uint64_t> read = hpcc_rate(value);
    if (!read) return std::unexpected(read.error());
    into = *read;
    return {};
  };
}

Take micros(net::Picos& into) {
  return number([&into](double us) {
    into = static_cast<net::Picos>(std::min(us, 1e12) * static_cast<double>(net::kMicrosecond));
  });
}

// The model does only what the reference does with this value.
Take only(double wanted) {
  return [wanted](const json& value) -> Attempt<void> {
    const Attempt<double> read = number_of(value, kNumberMax);
    if (!read) return std::unexpected(read.error());
    if (*read == wanted) return {};
    return refuse(fmt::format("is modelled as {} only, not {}", wanted, *read));
  };
}

Take ignored() {
  return [](const json&) -> Attempt<void> { return {}; };
}

// "2 10000000000 40 40000000000 160": how many, then pairs of a link rate and a value.
Take by_rate(std::map<uint64_t, double>& into) {
  return [&into](const json& value) -> Attempt<void> {
    std::istringstream text(text_of(value));
    size_t count = 0;
    text >> count;
    into.clear();
    for (size_t i = 0; i < count && text; ++i) {
      uint64_t link = 0;
      double given = 0;
      text >> link >> given;
      if (text && link > 0 && given >= 0 && given <= 1e6) into[link] = given;
    }
    if (count == 0 || into.size() != count) {
      return refuse(fmt::format("is a count and as many pairs of rate and value, not {}",
                                in_quotes(text_of(value))));
    }
    return {};
  };
}

struct Marks {
  std::map<uint64_t, double> kmin;
  std::map<uint64_t, double> kmax;
  std::map<uint64_t, double> pmax;
};

std::map<std::string, Take> keys_of(HpccConfig& c, Marks& marks) {
  net::Parameters& p = c.parameters;
  net::DcqcnParameters& d = p.dcqcn;
  std::map<std::string, Take> keys = {
      {"ENABLE_QCN", number([&p](double v) { p.ecn.enabled = v != 0; })},
      {"USE_DYNAMIC_PFC_THRESHOLD", only(1)},
      {"PACKET_PAYLOAD_SIZE",
       number([&p](double v) { p.payload_bytes = static_cast<uint32_t>(std::min(v, 1e6)); })},
      {"SIMULATOR_STOP_TIME", number([&c](double v) {
         c.stop = static_cast<net::Picos>(std::min(v, 1e6) * static_cast<double>(net::kSecond));
       })},
      {"CC_MODE",
       [&p](const json& value) -> Attempt<void> {
         const Attempt<double> read = number_of(value, kNumberMax);
         if (!read) return std::unexpected(read.error());
         if (*read != 0 && *read != 1) return refuse("is 0 (none) or 1 (DCQCN) here");
         p.control = *read == 1 ? net::Control::kDcqcn : net::Control::kNone;
         return {};
       }},
      {"ALPHA_RESUME_INTERVAL", micros(d.alpha_interval)},
      {"RATE_DECREASE_INTERVAL", micros(d.decrease_interval)},
      {"RP_TIMER", micros(d.increase_interval)},
      {"CLAMP_TARGET_RATE", number([&d](double v) { d.clamp_target = v != 0; })},
      {"EWMA_GAIN", number([&d](double v) { d.gain = v; })},
      {"FAST_RECOVERY_TIMES", number([&d](double v) {
         d.fast_recovery_stages = static_cast<uint32_t>(std::min(v, 1e6));
       })},
      {"RATE_AI", rate(d.additive_bits_per_s)},
      {"RATE_HAI", rate(d.hyper_bits_per_s)},
      {"MIN_RATE", rate(d.min_bits_per_s)},
      {"ERROR_RATE_PER_LINK", only(0)},
      {"L2_ACK_INTERVAL", only(1)},
      {"L2_BACK_TO_ZERO", only(0)},
      {"HAS_WIN", only(0)},
      {"RATE_BOUND", only(1)},
      {"ACK_HIGH_PRIO", only(1)},  // at hosts; its switches do not know of it
      {"KMIN_MAP", by_rate(marks.kmin)},
      {"KMAX_MAP", by_rate(marks.kmax)},
      {"PMAX_MAP", by_rate(marks.pmax)},
      {"BUFFER_SIZE",
       number([&p](double v) { p.buffer_bytes = static_cast<uint64_t>(v * 1024 * 1024); })},
  };
  for (const char* other :
       {"DCTCP_RATE_AI", "L2_CHUNK_SIZE", "GLOBAL_T", "VAR_WIN", "FAST_REACT", "U_TARGET",
        "MI_THRESH", "INT_MULTI", "MULTI_RATE", "SAMPLE_FEEDBACK", "PINT_LOG_BASE", "PINT_PROB",
        "LINK_DOWN", "ENABLE_TRACE", "QLEN_MON_START", "QLEN_MON_END", "PAUSE_TIME"}) {
    keys[other] = ignored();
  }
  return keys;
}

Attempt<void> put_marks(const Marks& marks, net::EcnParameters& ecn) {
  if (marks.kmin.empty() && marks.kmax.empty() && marks.pmax.empty()) return {};
  ecn.thresholds.clear();
  for (const auto& [link, kmin] : marks.kmin) {
    if (!marks.kmax.contains(link) || !marks.pmax.contains(link)) {
      return refuse(
          fmt::format("KMIN_MAP has links of {} b/s, KMAX_MAP or PMAX_MAP has not", link));
    }
    ecn.thresholds.push_back({.at_rate = link,
                              .kmin_bytes = static_cast<uint32_t>(kmin * 1000),
                              .kmax_bytes = static_cast<uint32_t>(marks.kmax.at(link) * 1000),
                              .pmax = marks.pmax.at(link)});
  }
  return {};
}

}  // namespace

Attempt<uint64_t> hpcc_rate(const json& value) {
  const std::string text = text_of(value);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, text.data() + text.size() - end);
  const double factor = unit == "b/s" || unit == "bps"     ? 1
                        : unit == "Kb/s" || unit == "Kbps" ? 1e3
                        : unit == "Mb/s" || unit == "Mbps" ? 1e6
                        : unit == "Gb/s" || unit == "Gbps" ? 1e9
                                                           : 0;
  if (error != std::errc{} || factor == 0 || !(number >= 0 && number <= 1e6)) {
    return refuse(fmt::format("is a rate like \"40Mb/s\", not {}", in_quotes(text)));
  }
  return static_cast<uint64_t>(number * factor);
}

Attempt<HpccConfig> parse_hpcc_config(const json& config) {
  if (!config.is_object()) return refuse("is not an object of settings");
  HpccConfig c;
  c.parameters = net::hpcc_parameters();
  c.stop = 3 * net::kSecond;
  Marks marks;
  const std::map<std::string, Take> keys = keys_of(c, marks);
  for (const auto& [key, value] : config.items()) {
    const auto take = keys.find(key);
    if (take == keys.end()) {
      std::vector<std::string> known;
      for (const auto& [name, unused] : keys) known.push_back(name);
      return refuse(fmt::format("has no setting {}{}", in_quotes(key), did_you_mean(key, known)));
    }
    if (const Attempt<void> taken = take->second(value); !taken) {
      return refuse(fmt::format("{} {}", key, taken.error().text));
    }
  }
  if (const Attempt<void> put = put_marks(marks, c.parameters.ecn); !put) {
    return std::unexpected(put.error());
  }
  if (const auto problem = net::check(c.parameters)) {
    return refuse(fmt::format("{} {}", problem->member, problem->text));
  }
  return c;
}

}  // namespace cairn::plan
