// SPDX-License-Identifier: BSD-3-Clause
//
// Sockets of SMC (AF_SMC) between two addresses: several connections at once, bytes of which each is known
// beforehand, in pieces of many sizes, both ways.
//   smc_pair OWN-ADDRESS              listens, and answers all that comes with its bits inverted
//   smc_pair OWN-ADDRESS PEER         sends, and compares the answers
// Status 0: all was right.
#define _GNU_SOURCE
#include "socket_pair.h"

#include <sys/wait.h>

#ifndef AF_SMC
#define AF_SMC 43
#endif

enum { kConnections = 4, kMessages = 60, kLargest = 300000, kPort = 18710 };

static size_t size_of(int i) {
  static const size_t kSizes[] = {1, 100, 4096, 65536, 17, 200000, 5000, kLargest};
  return kSizes[(size_t)i % (sizeof kSizes / sizeof *kSizes)];
}

static void take(int fd, uint8_t* to, size_t len) {
  while (len != 0) {
    wait_for(fd, POLLIN);
    const ssize_t n = recv(fd, to, len, 0);
    if (n <= 0) fail("recv");
    to += n;
    len -= (size_t)n;
  }
}

static void give(int fd, const uint8_t* from, size_t len) {
  while (len != 0) {
    wait_for(fd, POLLOUT);
    const ssize_t n = send(fd, from, len, MSG_NOSIGNAL);
    if (n <= 0) fail("send");
    from += n;
    len -= (size_t)n;
  }
}

// One connection, in a process of its own.
static void talk(int fd, int number, int asks) {
  static uint8_t out[kLargest], in[kLargest];
  for (int i = 0; i < kMessages; ++i) {
    const size_t len = size_of(i + number);
    fill(out, len, i * kConnections + number);
    if (asks) {
      give(fd, out, len);
      take(fd, in, len);
      for (size_t k = 0; k < len; ++k) in[k] = (uint8_t)~in[k];
    } else {
      take(fd, in, len);
    }
    if (memcmp(in, out, len) != 0) fail("other bytes have come");
    if (!asks) {
      for (size_t k = 0; k < len; ++k) out[k] = (uint8_t)~out[k];
      give(fd, out, len);
    }
  }
  // The end of the stream, from both sides.
  if (asks && shutdown(fd, SHUT_WR)) fail("shutdown");
  wait_for(fd, POLLIN);
  if (recv(fd, in, 1, 0) != 0) fail("there is more");
  close(fd);
}

static void in_child(int fd, int number, int asks) {
  const pid_t child = fork();
  if (child < 0) fail("fork");
  if (child != 0) {
    close(fd);
    return;
  }
  talk(fd, number, asks);
  exit(0);
}

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) return 2;
  setvbuf(stdout, NULL, _IOLBF, 0);
  struct sockaddr_in own = address(argv[1], kPort);
  int listener = -1;
  if (argc == 2) {
    listener = socket(AF_SMC, SOCK_STREAM, 0);
    if (listener < 0) fail("socket");
    if (bind(listener, (struct sockaddr*)&own, sizeof own) || listen(listener, 8)) fail("listen");
    printf("listens\n");
  }
  for (int i = 0; i < kConnections; ++i) {
    int fd;
    uint32_t number = (uint32_t)i;
    if (argc == 2) {
      wait_for(listener, POLLIN);
      fd = accept(listener, NULL, NULL);
      if (fd < 0) fail("accept");
      take(fd, (uint8_t*)&number, sizeof number);
    } else {
      const struct sockaddr_in peer = address(argv[2], kPort);
      fd = socket(AF_SMC, SOCK_STREAM, 0);
      if (fd < 0) fail("socket");
      if (connect(fd, (const struct sockaddr*)&peer, sizeof peer)) fail("connect");
      give(fd, (const uint8_t*)&number, sizeof number);
    }
    in_child(fd, (int)number, argc == 3);
  }
  int bad = 0, status;
  for (int i = 0; i < kConnections; ++i) {
    if (wait(&status) < 0) fail("wait");
    bad |= status;
  }
  if (bad) return 1;
  printf("smc_pair: %d connections of %d messages right\n", kConnections, kMessages);
  return 0;
}
