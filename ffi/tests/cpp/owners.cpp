// tollgate.hpp does what it says: owners, durations, statuses, and no for an answer wherever something is missing.
#include <tollgate/tollgate.hpp>
#include <tollgate/tollgate.hpp> // twice on purpose

#include "../c/expect.h"

#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

using tollgate::config;
using tollgate::key_view;
using tollgate::keyed;
using tollgate::keyed_config;
using tollgate::limiter;
using tollgate::limiter_ref;
using namespace std::chrono;

static_assert(!std::is_copy_constructible<limiter>::value && !std::is_copy_assignable<limiter>::value, "owned once");
static_assert(std::is_nothrow_move_constructible<limiter>::value, "moves");
static_assert(std::is_nothrow_move_assignable<limiter>::value, "moves");
static_assert(!std::is_copy_constructible<tollgate::coarse>::value, "owned once");
static_assert(noexcept(limiter().try_acquire()) && noexcept(limiter().check()), "nothing is thrown");
static_assert(noexcept(limiter().try_acquire_at(1, steady_clock::now())), "nothing is thrown");

static config log(std::uint64_t limit) {
    return config(TOLLGATE_LOG, limit, seconds(1)).clock(TOLLGATE_CLOCK_CALLER);
}

static void owners() {
    limiter none;
    EXPECT(!none && none.error() == TOLLGATE_E_NULL && !none.try_acquire() && !none.try_acquire_at(0, seconds(1)));
    EXPECT(!none.check() && none.check().error() == TOLLGATE_E_NULL && none.check().remaining() == 0);

    limiter one = limiter::create(log(2));
    EXPECT(one && one.error() == TOLLGATE_OK && one.raw() != nullptr);
    EXPECT(one.try_acquire_at(1, milliseconds(1)));
    limiter two = std::move(one);
    EXPECT(!one && !one.try_acquire_at(1, milliseconds(1)));
    EXPECT(two.try_acquire_at(1, milliseconds(1)) && !two.try_acquire_at(1, milliseconds(1)));
    two = limiter::create(log(1));
    EXPECT(two.try_acquire_at(1, milliseconds(1)) && !two.try_acquire_at(1, milliseconds(1)));
    limiter &same = two;
    two = std::move(same);
    EXPECT(two && two.reset() == TOLLGATE_OK && two.try_acquire_at(1, milliseconds(1)));
    tollgate_limiter_t *raw = two.release();
    EXPECT(raw && !two);
    tollgate_destroy(raw);

    EXPECT(limiter::create(log(1).buckets(3)).error() == TOLLGATE_E_INVALID);
    config many = log(1);
    for (int i = 0; i < 8; i++) many.rule(1, seconds(1));
    EXPECT(limiter::create(many).error() == TOLLGATE_E_INVALID && many.size() == 0);
}

static void answers() {
    limiter it = limiter::create(log(5).rule(7, minutes(1)).max_cost(4).flags(TOLLGATE_STATS));
    EXPECT(it);
    auto first = it.check_at(3, seconds(1));
    EXPECT(first && first.status() == TOLLGATE_OK && first.error() == TOLLGATE_OK && first.remaining() == 2);
    EXPECT(first.limit() == 5 && first.rule() == 0 && first.reset_after() == minutes(1) && first.now() == seconds(1));
    auto refused = it.check_at(3, milliseconds(1500));
    EXPECT(!refused && refused.status() == TOLLGATE_REFUSED && refused.error() == TOLLGATE_OK);
    EXPECT(refused.retry_after() == milliseconds(500) && refused.next_after() == milliseconds(500));
    auto never = it.peek_at(5, seconds(2));
    EXPECT(!never && never.status() == TOLLGATE_NEVER && never.retry_after() == nanoseconds::max());
    EXPECT(never.reason() == TOLLGATE_REASON_ABOVE_MAX_COST);
    EXPECT(it.check_at(1, hours(-1)).error() == TOLLGATE_E_INVALID && it.check().error() == TOLLGATE_E_CLOCK);
    EXPECT(it.peek().error() == TOLLGATE_E_CLOCK && !it.try_acquire() && !it.try_acquire(0));
    EXPECT(it.try_acquire_at(1, steady_clock::time_point(seconds(1))));
    std::uint64_t used = 0;
    EXPECT(it.usage_at(1, seconds(1), used) == TOLLGATE_OK && used == 4);
    tollgate_stats_t stats;
    EXPECT(it.stats(stats) == TOLLGATE_OK && stats.allowed == 2 && stats.refused == 1);

    limiter queue = limiter::create(config(TOLLGATE_PACING, 2, seconds(1)).burst(1).clock(TOLLGATE_CLOCK_CALLER));
    nanoseconds wait(7);
    EXPECT(queue.reserve_at(1, seconds(1), wait) == TOLLGATE_OK && wait == seconds(0));
    EXPECT(queue.reserve_at(1, seconds(1), wait) == TOLLGATE_OK && wait == milliseconds(500));
    EXPECT(queue.reserve_at(1, seconds(1), wait) == TOLLGATE_REFUSED && wait == milliseconds(500));
    EXPECT(queue.reserve_at(9, seconds(1), wait) == TOLLGATE_NEVER && wait == nanoseconds::max());
    EXPECT(queue.reserve(1, wait) == TOLLGATE_E_CLOCK);

    limiter chance = limiter::create(
        config(TOLLGATE_WINDOW, 9, seconds(1)).buckets(4).phase(milliseconds(5)).clock(TOLLGATE_CLOCK_CALLER));
    EXPECT(chance.try_acquire_at(9, seconds(1)) && !chance.try_acquire_at(1, milliseconds(2004)));
    EXPECT(chance.try_acquire_at(1, milliseconds(2005)));
}

/* What does not fit into nanoseconds is out of range, not something else. */
template <class Window>
static int made_with(Window window) {
    return limiter::create(config(TOLLGATE_LOG, 1, window).clock(TOLLGATE_CLOCK_CALLER)).error();
}

static void spans() {
    const hours wraps(1ll << 62); /* to 0 in 64 bits */
    EXPECT(made_with(wraps) == TOLLGATE_E_INVALID && made_with(hours::max()) == TOLLGATE_E_INVALID);
    EXPECT(made_with(duration<double>(1e300)) == TOLLGATE_E_INVALID);
    EXPECT(made_with(duration<double>(std::numeric_limits<double>::quiet_NaN())) == TOLLGATE_E_INVALID);
    EXPECT(made_with(duration<double>(0.5)) == TOLLGATE_OK);
    limiter it = limiter::create(log(1));
    EXPECT(!it.try_acquire_at(0, wraps) && !it.try_acquire_at(0, minutes(-1)));
    EXPECT(!it.try_acquire_at(0, nanoseconds(-1)) && !it.try_acquire_at(0, nanoseconds::max()));
    EXPECT(it.try_acquire_at(0, nanoseconds((1ll << 62) - 1)) && it.try_acquire_at(0, hours(1281023)));
}

static void in_place() {
    config it = log(3);
    void *memory = nullptr;
    EXPECT(it.size() > 0 && posix_memalign(&memory, tollgate_align(), it.size()) == 0);
    std::memset(memory, 0, it.size());
    EXPECT(limiter_ref::attach_in(memory, it.size()).error() == TOLLGATE_E_NOT_READY);
    limiter_ref made = limiter_ref::init_in(memory, it.size(), it);
    EXPECT(made && made.error() == TOLLGATE_OK && made.try_acquire_at(2, seconds(1)));
    limiter_ref found = limiter_ref::attach_in(memory, it.size());
    EXPECT(found && found.try_acquire_at(1, seconds(1)) && !made.try_acquire_at(1, seconds(1)));
    EXPECT(limiter_ref(found.raw()).try_acquire_at(0, seconds(1)));
    EXPECT(limiter_ref::init_in(memory, it.size(), log(4)).error() == TOLLGATE_E_CONFIG);
    std::free(memory);
}

static void clocks() {
    if (tollgate_now_ns(TOLLGATE_CLOCK_PRECISE) == UINT64_MAX) {
        tollgate::coarse none{milliseconds(1)};
        EXPECT(!none && none.error() == TOLLGATE_E_UNSUPPORTED);
        return;
    }
    tollgate::coarse kept{milliseconds(1)};
    EXPECT(kept && kept.error() == TOLLGATE_OK);
    tollgate::coarse moved = std::move(kept);
    EXPECT(moved && !kept);
    EXPECT(tollgate::coarse(microseconds(1)).error() == TOLLGATE_E_EXISTS);
    for (std::uint32_t clock = TOLLGATE_CLOCK_PRECISE; clock < TOLLGATE_CLOCK_CALLER; clock++) {
        limiter it = limiter::create(config(TOLLGATE_LOG, 2, hours(1)).clock(clock));
        EXPECT(it.try_acquire() && it.peek() && it.check() && !it.try_acquire(1));
    }
}

static void shards() {
    if (log(5).shards(3).size() == 0) return; /* built without */
    limiter it = limiter::create(log(5).shards(3).max_cost(1));
    for (int i = 0; i < 5; i++) EXPECT(it.try_acquire_at(1, seconds(1)));
    EXPECT(!it.try_acquire_at(1, seconds(1)) && it.peek_at(1, seconds(1)).retry_after() == seconds(1));
    EXPECT(log(5).shards(3).size() > log(5).size());
}

static void live() {
    if (!lives()) return;
    tollgate_rule_t rules[TOLLGATE_MAX_RULES];
    std::uint32_t count = 0;
    limiter it = limiter::create(log(2).live(4).flags(TOLLGATE_STATS));
    EXPECT(it.try_acquire_at(2, seconds(1)) && !it.try_acquire_at(1, seconds(1)));
    EXPECT(it.set_rule(4, seconds(1)) == TOLLGATE_OK && it.try_acquire_at(2, seconds(1)));
    EXPECT(it.set_rule(5, seconds(1)) == TOLLGATE_E_INVALID && it.set_rules(nullptr, 1) == TOLLGATE_E_NULL);
    EXPECT(it.get_rules(rules, count) == TOLLGATE_OK && count == 1 && rules[0].limit == 4);
    EXPECT(rules[0].window_ns == 1000000000);
    limiter counter = limiter::create(config(TOLLGATE_WINDOW, 2, seconds(1)).live(seconds(3)).clock(TOLLGATE_CLOCK_CALLER));
    EXPECT(counter.set_rule(2, seconds(3)) == TOLLGATE_OK && counter.set_rule(2, seconds(4)) == TOLLGATE_E_INVALID);
    EXPECT(limiter::create(log(2)).set_rule(1, seconds(1)) == TOLLGATE_E_UNSUPPORTED);
    limiter compact = limiter::create(config(TOLLGATE_COMPACT, 2, seconds(1)).live(4).clock(TOLLGATE_CLOCK_CALLER));
    EXPECT(bare() ? compact.error() == TOLLGATE_E_UNSUPPORTED
                  : compact.set_rule(4, seconds(1)) == TOLLGATE_OK && compact.set_rule(5, seconds(1)) == TOLLGATE_E_INVALID);
}

/* Anything that has data and a size. */
struct text {
    const char *bytes;
    const char *data() const { return bytes; }
    std::size_t size() const { return bytes ? std::strlen(bytes) : 0; }
};

static void by_key() {
    keyed none;
    EXPECT(!none && none.error() == TOLLGATE_E_NULL && !none.try_acquire("a") && none.size() == 0);
    keyed_config few = keyed_config().clock(TOLLGATE_CLOCK_CALLER).secret(1, 2).flags(TOLLGATE_STATS);
    few.add(config(TOLLGATE_LOG, 2, seconds(1)), 10).add_unlimited().add(config(TOLLGATE_GCRA, 1, seconds(1)), 5);
    keyed it = keyed::create(few);
    if (!lives()) {
        EXPECT(!it && it.error() == TOLLGATE_E_UNSUPPORTED);
        return;
    }
    EXPECT(it && it.error() == TOLLGATE_OK);
    EXPECT(it.try_acquire_at("a", 1, seconds(1)) && it.try_acquire_at(text{"a"}, 1, seconds(1)));
    EXPECT(!it.try_acquire_at(key_view("abc", 1), 1, seconds(1)) && it.try_acquire_at("ab", 2, seconds(1)));
    EXPECT(it.try_acquire_at(text{nullptr}, 1, seconds(1)) && it.try_acquire_at("", 1, seconds(1)));
    EXPECT(!it.check_at("", 1, seconds(1)) && it.try_acquire_at("a", 99, seconds(1), 1));
    const char *nothing = nullptr;
    EXPECT(it.check_at(nothing, 0, seconds(1)).error() == TOLLGATE_E_NULL);
    EXPECT(it.check_at("a", 1, seconds(1), 2) && it.check_at("a", 1, seconds(1), 2).retry_after() == seconds(1));
    EXPECT(it.peek_at("a", 1, seconds(1)).retry_after() == seconds(1) && it.check("a").error() == TOLLGATE_E_CLOCK);
    EXPECT(it.peek("a").error() == TOLLGATE_E_CLOCK && !it.try_acquire("a"));
    std::uint64_t used = 0;
    EXPECT(it.usage_at("a", 0, seconds(1), used) == TOLLGATE_OK && used == 2 && it.size() == 4);
    tollgate_busy_key_t busy[2];
    std::size_t found = 0;
    EXPECT(it.busiest_at(seconds(1), busy, 2, found) == TOLLGATE_OK && found == 2 && busy[0].used == 2);
    EXPECT(it.remove("a") && !it.remove("a") && it.remove("a", 2) && it.size() == 2);
    tollgate_keyed_stats_t stats;
    EXPECT(it.stats(stats) == TOLLGATE_OK && stats.keys == 2 && stats.allowed == 7 && stats.refused == 3);
    keyed moved = std::move(it);
    EXPECT(moved && !it && moved.size() == 2 && moved.raw() != nullptr);
    it = std::move(moved);
    EXPECT(it && !moved && keyed::create(keyed_config()).error() == TOLLGATE_E_INVALID);
    keyed_config many;
    for (std::uint32_t i = 0; i <= keyed_config::classes_max; i++) many.add_unlimited();
    EXPECT(keyed::create(many).error() == TOLLGATE_E_INVALID);
}

int main() {
    owners();
    shards();
    live();
    by_key();
    answers();
    spans();
    in_place();
    clocks();
    return 0;
}
