// SPDX-License-Identifier: Apache-2.0
#include "stack/services.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include "base/check.h"
#include "drive/source.h"
#include "service/cache/cache.h"
#include "service/integrity/atomic.h"
#include "service/integrity/checksum.h"
#include "service/integrity/encrypt.h"
#include "service/layout/concat.h"
#include "service/layout/slice.h"
#include "service/layout/stripe.h"
#include "service/mapped/compress.h"
#include "service/mapped/dedup.h"
#include "service/mapped/snapshot.h"
#include "service/mapped/spillover.h"
#include "service/mapped/thin.h"
#include "service/qos/channels.h"
#include "service/qos/limit.h"
#include "service/qos/priority.h"
#include "service/raid/mirror.h"
#include "service/raid/parity.h"
#include "service/trace/trace.h"

namespace cairn::drive {

namespace {

constexpr const Service* kServices[] = {
    &kAtomic,     //
    &kCache,      //
    &kChannels,   //
    &kChecksum,   //
    &kCompress,   //
    &kConcat,     //
    &kDedup,      //
    &kEncrypt,    //
    &kLimit,      //
    &kMirror,     //
    &kParity,     //
    &kPriority,   //
    &kSlice,      //
    &kSnapshot,   //
    &kSpillover,  //
    &kStripe,     //
    &kThin,       //
    &kTrace,      //
};

std::unexpected<StackError> wrong(size_t place, std::string text) {
  return std::unexpected(StackError{place, std::move(text)});
}

std::string names_of(std::span<const ServiceOption> options) {
  std::string text;
  for (const ServiceOption& option : options) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", option.key);
  }
  return text.empty() ? "none" : text;
}

std::string known_names() {
  std::string text;
  for (const Service* service : kServices) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", service->name);
  }
  return text;
}

bool parse_number(std::string_view text, uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

// The number a text stands for, or what is wrong with it.
std::expected<uint64_t, std::string> read_value(const ServiceOption& option,
                                                const std::string& text) {
  using Kind = ServiceOption::Kind;
  if (option.kind == Kind::kText || option.kind == Kind::kFile) return 0;
  if (option.kind == Kind::kYesNo) {
    if (text == "yes" || text == "no") return text == "yes" ? 1 : 0;
    return std::unexpected(fmt::format("{} is yes or no, not '{}'", option.key, text));
  }
  uint64_t number = 0;
  const bool is_size = option.kind == Kind::kSize;
  if (!(is_size ? parse_size(text, number) : parse_number(text, number))) {
    return std::unexpected(fmt::format("{} '{}' is not a {}", option.key, text,
                                       is_size ? "size such as 64K or 1G" : "whole number"));
  }
  if (number < option.min || number > option.max) {
    return std::unexpected(option.max == UINT64_MAX
                               ? fmt::format("{} is at least {}", option.key, option.min)
                               : fmt::format("{} is {} to {}", option.key, option.min, option.max));
  }
  return number;
}

std::expected<void, StackError> check_below(const Stack& layer, const Service& service) {
  const size_t count = layer.below.size();
  if (count >= service.below_min && count <= service.below_max) return {};
  const std::string needs = service.below_min == service.below_max
                                ? fmt::format("{}", service.below_min)
                                : fmt::format("{} to {}", service.below_min, service.below_max);
  return wrong(layer.place, fmt::format("{} stands on {} drive{}, and here are {}: {}", layer.name,
                                        needs, needs == "1" ? "" : "s", count, service.what));
}

std::expected<void, StackError> check_kind(const Stack& layer, const Service& service) {
  for (const Stack& below : layer.below) {
    if (below.is_leaf && below.name.starts_with(service.leaf_only)) continue;
    return wrong(below.place, fmt::format("{} stands right on a {} drive and on nothing else: {}",
                                          layer.name, service.leaf_only, service.what));
  }
  return {};
}

// What is known of the leaves so far: whether each is shared.
using LeavesSeen = std::map<std::string, bool>;

std::expected<void, StackError> check_leaf(const Stack& leaf, bool is_shared, LeavesSeen& leaves) {
  const auto [known, is_new] = leaves.emplace(leaf.name, is_shared);
  if (is_new || (is_shared && known->second)) return {};
  if (is_shared || known->second) {
    return wrong(leaf.place,
                 "this drive is in the stack already, as a whole and in parts: a drive has one "
                 "place, or each place has channels of its own");
  }
  const bool is_memory =
      leaf.name.starts_with("mem:") ||
      (leaf.name.starts_with("flash:") && leaf.name.find("file=") == std::string::npos);
  if (is_memory) return {};
  return wrong(leaf.place, "this drive is in the stack already: a drive has one place");
}

std::expected<void, StackError> check_layer(const Stack& layer, bool is_shared,
                                            LeavesSeen& leaves) {
  if (layer.is_leaf) return check_leaf(layer, is_shared, leaves);
  const Service* service = find_service(layer.name);
  if (service == nullptr) {
    return wrong(layer.place, fmt::format("there is no service '{}': choose one of {}", layer.name,
                                          known_names()));
  }
  if (auto fits = check_below(layer, *service); !fits) return fits;
  const bool shares = !service->leaf_only.empty();
  if (auto fits = check_kind(layer, *service); shares && !fits) return fits;
  if (auto options = read_options(layer); !options) return std::unexpected(options.error());
  for (const Stack& below : layer.below) {
    if (auto checked = check_layer(below, shares, leaves); !checked) return checked;
  }
  return {};
}

}  // namespace

std::span<const Service* const> services() { return kServices; }

const Service* find_service(std::string_view name) {
  const auto found = std::ranges::find(kServices, name, &Service::name);
  return found == std::end(kServices) ? nullptr : *found;
}

std::expected<ServiceOptions, StackError> read_options(const Stack& layer) {
  const Service* service = find_service(layer.name);
  CHECK(service != nullptr, "the layer is a service");
  for (const Stack::Option& option : layer.options) {
    if (std::ranges::find(service->options, option.key, &ServiceOption::key) ==
        service->options.end()) {
      return wrong(option.place, fmt::format("{} has no option '{}': it has {}", layer.name,
                                             option.key, names_of(service->options)));
    }
  }
  ServiceOptions read(service->options);
  for (const ServiceOption& known : service->options) {
    const auto given = std::ranges::find(layer.options, known.key, &Stack::Option::key);
    const bool is_given = given != layer.options.end();
    if (!is_given && known.default_value.empty()) {
      size_t next = 0;
      const auto own = [&] { return layer.below[std::min(next++, layer.below.size() - 1)].text(); };
      return wrong(layer.place, fmt::format("{} lacks {}: {}; for example {}", layer.name,
                                            known.key, known.what, example_over(*service, own)));
    }
    std::string text = is_given ? given->value : std::string(known.default_value);
    const std::expected<uint64_t, std::string> number = read_value(known, text);
    if (!number) return wrong(is_given ? given->place : layer.place, number.error());
    read.values_.push_back({.text = std::move(text), .number = *number});
  }
  return read;
}

std::expected<void, StackError> check_stack(const Stack& stack) {
  LeavesSeen leaves;
  return check_layer(stack, false, leaves);
}

void mark_shared_leaves(Stack& stack) {
  for (Stack& below : stack.below) {
    below.is_shared = below.is_leaf && !find_service(stack.name)->leaf_only.empty();
    mark_shared_leaves(below);
  }
}

std::string example_over(const Service& service, const std::function<std::string()>& fill) {
  std::string text;
  std::string_view rest = service.example;
  for (size_t at = rest.find("{}"); at != std::string_view::npos; at = rest.find("{}")) {
    text += std::string(rest.substr(0, at)) + fill();
    rest.remove_prefix(at + 2);
  }
  return text + std::string(rest);
}

}  // namespace cairn::drive
