// SPDX-License-Identifier: BSD-3-Clause
// Messages on a stream: however they are cut and joined, and whatever comes that is none.
#include "vfio-user/connection.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cstring>
#include <memory>

namespace hcasim::vfio_user {
namespace {

class ConnectionTest : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    ours = std::make_unique<Connection>(Descriptor(ends[0]));
    theirs = Descriptor(ends[1]);
  }

  static std::vector<std::uint8_t> message(std::uint16_t id, const std::string& body) {
    Header header{};
    header.id = id;
    header.command = 1;
    header.size = static_cast<std::uint32_t>(sizeof header + body.size());
    std::vector<std::uint8_t> out(header.size);
    std::memcpy(out.data(), &header, sizeof header);
    std::memcpy(out.data() + sizeof header, body.data(), body.size());
    return out;
  }

  void put(const std::vector<std::uint8_t>& bytes, unsigned files = 0) {
    std::vector<Descriptor> owned;
    std::vector<int> fds;
    for (unsigned i = 0; i < files; ++i) {
      owned.emplace_back(::eventfd(0, 0));
      fds.push_back(owned.back().get());
    }
    std::vector<char> control(CMSG_SPACE(sizeof(int) * std::max(files, 1u)));
    iovec piece{const_cast<std::uint8_t*>(bytes.data()), bytes.size()};
    msghdr m{};
    m.msg_iov = &piece;
    m.msg_iovlen = 1;
    if (files != 0) {
      m.msg_control = control.data();
      m.msg_controllen = control.size();
      cmsghdr* c = CMSG_FIRSTHDR(&m);
      c->cmsg_level = SOL_SOCKET;
      c->cmsg_type = SCM_RIGHTS;
      c->cmsg_len = CMSG_LEN(sizeof(int) * files);
      std::memcpy(CMSG_DATA(c), fds.data(), sizeof(int) * files);
    }
    ASSERT_EQ(::sendmsg(theirs.get(), &m, MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }

  std::string body() const { return {ours->message().body.begin(), ours->message().body.end()}; }

  std::unique_ptr<Connection> ours;
  Descriptor theirs;
};

using Read = Connection::Read;

TEST_F(ConnectionTest, MessagesThatComeTogetherAreTakenApart) {
  auto both = message(1, "first");
  const auto second = message(2, "the second");
  both.insert(both.end(), second.begin(), second.end());
  put(both);
  ASSERT_EQ(ours->read(), Read::kMessage);
  EXPECT_EQ(ours->message().header.id, 1);
  EXPECT_EQ(body(), "first");
  ASSERT_EQ(ours->read(), Read::kMessage);
  EXPECT_EQ(body(), "the second");
  EXPECT_EQ(ours->read(), Read::kNothing);
}

TEST_F(ConnectionTest, AMessageMayComeByteByByte) {
  const auto bytes = message(7, "slow");
  for (std::size_t i = 0; i + 1 < bytes.size(); ++i) {
    put({bytes[i]});
    ASSERT_EQ(ours->read(), Read::kNothing) << i;
  }
  put({bytes.back()});
  ASSERT_EQ(ours->read(), Read::kMessage);
  EXPECT_EQ(body(), "slow");
}

TEST_F(ConnectionTest, DescriptorsStayWithTheirMessage) {
  put(message(1, "without"));
  put(message(2, "with"), 3);
  put(message(3, "without again"));
  ASSERT_EQ(ours->read(), Read::kMessage);
  EXPECT_TRUE(ours->message().files.empty());
  ASSERT_EQ(ours->read(), Read::kMessage);
  EXPECT_EQ(ours->message().files.size(), 3u);
  const int kept = ours->message().files[0].get();
  EXPECT_NE(::fcntl(kept, F_GETFD), -1);
  ASSERT_EQ(ours->read(), Read::kMessage);
  EXPECT_TRUE(ours->message().files.empty());
  EXPECT_EQ(::fcntl(kept, F_GETFD), -1) << "what nobody took is closed";
}

TEST_F(ConnectionTest, TooManyDescriptorsEndIt) {
  put(message(1, "many"), kMostFds + 1);
  EXPECT_EQ(ours->read(), Read::kEnd);
  EXPECT_NE(ours->why().find("file descriptors"), std::string::npos);
}

TEST_F(ConnectionTest, SizesThatCannotBeEndIt) {
  for (const std::uint32_t size : {0u, 15u, kMostMessage + 1, 0xffffffffu}) {
    SetUp();
    auto bytes = message(1, "");
    std::memcpy(bytes.data() + offsetof(Header, size), &size, sizeof size);
    put(bytes);
    EXPECT_EQ(ours->read(), Read::kEnd) << size;
    EXPECT_FALSE(ours->why().empty());
  }
}

TEST_F(ConnectionTest, AnEndBetweenMessagesIsNoError) {
  put(message(1, "last"));
  theirs.close();
  ASSERT_EQ(ours->read(), Read::kMessage);
  EXPECT_EQ(ours->read(), Read::kEnd);
  EXPECT_EQ(ours->why(), "");
}

TEST_F(ConnectionTest, AnEndWithinAMessageIs) {
  auto bytes = message(1, "cut short");
  bytes.resize(bytes.size() - 3);
  put(bytes);
  theirs.close();
  EXPECT_EQ(ours->read(), Read::kEnd);
  EXPECT_NE(ours->why(), "");
}

TEST_F(ConnectionTest, WhatTheOtherEndDoesNotReadIsKept) {
  const std::vector<std::uint8_t> data(1 << 20, 0x5a);
  Header header{};
  header.size = static_cast<std::uint32_t>(sizeof header + data.size());
  ours->send(header, data.data(), data.size());
  ASSERT_TRUE(ours->unsent());
  std::size_t got = 0;
  std::vector<std::uint8_t> buffer(1 << 16);
  while (got < header.size) {
    const ssize_t n = ::recv(theirs.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (n > 0) got += static_cast<std::size_t>(n);
    ASSERT_TRUE(ours->flush());
  }
  EXPECT_EQ(got, header.size);
  EXPECT_FALSE(ours->unsent());
}

TEST_F(ConnectionTest, AnEndThatIsGoneEndsSending) {
  theirs.close();
  Header header{};
  header.size = sizeof header;
  ours->send(header);
  EXPECT_FALSE(ours->flush());
  EXPECT_EQ(ours->read(), Read::kEnd);
}

}  // namespace
}  // namespace hcasim::vfio_user
