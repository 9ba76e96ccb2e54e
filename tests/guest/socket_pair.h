// SPDX-License-Identifier: BSD-3-Clause
// What the programs with a pair of sockets share. They define _GNU_SOURCE.
#ifndef HCASIM_TESTS_GUEST_SOCKET_PAIR_H
#define HCASIM_TESTS_GUEST_SOCKET_PAIR_H

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { kLimit = 60000 };  // ms

static inline void fail(const char* what) {
  printf("%s: FAILED: %s (%s)\n", program_invocation_short_name, what, strerror(errno));
  exit(1);
}

static inline struct sockaddr_in address(const char* text, uint16_t port) {
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
  if (inet_pton(AF_INET, text, &a.sin_addr) != 1) fail("address");
  return a;
}

// The bytes of message i.
static inline void fill(uint8_t* to, size_t len, int i) {
  uint32_t x = (uint32_t)i * 2654435761u + 1;
  for (size_t k = 0; k < len; ++k) {
    x = x * 1664525u + 1013904223u;
    to[k] = (uint8_t)(x >> 24);
  }
}

static inline void wait_for(int fd, short what) {
  struct pollfd p = {.fd = fd, .events = what};
  if (poll(&p, 1, kLimit) != 1) fail("nothing happens");
}

#endif
