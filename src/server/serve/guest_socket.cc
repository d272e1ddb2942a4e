// SPDX-License-Identifier: Apache-2.0
#include "server/serve/guest_socket.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "base/words.h"

namespace cairn::server {

namespace {

using door::Waiting;

constexpr std::string_view kMode = ",mode=";

Attempt<Waiting> parse_waiting(std::string_view text) {
  if (text == "interrupt") return Waiting::kInterrupt;
  if (text == "adaptive") return Waiting::kAdaptive;
  if (text == "polling") return Waiting::kPolling;
  return refuse(
      fmt::format("{} is no mode: write polling, adaptive or interrupt", in_quotes(text)));
}

// A name for QEMU's options, which takes letters, digits and -._ alone.
std::string id_of(std::string_view drive) {
  std::string id = "cairn-";
  for (const char c : drive) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_';
    id += plain ? c : '_';
  }
  return id;
}

// A comma in a value of QEMU's is written twice.
std::string in_option(std::string_view value) {
  std::string out;
  for (const char c : value) out += c == ',' ? std::string(",,") : std::string(1, c);
  return out;
}

Attempt<env::Address> address_of(const std::string& socket) {
  Result<env::Address> address = env::Address::parse("unix:" + socket);
  if (address) return std::move(*address);
  return refuse(fmt::format("{} cannot be a socket: {}; take a shorter path", in_quotes(socket),
                            address.error().what()));
}

// One for each drive of those whose path has a %.
Attempt<void> spread(std::vector<GuestSocket>& sockets, const std::vector<std::string>& drives) {
  std::vector<GuestSocket> all;
  for (GuestSocket& socket : sockets) {
    const size_t percent = socket.at.path.find('%');
    if (percent == std::string::npos || !socket.drive.empty()) {
      all.push_back(std::move(socket));
      continue;
    }
    for (const std::string& drive : drives) {
      std::string path = socket.at.path;
      path.replace(percent, 1, drive);
      Attempt<env::Address> at = address_of(path);
      if (!at) return std::unexpected(at.error());
      all.push_back({.drive = drive, .at = std::move(*at), .waiting = socket.waiting});
    }
  }
  sockets = std::move(all);
  return {};
}

}  // namespace

Attempt<GuestArgs> parse_guest_args(std::string_view text) {
  GuestArgs args;
  std::string_view rest = text;
  if (const size_t at = rest.rfind(kMode); at != rest.npos) {
    const Attempt<Waiting> waiting = parse_waiting(rest.substr(at + kMode.size()));
    if (!waiting) return std::unexpected(waiting.error());
    args.waiting = *waiting;
    rest = rest.substr(0, at);
  }
  const size_t equals = rest.find('=');
  if (equals != rest.npos && rest.substr(0, equals).find_first_of("/:") == rest.npos) {
    args.drive = rest.substr(0, equals);
    rest = rest.substr(equals + 1);
  }
  if (rest.starts_with("unix:")) rest = rest.substr(5);
  std::error_code error;
  const auto whole = std::filesystem::absolute(rest, error).lexically_normal();
  if (rest.empty() || error) {
    return refuse(fmt::format("{} names no socket: write /run/cairn/vm.sock or NAME=/run/vm.sock",
                              in_quotes(text)));
  }
  args.socket = whole.string();
  return args;
}

Attempt<GuestSocket> parse_guest_socket(std::string_view text) {
  Attempt<GuestArgs> args = parse_guest_args(text);
  if (!args) return std::unexpected(args.error());
  Attempt<env::Address> address = address_of(args->socket);
  if (!address) return std::unexpected(address.error());
  return GuestSocket{
      .drive = std::move(args->drive), .at = std::move(*address), .waiting = args->waiting};
}

Attempt<void> assign_sockets(std::vector<GuestSocket>& sockets,
                             const std::vector<std::string>& names) {
  if (const Attempt<void> done = spread(sockets, names); !done) return done;
  std::set<std::string> taken;
  std::set<std::string> paths;
  for (GuestSocket& socket : sockets) {
    if (socket.drive.empty() && names.size() > 1) {
      return refuse(
          fmt::format("{} drives are served: say whose socket {} is, as NAME={} ({}), "
                      "or give each its own by a % in the path",
                      names.size(), in_quotes(socket.at.path), socket.at.path, first_few(names)));
    }
    if (socket.drive.empty() && !names.empty()) socket.drive = names.front();
    if (std::ranges::find(names, socket.drive) == names.end()) {
      return refuse(fmt::format("no drive {} is served{} (there are {})", in_quotes(socket.drive),
                                did_you_mean(socket.drive, names), first_few(names)));
    }
    if (!taken.insert(socket.drive).second) {
      return refuse(fmt::format("drive {} has a socket already: a virtual machine uses it alone",
                                in_quotes(socket.drive)));
    }
    if (!paths.insert(socket.at.path).second) {
      return refuse(fmt::format("two drives have the socket {}: give each its own",
                                in_quotes(socket.at.path)));
    }
  }
  return {};
}

std::string vfio_qemu_device(const std::string& socket, bool boot) {
  return fmt::format(
      "{{\"driver\":\"vfio-user-pci\",\"socket\":{{\"type\":\"unix\",\"path\":\"{}\"}}{}}}", socket,
      boot ? ",\"bootindex\":0" : "");
}

std::string qemu_args(const QemuArgs& args) {
  const std::string memory = fmt::format(
      "-object memory-backend-memfd,id=cairn-memory,size={0},share=on -m {0} "
      "-machine memory-backend=cairn-memory ",
      args.memory);
  if (args.vfio) {
    return fmt::format("{}-device {}\n", memory, vfio_qemu_device(args.socket, args.boot));
  }
  const std::string id = id_of(args.drive);
  return fmt::format(
      "{}-chardev socket,id={},path={},reconnect=1 "
      "-device vhost-user-blk-pci,chardev={},num-queues={}{}{}\n",
      memory, id, in_option(args.socket), id, args.queues, args.packed ? ",packed=on" : "",
      args.boot ? ",bootindex=0" : "");
}

}  // namespace cairn::server
