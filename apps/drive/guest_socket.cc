// SPDX-License-Identifier: Apache-2.0
#include "apps/drive/guest_socket.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "apps/words.h"

namespace cairn::apps {

namespace {

using door::vhost::Waiting;

Attempt<Waiting> parse_waiting(std::string_view text) {
  if (text == "interrupt") return Waiting::kInterrupt;
  if (text == "adaptive") return Waiting::kAdaptive;
  if (text == "polling") return Waiting::kPolling;
  return refuse(
      fmt::format("wait={} is none of interrupt, adaptive and polling", std::string(text)));
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

}  // namespace

Attempt<GuestSocket> parse_guest_socket(std::string_view text) {
  GuestSocket socket;
  constexpr std::string_view kWait = ",wait=";
  if (const size_t at = text.rfind(kWait); at != text.npos) {
    const Attempt<Waiting> waiting = parse_waiting(text.substr(at + kWait.size()));
    if (!waiting) return std::unexpected(waiting.error());
    socket.waiting = *waiting;
    text = text.substr(0, at);
  }
  const size_t equals = text.find('=');
  if (equals != text.npos && text.substr(0, equals).find('/') == text.npos) {
    socket.drive = text.substr(0, equals);
    text = text.substr(equals + 1);
  }
  if (text.starts_with("unix:")) text = text.substr(5);
  std::error_code error;
  const auto whole = std::filesystem::absolute(text, error).lexically_normal();
  if (text.empty() || error) {
    return refuse("takes [NAME=]SOCK, a path such as /run/cairn/d0.sock");
  }
  Result<env::Address> address = env::Address::parse("unix:" + whole.string());
  if (!address) {
    return refuse(fmt::format("{} cannot be a socket: {}; take a shorter path",
                              in_quotes(whole.string()), address.error().what()));
  }
  socket.at = std::move(*address);
  return socket;
}

Attempt<void> assign_sockets(std::vector<GuestSocket>& sockets,
                             const std::vector<DriveWords>& drives) {
  std::vector<std::string> names;
  for (const DriveWords& each : drives) names.push_back(each.name);
  std::set<std::string> taken;
  std::set<std::string> paths;
  for (GuestSocket& socket : sockets) {
    if (socket.drive.empty() && names.size() > 1) {
      return refuse(fmt::format("{} drives are served: say whose socket {} is, as NAME={} ({})",
                                names.size(), in_quotes(socket.at.path), socket.at.path,
                                comma_list(names)));
    }
    if (socket.drive.empty()) socket.drive = names.front();
    if (std::ranges::find(names, socket.drive) == names.end()) {
      return refuse(fmt::format("no drive {} is served{} (there are {})", in_quotes(socket.drive),
                                did_you_mean(socket.drive, names), comma_list(names)));
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

std::string qemu_args(const QemuWords& words) {
  const std::string id = id_of(words.drive);
  return fmt::format(
      "-object memory-backend-memfd,id=cairn-memory,size={0},share=on -m {0} "
      "-machine memory-backend=cairn-memory "
      "-chardev socket,id={1},path={2},reconnect=1 "
      "-device vhost-user-blk-pci,chardev={1},num-queues={3}{4}{5}\n",
      words.memory, id, in_option(words.socket), words.queues, words.packed ? ",packed=on" : "",
      words.boot ? ",bootindex=0" : "");
}

}  // namespace cairn::apps
