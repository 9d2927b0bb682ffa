/* A pre-fork HTTP server: worker processes share one listener and one limiter, which lies in anonymous shared memory.
 * There is nothing to start, to lock or to repair: one worker is killed in the middle, and the limit holds.
 *
 *   cc prefork.c $(pkg-config --cflags --libs tollgate) -o prefork && ./prefork
 *
 * The parent is the client, and checks that the workers together serve the limit, exactly. */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "http.h"

#define WORKERS 4
#define LIMIT 100
#define REQUESTS 150
#define WINDOW_NS UINT64_C(60000000000)

static void worker(tollgate_limiter_t *limiter, int listener) {
    for (;;) {
        char request[1024];
        tollgate_decision_t decision;
        int connection = accept(listener, NULL, NULL);
        if (connection < 0) {
            continue; /* the client went away, or another worker was faster */
        }
        if (read(connection, request, sizeof request) > 0) {
            int status = tollgate_check(limiter, 1, &decision); /* reads the clock that all processes share */
            http_answer(connection, status, &decision);
        } else {
            close(connection);
        }
    }
}

/* A limiter that this process and all its children to come share. */
static tollgate_limiter_t *shared_limiter(const tollgate_config_t *config) {
    size_t size;
    int status = tollgate_size(config, &size);
    tollgate_limiter_t *limiter = NULL;
    if (status == TOLLGATE_OK) {
        void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) {
            perror("mmap");
            exit(1);
        }
        status = tollgate_init_in(memory, size, config, &limiter);
    }
    if (status != TOLLGATE_OK) {
        fprintf(stderr, "prefork: %s\n", tollgate_strerror(status));
        exit(1);
    }
    return limiter;
}

int main(void) {
    tollgate_config_t config = TOLLGATE_CONFIG_INIT(TOLLGATE_LOG, TOLLGATE_CLOCK_MONOTONIC, LIMIT, WINDOW_NS);
    tollgate_limiter_t *limiter = shared_limiter(&config);
    struct sockaddr_in address;
    int listener = http_listen(&address);
    pid_t workers[WORKERS];
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = must(fork(), "fork");
        if (workers[i] == 0) {
            worker(limiter, listener);
        }
    }

    unsigned served = 0, wait_ms = 0;
    for (int request = 0; request < REQUESTS; request++) {
        if (request == LIMIT / 2) {
            must(kill(workers[0], SIGKILL), "kill");
            must(waitpid(workers[0], NULL, 0), "waitpid");
        }
        unsigned answer = http_request(&address);
        served += answer == 0;
        wait_ms = answer != 0 ? answer : wait_ms;
    }
    for (int i = 1; i < WORKERS; i++) {
        must(kill(workers[i], SIGTERM), "kill");
        must(waitpid(workers[i], NULL, 0), "waitpid");
    }
    printf("prefork: %u of %d served by %d workers, one of them killed; the next in %u ms\n", served, REQUESTS, WORKERS,
           wait_ms);
    return served == LIMIT && wait_ms > 0 && wait_ms <= WINDOW_NS / 1000000 + 1 ? 0 : 1;
}
