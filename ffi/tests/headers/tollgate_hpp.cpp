/* tollgate.hpp as the first and only header, twice, in any C++ from C++14, without exceptions and run-time types too.
 * Every member is used once: what is not used of a template is hardly looked at. */
#include <tollgate/tollgate.hpp>
#include <tollgate/tollgate.hpp>

static int use_regions(const tollgate::config &limit, void *memory, std::size_t length) {
    using namespace std::chrono;
    tollgate::shm_config config(limit, 1, 10);
    config.flags(TOLLGATE_REFUSE_WHEN_FULL | TOLLGATE_ANY_OWNER).mode(0600);
    int fd = -1;
    tollgate::shm made = tollgate::shm::open("/dev/shm/region", config);
    tollgate::shm region(static_cast<tollgate::shm &&>(made));
    region = tollgate::shm::create("/dev/shm/region", config);
    region = tollgate::shm::attach("/dev/shm/region", config);
    region = tollgate::shm::create_memfd("region", config, fd);
    region = tollgate::shm::open_fd(fd, config);
    region = tollgate::shm::place(memory, length, config);
    static_assert(noexcept(region.try_acquire("key")), "");
    tollgate::limiter limiter = region.get(0);
    bool admitted = region.try_acquire("key") && region.try_acquire_at("key", 1, seconds(1)) && region.check("key");
    auto decision = region.check_at("key", 1, seconds(1));
    decision = region.peek("key");
    decision = region.peek_at("key", 1, steady_clock::now());
    std::uint64_t used = region.size() + region.capacity() + region.count();
    tollgate_shm_info_t info;
    int status = region.usage_at("key", 0, seconds(1), used) | tollgate::shm_inspect("/dev/shm/region", info);
    status |= tollgate::shm_unlink("/dev/shm/region");
    return admitted && limiter && region && region.raw() && config.size() == info.bytes ? status : region.error();
}

int use(void *memory, std::size_t length);

/* The hot path promises not to throw. */
template <class Limiter>
void promises(Limiter &limiter, std::chrono::steady_clock::time_point time) {
    static_assert(noexcept(limiter.try_acquire()), "");
    static_assert(noexcept(limiter.try_acquire(1)), "");
    static_assert(noexcept(limiter.try_acquire_at(1, time)), "");
    static_assert(noexcept(limiter.check()), "");
    static_assert(noexcept(limiter.peek_at(1, time)), "");
}

static int use_keys(const tollgate::config &limit) {
    using namespace std::chrono;
    tollgate::keyed_config config;
    config.add(limit, 10).add_unlimited().clock(TOLLGATE_CLOCK_MONOTONIC).flags(TOLLGATE_STATS).secret(1, 2);
    tollgate::keyed made = tollgate::keyed::create(config);
    tollgate::keyed keyed(static_cast<tollgate::keyed &&>(made));
    made = static_cast<tollgate::keyed &&>(keyed);
    static_assert(noexcept(made.try_acquire("key")), "");
    std::uint64_t used = made.size();
    std::size_t found = 0;
    tollgate_busy_key_t busy;
    tollgate_keyed_stats_t stats;
    bool admitted = made.try_acquire("key") && made.try_acquire_at("key", 1, seconds(1)) && made.check("key");
    admitted = made.check_at("key", 1, seconds(1)) && made.peek("key") && made.peek_at("key", 1, seconds(1)) && admitted;
    int status = made.usage_at("key", 0, seconds(1), used) | made.busiest_at(seconds(1), &busy, 1, found) | made.stats(stats);
    return made.remove("key") && admitted && made && made.raw() ? status : made.error();
}

int use(void *memory, std::size_t length) {
    using namespace std::chrono;
    auto config = tollgate::config(TOLLGATE_WINDOW, 10, seconds(1)).rule(20, minutes(1)).clock(TOLLGATE_CLOCK_MONOTONIC);
    config.buckets(10).burst(0).max_cost(2).flags(TOLLGATE_STATS).seed(0).phase(milliseconds(1));
    if (config.size() != length || config.raw()->rule_count != 2) {
        return TOLLGATE_E_SIZE;
    }
    auto shared = tollgate::limiter_ref::init_in(memory, length, config);
    auto found = tollgate::limiter_ref::attach_in(memory, length);
    auto owned = tollgate::limiter::create(config);
    promises(shared, steady_clock::now());
    promises(owned, steady_clock::now());
    tollgate::limiter moved(static_cast<tollgate::limiter &&>(owned));
    owned = static_cast<tollgate::limiter &&>(moved);
    tollgate::limiter_ref borrowed(owned.raw());
    bool admitted = shared.try_acquire() && found.try_acquire(2) && borrowed.try_acquire_at(1, steady_clock::now());
    auto decision = found.check();
    nanoseconds wait = decision.retry_after() + decision.next_after() + decision.reset_after() + decision.now();
    std::uint64_t used = decision.reason() + decision.rule() + decision.limit() + decision.remaining();
    decision = found.check_at(1, seconds(7));
    decision = found.peek(1);
    decision = found.peek_at(1, system_clock::now());
    int status = decision.status() | decision.error() | static_cast<int>(decision.raw().allowed);
    status |= found.reserve(1, wait) | found.reserve_at(1, seconds(7), wait) | found.usage_at(0, hours(1), used);
    tollgate_stats_t stats;
    status |= found.stats(stats) | shared.reset() | owned.error();
    tollgate::coarse coarse(milliseconds(1));
    tollgate::coarse still(static_cast<tollgate::coarse &&>(coarse));
    tollgate_rule_t rules[TOLLGATE_MAX_RULES];
    std::uint32_t count = 0;
    config.shards(2).live().live(seconds(2));
    status |= owned.set_rule(1, seconds(1)) | owned.get_rules(rules, count) | owned.set_rules(rules, count);
    status |= owned.set_rate_at(1, seconds(1), 1, seconds(1)) | use_keys(config);
    status |= use_regions(config, memory, length);
    tollgate_destroy(owned.release());
    return admitted && decision && still && used > 0 ? status : coarse.error();
}
