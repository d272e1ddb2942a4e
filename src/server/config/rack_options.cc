// SPDX-License-Identifier: Apache-2.0
#include "server/config/rack_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/duration.h"
#include "base/words.h"
#include "drive/source.h"
#include "nvme/format/nqn.h"
#include "rack/ledger.h"
#include "server/common/host_nqn.h"

namespace cairn::server {

namespace {

constexpr config::IntegerRange kIops = {.min = 0, .max = int64_t{rack::kBytesMax}};

Attempt<uint64_t> parse_amount(const std::string& text) {
  uint64_t bytes = 0;
  if (drive::parse_size(text, bytes) && bytes <= rack::kBytesMax) return bytes;
  return refuse(fmt::format("{} is no number of bytes: write one like 100G", in_quotes(text)));
}

Attempt<uint64_t> parse_count(const std::string& text) {
  uint64_t count = 0;
  const bool is_number = !text.empty() && text.size() <= 15 &&
                         text.find_first_not_of("0123456789") == std::string::npos;
  if (is_number) count = std::stoull(text);
  if (is_number) return count;
  return refuse(fmt::format("{} is no number of requests per second", in_quotes(text)));
}

Attempt<void> check_shelf(const RackShelf& shelf) {
  if (const Result<void> named = rack::check_shelf_name(shelf.name); !named) {
    return refuse(named.error().what());
  }
  if (const Result<void> sound = rack::check_amount(shelf.room); !sound) {
    return refuse(fmt::format("shelf {} has {}: {}", shelf.name, text_bytes(shelf.room.bytes),
                              sound.error().what()));
  }
  // It becomes part of a drive's text.
  if (shelf.folder.find_first_of(",()\"") != std::string::npos) {
    return refuse(
        fmt::format("the folder {} has a comma, a bracket or a quote in its name: take "
                    "another one",
                    in_quotes(shelf.folder)));
  }
  return {};
}

Attempt<void> add_shelf(RackShelf shelf, std::vector<RackShelf>& to) {
  if (Attempt<void> checked = check_shelf(shelf); !checked) return checked;
  if (std::ranges::any_of(to, [&](const RackShelf& each) { return each.name == shelf.name; })) {
    return refuse(fmt::format("shelf {} is there twice: give each its own name", shelf.name));
  }
  to.push_back(std::move(shelf));
  return {};
}

std::function<Attempt<void>(const std::string&)> into(uint64_t& target) {
  return [&target](const std::string& text) -> Attempt<void> {
    const Attempt<uint64_t> bytes = parse_amount(text);
    if (!bytes) return std::unexpected(bytes.error());
    target = *bytes;
    return {};
  };
}

std::function<Attempt<void>(const std::string&)> into(Duration& target, Duration min) {
  return [&target, min](const std::string& text) -> Attempt<void> {
    const Attempt<Duration> time = parse_duration(text);
    if (!time) return std::unexpected(time.error());
    if (*time < min) {
      return refuse(fmt::format("{} is too short: at least {}", in_quotes(text), cairn::text(min)));
    }
    target = *time;
    return {};
  };
}

config::Section shelf_keys(RackOptions& options) {
  const auto shelf = std::make_shared<RackShelf>();
  config::Section keys;
  keys.text("name", shelf->name).required();
  keys.text("subsystem", shelf->subsystem);
  keys.text("folder", shelf->folder);
  keys.taken("size", into(shelf->room.bytes)).required();
  keys.integer("iops", shelf->room.iops, kIops);
  keys.taken("bandwidth", into(shelf->room.bandwidth));
  keys.taken_list(
      "hosts", 1024, [] {},
      [shelf](const std::string& text) -> Attempt<void> {
        if (Attempt<void> named = check_host_nqn(text); !named) return named;
        shelf->hosts.push_back(text);
        return {};
      });
  keys.whole([&options, shelf] { return add_shelf(*shelf, options.shelves); });
  return keys;
}

// One KEY=VALUE of a shelf's text.
Attempt<void> take_option(std::string_view text, RackShelf& shelf) {
  const size_t equals = text.find('=');
  const std::string_view key = text.substr(0, equals);
  const std::string value(equals == std::string_view::npos ? "" : text.substr(equals + 1));
  uint64_t* target = nullptr;
  if (key == "size") target = &shelf.room.bytes;
  if (key == "bandwidth") target = &shelf.room.bandwidth;
  if (key == "iops") target = &shelf.room.iops;
  if (target == nullptr) {
    return refuse(fmt::format("a shelf has no option {}: size, iops and bandwidth are there",
                              in_quotes(key)));
  }
  const Attempt<uint64_t> number = key == "iops" ? parse_count(value) : parse_amount(value);
  if (!number) return std::unexpected(number.error());
  *target = *number;
  return {};
}

}  // namespace

Attempt<RackShelf> parse_shelf(std::string_view text) {
  constexpr std::string_view kMemory = "mem:";
  constexpr std::string_view kFile = "file:";
  const size_t equals = text.find('=');
  const std::string_view space = equals == std::string_view::npos ? "" : text.substr(equals + 1);
  const bool is_memory = space.starts_with(kMemory);
  if (!is_memory && !space.starts_with(kFile)) {
    return refuse(
        fmt::format("{} is no shelf: write NAME=mem:size=8G or "
                    "NAME=file:FOLDER,size=100G,iops=50000,bandwidth=1G",
                    in_quotes(text)));
  }
  RackShelf shelf{.name = std::string(text.substr(0, equals))};
  std::string_view rest = space.substr(is_memory ? kMemory.size() : kFile.size());
  if (!is_memory) {
    const size_t end = std::min(rest.find(','), rest.size());
    shelf.folder = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (shelf.folder.empty()) {
      return refuse(
          fmt::format("shelf {} needs a folder: {}=file:FOLDER,size=100G", shelf.name, shelf.name));
    }
  }
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(','), rest.size());
    if (const Attempt<void> taken = take_option(rest.substr(0, end), shelf); !taken) {
      return std::unexpected(taken.error());
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (const Attempt<void> checked = check_shelf(shelf); !checked) {
    return std::unexpected(checked.error());
  }
  return shelf;
}

void add_rack_keys(config::Section& root, RackOptions& options) {
  config::Section keys;
  keys.taken("store", [&options](const std::string& text) -> Attempt<void> {
    Attempt<StoreUri> uri = StoreUri::parse(text);
    if (!uri) return std::unexpected(uri.error());
    options.store = std::move(*uri);
    return {};
  });
  keys.taken("name", [&options](const std::string& text) -> Attempt<void> {
    if (const Result<void> named = rack::check_box_name(text); !named) {
      return refuse(named.error().what());
    }
    options.name = text;
    return {};
  });
  keys.taken("expiry", into(options.expiry, 3_s));
  keys.taken("term", into(options.term, 1_s));
  keys.tables("shelf", rack::kShelvesMax, [&options] { return shelf_keys(options); });
  root.table("rack", std::move(keys));
}

}  // namespace cairn::server
