// SPDX-License-Identifier: BSD-3-Clause
//
// Reliable datagrams (RDS) between two addresses: messages of many sizes, each with bytes that are known
// beforehand, in order.
//   rds_pair OWN-ADDRESS              takes kMessages messages, and answers each with its bits inverted
//   rds_pair OWN-ADDRESS PEER         sends them, and compares the answers
// Status 0: all was right.
#define _GNU_SOURCE
#include "socket_pair.h"

enum { kMessages = 200, kLargest = 65536, kPort = 18700 };

static size_t size_of(int i) {
  static const size_t kSizes[] = {1, 8, 100, 1000, 4095, 4096, 5000, 16384, 40000, kLargest};
  return kSizes[(size_t)i % (sizeof kSizes / sizeof *kSizes)];
}

static size_t receive(int fd, uint8_t* to, struct sockaddr_in* from) {
  socklen_t len = sizeof *from;
  wait_for(fd, POLLIN);
  const ssize_t n = recvfrom(fd, to, kLargest, 0, (struct sockaddr*)from, &len);
  if (n < 0) fail("recvfrom");
  return (size_t)n;
}

static void transmit(int fd, const uint8_t* bytes, size_t len, const struct sockaddr_in* to) {
  for (int tries = 0; sendto(fd, bytes, len, 0, (const struct sockaddr*)to, sizeof *to) != (ssize_t)len;
       ++tries) {
    if ((errno != EAGAIN && errno != ENOBUFS) || tries > 1000) fail("sendto");
    usleep(10000);
  }
}

int main(int argc, char** argv) {
  static uint8_t out[kLargest], in[kLargest];
  if (argc < 2 || argc > 3) return 2;
  const int fd = socket(AF_RDS, SOCK_SEQPACKET, 0);
  if (fd < 0) fail("socket");
  struct sockaddr_in own = address(argv[1], kPort), peer;
  if (bind(fd, (struct sockaddr*)&own, sizeof own)) fail("bind");
  // What comes for a port that nobody is bound to is dropped without a word.
  printf("bound\n");
  fflush(stdout);
  if (argc == 3) peer = address(argv[2], kPort);
  for (int i = 0; i < kMessages; ++i) {
    const size_t len = size_of(i);
    fill(out, len, i);
    if (argc == 3) transmit(fd, out, len, &peer);
    if (receive(fd, in, &peer) != len) fail("a message has another length");
    if (argc == 3) {
      for (size_t k = 0; k < len; ++k) in[k] = (uint8_t)~in[k];
    }
    if (memcmp(in, out, len) != 0) fail("a message holds other bytes");
    if (argc == 2) {
      for (size_t k = 0; k < len; ++k) out[k] = (uint8_t)~out[k];
      transmit(fd, out, len, &peer);
    }
  }
  if (argc == 2) sleep(2);  // the last answer has to leave
  printf("rds_pair: %d messages right\n", kMessages);
  return 0;
}
