/* Processes with one region: forked ones, those that open a name, and one that is sent a descriptor. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"

enum { PROCESSES = 4, CALLS = 10 };

#define NOW (7 * SECOND)

static char path[100];
static tollgate_config_t limit = TOLLGATE_CONFIG_INIT(TOLLGATE_LOG, 0, 5, 1000000000);
static tollgate_shm_config_t config = TOLLGATE_SHM_CONFIG_INIT(TOLLGATE_CLOCK_CALLER, &limit, 1, 20);

/* Of some calls by index and as many by key, the admitted: both below 16. */
static int admitted(tollgate_shm_t *shm) {
    tollgate_limiter_t *limiter;
    int by_index = 0, by_key = 0;
    GIVES(TOLLGATE_OK, tollgate_shm_get(shm, 0, &limiter));
    for (int call = 0; call < CALLS; call++) {
        by_index += tollgate_try_acquire_at(limiter, 1, NOW);
        by_key += tollgate_shm_keyed_try_acquire_at(shm, "user", 4, 1, NOW);
    }
    tollgate_destroy(limiter);
    return by_index << 4 | by_key;
}

/* What processes that do this were admitted together. */
static int all(int (*child)(void *), void *argument) {
    pid_t children[PROCESSES];
    int sum = 0;
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        EXPECT(children[i] >= 0);
        if (children[i] == 0) _exit(child(argument));
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        EXPECT(waitpid(children[i], &status, 0) == children[i] && WIFEXITED(status));
        sum += WEXITSTATUS(status);
    }
    return sum;
}

static int inherits(void *shm) {
    return admitted(shm);
}

static int opens(void *unused) {
    tollgate_shm_t *shm;
    (void)unused;
    GIVES(TOLLGATE_OK, tollgate_shm_open(path, &config, &shm)); /* one of them makes it */
    int sum = admitted(shm);
    tollgate_shm_close(shm);
    return sum;
}

static int places(void *memory) {
    tollgate_shm_t *shm;
    size_t size;
    GIVES(TOLLGATE_OK, tollgate_shm_size(&config, &size));
    GIVES(TOLLGATE_OK, tollgate_shm_place(memory, size, &config, &shm));
    int sum = admitted(shm);
    tollgate_shm_close(shm);
    return sum;
}

/* A message of one byte with a descriptor. */
static void with_descriptor(struct msghdr *message, struct iovec *bytes, char *byte, char *control, size_t length) {
    memset(message, 0, sizeof *message);
    bytes->iov_base = byte;
    bytes->iov_len = 1;
    message->msg_iov = bytes;
    message->msg_iovlen = 1;
    message->msg_control = control;
    message->msg_controllen = length;
}

static int receives(void *socket) {
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr message;
    struct iovec bytes;
    char byte;
    int fd;
    with_descriptor(&message, &bytes, &byte, control.bytes, sizeof control);
    EXPECT(recvmsg(*(int *)socket, &message, 0) == 1);
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    tollgate_shm_t *shm;
    GIVES(TOLLGATE_OK, tollgate_shm_open_fd(fd, &config, &shm));
    EXPECT(close(fd) == 0);
    return admitted(shm);
}

/* The region is made when they run already. */
static void *sends(void *socket) {
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr message;
    struct iovec bytes;
    char byte = 0;
    int fd;
    tollgate_shm_t *shm;
    GIVES(TOLLGATE_OK, tollgate_shm_create_memfd("sent", &config, &fd, &shm));
    memset(&control, 0, sizeof control);
    with_descriptor(&message, &bytes, &byte, control.bytes, sizeof control);
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    for (int i = 0; i < PROCESSES; i++) EXPECT(sendmsg(*(int *)socket, &message, 0) == 1);
    EXPECT(close(fd) == 0);
    tollgate_shm_close(shm);
    return NULL;
}

int main(void) {
    const int five = 5 << 4 | 5;
    int sockets[2], fd;
    tollgate_shm_t *shm;
    size_t size;
    snprintf(path, sizeof path, "/dev/shm/tollgate-shm-processes-%d", (int)getpid());
    EXPECT(all(opens, NULL) == five);
    EXPECT(opens(NULL) == 0); /* it stays when they have gone */
    GIVES(TOLLGATE_OK, tollgate_shm_unlink(path));

    GIVES(TOLLGATE_OK, tollgate_shm_create_memfd("inherited", &config, &fd, &shm));
    EXPECT(close(fd) == 0 && all(inherits, shm) == five);
    tollgate_shm_close(shm);

    GIVES(TOLLGATE_OK, tollgate_shm_size(&config, &size));
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT(memory != MAP_FAILED && all(places, memory) == five);
    EXPECT(munmap(memory, size) == 0);

    EXPECT(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) == 0);
    pid_t sender = fork();
    EXPECT(sender >= 0);
    if (sender == 0) {
        sends(&sockets[0]);
        _exit(0);
    }
    EXPECT(all(receives, &sockets[1]) == five && waitpid(sender, NULL, 0) == sender);
    return 0;
}
