// SPDX-License-Identifier: BSD-3-Clause
//
// Runs inside a guest: a function that vfio-pci has, driven from user space by libmlx5's mlx5 VFIO driver.
//   dv_vfio PCI-ADDRESS
// Environment, each a command: ASK_PAGES, GIVE_PAGES (the firmware asks for pages and gives them back),
// TOGGLE_PORT, FAIL_HEALTH.
#include "dv_common.h"

#include <pthread.h>
#include <signal.h>

#include "dv_eq.h"
#include "dv_pair.h"

static const char* pci;
static volatile int events_seen, process_error, ending;

// The application's thread for the device's events: answers of commands, page requests.
static void* process(void* unused) {
  const int fd = mlx5dv_vfio_get_events_fd(context);
  while (!ending) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    const int n = poll(&p, 1, 300);
    if (n > 0) __sync_fetch_and_add(&events_seen, 1);
    const int e = mlx5dv_vfio_process_events(context);
    if (e != 0) process_error = e;
  }
  return unused;
}
static pthread_t thread;

// bash in a process of its own.
static void run_command(const char* name) {
  const char* command = getenv(name);
  if (command == NULL) fail("no %s in the environment", name);
  const pid_t child = fork();
  if (child == 0) _exit(execl("/bin/bash", "bash", "-c", command, (char*)NULL));
  int status = 0;
  SAME(waitpid(child, &status, 0), child);
  if (status != 0) fail("%s: status 0x%x", name, (unsigned)status);
}

// Runs it, and waits for what the device has to say of it.
static void run_for_events(const char* name) {
  const int seen = events_seen;
  run_command(name);
  for (const double start = now(); events_seen == seen;)
    if (now() - start > 30) fail("no event of %s", name);
}

// The port: up by the register, its LID from the vport's context.
static void port_up(void) {
  uint8_t in[32] = {0}, out[32] = {0};
  put(in, 0, 16, 0x805);  // ACCESS_REGISTER, PAOS
  put(in, 0x50, 16, 0x5006);
  put(in, 0x80 + 0x8, 8, 1);
  put(in, 0x80 + 0x14, 4, 1);
  put(in, 0x80 + 0x20, 1, 1);
  SAME(mlx5dv_devx_general_cmd(context, in, sizeof in, out, sizeof out), 0);
  uint8_t query[16] = {0}, vport[528] = {0};
  put(query, 0, 16, 0x762);  // QUERY_HCA_VPORT_CONTEXT
  for (const double start = now();;) {
    SAME(mlx5dv_devx_general_cmd(context, query, sizeof query, vport, sizeof vport), 0);
    if (get(vport, 0x80 + 0x11c, 4) == 4 && get(vport, 0x80 + 0x300, 16) != 0) break;
    if (now() - start > 30)
      fail("the port is in state %u, LID %u", (unsigned)get(vport, 0x80 + 0x11c, 4),
           (unsigned)get(vport, 0x80 + 0x300, 16));
  }
  port.lid = (uint16_t)get(vport, 0x80 + 0x300, 16);
}

// --- an EQ of the application's own, with an interrupt of its own (dv_eq.h) ---
// The next event, after its interrupt if it is not there yet.
static const uint8_t* eqe_of(const char* what) {
  const uint8_t* eqe = next_eqe();
  while (!eqe_there()) {
    uint64_t count;
    readable(msi->fd, what);
    SAME(read(msi->fd, &count, sizeof count), 8);
  }
  __sync_synchronize();
  eqe_taken();
  return eqe;
}

static struct ibv_device** list;
static void open_function(void) {
  struct mlx5dv_vfio_context_attr attr = {.pci_name = pci};
  list = mlx5dv_get_vfio_device_list(&attr);
  WANT(list != NULL && list[0] != NULL);
  context = ibv_open_device(list[0]);
  if (context == NULL) fail("the VFIO device cannot be opened");
  SAME(pthread_create(&thread, NULL, process, NULL), 0);
}

static void all(void) {
  open_function();
  pd = ibv_alloc_pd(context);
  WANT(pd != NULL);
  port_up();
  from = make_region(kBytes);
  to = make_region(kBytes);
  printf("opened, LID %u\n", port.lid);

  // Traffic, its completions by an EQ of the application's.
  make_eq(0);
  const uint32_t completions = eqn;
  struct pair p;
  make_pair_on(&p, completions);
  for (uint32_t i = 0; i < 100; i++) {
    if (i % 10 == 0) arm(&p, i / 10);
    message(&p, 1 + i * 70);
    if (i % 10 == 0) {
      const uint8_t* eqe = eqe_of("a completion's interrupt");
      SAME(eqe[1], 0);
      SAME(get(eqe, 0x100 + 0xc8, 24), p.cqn);
    }
    message_done(&p, 1 + i * 70);
  }
  uint8_t in[16] = {0}, out[272] = {0};
  put(in, 0, 16, 0x50b);
  put(in, 0x48, 24, p.qpn);
  SAME(mlx5dv_devx_obj_query(p.qp, in, sizeof in, out, sizeof out), 0);
  SAME(get(out, 0xc0, 4), 3);
  printf("traffic and completion events\n");

  // Wrong commands: the card's answer comes through.
  uint8_t wrong[272] = {0}, answer[16] = {0};
  put(wrong, 0, 16, 0x402);
  put(wrong, 0x48, 24, 0xffffff);
  WANT(mlx5dv_devx_general_cmd(context, wrong, 16, out, sizeof out) != 0);
  WANT(get(out, 0, 8) != 0 && get(out, 0x20, 32) != 0);
  put(wrong, 0, 16, 0x400);
  WANT(mlx5dv_devx_obj_create(context, wrong, sizeof wrong, answer, sizeof answer) == NULL);
  WANT(get(answer, 0, 8) != 0);

  // The firmware asks for pages, and gives some back.
  run_for_events("ASK_PAGES");
  run_for_events("GIVE_PAGES");
  message(&p, 500);
  message_done(&p, 500);
  printf("pages asked for and given back\n");

  unmake_pair(&p);
  SAME(mlx5dv_devx_destroy_eq(eq), 0);
  SAME(mlx5dv_devx_free_msi_vector(msi), 0);
  mlx5dv_devx_free_uar(eq_uar);

  // Asynchronous events have an EQ of their own: the port goes down and up.
  eq_ci = 0;
  make_eq(1ull << 9);
  const pid_t child = fork();
  if (child == 0) _exit(execl("/bin/bash", "bash", "-c", getenv("TOGGLE_PORT"), (char*)NULL));
  unsigned subtypes = 0;
  while ((subtypes & 1 << 1) == 0 || (subtypes & 1 << 4) == 0) {
    const uint8_t* eqe = eqe_of("a port event's interrupt");
    SAME(eqe[1], 9);
    subtypes |= 1u << eqe[3];
  }
  int status = 0;
  SAME(waitpid(child, &status, 0), child);
  SAME(status, 0);
  printf("port events\n");
  SAME(mlx5dv_devx_destroy_eq(eq), 0);
  SAME(mlx5dv_devx_free_msi_vector(msi), 0);
  mlx5dv_devx_free_uar(eq_uar);
  SAME(process_error, 0);

  ending = 1;
  SAME(pthread_join(thread, NULL), 0);
  SAME(ibv_dereg_mr(from.mr), 0);
  SAME(ibv_dereg_mr(to.mr), 0);
  close_device();
  ibv_free_device_list(list);
}

// The card's health: libmlx5 ends the process that drives a card whose firmware has failed.
static void health(void) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("MLX5_DEBUG_FILE", "/tmp/dv-health", 1);  // it says why, and does not flush it
    open_function();
    run_command("FAIL_HEALTH");
    for (const double start = now(); now() - start < 60;) usleep(100000);
    _exit(0);
  }
  int status = 0;
  SAME(waitpid(child, &status, 0), child);
  if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT) fail("status 0x%x, not SIGABRT", (unsigned)status);
}

int main(int argc, char** argv) {
  static const struct test tests[] = {{"all", all}, {"health", health}};
  if (argc != 2) return 2;
  pci = argv[1];
  return run_tests(tests, 2, 1, argv);
}
