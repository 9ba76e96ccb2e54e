// SPDX-License-Identifier: BSD-3-Clause
// ktls serve|connect ADDRESS PORT CONNECTIONS BYTES KEY_BITS [sendfile|early|forge]
//
// Both ends of connections that the kernel's TLS encrypts (1.2, AES-GCM), with keys that both know, so that
// no library takes part. Each end of each connection sends BYTES and checks each byte that comes, all
// connections at once. Whether a network card or the kernel does the work is the interface's matter.
// sendfile: what is sent comes from a file. early: the client begins while the server has no TLS yet. forge:
// the client's key is wrong, and the server has to notice. Prints "CONNECTIONS connections, BYTES bytes each
// way".
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/tls.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef TCP_ULP
#define TCP_ULP 31
#endif
#ifndef SOL_TLS
#define SOL_TLS 282
#endif

static int bits, from_file, early, forge;
static unsigned long bytes;

static void die(const char* what) {
  fprintf(stderr, "ktls %d: %s: %s\n", (int)getpid(), what, errno ? strerror(errno) : "wrong");
  exit(1);
}

// Byte `at` of what that end of that connection sends.
static unsigned char byte_of(unsigned connection, int client, unsigned long at) {
  unsigned long v =
      (at + 1) * 0x9e3779b97f4a7c15ul ^ connection * 0x100000001b3ul ^ (client ? 0x5555 : 0xaaaa);
  return (unsigned char)(v >> 32);
}

static void use_tls(int fd, unsigned connection, int client, int direction) {
  const unsigned char seed = (unsigned char)(connection * 2 + (client == (direction == TLS_TX)));
  struct tls12_crypto_info_aes_gcm_128 k128;
  struct tls12_crypto_info_aes_gcm_256 k256;
  memset(&k128, 0, sizeof k128);
  memset(&k256, 0, sizeof k256);
  k128.info.version = k256.info.version = TLS_1_2_VERSION;
  k128.info.cipher_type = TLS_CIPHER_AES_GCM_128;
  k256.info.cipher_type = TLS_CIPHER_AES_GCM_256;
  memset(k128.key, seed, sizeof k128.key);
  memset(k256.key, seed, sizeof k256.key);
  if (forge && client && direction == TLS_TX) k128.key[3] ^= 1, k256.key[3] ^= 1;
  memset(k128.salt, seed ^ 0x33, sizeof k128.salt);
  memset(k256.salt, seed ^ 0x33, sizeof k256.salt);
  // Numbers that carry into further bytes.
  memset(k128.rec_seq + 7, 0xfd, 1), memset(k128.iv, 0x0e, sizeof k128.iv);
  memset(k256.rec_seq + 7, 0xfd, 1), memset(k256.iv, 0x0e, sizeof k256.iv);
  const void* info = bits == 256 ? (const void*)&k256 : (const void*)&k128;
  if (setsockopt(fd, SOL_TLS, direction, info, bits == 256 ? sizeof k256 : sizeof k128) != 0)
    die(direction == TLS_TX ? "TLS_TX" : "TLS_RX");
}

static void send_all(int fd, unsigned connection, int client) {
  static unsigned char buffer[64 << 10];
  unsigned long done = 0, turn = connection;
  int file = -1;
  if (from_file) {
    char name[] = "/tmp/ktls.XXXXXX";
    file = mkstemp(name);
    if (file < 0) die("mkstemp");
    unlink(name);
    for (unsigned long at = 0; at < bytes;) {
      const unsigned long n = bytes - at < sizeof buffer ? bytes - at : sizeof buffer;
      for (unsigned long i = 0; i < n; ++i) buffer[i] = byte_of(connection, client, at + i);
      if (write(file, buffer, n) != (ssize_t)n) die("write to a file");
      at += n;
    }
    if (lseek(file, 0, SEEK_SET) != 0) die("lseek");
  }
  while (done < bytes) {
    // Records of all lengths, from one byte to the longest, and several in one call.
    static const unsigned long kLengths[] = {65536, 1, 1000, 16384, 17, 40000, 5, 16383, 3001, 100};
    unsigned long n = kLengths[turn++ % (sizeof kLengths / sizeof *kLengths)];
    if (n > bytes - done) n = bytes - done;
    ssize_t sent;
    if (from_file) {
      sent = sendfile(fd, file, NULL, n);
    } else {
      for (unsigned long i = 0; i < n; ++i) buffer[i] = byte_of(connection, client, done + i);
      sent = send(fd, buffer, n, 0);
    }
    if (sent <= 0) die(from_file ? "sendfile" : "send");
    done += (unsigned long)sent;
  }
}

static void receive_all(int fd, unsigned connection, int client) {
  static unsigned char buffer[64 << 10];
  unsigned long done = 0;
  while (done < bytes) {
    const ssize_t n = recv(fd, buffer, sizeof buffer, 0);
    if (n <= 0) die("recv");
    for (ssize_t i = 0; i < n; ++i) {
      if (buffer[i] != byte_of(connection, !client, done + (unsigned long)i)) {
        errno = 0;
        fprintf(stderr, "byte %lu of connection %u\n", done + (unsigned long)i, connection);
        die("data");
      }
    }
    done += (unsigned long)n;
  }
}

static int talk(int fd, unsigned connection, int client) {
  if (setsockopt(fd, SOL_TCP, TCP_ULP, "tls", 3) != 0) die("TCP_ULP");
  if (early && !client) sleep(2);
  use_tls(fd, connection, client, TLS_TX);
  use_tls(fd, connection, client, TLS_RX);
  if (!early) sleep(2);  // both ends are ready, the card has its rules
  if (forge) {
    char c = 1;
    errno = 0;
    if (client) {
      if (send(fd, &c, 1, 0) != 1) die("send");
      while (recv(fd, &c, 1, 0) > 0) continue;
    } else if (recv(fd, &c, 1, 0) >= 0 || errno != EBADMSG) {
      die("a forged record was taken");
    }
    return 0;
  }
  const pid_t sender = fork();
  if (sender < 0) die("fork");
  if (sender == 0) {
    send_all(fd, connection, client);
    _exit(0);
  }
  receive_all(fd, connection, client);
  int status;
  if (waitpid(sender, &status, 0) != sender || status != 0) {
    errno = 0;
    die("sender");
  }
  // The other end has to have all before this one goes.
  if (shutdown(fd, SHUT_WR) != 0) die("shutdown");
  char end;
  while (recv(fd, &end, 1, 0) > 0) continue;
  return 0;
}

int main(int argc, char** argv) {
  if (argc < 7) {
    fprintf(stderr,
            "usage: ktls serve|connect ADDRESS PORT CONNECTIONS BYTES KEY_BITS [sendfile|early|forge]\n");
    return 2;
  }
  const int client = strcmp(argv[1], "connect") == 0;
  const unsigned connections = (unsigned)atoi(argv[4]);
  bytes = strtoul(argv[5], NULL, 0);
  bits = atoi(argv[6]);
  from_file = argc > 7 && strcmp(argv[7], "sendfile") == 0;
  early = argc > 7 && strcmp(argv[7], "early") == 0;
  forge = argc > 7 && strcmp(argv[7], "forge") == 0;

  struct sockaddr_in6 a6;
  struct sockaddr_in a4;
  memset(&a6, 0, sizeof a6);
  memset(&a4, 0, sizeof a4);
  a6.sin6_family = AF_INET6, a6.sin6_port = htons((unsigned short)atoi(argv[3]));
  a4.sin_family = AF_INET, a4.sin_port = a6.sin6_port;
  const int v6 = strchr(argv[2], ':') != NULL;
  if (inet_pton(v6 ? AF_INET6 : AF_INET, argv[2], v6 ? (void*)&a6.sin6_addr : (void*)&a4.sin_addr) != 1)
    die("address");
  const struct sockaddr* address = v6 ? (const struct sockaddr*)&a6 : (const struct sockaddr*)&a4;
  const socklen_t length = v6 ? sizeof a6 : sizeof a4;

  int listener = -1;
  if (!client) {
    const int on = 1;
    listener = socket(address->sa_family, SOCK_STREAM, 0);
    if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(listener, address, length) != 0 || listen(listener, 128) != 0)
      die("listen");
  }
  for (unsigned i = 0; i < connections; ++i) {
    int fd;
    unsigned connection = i;
    if (client) {
      fd = socket(address->sa_family, SOCK_STREAM, 0);
      if (fd < 0 || connect(fd, address, length) != 0) die("connect");
      if (send(fd, &connection, sizeof connection, 0) != sizeof connection) die("send its number");
    } else {
      fd = accept(listener, NULL, NULL);
      if (fd < 0) die("accept");
      if (recv(fd, &connection, sizeof connection, MSG_WAITALL) != sizeof connection) die("recv its number");
    }
    const pid_t child = fork();
    if (child < 0) die("fork");
    if (child == 0) exit(talk(fd, connection, client));
    close(fd);
  }
  int bad = 0, status;
  while (wait(&status) > 0)
    if (status != 0) ++bad;
  if (bad != 0) {
    fprintf(stderr, "%d of %u connections failed\n", bad, connections);
    return 1;
  }
  printf("%u connections, %lu bytes each way\n", connections, bytes);
  return 0;
}
