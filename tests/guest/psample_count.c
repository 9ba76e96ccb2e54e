// SPDX-License-Identifier: BSD-3-Clause
// psample_count GROUP LENGTH: counts what the kernel's psample reports of that group until SIGTERM. Each
// sample has to be of LENGTH bytes, the rate has to be the same in all. Prints "listening", "sample" for
// each, and "COUNT samples at rate RATE of interface INDEX".
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/psample.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int fd;
static volatile sig_atomic_t ended;

static void on_end(int number) {
  (void)number;
  ended = 1;
}

static void die(const char* what) {
  perror(what);
  exit(1);
}

// Calls take() with each attribute in [p, end).
static void attributes(const char* p, const char* end, void (*take)(const struct nlattr*, void*), void* arg) {
  while (end - p >= NLA_HDRLEN) {
    const struct nlattr* a = (const struct nlattr*)p;
    if (a->nla_len < NLA_HDRLEN || a->nla_len > end - p) return;
    take(a, arg);
    p += NLA_ALIGN(a->nla_len);
  }
}
static const char* body(const struct nlattr* a) { return (const char*)a + NLA_HDRLEN; }

struct family {
  unsigned id, group;
};
struct group {
  unsigned id;
  int samples;
};
static void take_group_part(const struct nlattr* a, void* arg) {
  struct group* g = arg;
  if (a->nla_type == CTRL_ATTR_MCAST_GRP_ID) memcpy(&g->id, body(a), sizeof g->id);
  if (a->nla_type == CTRL_ATTR_MCAST_GRP_NAME) g->samples = !strcmp(body(a), PSAMPLE_NL_MCGRP_SAMPLE_NAME);
}
static void take_group(const struct nlattr* a, void* arg) {
  struct group g = {0, 0};
  attributes(body(a), (const char*)a + a->nla_len, take_group_part, &g);
  if (g.samples) ((struct family*)arg)->group = g.id;
}
static void take_family(const struct nlattr* a, void* arg) {
  if (a->nla_type == CTRL_ATTR_FAMILY_ID) ((struct family*)arg)->id = *(const unsigned short*)body(a);
  if ((a->nla_type & NLA_TYPE_MASK) == CTRL_ATTR_MCAST_GROUPS)
    attributes(body(a), (const char*)a + a->nla_len, take_group, arg);
}

struct sample {
  unsigned group, rate, data, in;
};
static void take_sample(const struct nlattr* a, void* arg) {
  struct sample* s = arg;
  if (a->nla_type == PSAMPLE_ATTR_SAMPLE_GROUP) memcpy(&s->group, body(a), 4);
  if (a->nla_type == PSAMPLE_ATTR_SAMPLE_RATE) memcpy(&s->rate, body(a), 4);
  if (a->nla_type == PSAMPLE_ATTR_IIFINDEX) s->in = *(const unsigned short*)body(a);
  if (a->nla_type == PSAMPLE_ATTR_DATA) s->data = a->nla_len - NLA_HDRLEN;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  signal(SIGTERM, on_end);
  const unsigned group = (unsigned)atoi(argv[1]), length = (unsigned)atoi(argv[2]);
  static char buffer[1 << 16];
  struct {
    struct nlmsghdr nl;
    struct genlmsghdr genl;
    struct nlattr attr;
    char name[8];
  } ask = {{sizeof ask, GENL_ID_CTRL, NLM_F_REQUEST, 1, 0},
           {CTRL_CMD_GETFAMILY, 1, 0},
           {NLA_HDRLEN + sizeof PSAMPLE_GENL_NAME, CTRL_ATTR_FAMILY_NAME},
           PSAMPLE_GENL_NAME};
  fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC);
  if (fd < 0 || send(fd, &ask, sizeof ask, 0) < 0) die("genetlink");
  ssize_t got = recv(fd, buffer, sizeof buffer, 0);
  const struct nlmsghdr* nl = (const struct nlmsghdr*)buffer;
  struct family family = {0, 0};
  if (got < (ssize_t)sizeof *nl || nl->nlmsg_type == NLMSG_ERROR) return fprintf(stderr, "no psample\n"), 1;
  attributes(buffer + NLMSG_HDRLEN + GENL_HDRLEN, buffer + got, take_family, &family);
  if (setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &family.group, sizeof family.group) < 0)
    die("group");

  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("listening\n");

  unsigned count = 0, rate = 0, in = 0;
  struct pollfd p = {fd, POLLIN, 0};
  while (!ended) {
    if (poll(&p, 1, 200) <= 0) continue;
    got = recv(fd, buffer, sizeof buffer, 0);
    if (got < 0) die("recv");
    if (got < (ssize_t)sizeof *nl || nl->nlmsg_type != family.id) continue;
    struct sample s = {0, 0, 0, 0};
    attributes(buffer + NLMSG_HDRLEN + GENL_HDRLEN, buffer + got, take_sample, &s);
    if (s.group != group) continue;
    if (s.data != length) return fprintf(stderr, "a sample of %u bytes\n", s.data), 1;
    if (count != 0 && s.rate != rate) return fprintf(stderr, "rates %u and %u\n", rate, s.rate), 1;
    rate = s.rate;
    in = s.in;
    ++count;
    printf("sample\n");
  }
  printf("%u samples at rate %u of interface %u\n", count, rate, in);
  return 0;
}
