/* tollgate for C++14 and later: owners, durations, and the same calls. Everything is in this header and works with
 * -fno-exceptions; nothing throws. What a call means stands in tollgate.h.
 *
 *     auto config = tollgate::config(TOLLGATE_LOG, 100, std::chrono::seconds(1)).clock(TOLLGATE_CLOCK_PRECISE);
 *     auto limiter = tollgate::limiter::create(config);
 *     if (!limiter) return std::fputs(tollgate_strerror(limiter.error()), stderr);
 *     if (limiter.try_acquire()) serve(); else refuse();
 */
#ifndef TOLLGATE_HPP
#define TOLLGATE_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "tollgate.h"

namespace tollgate {

using std::chrono::nanoseconds;

namespace detail {

/* A time for C. One before the clock's zero becomes one out of range, at which nothing is admitted. */
inline std::uint64_t to_ns(nanoseconds span) noexcept { return static_cast<std::uint64_t>(span.count()); }

/* So does one of another unit that is too long for nanoseconds, or no number. */
template <class Rep, class Period>
std::uint64_t to_ns(std::chrono::duration<Rep, Period> span) noexcept {
    const long double exact = std::chrono::duration<long double, std::nano>(span).count();
    const long double end = 4611686018427387904.0L; /* 2^62 */
    return exact > -1 && exact < end ? to_ns(std::chrono::duration_cast<nanoseconds>(span)) : UINT64_MAX;
}

template <class Clock, class Span>
std::uint64_t to_ns(std::chrono::time_point<Clock, Span> time) noexcept {
    return to_ns(time.time_since_epoch());
}

/* A span from C; what is too long, "never" among it, becomes the longest. */
inline nanoseconds from_ns(std::uint64_t ns) noexcept {
    return ns > static_cast<std::uint64_t>(INT64_MAX) ? nanoseconds::max() : nanoseconds(static_cast<std::int64_t>(ns));
}

}  // namespace detail

/* What a limiter is to be. Whatever is wrong with it is reported when a limiter is made. */
class config {
public:
    /* At most limit permits in any window, by the system's monotonic clock unless another is named. */
    template <class Rep, class Period>
    config(std::uint32_t algorithm, std::uint64_t limit, std::chrono::duration<Rep, Period> window) noexcept
        : raw_(TOLLGATE_CONFIG_INIT(algorithm, TOLLGATE_CLOCK_MONOTONIC, limit, detail::to_ns(window))) {}

    config &clock(std::uint32_t clock) noexcept { return set(raw_.clock, clock); }
    config &buckets(std::uint32_t buckets) noexcept { return set(raw_.buckets, buckets); }
    config &burst(std::uint64_t burst) noexcept { return set(raw_.burst, burst); }
    config &max_cost(std::uint32_t cost) noexcept { return set(raw_.max_cost, cost); }
    config &flags(std::uint32_t flags) noexcept { return set(raw_.flags, flags); }
    config &seed(std::uint64_t seed) noexcept { return set(raw_.reserved[0], seed); }

    template <class Rep, class Period>
    config &phase(std::chrono::duration<Rep, Period> phase) noexcept {
        return set(raw_.reserved[0], detail::to_ns(phase));
    }

    /* One rule more: all must have room, or nothing is taken from any. */
    template <class Rep, class Period>
    config &rule(std::uint64_t limit, std::chrono::duration<Rep, Period> window) noexcept {
        if (raw_.rule_count < TOLLGATE_MAX_RULES) {
            raw_.rules[raw_.rule_count].limit = limit;
            raw_.rules[raw_.rule_count].window_ns = detail::to_ns(window);
        }
        raw_.rule_count += 1; /* one too many is reported */
        return *this;
    }

    const tollgate_config_t *raw() const noexcept { return &raw_; }
    tollgate_config_t *raw() noexcept { return &raw_; }

    /* Bytes of such a limiter in memory of the caller's; 0 if there is none. */
    std::size_t size() const noexcept {
        std::size_t bytes = 0;
        return tollgate_size(&raw_, &bytes) == TOLLGATE_OK ? bytes : 0;
    }

private:
    template <class T>
    config &set(T &field, T value) noexcept {
        field = value;
        return *this;
    }

    tollgate_config_t raw_;
};

/* The answer to one call: true if it was admitted. With an error() there are no figures: they are all 0, and the answer
 * is no. */
class decision {
public:
    explicit operator bool() const noexcept { return status_ == TOLLGATE_OK; }
    /* TOLLGATE_OK, _REFUSED, _NEVER, or an error. */
    int status() const noexcept { return status_; }
    /* The error, or TOLLGATE_OK. */
    int error() const noexcept { return status_ < 0 ? status_ : static_cast<int>(TOLLGATE_OK); }
    std::uint32_t reason() const noexcept { return raw_.reason; }
    std::uint32_t rule() const noexcept { return raw_.rule; }
    std::uint64_t limit() const noexcept { return raw_.limit; }
    std::uint64_t remaining() const noexcept { return raw_.remaining; }
    /* nanoseconds::max() for never. */
    nanoseconds retry_after() const noexcept { return detail::from_ns(raw_.retry_after_ns); }
    nanoseconds next_after() const noexcept { return detail::from_ns(raw_.next_after_ns); }
    nanoseconds reset_after() const noexcept { return detail::from_ns(raw_.reset_after_ns); }
    nanoseconds now() const noexcept { return detail::from_ns(raw_.now_ns); }
    const tollgate_decision_t &raw() const noexcept { return raw_; }

private:
    friend class limiter_ref;
    decision() noexcept : status_(TOLLGATE_E_NULL), raw_() {}

    int status_;
    tollgate_decision_t raw_;
};

/* A limiter that somebody else keeps: as cheap as a pointer. An empty one refuses everything. */
class limiter_ref {
public:
    limiter_ref() noexcept = default;
    explicit limiter_ref(tollgate_limiter_t *raw) noexcept : raw_(raw), error_(raw ? TOLLGATE_OK : TOLLGATE_E_NULL) {}

    /* Makes a limiter in memory that is zero, or finds it there: tollgate_init_in. */
    static limiter_ref init_in(void *memory, std::size_t len, const config &config) noexcept {
        limiter_ref made;
        made.error_ = tollgate_init_in(memory, len, config.raw(), &made.raw_);
        return made;
    }

    /* Finds the limiter that is there: tollgate_attach_in. */
    static limiter_ref attach_in(void *memory, std::size_t len) noexcept {
        limiter_ref found;
        found.error_ = tollgate_attach_in(memory, len, &found.raw_);
        return found;
    }

    explicit operator bool() const noexcept { return raw_ != nullptr; }
    /* Why it is empty, or TOLLGATE_OK. */
    int error() const noexcept { return error_; }
    tollgate_limiter_t *raw() const noexcept { return raw_; }

    bool try_acquire() const noexcept { return tollgate_try_acquire(raw_); }
    bool try_acquire(std::uint64_t n) const noexcept { return tollgate_try_acquire_n(raw_, n); }

    /* Time: a duration since the zero of the caller's clock, or a time_point of a clock that never steps back. */
    template <class Time>
    bool try_acquire_at(std::uint64_t n, Time now) const noexcept {
        return tollgate_try_acquire_at(raw_, n, detail::to_ns(now));
    }

    decision check(std::uint64_t n = 1) const noexcept {
        decision answer;
        answer.status_ = tollgate_check(raw_, n, &answer.raw_);
        return answer;
    }

    template <class Time>
    decision check_at(std::uint64_t n, Time now) const noexcept {
        decision answer;
        answer.status_ = tollgate_check_at(raw_, n, detail::to_ns(now), &answer.raw_);
        return answer;
    }

    decision peek(std::uint64_t n = 1) const noexcept {
        decision answer;
        answer.status_ = tollgate_peek(raw_, n, &answer.raw_);
        return answer;
    }

    template <class Time>
    decision peek_at(std::uint64_t n, Time now) const noexcept {
        decision answer;
        answer.status_ = tollgate_peek_at(raw_, n, detail::to_ns(now), &answer.raw_);
        return answer;
    }

    /* Takes a place in a queue (TOLLGATE_PACING) and puts the time to wait in wait; returns a status. */
    int reserve(std::uint64_t n, nanoseconds &wait) const noexcept {
        std::uint64_t ns = UINT64_MAX;
        int status = tollgate_reserve(raw_, n, &ns);
        wait = detail::from_ns(ns);
        return status;
    }

    template <class Time>
    int reserve_at(std::uint64_t n, Time now, nanoseconds &wait) const noexcept {
        std::uint64_t ns = UINT64_MAX;
        int status = tollgate_reserve_at(raw_, n, detail::to_ns(now), &ns);
        wait = detail::from_ns(ns);
        return status;
    }

    /* Permits charged to a rule; returns a status. */
    template <class Time>
    int usage_at(std::uint32_t rule, Time now, std::uint64_t &used) const noexcept {
        return tollgate_usage_at(raw_, rule, detail::to_ns(now), &used);
    }

    /* What was counted, with TOLLGATE_STATS; returns a status. */
    int stats(tollgate_stats_t &out) const noexcept {
        out.struct_size = TOLLGATE_STATS_SIZE;
        return tollgate_stats(raw_, &out);
    }

    /* Forgets every admission. Needs exclusive access. Returns a status. */
    int reset() const noexcept { return tollgate_reset(raw_); }

protected:
    tollgate_limiter_t *raw_ = nullptr;
    int error_ = TOLLGATE_E_NULL;
};

/* A limiter that this object owns; it can be moved, not copied. An empty one refuses everything. */
class limiter : public limiter_ref {
public:
    limiter() noexcept = default;
    limiter(const limiter &) = delete;
    limiter &operator=(const limiter &) = delete;
    limiter(limiter &&other) noexcept : limiter_ref(other) { other.forget(); }
    ~limiter() { tollgate_destroy(raw_); }

    limiter &operator=(limiter &&other) noexcept {
        if (this != &other) {
            tollgate_destroy(raw_);
            limiter_ref::operator=(other);
            other.forget();
        }
        return *this;
    }

    /* Makes a limiter; an empty one, with an error(), if that fails. */
    static limiter create(const config &config) noexcept {
        limiter made;
        made.error_ = tollgate_create(config.raw(), &made.raw_);
        return made;
    }

    /* Hands the limiter over to the caller, who destroys it. */
    tollgate_limiter_t *release() noexcept {
        tollgate_limiter_t *raw = raw_;
        forget();
        return raw;
    }

private:
    void forget() noexcept { limiter_ref::operator=(limiter_ref()); }
};

/* Keeps the coarse clock fresh while it lives. */
class coarse {
public:
    template <class Rep, class Period>
    explicit coarse(std::chrono::duration<Rep, Period> resolution) noexcept
        : raw_(nullptr), error_(tollgate_coarse_start(detail::to_ns(resolution), &raw_)) {}
    coarse(const coarse &) = delete;
    coarse &operator=(const coarse &) = delete;
    coarse(coarse &&other) noexcept : raw_(other.raw_), error_(other.error_) { other.raw_ = nullptr; }
    coarse &operator=(coarse &&) = delete;
    ~coarse() { tollgate_coarse_stop(raw_); }

    explicit operator bool() const noexcept { return raw_ != nullptr; }
    /* Why it does not, or TOLLGATE_OK. The clock works all the same, and is precise. */
    int error() const noexcept { return error_; }

private:
    tollgate_coarse_t *raw_;
    int error_;
};

}  // namespace tollgate

#endif /* TOLLGATE_HPP */
