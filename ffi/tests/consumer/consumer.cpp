// A program that knows tollgate only as it is installed.
#include <chrono>
#include <cstdio>

#include <tollgate/tollgate.hpp>

int main() {
    using namespace std::chrono;
    auto config = tollgate::config(TOLLGATE_LOG, 2, microseconds(1)).clock(TOLLGATE_CLOCK_CALLER);
    auto limiter = tollgate::limiter::create(config);
    if (!limiter) {
        std::fprintf(stderr, "consumer: %s\n", tollgate_strerror(limiter.error()));
        return 1;
    }
    int admitted = 0;
    for (int call = 0; call < 5; call++) {
        admitted += limiter.try_acquire_at(1, nanoseconds(7));
    }
    auto decision = limiter.check_at(1, nanoseconds(8));
    return admitted == 2 && decision.status() == TOLLGATE_REFUSED && decision.retry_after() == nanoseconds(999) ? 0 : 1;
}
