// SPDX-License-Identifier: BSD-3-Clause
// What the kernel's tests of forwarding ask of mtools, by the name that it is called by:
//   mreceive -g GROUP -I INTERFACE       joins the group and waits
//   msend -g GROUP -I INTERFACE [-c N]   sends it N datagrams
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void die(const char* what) {
  perror(what);
  exit(1);
}

int main(int argc, char** argv) {
  const char *group = NULL, *interface = NULL;
  int count = 1, option;
  while ((option = getopt(argc, argv, "g:I:c:")) >= 0) {
    if (option == 'g') group = optarg;
    if (option == 'I') interface = optarg;
    if (option == 'c') count = atoi(optarg);
  }
  if (!group || !interface) return 2;
  const unsigned index = if_nametoindex(interface);
  if (!index) die(interface);
  struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(4444)};
  struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(4444), .sin6_scope_id = index};
  const int is_v4 = inet_pton(AF_INET, group, &v4.sin_addr) == 1;
  if (!is_v4 && inet_pton(AF_INET6, group, &v6.sin6_addr) != 1) return 2;
  const int fd = socket(is_v4 ? AF_INET : AF_INET6, SOCK_DGRAM, 0);
  if (fd < 0) die("socket");
  if (strstr(argv[0], "mreceive")) {
    const struct ip_mreqn m4 = {.imr_multiaddr = v4.sin_addr, .imr_ifindex = (int)index};
    const struct ipv6_mreq m6 = {.ipv6mr_multiaddr = v6.sin6_addr, .ipv6mr_interface = index};
    const int failed = is_v4 ? setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &m4, sizeof m4)
                             : setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &m6, sizeof m6);
    if (failed) die("join");
    for (;;) pause();
  }
  const struct ip_mreqn from = {.imr_ifindex = (int)index};
  const int failed = is_v4 ? setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &from, sizeof from)
                           : setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, &index, sizeof index);
  // "ip vrf exec" has bound it to the VRF, which has no route for groups of IPv6.
  if (failed || setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, interface, strlen(interface) + 1))
    die("interface");
  for (int i = 0; i < count; ++i)
    if (sendto(fd, "hello", 5, 0, is_v4 ? (struct sockaddr*)&v4 : (struct sockaddr*)&v6,
               is_v4 ? sizeof v4 : sizeof v6) < 0)
      die("send");
  return 0;
}
