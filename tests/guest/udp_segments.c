// SPDX-License-Identifier: BSD-3-Clause
//
// Datagrams that the kernel (or the card) cuts out of one send (UDP_SEGMENT).
//   udp_segments send ADDRESS PORT SIZE COUNT FILL
//     COUNT datagrams of SIZE bytes in one send: each its number (4 bytes, the highest first), then FILL, and
//     at the end its number again
//   udp_segments end ADDRESS PORT
//     a datagram that ends the receiver
//   udp_segments receive PORT SIZE COUNT FILL
//     until that comes; says how many of them came as they were sent, and what else did
// Status 0: all that was to be sent was; the receiver came to its end.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103  // linux/udp.h
#endif

enum { kMost = 60000, kLongest = 1 << 16 };

static const char kEnd[3] = "end";

__attribute__((noreturn)) static void fail(const char* what) {
  printf("udp_segments: %s: %s\n", what, strerror(errno));
  exit(1);
}

static void fill(uint8_t* bytes, unsigned size, uint32_t number, int with) {
  const uint32_t mark = htonl(number);
  memset(bytes, with, size);
  memcpy(bytes, &mark, sizeof mark);
  memcpy(bytes + size - sizeof mark, &mark, sizeof mark);
}

static void receive(int fd, unsigned size, unsigned count, int with) {
  static uint8_t got[kLongest], want[kLongest];
  unsigned right = 0, wrong = 0, longest = 0;
  for (;;) {
    const ssize_t n = recv(fd, got, sizeof got, 0);
    if (n < 0) fail("recv");
    if (n == sizeof kEnd && memcmp(got, kEnd, sizeof kEnd) == 0) break;
    fill(want, size, right, with);
    if (right < count && (size_t)n == size && memcmp(got, want, size) == 0) {
      ++right;
      continue;
    }
    ++wrong;
    if ((size_t)n > longest) longest = (unsigned)n;
  }
  printf("right %u of %u, wrong %u", right, count, wrong);
  if (wrong > 0) printf(", up to %u bytes", longest);
  printf("\n");
}

int main(int argc, char** argv) {
  static uint8_t all[kMost];
  const char* what = argc > 1 ? argv[1] : "";
  const int receives = strcmp(what, "receive") == 0, sends = strcmp(what, "send") == 0;
  if (argc != (sends ? 7 : receives ? 6 : 4) || (!receives && !sends && strcmp(what, "end") != 0)) return 2;
  char** const arg = argv + (receives ? 2 : 3);
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(arg[0]))};
  const int fd = socket(AF_INET, SOCK_DGRAM, 0);
  if (fd < 0) fail("socket");
  const int size = argc > 4 ? atoi(arg[1]) : 0, count = argc > 4 ? atoi(arg[2]) : 0;
  const int with = argc > 4 ? (int)strtol(arg[3], NULL, 0) : 0;
  if (argc > 4 && (size < 8 || count < 1 || size > kMost / count)) return 2;
  if (receives) {
    to.sin_addr.s_addr = INADDR_ANY;
    if (bind(fd, (struct sockaddr*)&to, sizeof to) != 0) fail("bind");
    receive(fd, (unsigned)size, (unsigned)count, with);
    return 0;
  }
  if (inet_pton(AF_INET, argv[2], &to.sin_addr) != 1) return 2;
  if (connect(fd, (struct sockaddr*)&to, sizeof to) != 0) fail("connect");
  if (!sends) {
    if (send(fd, kEnd, sizeof kEnd, 0) < 0) fail("send");
    return 0;
  }
  if (setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof size) != 0) fail("UDP_SEGMENT");
  for (int i = 0; i < count; ++i) fill(all + i * size, (unsigned)size, (uint32_t)i, with);
  if (send(fd, all, (size_t)size * (size_t)count, 0) < 0) fail("send");
  return 0;
}
