// SPDX-License-Identifier: BSD-3-Clause
// hcasim-serve: HCAs in a process of their own, for any virtual machine monitor that speaks vfio-user.
// hcasim-serve control SOCKET ...: reads and sets what a running one has.
// Exit status: 0 ended as asked, 1 could not serve, 2 wrong options.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/asio.hpp>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "card/api/hca_api.h"
#include "command/parse.h"
#include "vfio-user/server.h"

namespace {

using Local = boost::asio::local::stream_protocol;

bool quiet = false;

void log(int level, const std::string& line) {
  if (quiet && level == HCA_LOG_INFO) return;
  const char* const kind = level == HCA_LOG_ERROR ? "error: " : level == HCA_LOG_WARNING ? "warning: " : "";
  fmt::print(stderr, "hcasim: {}{}\n", kind, line);
}

// Properties that QEMU or its device makes something of, and a card behind vfio-user nothing.
constexpr const char* kOfQemu[] = {"netdev", "bus", "addr", "multifunction", "ahead", "guest_pc", "ports"};

// The properties of the in-process device (--hca of hcasim boot) into options of the model: false, and said
// why, if one of them cannot be had here.
bool translate(const std::string& properties, std::string& name, std::string& options) {
  const auto add = [&](const std::string& option) { options += (options.empty() ? "" : ",") + option; };
  for (const std::string& property : CLI::detail::split(properties, ',')) {
    const std::size_t equals = property.find('=');
    const std::string key = property.substr(0, equals),
                      value = equals == std::string::npos ? "" : property.substr(equals + 1);
    if (property.empty() || property == "time=eager" || property == "time=auto") continue;
    if (const auto* const own = std::find(std::begin(kOfQemu), std::end(kOfQemu), key);
        own != std::end(kOfQemu)) {
      fmt::print(
          stderr,
          "hcasim-serve: {}: {}= belongs to QEMU's own device (mlx5-hca), not to a card behind vfio-user\n"
          "  -> leave it out{}\n",
          property, key, key == "ahead" ? ": hcasim serve --ahead NS is for all cards" : "");
      return false;
    }
    if (key == "time" || key == "coupled") {
      fmt::print(stderr,
                 "hcasim-serve: {}: vfio-user has no clock, so a card behind it cannot share the guest's\n"
                 "  -> time=lockstep is for the in-process device: hcasim boot --lockstep\n",
                 property);
      return false;
    }
    if (key == "id") {
      name = value;
    } else if (key == "x-device-id") {
      add("device_id=" + value);
    } else if (key == "options") {
      std::string list = value;
      std::replace(list.begin(), list.end(), ':', ';');
      for (const std::string& option : CLI::detail::split(list, ';')) add(option);
    } else if (!((key == "bf" || key == "sm") && value == "auto")) {
      add(property);
    }
  }
  std::map<std::string, std::string> given;  // key: as it was given
  for (const std::string& option : CLI::detail::split(options, ',')) {
    const auto [first, is_new] = given.try_emplace(option.substr(0, option.find('=')), option);
    if (is_new) continue;
    fmt::print(stderr, "hcasim-serve: --hca {}: {} and {} are one key\n  -> give one of them\n", properties,
               first->second, option);
    return false;
  }
  return true;
}

int serve(const hcasim::vfio_user::ServerOptions& options, const std::vector<std::string>& sockets,
          std::vector<std::string> cards) {
  if (cards.empty()) cards.assign(sockets.size(), "link=eth");
  if (cards.size() != sockets.size()) {
    fmt::print(stderr, "hcasim-serve: {} --socket and {} --hca: give one of each for each card\n",
               sockets.size(), cards.size());
    return 2;
  }
  hcasim::vfio_user::Server server(options, log);
  for (std::size_t i = 0; i < sockets.size(); ++i) {
    std::string name = fmt::format("hca{}", i), all;
    if (!translate(cards[i], name, all)) return 2;
    all += fmt::format("{}name={}", all.empty() ? "" : ",", name);
    server.add(sockets[i], name, all);
  }
  server.run();
  return 0;
}

int control(const std::string& path, const std::string& verb, const std::string& name,
            const std::string& value, const std::string& card) {
  nlohmann::json request;
  if (verb == "list")
    request["list"] = true;
  else
    request[verb] = name;
  if (verb == "set") request["value"] = value;
  if (verb == "save" || verb == "load") {
    if (name.empty()) {
      fmt::print(stderr, "hcasim-serve: {} what? Give it a file\n", verb);
      return 2;
    }
    request[verb] = std::filesystem::absolute(name).string();  // the server may be in another folder
  }
  if (!card.empty()) request["card"] = card;
  boost::asio::io_context loop;
  Local::socket socket(loop);
  boost::system::error_code ec;
  socket.connect(Local::endpoint(path), ec);
  if (ec) {
    fmt::print(stderr, "hcasim-serve: {}: {}\n  -> is it the --control of a running hcasim serve?\n", path,
               ec.message());
    return 1;
  }
  // Of a name that is not UTF-8 the server says that it knows no such thing.
  const std::string line = request.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  boost::asio::write(socket, boost::asio::buffer(line), ec);
  std::string answer;
  boost::asio::read_until(socket, boost::asio::dynamic_buffer(answer), '\n', ec);
  const auto json = nlohmann::json::parse(answer, nullptr, false);
  if (!json.is_object() || json.contains("error")) {
    fmt::print(stderr, "hcasim-serve: {}\n", json.is_object() ? json["error"].dump() : "no answer");
    return 1;
  }
  if (json.contains("names")) {
    for (const auto& n : json["names"]) fmt::print("{}\n", n.get<std::string>());
  } else if (json.contains("value")) {
    const auto& v = json["value"];
    fmt::print("{}\n", v.is_string() ? v.get<std::string>() : v.dump());
  }
  return 0;
}

int run_control(int argc, char** argv) {
  CLI::App app{"Reads or sets what a running hcasim serve has.", "hcasim control"};
  std::string path, verb, name, value, card;
  app.add_option("SOCKET", path, "its --control")->required();
  app.add_option("VERB", verb, "get NAME, set NAME VALUE, list, save FILE, load FILE (states of all cards)")
      ->required()
      ->check(CLI::IsMember({"get", "set", "list", "save", "load"}));
  app.add_option("NAME", name);
  app.add_option("VALUE", value);
  app.add_option("--card", card, "which, if there are several");
  if (const auto status = hcasim::command::parse(app, argc, argv)) return *status;
  return control(path, verb, name, value, card);
}

int run(int argc, char** argv) {
  // Also `hcasim control`, and has a help of its own.
  if (argc > 1 && std::string(argv[1]) == "control") return run_control(argc - 1, argv + 1);
  CLI::App app{"Serves HCAs to virtual machine monitors that speak vfio-user, such as QEMU from 10.1 on.",
               "hcasim serve"};
  hcasim::vfio_user::ServerOptions options;
  std::vector<std::string> sockets, cards;
  std::int64_t spin = 0;
  app.add_option("--socket", sockets, "path of the socket that a card is served on; once for each card");
  app.add_option("--hca", cards,
                 "KEY=VALUE,... of the card, as of the in-process device (link=eth); once for each");
  app.add_option("--control", options.control, "path of the control socket (hcasim control)");
  app.add_option("--ahead", options.ahead, "ns that the model runs ahead of the clock")
      ->check(CLI::Range(0, 1'000'000'000))
      ->capture_default_str();
  app.add_option("--spin", spin, "us that a socket is looked at again before the process sleeps")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  app.add_flag("--quiet", quiet, "say only what is wrong");
  bool keys = false;
  app.add_flag("--options", keys, "list what --hca takes beside the properties of the device, and end");
  app.add_flag("--once", options.once, "end when the first client of each card has gone");
  if (const auto status = hcasim::command::parse(app, argc, argv)) return *status;
  if (keys) {
    fmt::print("{}", hca_option_help());
    return 0;
  }
  if (sockets.empty()) {
    fmt::print(stderr, "hcasim-serve: no --socket PATH to serve a card on\n");
    return 2;
  }
  options.spin = spin * 1000;
  return serve(options, sockets, cards);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "hcasim-serve: {}\n", e.what());
    return 1;
  }
}
