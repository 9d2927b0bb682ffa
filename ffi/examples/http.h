/* Just enough HTTP for the examples: a listener, an answer that tells the limiter's decision, and a client. */
#ifndef EXAMPLES_HTTP_H
#define EXAMPLES_HTTP_H

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <tollgate/tollgate.h>

/* Ends the program with the reason if a call of the system or of the library has failed. */
static inline int must(int result, const char *what) {
    if (result < 0) {
        perror(what);
        exit(1);
    }
    return result;
}

/* A listener on a free port of the loopback device; its address to *address. */
static inline int http_listen(struct sockaddr_in *address) {
    socklen_t length = sizeof *address;
    memset(address, 0, sizeof *address);
    address->sin_family = AF_INET;
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = must(socket(AF_INET, SOCK_STREAM, 0), "socket");
    must(bind(listener, (struct sockaddr *)address, length), "bind");
    must(listen(listener, 128), "listen");
    must(getsockname(listener, (struct sockaddr *)address, &length), "getsockname");
    return listener;
}

/* Answers one request and closes the connection. Anything but TOLLGATE_OK is a refusal. */
static inline void http_answer(int connection, int status, const tollgate_decision_t *decision) {
    char text[160];
    int length;
    if (status == TOLLGATE_OK) {
        length = snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nX-RateLimit-Remaining: %" PRIu64 "\r\n\r\n",
                          decision->remaining);
    } else if (status == TOLLGATE_REFUSED) {
        /* Rounded up: a client that comes back a moment too early is refused again. */
        length = snprintf(text, sizeof text, "HTTP/1.1 429 Too Many Requests\r\nRetry-After-Ms: %" PRIu64 "\r\n\r\n",
                          decision->retry_after_ns / 1000000 + 1);
    } else {
        length = snprintf(text, sizeof text, "HTTP/1.1 503 %s\r\n\r\n", tollgate_status_name(status));
    }
    /* A client that has gone is no fault of ours. */
    (void)send(connection, text, (size_t)length, MSG_NOSIGNAL);
    close(connection);
}

/* Sends one request: 0 if it was served, else the milliseconds to wait before the next. */
static inline unsigned http_request(const struct sockaddr_in *address) {
    static const char request[] = "GET / HTTP/1.1\r\n\r\n";
    char text[256];
    size_t have = 0;
    ssize_t got;
    int server = must(socket(AF_INET, SOCK_STREAM, 0), "socket");
    must(connect(server, (const struct sockaddr *)address, sizeof *address), "connect");
    must((int)send(server, request, sizeof request - 1, MSG_NOSIGNAL), "send");
    while ((got = read(server, text + have, sizeof text - 1 - have)) > 0) {
        have += (size_t)got;
    }
    text[have] = '\0';
    close(server);
    if (strncmp(text, "HTTP/1.1 200 ", 13) == 0) {
        return 0;
    }
    unsigned wait_ms;
    const char *wait = strstr(text, "Retry-After-Ms: ");
    if (wait == NULL || sscanf(wait, "Retry-After-Ms: %u", &wait_ms) != 1) {
        fprintf(stderr, "an answer that is neither 200 nor 429: \"%s\"\n", text);
        exit(1);
    }
    return wait_ms;
}

#endif
