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
#include <cstring>
#include <utility>

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
    config &shards(std::uint32_t shards) noexcept { return set(raw_.shards, shards); }
    config &flags(std::uint32_t flags) noexcept { return set(raw_.flags, flags | (raw_.flags & TOLLGATE_LIVE)); }
    config &seed(std::uint64_t seed) noexcept { return set(raw_.reserved[0], seed); }

    template <class Rep, class Period>
    config &phase(std::chrono::duration<Rep, Period> phase) noexcept {
        return set(raw_.reserved[0], detail::to_ns(phase));
    }

    /* The rules may change; those of a log, compact or not, and the rate of TOLLGATE_GCRA, up to this limit (0: the largest
     * now), those of a counter as below. */
    config &live(std::uint64_t limit_max = 0) noexcept {
        raw_.flags |= TOLLGATE_LIVE;
        return set(raw_.reserved[1], limit_max);
    }

    /* The rules of a counter may change, up to this window. */
    template <class Rep, class Period>
    config &live(std::chrono::duration<Rep, Period> window_max) noexcept {
        return live(detail::to_ns(window_max));
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
    friend class keyed;
    friend class shm;
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

    /* Replaces the rules, of a limiter that is live; returns a status. */
    int set_rules(const tollgate_rule_t *rules, std::uint32_t count) const noexcept {
        return tollgate_set_rules(raw_, rules, count);
    }

    /* The same with one rule. */
    template <class Rep, class Period>
    int set_rule(std::uint64_t limit, std::chrono::duration<Rep, Period> window) const noexcept {
        const tollgate_rule_t rule = {limit, detail::to_ns(window)};
        return set_rules(&rule, 1);
    }

    /* Replaces rate and burst, of a TOLLGATE_GCRA limiter that is live; returns a status. */
    template <class Rep, class Period, class Time>
    int set_rate_at(std::uint64_t limit, std::chrono::duration<Rep, Period> window, std::uint64_t burst,
                    Time now) const noexcept {
        const tollgate_rule_t rate = {limit, detail::to_ns(window)};
        return tollgate_set_rate_at(raw_, &rate, burst, detail::to_ns(now));
    }

    /* The present rules, of which there is room for TOLLGATE_MAX_RULES; returns a status. */
    int get_rules(tollgate_rule_t *rules, std::uint32_t &count) const noexcept {
        return tollgate_get_rules(raw_, rules, &count);
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
    friend class shm;
    void forget() noexcept { limiter_ref::operator=(limiter_ref()); }
};

/* A key: bytes that somebody else keeps. Of a string (std::string, std::string_view ...), text, or an address and a length. */
class key_view {
public:
    key_view(const void *bytes, std::size_t len) noexcept : bytes_(bytes), len_(len) {}
    /* Of no text, which is no key, every call says TOLLGATE_E_NULL. */
    key_view(const char *text) noexcept : bytes_(text), len_(text != nullptr ? std::strlen(text) : 1) {}

    template <class String, class = decltype(static_cast<const char *>(std::declval<const String &>().data()))>
    key_view(const String &string) noexcept : bytes_(string.data()), len_(string.size()) {}

    /* An empty string may have no address, yet it is a key. */
    const void *data() const noexcept { return bytes_ == nullptr && len_ == 0 ? "" : bytes_; }
    std::size_t size() const noexcept { return len_; }

private:
    const void *bytes_;
    std::size_t len_;
};

/* What limiters by key are to be: classes, each with its limits and room for so many keys. */
class keyed_config {
public:
    static constexpr std::uint32_t classes_max = 16;

    keyed_config() noexcept : raw_(), classes_(), limits_() {
        raw_.struct_size = TOLLGATE_KEYED_CONFIG_SIZE;
        raw_.clock = TOLLGATE_CLOCK_MONOTONIC;
    }

    /* One class more: the first has the number 0. One above classes_max is reported. */
    keyed_config &add(const config &limit, std::uint64_t keys) noexcept {
        const std::uint32_t at = raw_.class_count++;
        if (at < classes_max) {
            limits_[at] = *limit.raw();
            limits_[at].clock = 0;
            classes_[at].keys = keys;
            limited_[at] = true;
        }
        return *this;
    }

    /* One class more, without a limit. */
    keyed_config &add_unlimited() noexcept {
        raw_.class_count++;
        return *this;
    }

    keyed_config &clock(std::uint32_t clock) noexcept { return raw_.clock = clock, *this; }
    keyed_config &flags(std::uint32_t flags) noexcept { return raw_.flags = flags, *this; }

    keyed_config &secret(std::uint64_t first, std::uint64_t second) noexcept {
        raw_.secret[0] = first;
        raw_.secret[1] = second;
        return *this;
    }

private:
    friend class keyed;

    int create(tollgate_keyed_t **out) const noexcept {
        if (raw_.class_count > classes_max) return TOLLGATE_E_INVALID;
        tollgate_keyed_config_t raw = raw_;
        tollgate_class_t classes[classes_max];
        for (std::uint32_t at = 0; at < classes_max; at++) {
            classes[at] = classes_[at];
            classes[at].limit = limited_[at] ? &limits_[at] : nullptr;
        }
        raw.classes = classes;
        return tollgate_keyed_create(&raw, out);
    }

    tollgate_keyed_config_t raw_;
    tollgate_class_t classes_[classes_max];
    tollgate_config_t limits_[classes_max];
    bool limited_[classes_max] = {};
};

/* Limiters by key that this object owns; it can be moved, not copied. An empty one refuses everything. */
class keyed {
public:
    keyed() noexcept = default;
    keyed(const keyed &) = delete;
    keyed &operator=(const keyed &) = delete;
    keyed(keyed &&other) noexcept : raw_(other.raw_), error_(other.error_) { other.forget(); }
    ~keyed() { tollgate_keyed_destroy(raw_); }

    keyed &operator=(keyed &&other) noexcept {
        if (this != &other) {
            tollgate_keyed_destroy(raw_);
            raw_ = other.raw_;
            error_ = other.error_;
            other.forget();
        }
        return *this;
    }

    /* Makes them; none, with an error(), if that fails. */
    static keyed create(const keyed_config &config) noexcept {
        keyed made;
        made.error_ = config.create(&made.raw_);
        return made;
    }

    explicit operator bool() const noexcept { return raw_ != nullptr; }
    /* Why there are none, or TOLLGATE_OK. */
    int error() const noexcept { return error_; }
    tollgate_keyed_t *raw() const noexcept { return raw_; }

    bool try_acquire(key_view key, std::uint64_t n = 1, std::uint32_t class_index = 0) const noexcept {
        return tollgate_keyed_try_acquire(raw_, class_index, key.data(), key.size(), n);
    }

    template <class Time>
    bool try_acquire_at(key_view key, std::uint64_t n, Time now, std::uint32_t class_index = 0) const noexcept {
        return tollgate_keyed_try_acquire_at(raw_, class_index, key.data(), key.size(), n, detail::to_ns(now));
    }

    decision check(key_view key, std::uint64_t n = 1, std::uint32_t class_index = 0) const noexcept {
        decision answer;
        answer.status_ = tollgate_keyed_check(raw_, class_index, key.data(), key.size(), n, &answer.raw_);
        return answer;
    }

    template <class Time>
    decision check_at(key_view key, std::uint64_t n, Time now, std::uint32_t class_index = 0) const noexcept {
        decision answer;
        answer.status_ =
            tollgate_keyed_check_at(raw_, class_index, key.data(), key.size(), n, detail::to_ns(now), &answer.raw_);
        return answer;
    }

    decision peek(key_view key, std::uint64_t n = 1, std::uint32_t class_index = 0) const noexcept {
        decision answer;
        answer.status_ = tollgate_keyed_peek(raw_, class_index, key.data(), key.size(), n, &answer.raw_);
        return answer;
    }

    template <class Time>
    decision peek_at(key_view key, std::uint64_t n, Time now, std::uint32_t class_index = 0) const noexcept {
        decision answer;
        answer.status_ =
            tollgate_keyed_peek_at(raw_, class_index, key.data(), key.size(), n, detail::to_ns(now), &answer.raw_);
        return answer;
    }

    /* Permits charged to a rule of a key; returns a status. */
    template <class Time>
    int usage_at(key_view key, std::uint32_t rule, Time now, std::uint64_t &used,
                 std::uint32_t class_index = 0) const noexcept {
        return tollgate_keyed_usage_at(raw_, class_index, key.data(), key.size(), rule, detail::to_ns(now), &used);
    }

    /* Forgives a key; whether it had a history. */
    bool remove(key_view key, std::uint32_t class_index = 0) const noexcept {
        return tollgate_keyed_remove(raw_, class_index, key.data(), key.size());
    }

    std::uint64_t size() const noexcept { return tollgate_keyed_len(raw_); }

    /* The busiest keys, at most room of them; returns a status. */
    template <class Time>
    int busiest_at(Time now, tollgate_busy_key_t *out, std::size_t room, std::size_t &found) const noexcept {
        return tollgate_keyed_busiest_at(raw_, detail::to_ns(now), out, room, &found);
    }

    /* What there is, and what was counted; returns a status. */
    int stats(tollgate_keyed_stats_t &out) const noexcept {
        out.struct_size = TOLLGATE_KEYED_STATS_SIZE;
        return tollgate_keyed_stats(raw_, &out);
    }

private:
    void forget() noexcept {
        raw_ = nullptr;
        error_ = TOLLGATE_E_NULL;
    }

    tollgate_keyed_t *raw_ = nullptr;
    int error_ = TOLLGATE_E_NULL;
};

/* What a region that processes share is to be: limiters by index, and room for so many keys, all of one limit, by its clock. */
class shm_config {
public:
    shm_config(const config &limit, std::uint64_t limiters, std::uint64_t keys = 0) noexcept
        : raw_(TOLLGATE_SHM_CONFIG_INIT(limit.raw()->clock, nullptr, limiters, keys)), limit_(*limit.raw()) {
        limit_.clock = 0;
    }

    shm_config &flags(std::uint32_t flags) noexcept { return raw_.flags = flags, *this; }
    shm_config &mode(std::uint32_t mode) noexcept { return raw_.mode = mode, *this; }

    /* Good for as long as this object stays where it is. */
    tollgate_shm_config_t raw() const noexcept {
        tollgate_shm_config_t raw = raw_;
        raw.limit = &limit_;
        return raw;
    }

    /* Bytes of such a region; 0 if there is none. */
    std::size_t size() const noexcept {
        const tollgate_shm_config_t config = raw();
        std::size_t bytes = 0;
        return tollgate_shm_size(&config, &bytes) == TOLLGATE_OK ? bytes : 0;
    }

private:
    tollgate_shm_config_t raw_;
    tollgate_config_t limit_;
};

/* What this object has of a region, which stays when it goes; it can be moved, not copied. An empty one refuses everything. Linux, and
 * a library that was built with regions. */
class shm {
public:
    shm() noexcept = default;
    shm(const shm &) = delete;
    shm &operator=(const shm &) = delete;
    shm(shm &&other) noexcept : raw_(other.raw_), error_(other.error_) { other.forget(); }
    ~shm() {
        if (raw_ != nullptr) tollgate_shm_close(raw_);
    }

    shm &operator=(shm &&other) noexcept {
        if (this != &other) {
            if (raw_ != nullptr) tollgate_shm_close(raw_);
            raw_ = other.raw_;
            error_ = other.error_;
            other.forget();
        }
        return *this;
    }

    /* Attaches to the region in a file, or makes it. An empty one, with an error(), if that fails; so all of these. */
    static shm open(const char *path, const shm_config &config) noexcept { return had(tollgate_shm_open, path, config); }
    static shm create(const char *path, const shm_config &config) noexcept { return had(tollgate_shm_create, path, config); }
    static shm attach(const char *path, const shm_config &config) noexcept { return had(tollgate_shm_attach, path, config); }
    static shm open_fd(int fd, const shm_config &config) noexcept { return had(tollgate_shm_open_fd, fd, config); }

    /* Makes one in anonymous memory, and puts its descriptor, the caller's from then on, in fd. */
    static shm create_memfd(const char *name, const shm_config &config, int &fd) noexcept {
        const tollgate_shm_config_t raw = config.raw();
        shm made;
        made.error_ = tollgate_shm_create_memfd(name, &raw, &fd, &made.raw_);
        return made;
    }

    /* Makes one in memory that is zero and stays for as long, or finds it there. */
    static shm place(void *memory, std::size_t len, const shm_config &config) noexcept {
        const tollgate_shm_config_t raw = config.raw();
        shm made;
        made.error_ = tollgate_shm_place(memory, len, &raw, &made.raw_);
        return made;
    }

    explicit operator bool() const noexcept { return raw_ != nullptr; }
    /* Why there is none, or TOLLGATE_OK. */
    int error() const noexcept { return error_; }
    tollgate_shm_t *raw() const noexcept { return raw_; }

    /* Replaces the rules of all limiters and keys, of a region that is live; returns a status. */
    int set_rules(const tollgate_rule_t *rules, std::uint32_t count) const noexcept {
        return tollgate_shm_set_rules(raw_, rules, count);
    }

    /* The same with one rule. */
    template <class Rep, class Period>
    int set_rule(std::uint64_t limit, std::chrono::duration<Rep, Period> window) const noexcept {
        const tollgate_rule_t rule = {limit, detail::to_ns(window)};
        return set_rules(&rule, 1);
    }

    /* The rules in force, of which there is room for TOLLGATE_MAX_RULES; returns a status. */
    int get_rules(tollgate_rule_t *rules, std::uint32_t &count) const noexcept {
        return tollgate_shm_get_rules(raw_, rules, &count);
    }

    /* Limiters by index. */
    std::uint64_t count() const noexcept { return tollgate_shm_count(raw_); }

    /* The limiter at an index, not to be used once this object is gone; an empty one, with an error(), if there is none. */
    limiter get(std::uint64_t index) const noexcept {
        limiter made;
        made.error_ = tollgate_shm_get(raw_, index, &made.raw_);
        return made;
    }

    bool try_acquire(key_view key, std::uint64_t n = 1) const noexcept {
        return tollgate_shm_keyed_try_acquire(raw_, key.data(), key.size(), n);
    }

    template <class Time>
    bool try_acquire_at(key_view key, std::uint64_t n, Time now) const noexcept {
        return tollgate_shm_keyed_try_acquire_at(raw_, key.data(), key.size(), n, detail::to_ns(now));
    }

    decision check(key_view key, std::uint64_t n = 1) const noexcept {
        decision answer;
        answer.status_ = tollgate_shm_keyed_check(raw_, key.data(), key.size(), n, &answer.raw_);
        return answer;
    }

    template <class Time>
    decision check_at(key_view key, std::uint64_t n, Time now) const noexcept {
        decision answer;
        answer.status_ = tollgate_shm_keyed_check_at(raw_, key.data(), key.size(), n, detail::to_ns(now), &answer.raw_);
        return answer;
    }

    decision peek(key_view key, std::uint64_t n = 1) const noexcept {
        decision answer;
        answer.status_ = tollgate_shm_keyed_peek(raw_, key.data(), key.size(), n, &answer.raw_);
        return answer;
    }

    template <class Time>
    decision peek_at(key_view key, std::uint64_t n, Time now) const noexcept {
        decision answer;
        answer.status_ = tollgate_shm_keyed_peek_at(raw_, key.data(), key.size(), n, detail::to_ns(now), &answer.raw_);
        return answer;
    }

    /* Permits charged to a rule of a key; returns a status. */
    template <class Time>
    int usage_at(key_view key, std::uint32_t rule, Time now, std::uint64_t &used) const noexcept {
        return tollgate_shm_keyed_usage_at(raw_, key.data(), key.size(), rule, detail::to_ns(now), &used);
    }

    /* Keys that have a place now, and the most that there can be. */
    std::uint64_t size() const noexcept { return tollgate_shm_keyed_len(raw_); }
    std::uint64_t capacity() const noexcept { return tollgate_shm_keyed_capacity(raw_); }

private:
    template <class From>
    static shm had(int (*call)(From, const tollgate_shm_config_t *, tollgate_shm_t **), From from,
                   const shm_config &config) noexcept {
        const tollgate_shm_config_t raw = config.raw();
        shm made;
        made.error_ = call(from, &raw, &made.raw_);
        return made;
    }

    void forget() noexcept {
        raw_ = nullptr;
        error_ = TOLLGATE_E_NULL;
    }

    tollgate_shm_t *raw_ = nullptr;
    int error_ = TOLLGATE_E_NULL;
};

/* Removes the name of a region; returns a status. */
inline int shm_unlink(const char *path) noexcept { return tollgate_shm_unlink(path); }

/* What region is in a file, of whatever configuration; returns a status. */
inline int shm_inspect(const char *path, tollgate_shm_info_t &out) noexcept {
    out.struct_size = TOLLGATE_SHM_INFO_SIZE;
    return tollgate_shm_inspect(path, &out);
}

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
