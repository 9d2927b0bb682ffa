/* Counts what the process asks of the allocator, by standing in its place; and whether calls in a signal handler ask. */
#ifndef ALLOCATIONS_H
#define ALLOCATIONS_H

#include <pthread.h>
#include <signal.h>

#include "expect.h"

/* How often it was asked. */
static volatile unsigned long asked;

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);

void *malloc(size_t bytes) {
    asked++;
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes) {
    asked++;
    return __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes) {
    asked++;
    return __libc_realloc(memory, bytes);
}

/* What a thread calls before its handler does, if anything, and in it. */
static void (*before_)(void);
static void (*volatile in_handler_)(void);

static inline void handle_(int number) {
    (void)number;
    in_handler_();
}

static inline void *thread_(void *unused) {
    unsigned long before;
    (void)unused;
    if (before_) before_();
    before = asked;
    EXPECT(raise(SIGUSR1) == 0);
    EXPECT(asked == before);
    return NULL;
}

/* In a handler of a thread that is new, but for what it calls before, these calls ask for nothing. */
static inline void in_a_handler(void (*before)(void), void (*calls)(void)) {
    pthread_t thread;
    before_ = before;
    in_handler_ = calls;
    EXPECT(signal(SIGUSR1, handle_) != SIG_ERR);
    EXPECT(pthread_create(&thread, NULL, thread_, NULL) == 0 && pthread_join(thread, NULL) == 0);
}

#endif
