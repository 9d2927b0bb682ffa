/* An HTTP server with one event loop and no threads. It reads the time once for each turn of the loop and asks the
 * limiter with that time, as servers do that keep a cached clock.
 *
 *   cc event_loop.c $(pkg-config --cflags --libs tollgate) -o event_loop && ./event_loop
 *
 * A client in a child process checks what the server promises: not more than the limit in a window, and what was
 * refused passes after the time named. */
#include <sys/epoll.h>
#include <sys/wait.h>
#include <time.h>

#include "http.h"

#define LIMIT 20
#define WINDOW_NS UINT64_C(2000000000)

/* Asks more than the limit at once, then waits as told. Returns the exit code of the client. */
static int client(const struct sockaddr_in *address) {
    uint64_t start = tollgate_now_ns(TOLLGATE_CLOCK_MONOTONIC);
    unsigned served = 0, wait_ms = 0;
    for (int request = 0; request < LIMIT + 10; request++) {
        unsigned answer = http_request(address);
        served += answer == 0;
        wait_ms = answer != 0 ? answer : wait_ms;
    }
    if (tollgate_now_ns(TOLLGATE_CLOCK_MONOTONIC) - start >= WINDOW_NS) {
        fprintf(stderr, "event_loop: this machine needs more than a window for %d requests\n", LIMIT + 10);
        return 1;
    }
    struct timespec pause = {wait_ms / 1000, (long)(wait_ms % 1000) * 1000000};
    nanosleep(&pause, NULL);
    unsigned later = http_request(address);
    printf("event_loop: %u of %d served, %s after %u ms\n", served, LIMIT + 10, later == 0 ? "and one" : "none",
           wait_ms);
    return served == LIMIT && later == 0 ? 0 : 1;
}

static void watch(int poller, int fd) {
    struct epoll_event event = {.events = EPOLLIN, .data = {.fd = fd}};
    must(epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
}

/* Serves until `stop` can be read. */
static void serve(tollgate_limiter_t *limiter, int listener, int stop) {
    struct epoll_event events[64];
    int poller = must(epoll_create1(0), "epoll_create1");
    watch(poller, listener);
    watch(poller, stop);
    for (;;) {
        int count = must(epoll_wait(poller, events, 64, -1), "epoll_wait");
        uint64_t now = tollgate_now_ns(TOLLGATE_CLOCK_MONOTONIC);
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;
            if (fd == stop) {
                close(poller);
                return;
            }
            if (fd == listener) {
                watch(poller, must(accept(listener, NULL, NULL), "accept"));
                continue;
            }
            char request[1024];
            tollgate_decision_t decision;
            if (read(fd, request, sizeof request) <= 0) {
                close(fd);
                continue;
            }
            int status = tollgate_check_at(limiter, 1, now, &decision);
            http_answer(fd, status, &decision);
        }
    }
}

int main(void) {
    tollgate_config_t config = TOLLGATE_CONFIG_INIT(TOLLGATE_LOG, TOLLGATE_CLOCK_CALLER, LIMIT, WINDOW_NS);
    tollgate_limiter_t *limiter;
    int status = tollgate_create(&config, &limiter);
    if (status != TOLLGATE_OK) {
        fprintf(stderr, "tollgate_create: %s\n", tollgate_strerror(status));
        return 1;
    }
    struct sockaddr_in address;
    int listener = http_listen(&address), stop[2], result = 0;
    must(pipe(stop), "pipe");
    pid_t pid = must(fork(), "fork");
    if (pid == 0) {
        close(stop[0]);
        close(listener);
        return client(&address); /* which closes the pipe */
    }
    close(stop[1]);
    serve(limiter, listener, stop[0]);
    must(waitpid(pid, &result, 0), "waitpid");
    tollgate_destroy(limiter);
    return WIFEXITED(result) ? WEXITSTATUS(result) : 1;
}
